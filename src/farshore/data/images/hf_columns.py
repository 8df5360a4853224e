"""Data sets of the Hugging Face `datasets` library: their columns as images, labels and texts."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ...base.inert import is_inert
from ...errors import FarshoreError, needs, unknown
from ..downloads.hub import hub
from .image_folder import ImagePreprocessing, read_images

LABELS = ("label", "labels", "class", "target")
# The library reads from these which files belong to a data set; they may be anywhere.
DESCRIPTIONS = ("README.md", ".huggingface.yaml")


def image_bytes(dataset: Any, column: str) -> Iterator[bytes]:
    """The encoded images of a column, which are not decoded here."""
    import datasets

    for row in dataset.cast_column(column, datasets.Image(decode=False)):
        stored = row[column]
        contents = stored["bytes"]
        yield contents if contents is not None else Path(stored["path"]).read_bytes()


def is_hf_dataset(value: Any) -> bool:
    """Whether this is a `datasets.Dataset`, without importing the library."""
    kind = type(value)
    return kind.__name__ == "Dataset" and kind.__module__.partition(".")[0] == "datasets"


def load_hf_dataset(path: str, subset: str | None, split: str) -> Any:
    """Load a `datasets.Dataset` from the disk, the library's cache, or the hub."""
    try:
        import datasets
    except ImportError:
        raise needs("datasets", "hf-dataset needs the package datasets") from None
    folder = Path(path).expanduser()
    try:
        if (folder / "dataset_info.json").is_file() or (folder / "dataset_dict.json").is_file():
            loaded = datasets.load_from_disk(str(folder))
        else:
            found = [name for name in DESCRIPTIONS if (folder / name).is_file()]
            if found and is_inert():  # while others' files are read
                raise FarshoreError(f"its {found[0]} may name addresses, which are not asked here")
            with hub():
                loaded = datasets.load_dataset(path, subset, split=split)
    except Exception as error:  # the library raises many types
        reason = " ".join(str(error).split())[:200]
        raise FarshoreError(
            f"hf-dataset:{path} cannot be loaded ({reason}): check the name, or fetch it where "
            "there is a network, save it with dataset.save_to_disk(FOLDER) and name the folder"
        ) from None
    if isinstance(loaded, dict):
        if split not in loaded:
            raise unknown(f"split of {path}", split, list(loaded))
        loaded = loaded[split]
    return loaded


def image_column(dataset: Any, name: str | None) -> str:
    """The column of images: the named one, or the only one."""
    images = _columns_of(dataset, "Image")
    if name is not None:
        if name not in images:
            raise unknown("column of images", name, images)
        return name
    if len(images) != 1:
        raise FarshoreError(
            f"the data set has {len(images)} columns of images ({', '.join(images)}): name one "
            "with --image; for a data set without images, write it as a table first "
            "(dataset.to_parquet)"
        )
    return images[0]


def _columns_of(dataset: Any, kind: str) -> list[str]:
    """The columns with features of this class."""
    return [name for name, feature in dataset.features.items() if type(feature).__name__ == kind]


def as_frame(dataset: Any, image: str | None) -> pd.DataFrame:
    """All columns but the images, if there are any; class numbers become names."""
    if image is not None:
        dataset = dataset.remove_columns(image)
    columns = {}
    for column, kind in dataset.features.items():
        values = dataset[column]
        if type(kind).__name__ == "ClassLabel":
            values = [kind.int2str(int(value)) for value in values]
        columns[column] = list(values)
    return pd.DataFrame(columns)


def read_hf_dataset(
    dataset: Any, label: str | None, known: ImagePreprocessing | None, size: int, interpolation: str
) -> tuple[np.ndarray | pd.DataFrame, list[Any] | None, ImagePreprocessing | None]:
    """The inputs and labels of a `datasets.Dataset`: images, or a table of its other columns.

    label: the column with the class; by default the one called label, or the only class column.
    """
    kinds, classes = dataset.features, _columns_of(dataset, "ClassLabel")
    named = [column for column in LABELS if column in kinds]
    if label is not None and label not in kinds:
        raise unknown("column of labels", label, list(kinds))
    chosen = label or next(iter(named), classes[0] if len(classes) == 1 else None)
    images = _columns_of(dataset, "Image")
    frame = as_frame(dataset, images[0] if images else None)
    labels = frame[chosen].tolist() if chosen is not None else None
    if not images:
        return frame.drop(columns=[chosen] if chosen is not None else []), labels, None
    form = known or ImagePreprocessing(size, 0, interpolation)
    names = [f"row {row}" for row in range(len(frame))]
    read, preprocessing, _ = read_images(
        list(image_bytes(dataset, image_column(dataset, None))),
        form.size,
        form.channels or None,
        interpolation=form.interpolation,
        names=names,
    )
    return read, labels, preprocessing
