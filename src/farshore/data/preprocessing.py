"""Preprocessing of raw rows into network inputs; it is saved with the model."""

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
        "texts": Maybe(MapOf(None)),
    },
    "images": {"kind": "", "size": 0, "channels": 0, "interpolation": ""},
}


def from_state(state: Mapping[str, Any] | None) -> Preprocessing | None:
    """Restore a preprocessing from its `state_dict`."""
    if state is None:
        return None
    for kind in (TablePreprocessing, ImagePreprocessing):
        if state.get("kind") == kind.kind:
            if kind is TablePreprocessing:
                state = {"texts": None, **state}  # states from before there were columns of text
            check_form(state, FORMS[kind.kind], "preprocessing")
            made = kind.from_state(state)
            if isinstance(made, TablePreprocessing):
                _check_columns(made)
            return made
    raise StateError(
        f"the state contains preprocessing of kind {state.get('kind')!r}, which this version of "
        "farshore does not know"
    )


def _check_columns(made: TablePreprocessing) -> None:
    """Raise a FormError unless every column has one kind, and is named once."""
    parts = [part for column in made.dates for part in part_names(column)]
    plain = [column for column in made.numbers if column not in parts]
    texts = made.texts.columns if made.texts is not None else []
    if sorted(made.columns) != sorted([*plain, *made.categories, *made.dates, *texts]):
        raise FormError("preprocessing.columns are not its numbers, categories, dates and texts")
    if not set(parts) <= set(made.numbers):
        raise FormError("preprocessing.numbers lacks parts of its dates")
