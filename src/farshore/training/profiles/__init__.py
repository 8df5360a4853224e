"""Settings profiles by name: defaults and search distributions for different kinds of data.

Other packages add theirs under the entry-point group `farshore.profiles`.
"""

from __future__ import annotations

from ...base.registry import Registry
from ...settings import Profile

PROFILES: Registry[Profile] = Registry(
    "profile",
    "farshore.profiles",
    {
        "default": "farshore.settings:DEFAULT",
        "large-data": "farshore.training.profiles.paper:LARGE_DATA",
        "large-data-short-training": "farshore.training.profiles.paper:LARGE_DATA_SHORT_TRAINING",
        "long-training": "farshore.training.profiles.paper:LONG_TRAINING",
        "frozen-features": "farshore.training.profiles.images:FROZEN_FEATURES",
        "images-from-scratch": "farshore.training.profiles.images:FROM_SCRATCH",
    },
)
