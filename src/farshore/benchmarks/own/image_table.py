"""image-table: a user's own images, listed in a table with columns for path, domain and class."""

import hashlib
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import pandas as pd
from pydantic import Field

from ...data.downloads.public_files import known_checksum
from ...data.images.image_folder import ImageSource
from ...data.tables.columns import need_texts
from ...errors import FarshoreError, unknown
from ..options import BenchmarkOptions
from .own_images import OwnImageOptions, OwnImages
from .table import OwnTable, TableOptions, facts_digest

# Listed in one message.
LISTED = 5


class ImageTableOptions(OwnImageOptions, TableOptions):
    """Options that name the columns of a table of images."""

    image: str | None = Field(
        None, description="column with the path of each image, absolute or from the table's folder"
    )


class ImageTable(OwnImages, OwnTable):
    """Images that a table lists; columns without a role are not inputs."""

    name = "image-table"
    summary = "a table with a column of image paths, one for the domain and one for the class"
    Options: ClassVar[type[BenchmarkOptions]] = ImageTableOptions
    options: ImageTableOptions
    stand_in = "rotated-digits"

    def data_digest(self) -> str:
        """Return a sha256 of the facts and of the contents of the images."""
        return self._contents

    @cached_property
    def _contents(self) -> str:
        facts, files, *_ = self.list_all()
        digest = hashlib.sha256(facts_digest(facts).encode())
        for file in files:
            digest.update(known_checksum(Path(str(file))).encode())
        return digest.hexdigest()

    def list_all(self) -> tuple[pd.DataFrame, list[ImageSource], list[str], list[str]]:
        """Return the facts of every row and the path of its image."""
        frame = self._read()
        column = self.options.image
        if column is None or column not in frame.columns:
            raise unknown("column in --image", str(column), frame.columns)
        written = need_texts(frame, column, "--image")
        folder = self.path.resolve().parent
        files = [folder / Path(text).expanduser() for text in written]
        missing = [text for text, file in zip(written, files, strict=True) if not file.is_file()]
        if missing:
            more = f" and {len(missing) - LISTED} more" if len(missing) > LISTED else ""
            raise FarshoreError(
                f"--image {column}: {len(missing)} of {len(files)} files do not exist: "
                f"{', '.join(missing[:LISTED])}{more}; paths are read from {folder}"
            )
        return self.facts_of(frame), [str(file) for file in files], written.tolist(), []
