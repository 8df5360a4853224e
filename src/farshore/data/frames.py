"""Data frames in Python: a learner that was begun with one treats all further ones by what the
first domain fixed.
"""

from __future__ import annotations

from typing import Any, TypeGuard

import pandas as pd
from torch import Tensor

from .convert import as_inputs, from_dataset
from .preprocessing import Preprocessing
from .read_table import plan_columns
from .table import TablePreprocessing


def is_treated(x: Any, known: Preprocessing | None, begun: bool) -> TypeGuard[pd.DataFrame]:
    """Whether x is a data frame that goes through the preprocessing: the learner was begun with
    one, or is begun now.
    """
    return isinstance(x, pd.DataFrame) and (isinstance(known, TablePreprocessing) or not begun)


def learn_columns(
    frame: pd.DataFrame, train: Tensor, known: Preprocessing | None
) -> TablePreprocessing:
    """The preprocessing after this domain: what was open is fixed by its training rows. The old
    one is left as it is.
    """
    frame = frame.rename(columns=str)
    plan = (
        known
        if isinstance(known, TablePreprocessing)
        else plan_columns(frame.reset_index(drop=True), list(frame.columns))
    )
    return TablePreprocessing.from_state(plan.state_dict()).learn(frame.iloc[train.numpy()])


def to_inputs(x: Any, known: Preprocessing | None) -> Tensor:
    """Inputs for prediction from whatever the learner was trained on."""
    x, _ = from_dataset(x)
    if isinstance(x, pd.DataFrame) and isinstance(known, TablePreprocessing):
        x = known.transform(x)
    return as_inputs(x)
