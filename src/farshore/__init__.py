"""Farshore: train site after site, and know what to expect at the one nobody has seen.

`Learner` learns one domain after another, `load` opens a saved learner, and `FarshoreClassifier`
and `FarshoreRegressor` are the same for scikit-learn. `execute` carries out a `Run` on a
`Benchmark` and measures the model on a target that it never saw; `compare` does so for several
methods, targets and orders, on one's own data too. `farshore.methods`, `farshore.invariance`,
`farshore.memory`, `farshore.networks` and `farshore.benchmarks` contain what can be extended;
`farshore.testing` checks it.

Public names are imported on first use, so that `farshore --help` does not load PyTorch.
"""

from typing import TYPE_CHECKING

from .base.lazy import lazy_exports

if TYPE_CHECKING:
    from .auditing.audit import audit as audit
    from .benchmarks.benchmark import Benchmark as Benchmark
    from .benchmarks.options import BenchmarkOptions as BenchmarkOptions
    from .comparing import Comparison as Comparison
    from .comparing import compare as compare
    from .data.domain import Domain as Domain
    from .data.scenario import Scenario as Scenario
    from .errors import FarshoreDeprecationWarning as FarshoreDeprecationWarning
    from .errors import FarshoreError as FarshoreError
    from .estimator import FarshoreClassifier as FarshoreClassifier
    from .estimator import FarshoreRegressor as FarshoreRegressor
    from .learner.learner import Learner as Learner
    from .learner.loading import load as load
    from .networks.network import Network as Network
    from .observer import Observer as Observer
    from .runs.protocol import execute as execute
    from .runs.result import Result as Result
    from .runs.run import Run as Run

__version__ = "0.1.0"

if not TYPE_CHECKING:  # a type checker sees the imports above, and refuses any other name
    __getattr__, __dir__, __all__ = lazy_exports(__name__, "__version__")
