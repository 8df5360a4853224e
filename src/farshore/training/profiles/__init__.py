"""Settings profiles by name: defaults and search distributions for different kinds of data.

Other packages add theirs under the entry-point group `farshore.profiles`.
"""

from ...base.registry import Registry
from ...settings import Profile

PROFILES: Registry[Profile] = Registry(
    "profile",
    "farshore.profiles",
    {
        "default": "...settings:DEFAULT",
        "large-data": ".paper:LARGE_DATA",
        "large-data-short-training": ".paper:LARGE_DATA_SHORT_TRAINING",
        "long-training": ".paper:LONG_TRAINING",
        "frozen-features": ".images:FROZEN_FEATURES",
        "images-from-scratch": ".images:FROM_SCRATCH",
        "text": ".text:TEXT",
    },
    __name__,
)
