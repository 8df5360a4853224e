"""Notions of invariance, as functions of tensors with a leading domain axis."""

from .invariance import Invariance, Statistic

__all__ = ["Invariance", "Statistic"]
