"""Preprocessing of raw rows into network inputs; it is saved with the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import StateError
from .image_folder import ImagePreprocessing
from .table import TablePreprocessing

Preprocessing = TablePreprocessing | ImagePreprocessing


def from_state(state: Mapping[str, Any] | None) -> Preprocessing | None:
    """Restore a preprocessing from its `state_dict`."""
    if state is None:
        return None
    for kind in (TablePreprocessing, ImagePreprocessing):
        if state.get("kind") == kind.kind:
            return kind.from_state(state)
    raise StateError(
        f"the state contains preprocessing of kind {state.get('kind')!r}, which this version of "
        "farshore does not know"
    )
