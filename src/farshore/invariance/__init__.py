"""Notions of invariance, as functions of tensors with a leading domain axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.lazy import lazy_exports

if TYPE_CHECKING:
    from .invariance import Invariance as Invariance
    from .invariance import Statistic as Statistic

EXPORTS = {"Invariance": "invariance", "Statistic": "invariance"}

__all__ = [*EXPORTS]

if not TYPE_CHECKING:  # type checkers use the imports above and reject any other name
    __getattr__, __dir__ = lazy_exports(__name__, EXPORTS)
