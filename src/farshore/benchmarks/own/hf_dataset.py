"""hf-dataset: a data set of the Hugging Face hub, or one on the disk, by its columns."""

import hashlib
from functools import lru_cache
from typing import ClassVar

import pandas as pd
from pydantic import Field

from ...data.downloads.public_files import FileState, file_states
from ...data.images.hf_columns import as_frame, image_bytes, image_column, load_hf_dataset
from ...data.images.image_folder import ImageSource
from ..options import BenchmarkOptions
from .image_table import ImageTableOptions
from .own_images import OwnImages
from .table import OwnTable


class HFDatasetOptions(ImageTableOptions):
    """Options that name a data set and its columns."""

    path: str = Field(description="name of the data set, or a folder that save_to_disk has written")
    subset: str | None = Field(None, description="configuration of the data set, if it has several")
    split: str = Field("train", description="split of the data set")
    image: str | None = Field(
        None, description="column with the images [default: the only column of images]"
    )


class HFDataset(OwnImages, OwnTable):
    """The images of a data set, with columns for the domain and the class."""

    name = "hf-dataset"
    summary = (
        "images of a Hugging Face data set, with a column for the domain and one for the class"
    )
    Options: ClassVar[type[BenchmarkOptions]] = HFDatasetOptions
    options: HFDatasetOptions
    path_options = frozenset()
    stand_in = "rotated-digits"

    def missing(self, seed: int = 0, *, plan_only: bool = False) -> str | None:
        """Return None: a data set is found, or fetched, when it is read."""
        return None

    @property
    def title(self) -> str:
        """The name of the data set."""
        return self.options.path.rstrip("/").rpartition("/")[2]

    def data_digest(self) -> str:
        """Return a sha256 of the facts and the images."""
        return _listed(*self._key())[3]

    def list_all(self) -> tuple[pd.DataFrame, list[ImageSource], list[str], list[str]]:
        """Return the facts and the encoded image of every row."""
        frame, images, column, _ = _listed(*self._key())
        names = [f"{self.title} row {row}" for row in range(len(frame))]
        note = f"{self.title}: images from the column {column!r}, split {self.options.split}"
        return self.facts_of(frame), list(images), names, [note]

    def _key(self) -> tuple[str, str | None, str, str | None, tuple[FileState, ...]]:
        options = self.options
        return options.path, options.subset, options.split, options.image, file_states(options.path)


@lru_cache(maxsize=2)
def _listed(
    path: str, subset: str | None, split: str, image: str | None, files: tuple[FileState, ...]
) -> tuple[pd.DataFrame, tuple[bytes, ...], str, str]:
    """The other columns as a frame, the images as bytes, their column, and a checksum of all."""
    dataset = load_hf_dataset(path, subset, split)
    column = image_column(dataset, image)
    frame = as_frame(dataset, column)
    images = tuple(image_bytes(dataset, column))
    digest = hashlib.sha256(frame.to_csv(index=False).encode())
    for each in images:
        digest.update(hashlib.sha256(each).digest())
    return frame, images, column, digest.hexdigest()
