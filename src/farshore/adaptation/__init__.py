"""Adaptations by name: systems that continue to learn from unlabelled target inputs.

Other packages add theirs under the entry-point group `farshore.adaptations`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.registry import Registry

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
