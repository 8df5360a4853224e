"""Rows in the Python API: data frames, arrays, tensors, lists, torch Datasets and DataLoaders.

Rows with one number or text per column are a table, however they are handed in. They go through the
same preprocessing of columns as a file does: it is learned on the first domain and then reused.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from ...errors import FarshoreError
from ..preprocessing import Preprocessing
from .columns import column_notes, plan_columns
from .table import TablePreprocessing

# Whether tables are scaled and encoded column by column, or taken as they are.
Preprocess = Literal["columns", "none"]
PREPROCESS: tuple[Preprocess, ...] = ("columns", "none")
# How many channels an image may have by default.
CHANNELS = (1, 3, 4)


def as_table(x: Any, known: Preprocessing | None = None) -> pd.DataFrame | None:
    """Return rows as a data frame; None if a row is not a list of columns, but an image or so.

    Rows without column names get those of `known`, in its order.
    """
    if isinstance(x, pd.DataFrame):
        return x.rename(columns=str)
    if hasattr(x, "get_columns"):  # Polars; its `to_pandas` needs pyarrow
        return pd.DataFrame({column.name: column.to_list() for column in x.get_columns()})
    if hasattr(x, "collect_schema"):
        raise FarshoreError("a lazy frame has no rows yet: give frame.collect()")
    if hasattr(x, "to_pandas"):
        return as_table(x.to_pandas())
    columns = _columns(x)
    if columns is None:
        return None
    return columns.set_axis(_names(len(columns.columns), known), axis=1)


def _columns(x: Any) -> pd.DataFrame | None:
    """Return rows without names as columns with numbers; None if they have another shape."""
    if isinstance(x, Tensor):
        x = x.detach().cpu()
        x = (x.float() if x.dtype == torch.bfloat16 else x).numpy()
    if isinstance(x, np.ndarray):
        return pd.DataFrame(x) if x.ndim == 2 else None
    if not isinstance(x, Sequence) or isinstance(x, str) or not len(x):
        return None
    nested = (list, tuple, np.ndarray, Tensor)
    if not all(isinstance(row, list | tuple) for row in x) or any(
        isinstance(cell, nested) for row in x for cell in row
    ):
        return _columns(np.asarray(x))
    lengths = {len(row) for row in x}
    if len(lengths) > 1:
        raise FarshoreError(
            f"the rows have different lengths ({min(lengths)} and {max(lengths)}): give every row "
            "the same columns, with None where nothing was measured"
        )
    return pd.DataFrame([list(row) for row in x])


def _names(count: int, known: Preprocessing | None) -> list[str]:
    """Return the names of `count` columns that come without names."""
    if not isinstance(known, TablePreprocessing):
        return [str(column) for column in range(count)]
    if len(known.columns) != count:
        raise FarshoreError(
            f"the inputs have {count} columns, but this learner was started with "
            f"{len(known.columns)}: give the same columns in the same order"
        )
    return known.columns


def learn_columns(
    frame: pd.DataFrame,
    train: Tensor,
    known: Preprocessing | None,
    tell: Callable[[str], None] = lambda note: None,
    texts: Sequence[str] = (),
) -> TablePreprocessing:
    """Return the preprocessing after this domain; `known` itself is not changed.

    Columns that are not fitted yet are fitted to the training rows of this domain. `tell` gets
    notes on the columns of the first domain, and `texts` are its columns of text.
    """
    plan = known
    if not isinstance(plan, TablePreprocessing):
        plan = plan_columns(frame.reset_index(drop=True), list(frame.columns), texts=texts)
        for note in column_notes(frame, plan):
            tell(note)
    return TablePreprocessing.from_state(plan.state_dict()).learn(frame.iloc[train.numpy()])


def check_images(inputs: Tensor, where: str) -> None:
    """Refuse images with the channels last, and floats that are no shares of full brightness."""
    if inputs.ndim != 4:
        return
    _, channels, height, width = inputs.shape
    if channels not in CHANNELS and width in CHANNELS and height > width:
        raise FarshoreError(
            f"{where} have shape {tuple(inputs.shape)}, which looks like images with the channels "
            "last: give [rows, channels, height, width], for example x.transpose(0, 3, 1, 2), or "
            'preprocess="none" if they are as you want them'
        )
    if inputs.dtype == torch.uint8 or not inputs.numel():
        return
    low, high = float(inputs.min()), float(inputs.max())
    if low < 0 or high > 1:
        raise FarshoreError(
            f"{where} are images with floats from {low:g} to {high:g}, but floats must be from 0 "
            'to 1: give x.astype("uint8") if they are from 0 to 255, or preprocess="none" if they '
            "are scaled as you want them"
        )
