"""Which benchmarks there are, which of them can be run here, and what stands for each at tiny
scale.
"""

from __future__ import annotations

from ..benchmarks import BENCHMARKS
from ..errors import FarshoreError, unknown

# The names in the paper's experiments. They can be planned wherever farshore is, run where their
# data are.
PAPER = (
    "rotated-mnist",
    "cifar10-c",
    "tinyimagenet-c",
    "wm811k",
    "camelyon17",
    "covertype",
    "rotated-mnist-extended",
    "wm811k-extended",
    "camelyon17-extended",
)
TABLES = ("covertype", "heart-hospitals")


def check_benchmark(name: str, where: str) -> None:
    """Refuse a name that is neither known here nor one of the paper's."""
    known = {*BENCHMARKS.names(), *PAPER}
    if name not in known:
        raise FarshoreError(f"{where}: {unknown('benchmark', name, known)}")


def missing(name: str, seed: int, *, here: bool = True) -> str | None:
    """Why a benchmark cannot be run here, or None; with `here=False` it is enough that farshore
    knows it.
    """
    if name not in BENCHMARKS:
        return "this farshore does not have it"
    return BENCHMARKS.get(name)().missing(seed) if here else None


def embedded(name: str) -> str:
    """The embedded benchmark that stands for this one at tiny scale."""
    return "heart-hospitals" if name in TABLES else "rotated-digits"
