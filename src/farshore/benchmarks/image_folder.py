"""image-folder: a user's own images, as domain/class/file."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import ClassVar, Literal

import pandas as pd
from pydantic import Field

from ..data.image_folder import list_images
from ..data.public_files import known_checksum
from ..errors import FarshoreError
from .options import BenchmarkOptions
from .own import OwnBenchmark, OwnOptions
from .own_rows import ImageRows


class ImageFolderOptions(OwnOptions):
    """Options for reading images; the folder layout provides domains and classes."""

    path: str = Field(description="a folder of images: domain/class/file")
    channels: Literal[1, 3] | None = Field(
        None, description="1 (grey) or 3 (colour) [default: colour if the first domain has any]"
    )
    size: int = Field(32, ge=1, le=1024, description="pixels per side that images are resized to")


class ImageFolder(OwnBenchmark):
    """Images of any size; they are grey if all images of the first domain are."""

    name = "image-folder"
    summary = "a folder of images: domain/class/file"
    Options: ClassVar[type[BenchmarkOptions]] = ImageFolderOptions
    options: ImageFolderOptions
    network = "cnn"
    profile = "large-data"

    def data_digest(self) -> str:
        """Return a sha256 of the images' relative names and contents."""
        files, _ = self._list()
        digest = hashlib.sha256()
        for file in sorted(files["file"]):
            path = Path(file)
            digest.update(f"{path.relative_to(self.path).as_posix()}\0".encode())
            digest.update(known_checksum(path).encode())
        return digest.hexdigest()

    def read_facts(self) -> pd.DataFrame:
        """Return domain and label of every image, from the folder names."""
        return self._list()[0].rename(columns={"class": "label"}).drop(columns="file")

    def read(self) -> ImageRows:
        """List the images; they are decoded once it is known which domain is the first."""
        files, notes = self._list()
        facts = files.rename(columns={"class": "label"}).drop(columns="file")
        return ImageRows(
            facts,
            notes,
            files["file"].tolist(),
            title=self.title,
            origin=f"sha256 {self.data_digest()[:16]}",
            size=self.options.size,
            channels=self.options.channels,
        )

    def _list(self) -> tuple[pd.DataFrame, list[str]]:
        if self.path.is_file():
            raise FarshoreError(f"{self.path} is a file, not a folder of images: use table")
        files, notes = list_images(self.path)
        if "domain" not in files and self.options.domain_by is None:
            raise FarshoreError(
                f"{self.path} contains class/file without domains: add one folder level per domain "
                "(domain/class/file), or --domain auto"
            )
        return files, notes
