"""tinyimagenet-c: TinyImageNet clean and under fifteen corruptions."""

import io
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from ..data.downloads.prepared import Prepared
from ..data.downloads.public_files import PublicFile, check
from ..data.images.image_folder import FORMATS
from ..errors import FarshoreError
from .benchmark import Made
from .corrupted import CLEAN, PAIRS, CorruptedImages

TARGET = "elastic_transform+pixelate+jpeg_compression"
CLASSES = 200
FOLDER = "tiny-imagenet-200"
ReadBytes = Callable[[str], bytes]


class TinyImageNetC(CorruptedImages):
    """TinyImageNet clean and corrupted: 100,000 clean images, six corrupted sources and the target.

    A source has 8,000 images x 2 corruptions, the target 2,000 other images x 3 corruptions. They
    are the 10,000 official validation images. A part of the data set with fewer classes in the
    official layout (tiny-imagenet-*.zip) is also accepted, and every result reports it.
    """

    name = "tinyimagenet-c"
    summary = (
        "TinyImageNet: clean 100,000, six pairs of corruptions of 16,000 -> three other "
        "corruptions, 6,000"
    )
    reference = (
        "Le and Yang, Tiny ImageNet, 2015; Hendrycks and Dietterich, Benchmarking Neural "
        "Network Robustness ..., ICLR 2019"
    )
    licence = "ImageNet terms: non-commercial research; frost photographs: Apache-2.0"
    domains = (CLEAN, *PAIRS, TARGET)
    default_target = TARGET
    classes = tuple(f"class {number}" for number in range(CLASSES))
    steps = 2500
    profile = "large-data"
    raw = "tinyimagenet"
    set_name = "tinyimagenet-c"
    size = 64
    published = "Tiny-ImageNet-C"
    files = (
        PublicFile(
            f"{FOLDER}.zip",
            (f"https://cs231n.stanford.edu/{FOLDER}.zip",),
            "6198c8ae015e2b3e007c7841da39ec069199b9aa3bfa943a462022fe5e43c821",
            248_100_043,
        ),
    )

    def has_clean(self, raw: Path) -> bool:
        """Whether the official archive, its unpacked folder or an archive of a part exists."""
        return (raw / FOLDER / "wnids.txt").is_file() or any(raw.glob("tiny-imagenet-*.zip"))

    def read_train(self, raw: Path) -> tuple[np.ndarray, np.ndarray]:
        """Read the training images, class by class."""
        names, read, classes = self._open(raw)
        wanted = sorted(of for of in names if of.startswith("train/") and of.endswith(".JPEG"))
        labels = [classes.index(name.split("/")[1]) for name in wanted]
        return _decode(wanted, read), np.array(labels, np.uint8)

    def read_test(self, raw: Path) -> tuple[np.ndarray, np.ndarray]:
        """Read the validation images in the order of their list."""
        _, read, classes = self._open(raw)
        listed = _annotations(read)
        return _decode([f"val/images/{file}" for file, _ in listed], read), np.array(
            [classes.index(c) for _, c in listed], np.uint8
        )

    def read_published(self, raw: Path, corruption: str, labels: np.ndarray) -> np.ndarray:
        """Read corruption/severity/class/image, where images have their validation names."""
        _, read, classes = self._open(raw)
        listed = zip(_annotations(read), labels, strict=True)
        folder = raw / self.published / corruption / str(self.severity)
        files = [folder / classes[label] / file for (file, _), label in listed]
        missing = next((file for file in files if not file.is_file()), None)
        if missing is not None:
            raise FarshoreError(
                f"{missing} is missing: download {self.published} again, or remove its folder to "
                "generate the corruptions"
            )
        return _decode([str(file) for file in files], lambda file: Path(file).read_bytes())

    def make(self, sources: Sequence[str], target: str, seed: int) -> Made:
        """Make the domains; the classes are those of the files."""
        domains = super().make(sources, target, seed)
        self.classes = tuple(self.open(seed).about["classes"])
        return domains

    def notes(self, prepared: Prepared) -> tuple[str, ...]:
        """Report if only a part of the data set was used."""
        part = _part(prepared)
        return (f"a part of TinyImageNet, {part}: not the paper's data",) if part else ()

    def data_facts(self, seed: int) -> dict[str, str]:
        """Add which part of the data set was used."""
        part = _part(self.open(seed))
        return super().data_facts(seed) | ({"part": part} if part else {})

    def _open(self, raw: Path) -> tuple[list[str], ReadBytes, list[str]]:
        """Return the names in the data set, a function that reads one, and the classes."""
        names, read, location = open_images(raw)
        classes = sorted(read("wnids.txt").decode().split())
        # The list of an archive may name more classes than it has images of.
        available = {name.split("/")[1] for name in names if name.startswith("train/")}
        classes = [name for name in classes if name in available]
        self.about |= {"classes": classes, "file": location.name}
        return names, read, classes


def _annotations(read: ReadBytes) -> list[tuple[str, str]]:
    """Return file and class of each validation image, in the order of their list."""
    lines = read("val/val_annotations.txt").decode().splitlines()
    return [(line.split("\t")[0], line.split("\t")[1]) for line in lines if line]


def _part(prepared: Prepared) -> str:
    """Describe the part of the data set that was prepared; empty for the whole."""
    count = len(prepared.about["classes"])
    if count == CLASSES and prepared.domains[CLEAN] == 100_000:
        return ""
    return f"{count} of {CLASSES} classes ({prepared.about['file']})"


def open_images(raw: Path) -> tuple[list[str], ReadBytes, Path]:
    """Return the names in the data set, a function that reads one, and the file or folder."""
    if (raw / FOLDER / "wnids.txt").is_file():
        top = raw / FOLDER
        names = [path.relative_to(top).as_posix() for path in top.rglob("*") if path.is_file()]
        return names, lambda name: (top / name).read_bytes(), top
    if (raw / f"{FOLDER}.zip").is_file():
        path = check(TinyImageNetC.files[0], raw)
    else:
        path = sorted(raw.glob("tiny-imagenet-*.zip"))[0]
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile as error:
        raise FarshoreError(f"{path} is damaged: {error}; delete it and prepare again") from None
    inside = [name for name in archive.namelist() if not name.endswith("/")]
    prefix = inside[0].split("/")[0] + "/"
    names = [name.removeprefix(prefix) for name in inside]
    return names, lambda name: archive.read(prefix + name), path


def _decode(names: Sequence[str], read: ReadBytes) -> np.ndarray:
    images = np.empty((len(names), 3, 64, 64), np.uint8)
    for row, name in enumerate(names):
        try:
            with Image.open(io.BytesIO(read(name)), formats=FORMATS) as image:
                images[row] = np.asarray(image.convert("RGB")).transpose(2, 0, 1)
        except (OSError, ValueError, KeyError) as error:
            raise FarshoreError(
                f"{name} cannot be read as an image of 64 x 64 ({error}): prepare from complete "
                "files"
            ) from None
    return images
