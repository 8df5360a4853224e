"""Data frames in the Python API: their preprocessing is learned on the first domain and reused."""

from __future__ import annotations

from typing import Any, TypeGuard

import pandas as pd
from torch import Tensor

from .columns import plan_columns
from .convert import as_inputs, from_dataset
from .preprocessing import Preprocessing
from .table import TablePreprocessing


def is_treated(x: Any, known: Preprocessing | None, started: bool) -> TypeGuard[pd.DataFrame]:
    """Whether `x` is a data frame to preprocess: the learner started with one, or starts now."""
    return isinstance(x, pd.DataFrame) and (isinstance(known, TablePreprocessing) or not started)


def learn_columns(
    frame: pd.DataFrame, train: Tensor, known: Preprocessing | None
) -> TablePreprocessing:
    """Return the preprocessing after this domain; `known` itself is not changed.

    Columns that are not fitted yet are fitted to the training rows of this domain.
    """
    frame = frame.rename(columns=str)
    plan = (
        known
        if isinstance(known, TablePreprocessing)
        else plan_columns(frame.reset_index(drop=True), list(frame.columns))
    )
    return TablePreprocessing.from_state(plan.state_dict()).learn(frame.iloc[train.numpy()])


def to_inputs(x: Any, known: Preprocessing | None) -> Tensor:
    """Return `x` as inputs for prediction, in the form that the learner was trained on."""
    x, _ = from_dataset(x)
    if isinstance(x, pd.DataFrame) and isinstance(known, TablePreprocessing):
        x = known.transform(x)
    return as_inputs(x)
