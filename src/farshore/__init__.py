"""Farshore: continual learning that works on domains nobody has seen.

The public names are imported when first used, so that `farshore --help` does not load PyTorch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .benchmarks.benchmark import Benchmark as Benchmark
    from .benchmarks.options import BenchmarkOptions as BenchmarkOptions
    from .data.domain import Domain as Domain
    from .data.scenario import Scenario as Scenario
    from .errors import FarshoreError as FarshoreError
    from .learner import Learner as Learner
    from .learner import load as load
    from .networks.network import Network as Network
    from .observer import Observer as Observer
    from .protocol import Result as Result
    from .protocol import Run as Run
    from .protocol import execute as execute

__version__ = "0.1.0"

_PLACES = {
    "Benchmark": "benchmarks.benchmark",
    "BenchmarkOptions": "benchmarks.options",
    "Domain": "data.domain",
    "Scenario": "data.scenario",
    "FarshoreClassifier": "estimator",
    "FarshoreError": "errors",
    "Learner": "learner",
    "load": "learner",
    "Network": "networks.network",
    "Observer": "observer",
    "Result": "protocol",
    "Run": "protocol",
    "execute": "protocol",
}

__all__ = ["__version__", *_PLACES]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'farshore' has no attribute {name!r}")
    return getattr(import_module(f".{_PLACES[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
