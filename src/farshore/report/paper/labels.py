"""Labels and colours as the paper prints them, and the order of its data sets."""

from __future__ import annotations

METHODS: dict[str, str] = {
    "finetune": "Finetune",
    "cope": "COPE",
    "cotta": "CoTTA",
    "urm": "URM (upper bound)",
    "cl-vrex": "CL-VREX",
    "cl-fishr": "CL-Fishr",
    "cl-coral": "CL-CORAL",
    "cl-mmd": "CL-MMD",
    "cl-andmask": "CL-ANDMask",
}
# Prefixes of the labels of a group's methods.
PREFIXES: dict[str, str] = {"tailored": "★-", "naive": "Naïve-"}
# In the order of the paper's columns; the embedded data sets come last.
DATASETS: dict[str, str] = {
    "rotated-mnist": "RotatedMNIST",
    "cifar10-c": "CIFAR10C",
    "tinyimagenet-c": "TinyImageNetC",
    "wm811k": "WM811K",
    "covertype": "Covertype",
    "camelyon17": "Camelyon17",
    "rotated-mnist-extended": "RotatedMNIST+Extended",
    "wm811k-extended": "WM811K+Extended",
    "camelyon17-extended": "Camelyon17+Extended",
    "rotated-digits": "Rotated digits",
    "heart-hospitals": "Heart hospitals",
}
GROUPS: dict[str, str] = {"tailored": "Tailored (★)", "naive": "Naïve"}
# Backgrounds of rows. The paper has no colour for the upper bound, and one colour for both kinds
# of replay.
FILLS: dict[str, str] = {
    "finetune": "#cacaca",
    "optimization": "#f5b4c7",
    "regularization": "#e7c3b0",
    "replay": "#b5d1d6",
    "latent-replay": "#b5d1d6",
    "tailored": "#bdd3b2",
    "naive": "#d8c3f2",
    "closed-form": "#f0dfa0",
    "adaptation": "#cc6600",
    "upper-bound": "#ffffff",
}
# The same hues, strong enough for a line or a point on white and on black.
LINES: dict[str, str] = {
    "finetune": "#8a8a8a",
    "optimization": "#dc5c86",
    "regularization": "#b9764e",
    "replay": "#3d8fa1",
    "latent-replay": "#5b79c7",
    "tailored": "#5f9a43",
    "naive": "#9257dc",
    "closed-form": "#2f7f6f",
    "adaptation": "#cc6600",
    "upper-bound": "#a8932b",
}
