"""image-folder: a user's own images, as domain/class/file."""

import hashlib
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import pandas as pd
from pydantic import Field

from ...data.downloads.public_files import known_checksum
from ...data.images.image_folder import ImageSource, list_images
from ...errors import FarshoreError
from ..options import BenchmarkOptions
from .own import OwnOptions
from .own_images import OwnImageOptions, OwnImages


class ImageFolderOptions(OwnImageOptions, OwnOptions):
    """Options for reading images; the folder layout provides domains and classes."""

    path: str = Field(description="a folder of images: domain/class/file")


class ImageFolder(OwnImages):
    """Images of any size; they are grey if all images of the first domain are."""

    name = "image-folder"
    summary = "a folder of images: domain/class/file"
    Options: ClassVar[type[BenchmarkOptions]] = ImageFolderOptions
    options: ImageFolderOptions

    def data_digest(self) -> str:
        """Return a sha256 of the images' relative names and contents."""
        return self._contents

    @cached_property
    def _contents(self) -> str:
        files, _ = self._files
        digest = hashlib.sha256()
        for file in sorted(files["file"]):
            path = Path(file)
            digest.update(f"{path.relative_to(self.path).as_posix()}\0".encode())
            digest.update(known_checksum(path).encode())
        return digest.hexdigest()

    def list_all(self) -> tuple[pd.DataFrame, list[ImageSource], list[str], list[str]]:
        """Return domain and label of every image, from the folder names."""
        files, notes = self._files
        facts = files.rename(columns={"class": "label"}).drop(columns="file")
        listed = files["file"].tolist()
        return facts, listed, listed, notes

    @cached_property
    def _files(self) -> tuple[pd.DataFrame, list[str]]:
        if self.path.is_file():
            raise FarshoreError(f"{self.path} is a file, not a folder of images: use table")
        files, notes = list_images(self.path)
        if "domain" not in files and self.options.domain_by is None:
            raise FarshoreError(
                f"{self.path} contains class/file without domains: add one folder level per domain "
                "(domain/class/file), or --domain auto"
            )
        return files, notes
