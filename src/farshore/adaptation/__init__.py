"""Adaptations by name: what goes on learning from unlabelled target inputs. Entry-point group
`farshore.adaptations`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..registry import Registry

if TYPE_CHECKING:
    from .adaptation import Adaptation

ADAPTATIONS: Registry[type[Adaptation]] = Registry(
    "adaptation",
    "farshore.adaptations",
    {
        "tent": "farshore.adaptation.tent:TENT",
        "cotta": "farshore.adaptation.cotta:CoTTA",
        "shot++": "farshore.adaptation.shot:SHOTPP",
    },
)
