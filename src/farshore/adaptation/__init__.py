"""Adaptations by name: systems that continue to learn from unlabelled target inputs.

Other packages add theirs under the entry-point group `farshore.adaptations`.
"""

from typing import TYPE_CHECKING

from ..base.registry import Registry, listed

if TYPE_CHECKING:
    from .adaptation import Adaptation

BUILTIN = listed(
    """
tent | .tent:TENT | adaptation | adapts normalisation layers to the target's inputs
cotta | .cotta:CoTTA | adaptation | adapts to the target's inputs with a slow teacher
shot++ | .shot:SHOTPP | adaptation | adapts the features to the target with pseudo-labels
"""
)
ADAPTATIONS: "Registry[type[Adaptation]]" = Registry(
    "adaptation", "farshore.adaptations", BUILTIN, __name__
)
