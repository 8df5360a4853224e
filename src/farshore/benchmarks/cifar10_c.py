"""cifar10-c: CIFAR-10 clean and under seventeen corruptions."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from ..data.downloads.archives import unpack
from ..data.downloads.public_files import PublicFile, check
from ..errors import FarshoreError
from .corrupted import CLEAN, PAIRS, CorruptedImages

TARGET = "elastic_transform+pixelate+jpeg_compression+spatter+saturate"
BATCHES = "cifar-10-batches-bin"
TRAIN = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
TEST = ("test_batch.bin",)
ROW = 1 + 3 * 32 * 32
LARGEST = 200_000_000


class CIFAR10C(CorruptedImages):
    """CIFAR-10 clean and corrupted: 50,000 clean images, six corrupted sources and the target.

    A source has 8,000 images x 2 corruptions, the target 2,000 other images x 5 corruptions. The
    counts are the paper's; the division of the 10,000 test images was derived from them.
    """

    name = "cifar10-c"
    summary = (
        "CIFAR-10: clean 50,000, six pairs of corruptions of 16,000 -> five other "
        "corruptions, 10,000"
    )
    reference = (
        "Krizhevsky, CIFAR-10, 2009; Hendrycks and Dietterich, Benchmarking Neural "
        "Network Robustness ..., ICLR 2019"
    )
    licence = (
        "CIFAR-10: none stated by the source; CIFAR-10-C: CC BY 4.0; frost photographs: Apache-2.0"
    )
    domains = (CLEAN, *PAIRS, TARGET)
    default_target = TARGET
    classes = (
        *("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
    )
    steps = 1200
    profile = "long-training"
    raw = "cifar10"
    set_name = "cifar10-c"
    size = 32
    published = "CIFAR-10-C"
    files = (
        PublicFile(
            "cifar-10-binary.tar.gz",
            ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
            "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
            170_052_171,
        ),
    )

    def has_clean(self, raw: Path) -> bool:
        """Whether the official archive or its unpacked folder exists."""
        unpacked = all((raw / BATCHES / name).is_file() for name in (*TRAIN, *TEST))
        return unpacked or (raw / self.files[0].name).is_file()

    def read_train(self, raw: Path) -> tuple[np.ndarray, np.ndarray]:
        """Read the 50,000 training images."""
        return read_batches(raw, TRAIN)

    def read_test(self, raw: Path) -> tuple[np.ndarray, np.ndarray]:
        """Read the 10,000 test images."""
        return read_batches(raw, TEST)

    def published_parts(self) -> list[str]:
        """Return the files: one array per corruption, and the labels."""
        return [*(f"{name}.npy" for name in super().published_parts()), "labels.npy"]

    def read_published(self, raw: Path, corruption: str, labels: np.ndarray) -> np.ndarray:
        """Read the rows of one severity; the arrays have 10,000 images for each of 1 to 5."""
        folder, count = raw / self.published, len(labels)
        files = [folder / f"{name}.npy" for name in (corruption, "labels")]
        arrays = [np.load(file, mmap_mode="r", allow_pickle=False) for file in files]
        rows = slice((self.severity - 1) * count, self.severity * count)
        if arrays[0].shape != (5 * count, 32, 32, 3) or not np.array_equal(arrays[1][rows], labels):
            raise FarshoreError(
                f"{folder / corruption}.npy and labels.npy do not fit the test images: download "
                f"{self.published} again"
            )
        return np.ascontiguousarray(arrays[0][rows].transpose(0, 3, 1, 2))


def read_batches(raw: Path, names: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels of the official files: rows of a label and 1,024 values per channel."""

    def read(folder: Path) -> np.ndarray:
        return np.concatenate([np.fromfile(folder / BATCHES / name, np.uint8) for name in names])

    if all((raw / BATCHES / name).is_file() for name in names):
        rows = read(raw)
    else:
        archive = check(CIFAR10C.files[0], raw)
        with TemporaryDirectory(prefix="farshore-", ignore_cleanup_errors=True) as unpacked:
            unpack(archive, Path(unpacked), limit=LARGEST)
            rows = read(Path(unpacked))
    count = 10_000 * len(names)
    if (
        rows.size != count * ROW
        or np.bincount(rows[::ROW], minlength=10).tolist() != [count // 10] * 10
    ):
        raise FarshoreError(
            f"the CIFAR-10 files in {raw} are not the official ones with {count:,} images, "
            f"{count // 10:,} per class"
        )
    rows = rows.reshape(count, ROW)
    return rows[:, 1:].reshape(count, 3, 32, 32), rows[:, 0].copy()
