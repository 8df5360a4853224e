"""Defaults for tables with columns of text: thousands of features, each of little weight."""

from ...settings import EVERY_METHOD, Choice, Power, Profile, Uniform

TEXT = Profile(
    "text",
    "tables with columns of text",
    {
        EVERY_METHOD: {
            "learning_rate": (1e-3, Power(10, -4.5, -2)),
            "batch_size": (64, Power(2, 4, 8, whole=True)),
        },
        # Words are nearly additive, and a projection that is narrower than the features blurs them.
        "ridge": {"random_features": (0, Choice((0,)))},
        "slda": {"shrinkage": (0.5, Uniform(0.1, 0.9))},
    },
)
