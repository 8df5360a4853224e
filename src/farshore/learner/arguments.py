"""Checks of a learner's arguments that need neither its network nor any data."""

from __future__ import annotations

from ..data.tables.frames import PREPROCESS
from ..entry import Entry
from ..errors import FarshoreError
from ..settings import RunSettings

METRICS = ("accuracy", "macro_f1")
MOST_ROWS = 10**9


def check_arguments(
    method: type[Entry],
    run: RunSettings,
    metric: str,
    preprocess: str | None,
    memory: int,
    weighted: bool | None,
) -> None:
    """Refuse values that are not allowed, and what the method cannot do."""
    if run.class_weight != "none" and not method.weighs_classes:
        raise FarshoreError(
            f"class_weight = {run.class_weight!r} is not allowed for {method.name!r}: its loss "
            "has no term to weigh"
        )
    if metric not in METRICS:
        raise FarshoreError(
            f"metric = {metric!r} is not allowed: it should be 'accuracy' or 'macro_f1'"
        )
    if preprocess not in (None, *PREPROCESS):
        raise FarshoreError(
            f"preprocess = {preprocess!r} is not allowed: it should be 'columns' or 'none'"
        )
    if not 1 <= int(memory) <= MOST_ROWS:
        raise FarshoreError(
            f"memory = {memory} is not allowed: it must keep at least 1 row, and at most "
            f"{MOST_ROWS:,}"
        )
    if weighted:
        check_weighs_rows(method)


def check_weighs_rows(method: type[Entry]) -> None:
    """Refuse weights of rows if the method's loss has no place for them."""
    if not method.weighs_rows:
        raise FarshoreError(
            f"rows cannot have weights with {method.name!r}, whose loss does not support them: use "
            "another method, for example er, or leave the weights out"
        )
