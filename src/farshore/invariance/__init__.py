"""Notions of invariance, as functions of tensors with a leading domain axis."""

from __future__ import annotations

from .invariance import Invariance, Statistic

__all__ = ["Invariance", "Statistic"]
