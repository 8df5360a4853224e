"""rotated-mnist: the 70,000 MNIST digits, rotated by a different angle in each domain."""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch

from ..base.randomness import generator
from ..data.downloads.archives import read_gzip
from ..data.downloads.public_files import PublicFile
from ..data.images.images import rotate
from ..errors import FarshoreError
from .extended import Extended, repeated
from .natural import InTime
from .prepared import PreparedBenchmark

MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
ANGLES = ("0", "15", "30", "45", "75")
LARGEST = 60_000 * 28 * 28 + 16


# Name, sha256 and size of the official files.
PUBLIC = """
train-images-idx3-ubyte.gz 440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609 9912422
train-labels-idx1-ubyte.gz 3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c 28881
t10k-images-idx3-ubyte.gz 8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6 1648877
t10k-labels-idx1-ubyte.gz f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6 4542
"""


class RotatedMNIST(PreparedBenchmark):
    """Five disjoint parts of 14,000 digits, rotated counter-clockwise by 0, 15, 30, 45, 75 degrees.

    Training and test files are pooled and divided only by the scenario seed, so that no digit is in
    two domains and the parts are the same in all runs (the paper divides the 70,000 evenly over its
    five domains; DomainBed makes six). As in DomainBed, rotation is bilinear with zero padding,
    pixels are in [0, 1], and there is no augmentation.
    """

    name = "rotated-mnist"
    summary = (
        "70,000 digits in five disjoint parts of 14,000, rotated by 0, 15, 30, 45 -> 75 degrees"
    )
    reference = (
        "LeCun, Cortes, Burges, MNIST, 1998; Ghifary et al., Domain Generalization ..., ICCV 2015"
    )
    licence = "none stated by the source"
    domains: ClassVar[tuple[str, ...]] = ANGLES
    angles: ClassVar[tuple[str, ...]] = ANGLES
    default_target: ClassVar[str] = "75"
    classes = tuple(str(digit) for digit in range(10))
    network = "cnn"
    steps = 1000
    memory = 1000
    raw = "mnist"
    set_name = "rotated-mnist"
    files = tuple(
        PublicFile(name, tuple(mirror + name for mirror in MIRRORS), sha256, int(size))
        for name, sha256, size in map(str.split, PUBLIC.strip().splitlines())
    )

    def build_domains(self, raw: Path, seed: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        """Pool the files, divide them by a permutation from the scenario seed, and rotate."""
        kinds = ("train", "t10k")
        files = [raw / f"{kind}-images-idx3-ubyte.gz" for kind in kinds]
        images = np.concatenate([read_idx(file) for file in files])[:, None]
        labels = np.concatenate([read_idx(raw / f"{kind}-labels-idx1-ubyte.gz") for kind in kinds])
        order = torch.randperm(len(images), generator=generator(seed, self.set_name))
        parts = order.tensor_split(len(self.angles))
        for angle, part in zip(self.angles, parts, strict=True):
            rows = part.numpy()
            yield angle, rotate(torch.from_numpy(images[rows]), float(angle)).numpy(), labels[rows]


class RotatedMNISTTime(InTime, RotatedMNIST):
    """Nine disjoint parts of 7,777 or 7,778 digits, each rotated by 10 degrees more than the last.

    0 to 50 degrees are learned in this order; the targets are 60, 70 and 80, one, two and three
    steps further, and none of these is ever learned. So did Xie et al., "Evolving Standardization
    for Continual Domain Generalization over Temporal Drift", NeurIPS 2023 (EvoS), with the same
    share of held-out rows. As in their code, a target is scored on all of its rows. They train
    5,450 steps per domain (50 passes); here it is 1,000 unless `--steps` says otherwise.
    """

    name = "rotated-mnist-time"
    summary = "70,000 digits in nine parts, rotated by 0, 10, ..., 50 -> 60, 70, 80 degrees"
    domains = angles = tuple(str(angle) for angle in range(0, 90, 10))
    last_source = "50"
    default_target = "60"
    set_name = "rotated-mnist-time"
    held_out = 0.1


class RotatedMNISTExtended(Extended, RotatedMNIST):
    """Fifteen sources for timing: the four source angles repeat with the same rows under new names.

    `30-2` is the 30-degree part the second time. The benchmark shows how a step's time grows with
    the number of past domains; its scores mean little, because nothing new comes after the first
    round. The target is always 75 degrees, because every other angle is one of the sources.
    """

    name = "rotated-mnist-extended"
    summary = "rotated-mnist with 15 source domains by repetition of 0, 15, 30, 45; for timing"
    domains = repeated(ANGLES[:-1], ANGLES[-1])


def read_idx(path: Path) -> np.ndarray:
    """Read MNIST's idx format: 0, 0, type 8 (bytes), the number of axes, lengths, and bytes."""
    data = read_gzip(path, limit=LARGEST)
    if len(data) < 4 or data[:3] != b"\0\0\x08":
        raise FarshoreError(f"{path} is not an idx file of bytes: delete it and prepare again")
    axes = data[3]
    shape = struct.unpack_from(f">{axes}I", data, 4) if len(data) >= 4 + 4 * axes else ()
    values = np.frombuffer(data, np.uint8, offset=4 + 4 * axes)
    if not shape or values.size != int(np.prod(shape)):
        raise FarshoreError(
            f"{path} contains {values.size} bytes, but its header gives the shape {shape}: delete "
            "it and prepare again"
        )
    return values.reshape(shape)
