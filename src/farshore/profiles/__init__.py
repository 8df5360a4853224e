"""Settings profiles by name: defaults and search distributions for different kinds of data.

Other packages add theirs under the entry-point group `farshore.profiles`.
"""

from __future__ import annotations

from ..base.registry import Registry
from ..settings import Profile

PROFILES: Registry[Profile] = Registry(
    "profile",
    "farshore.profiles",
    {
        "default": "farshore.settings:DEFAULT",
        "large-data": "farshore.profiles.paper:LARGE_DATA",
        "large-data-short-training": "farshore.profiles.paper:LARGE_DATA_SHORT_TRAINING",
        "long-training": "farshore.profiles.paper:LONG_TRAINING",
        "frozen-features": "farshore.profiles.images:FROZEN_FEATURES",
        "images-from-scratch": "farshore.profiles.images:FROM_SCRATCH",
    },
)
