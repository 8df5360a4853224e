"""Preprocessing of raw rows into network inputs; it is saved with the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..base.forms import NAMES, FormError, MapOf, Maybe, check_form
from ..errors import StateError
from .images.image_folder import ImagePreprocessing
from .tables.dates import part_names
from .tables.table import TablePreprocessing

Preprocessing = TablePreprocessing | ImagePreprocessing
# What a saved state of each kind looks like.
FORMS: dict[str, Any] = {
    "table": {
        "kind": "",
        "numbers": MapOf(Maybe([0.0, 0.0])),
        "categories": MapOf(Maybe(NAMES)),
        "indicators": True,
        "most": Maybe(0),
        "columns": NAMES,
        "dates": MapOf(""),
    },
    "images": {"kind": "", "size": 0, "channels": 0, "interpolation": ""},
}


def from_state(state: Mapping[str, Any] | None) -> Preprocessing | None:
    """Restore a preprocessing from its `state_dict`."""
    if state is None:
        return None
    for kind in (TablePreprocessing, ImagePreprocessing):
        if state.get("kind") == kind.kind:
            check_form(state, FORMS[kind.kind], "preprocessing")
            if kind is TablePreprocessing:
                _check_columns(state)
            return kind.from_state(state)
    raise StateError(
        f"the state contains preprocessing of kind {state.get('kind')!r}, which this version of "
        "farshore does not know"
    )


def _check_columns(state: Mapping[str, Any]) -> None:
    """Raise a FormError unless every column is a number, a category or a date, and named once."""
    dates = state["dates"]
    parts = [part for column in dates for part in part_names(column)]
    plain = [column for column in state["numbers"] if column not in parts]
    if sorted(state["columns"]) != sorted([*plain, *state["categories"], *dates]):
        raise FormError("preprocessing.columns are not its numbers, categories and dates")
    if not set(parts) <= set(state["numbers"]):
        raise FormError("preprocessing.numbers lacks parts of its dates")
