"""The rows of users' own data, and how they become inputs."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from ...data.domain import Array
from ...data.downloads.hf_models import PREFIX
from ...data.feature_files import FeatureCache
from ...data.images.image_folder import ImagePreprocessing, ImageSource, read_images
from ...data.tables.canonical import typed
from ...data.tables.columns import column_notes, plan_columns
from ...data.tables.table import TablePreprocessing

# The images of the last run in this process: the runs of a comparison have the same ones.
_DECODED: dict[tuple[Hashable, ...], tuple[np.ndarray, ImagePreprocessing, np.ndarray]] = {}


@dataclass
class OwnRows(ABC):
    """All rows of the user's data in stream order, and how they become inputs.

    `facts` has the columns `domain` and `label` (strings), and `time` (number) and `group`
    (string) if available. Nothing is decided about the form of the inputs before `plan`.
    """

    facts: pd.DataFrame
    notes: list[str]

    @property
    def profile(self) -> str | None:
        """The settings profile that suits the inputs; None if that of the benchmark does."""
        return None

    @property
    @abstractmethod
    def preprocessing(self) -> TablePreprocessing | ImagePreprocessing:
        """How raw rows become inputs."""

    @abstractmethod
    def plan(self, deciding: np.ndarray, used: np.ndarray) -> None:
        """Decide the form of the inputs from the rows `deciding`; refuse others that do not fit.

        `used` are the rows of all sources and the target.
        """

    def describe(self) -> list[str]:
        """Return notes on the form of the inputs."""
        return []

    @abstractmethod
    def inputs(self, rows: np.ndarray) -> Array:
        """Return the inputs of these rows by the current preprocessing."""

    def learn(self, rows: np.ndarray) -> None:
        """Fit what the preprocessing learns from training rows, if anything."""

    def described(self, rows: np.ndarray) -> Array:
        """Return inputs for finding boundaries."""
        return self.inputs(rows)

    @abstractmethod
    def keys(self) -> np.ndarray:
        """Return a hash of each row that is equal for rows with equal inputs."""

    @abstractmethod
    def rearrange(self, order: np.ndarray) -> None:
        """Bring all rows into another order."""


@dataclass
class TableRows(OwnRows):
    """Rows of a table. `categories` and `texts` are the columns that the user declared as such."""

    table: pd.DataFrame
    categories: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    time_format: str | None = None
    columns: TablePreprocessing | None = None
    column_notes: list[str] = field(default_factory=list)

    @property
    def preprocessing(self) -> TablePreprocessing:
        """The types, scales and categories of the columns."""
        assert self.columns is not None
        return self.columns

    @property
    def profile(self) -> str | None:
        """That of texts, if there are any."""
        return self.preprocessing.profile

    def plan(self, deciding: np.ndarray, used: np.ndarray) -> None:
        """Decide which columns are numbers or dates; refuse other text in them elsewhere."""
        categories, texts = (
            [column for column in declared if column in self.table or column.startswith(PREFIX)]
            for declared in (self.categories, self.texts)
        )
        first = self.table.iloc[deciding]
        plan = plan_columns(first, list(self.table.columns), categories, self.time_format, texts)
        plan.check(
            self.table.iloc[used],
            "the column is numeric, because the first domain has no text in it; fix the value, or "
            "declare the column as one of categories (--categories {column})",
        )
        self.columns, self.column_notes = plan, column_notes(first, plan)

    def describe(self) -> list[str]:
        """Name columns from which nothing can be learned."""
        return self.column_notes

    def inputs(self, rows: np.ndarray) -> Tensor:
        """Return the features of these rows."""
        return self.preprocessing.transform(self.table.iloc[rows], FeatureCache())

    def learn(self, rows: np.ndarray) -> None:
        """Fit the columns that are not fitted yet to these rows."""
        self.preprocessing.learn(self.table.iloc[rows], FeatureCache())

    def described(self, rows: np.ndarray) -> Tensor:
        """Return features scaled on all these rows, because there is no first domain yet."""
        stream = self.table.iloc[rows]
        copy = TablePreprocessing.from_state(self.preprocessing.state_dict())
        return copy.learn(stream).transform(stream)

    def keys(self) -> np.ndarray:
        """Return a hash of the cells of each row."""
        cells = {
            column: typed(values, column in (*self.categories, *self.texts), self.time_format)
            for column, values in self.table.items()
        }
        return pd.util.hash_pandas_object(pd.DataFrame(cells), index=False).to_numpy()

    def rearrange(self, order: np.ndarray) -> None:
        """Bring all rows into another order."""
        self.facts, self.table = self.facts.iloc[order], self.table.iloc[order]


@dataclass
class ImageRows(OwnRows):
    """Rows of images. They are decoded in `plan`, which decides whether they are in colour.

    `names` are those of messages; `contents` is a checksum of all images.
    """

    sources: list[ImageSource]
    names: list[str]
    title: str
    contents: str
    size: int
    interpolation: str = "bilinear"
    channels: int | None = None
    images: np.ndarray | None = None
    form: ImagePreprocessing | None = None
    turned_grey: int = 0

    @property
    def preprocessing(self) -> ImagePreprocessing:
        """The size and number of channels."""
        assert self.form is not None
        return self.form

    def plan(self, deciding: np.ndarray, used: np.ndarray) -> None:
        """Read all images, in colour if one of the rows `deciding` is."""
        self.images, self.form, coloured = self._read(tuple(deciding.tolist()))
        self.turned_grey = int(coloured[used].sum()) if self.form.channels == 1 else 0

    def _read(self, deciding: tuple[int, ...]) -> tuple[np.ndarray, ImagePreprocessing, np.ndarray]:
        """Decode the images, unless the run before this one had the same ones."""
        order = hashlib.sha256("\0".join(self.names).encode()).hexdigest()
        key = (self.contents, order, self.size, self.interpolation, self.channels, deciding)
        if key not in _DECODED:
            form = partial(read_images, interpolation=self.interpolation, names=self.names)
            read = form(self.sources, self.size, self.channels, deciding=deciding)
            _DECODED.clear()
            _DECODED[key] = read
        return _DECODED[key]

    def describe(self) -> list[str]:
        """Name the form of the images, and warn where it loses colour."""
        form = self.preprocessing
        colour = "grey" if form.channels == 1 else "RGB"
        size = f"{form.size}x{form.size}"
        origin = f"sha256 {self.contents[:16]}"
        notes = [f"{self.title}: {len(self.sources)} images as {size} {colour}, {origin}"]
        if self.turned_grey and self.channels is None:
            notes.append(
                f"warning: {self.turned_grey} colour images were converted to grey, because the "
                "first domain has only grey images: use --option channels=3 to keep colour"
            )
        return notes

    def inputs(self, rows: np.ndarray) -> Array:
        """Return the images of these rows as uint8."""
        assert self.images is not None
        contiguous = len(rows) > 0 and rows[-1] - rows[0] + 1 == len(rows)
        # Contiguous rows are a view instead of a copy.
        images = self.images[rows[0] : rows[-1] + 1] if contiguous else self.images[rows]
        return images if isinstance(images, np.memmap) else torch.from_numpy(images)

    def keys(self) -> np.ndarray:
        """Return a hash of the pixels of each image."""
        assert self.images is not None
        contents = (np.ascontiguousarray(image).tobytes() for image in self.images)
        digests = (hashlib.blake2b(each, digest_size=8).digest() for each in contents)
        return np.array([int.from_bytes(digest, "big") for digest in digests], dtype=np.uint64)

    def rearrange(self, order: np.ndarray) -> None:
        """Bring all rows into another order."""
        self.facts = self.facts.iloc[order]
        self.sources = [self.sources[row] for row in order]
        self.names = [self.names[row] for row in order]
