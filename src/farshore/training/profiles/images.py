"""Defaults for images: a classifier on frozen features, and networks that start from scratch."""

from ...settings import EVERY_METHOD, Choice, Power, Profile, Uniform

FROZEN_FEATURES = Profile(
    "frozen-features",
    "a classifier on the features of a frozen backbone",
    {
        EVERY_METHOD: {
            "learning_rate": (1e-3, Power(10, -4.5, -1.5)),
            "batch_size": (64, Power(2, 4, 8, whole=True)),
        },
        "ridge": {"random_features": (2000, Choice((1000, 2000, 4000)))},
        # Few images and hundreds of features: their covariance needs more shrinkage than in slda's
        # paper. From 0.3 to 0.7 it makes little difference (bench/own_images.py).
        "slda": {"shrinkage": (0.5, Uniform(0.1, 0.9))},
    },
)
FROM_SCRATCH = Profile(
    "images-from-scratch",
    "a network that starts from random weights, on users' own images",
    {
        EVERY_METHOD: {
            "learning_rate": (1e-3, Power(10, -4, -2)),
            "weight_decay": (0.0, Power(10, -6, -2)),
            "batch_size": (32, Power(2, 3, 6, whole=True)),
        },
        "ridge": {"random_features": (2000, Choice((1000, 2000, 4000)))},
    },
)
