"""The paper's defaults by data set.

Its table of hyper-parameters has different defaults and distributions of some settings for large
data, and of others for long training. The official SHOT++ repository likewise has separate values
for digits and for objects.
"""

from collections.abc import Mapping
from typing import Any

from ...settings import EVERY_METHOD, Choice, Distribution, Power, Profile, UniformInt

Overrides = Mapping[str, Mapping[str, tuple[Any, Distribution | None]]]

_LARGE: Overrides = {
    EVERY_METHOD: {
        "learning_rate": (5e-5, Power(10, -5, -0.5)),
        "weight_decay": (0.0, Power(10, -6, -2)),
        "batch_size": (32, Power(2, 3, 5, whole=True)),
    },
    "upgd": {"learning_rate": (0.01, Power(10, -5, -0.5))},
    "urm": {"critic_rate": (5e-5, Power(10, -6, -4.5))},
    "ridge": {"random_features": (2000, Choice((1000, 2000, 4000))), "weight_decay": (0.0, None)},
    "ncm": {"weight_decay": (0.0, None)},
    "slda": {"weight_decay": (0.0, None)},
    "majority": {"weight_decay": (0.0, None)},
    "shot++": {
        "feature_rate": (0.1, None),
        "pseudo_label_weight": (0.3, None),
        "rotation_weight": (0.6, None),
        "labelling_epochs": (50, None),
        "mixup": (0.75, None),
    },
}
_LONG: Overrides = {
    EVERY_METHOD: {"anneal_steps": (500, UniformInt(0, 2500))},
    "sarl": {"warmup_steps": (500, UniformInt(0, 2500))},
}


LARGE_DATA = Profile(
    "large-data",
    "large data, long training: tinyimagenet-c, wm811k and other images",
    {method: {**_LARGE.get(method, {}), **_LONG.get(method, {})} for method in {**_LARGE, **_LONG}},
)
LARGE_DATA_SHORT_TRAINING = Profile(
    "large-data-short-training", "large data, short training: camelyon17", _LARGE
)
LONG_TRAINING = Profile("long-training", "small data, long training: cifar10-c", _LONG)
