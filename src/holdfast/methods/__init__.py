"""Methods by name. Other packages add theirs under the entry-point group `holdfast.methods`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..registry import Registry

if TYPE_CHECKING:
    from .method import Method

METHODS: Registry[type[Method]] = Registry(
    "method",
    "holdfast.methods",
    {
        "finetune": "holdfast.methods.finetune:Finetune",
        "er": "holdfast.methods.er:ER",
    },
)
