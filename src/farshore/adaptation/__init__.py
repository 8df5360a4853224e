"""Adaptations by name: systems that continue to learn from unlabelled target inputs.

Other packages add theirs under the entry-point group `farshore.adaptations`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.registry import Listed, Registry

if TYPE_CHECKING:
    from .adaptation import Adaptation

BUILTIN = {
    "tent": Listed(
        ".tent:TENT", "adapts normalisation layers to the target's inputs", "adaptation"
    ),
    "cotta": Listed(
        ".cotta:CoTTA", "adapts to the target's inputs with a slow teacher", "adaptation"
    ),
    "shot++": Listed(
        ".shot:SHOTPP", "adapts the features to the target with pseudo-labels", "adaptation"
    ),
}
ADAPTATIONS: Registry[type[Adaptation]] = Registry(
    "adaptation", "farshore.adaptations", BUILTIN, __name__
)
