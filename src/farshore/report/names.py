"""Names of methods and data sets as the paper prints them, and the order in which it does."""

from __future__ import annotations

from collections.abc import Iterable

from .. import catalog
from ..errors import FarshoreError

METHODS = {
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
DATASETS = {
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
_GROUPS: dict[str, tuple[str, str]] = {}


def method_label(method: str) -> str:
    """The paper's name; a star marks its tailored methods, as it does there. Methods that are
    not the paper's keep theirs.
    """
    group, _ = method_group(method)
    base = method.removeprefix("naive-")
    name = METHODS.get(base, base if group == "other" else base.upper())
    return f"★-{name}" if group == "tailored" else f"Naïve-{name}" if group == "naive" else name


def method_group(method: str) -> tuple[str, str]:
    """Group and kind; a method that this farshore does not have (another package's) counts as a
    continual one of no group.
    """
    if method not in _GROUPS:  # looking through the registry for other packages takes milliseconds
        try:
            found = catalog.find(method)
        except FarshoreError:
            return "other", "continual"
        _GROUPS[method] = found.group, found.kind
    return _GROUPS[method]


def several(number: int, word: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def dataset_label(benchmark: str) -> str:
    """The paper's name of a data set."""
    return DATASETS.get(benchmark, benchmark)


def in_order(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """Each name once: those that are known first and in that order, then the others as they
    came.
    """
    given, places = list(dict.fromkeys(names)), list(known)
    return sorted(
        given,
        key=lambda name: (places.index(name) if name in places else len(places), given.index(name)),
    )


def methods_in_order(names: Iterable[str]) -> list[str]:
    """By group as in the paper's tables, and in its order within a group."""
    return in_order(
        names, [kind.name for members in catalog.grouped().values() for kind in members]
    )


def datasets_in_order(names: Iterable[str]) -> list[str]:
    """As in the paper's tables."""
    return in_order(names, DATASETS)
