"""What turns raw rows into a network's inputs. It is learned before the model and saved with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import StateError
from .image_folder import ImagePreprocessing
from .table import TablePreprocessing

Preprocessing = TablePreprocessing | ImagePreprocessing


def from_state(state: Mapping[str, Any] | None) -> Preprocessing | None:
    """The preprocessing that `state_dict` described."""
    if state is None:
        return None
    for kind in (TablePreprocessing, ImagePreprocessing):
        if state.get("kind") == kind.kind:
            return kind.from_state(state)
    raise StateError(
        f"the state holds preprocessing of kind {state.get('kind')!r}, which this farshore does "
        "not know"
    )
