"""Adaptations by name: what goes on learning from unlabelled target inputs. Entry-point group `holdfast.adaptations`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..registry import Registry

if TYPE_CHECKING:
    from .adaptation import Adaptation

ADAPTATIONS: Registry[type[Adaptation]] = Registry(
    "adaptation",
    "holdfast.adaptations",
    {
        "tent": "holdfast.adaptation.tent:TENT",
        "cotta": "holdfast.adaptation.cotta:CoTTA",
        "shot++": "holdfast.adaptation.shot:SHOTPP",
    },
)
