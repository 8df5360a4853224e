"""Checks for methods, benchmarks, networks and memories, ours and anybody's: the batteries that
Farshore's own tests run.

`check_method("cl-irm")` runs every check and raises at the first that fails; in a test suite,
`parametrize_method_checks` makes each check a test of its own:

    from farshore.testing import parametrize_method_checks

    @parametrize_method_checks(["cl-irm"])
    def test_method(method, check):
        check(method)

A check raises AssertionError or FarshoreError with a sentence that says what is broken, and
unittest.SkipTest where it does not apply, which pytest understands. Importing this package does not
load pytest.
"""

from ..base.trees import differences
from .battery import Check
from .benchmarks import benchmark_checks, check_benchmark, parametrize_benchmark_checks
from .memories import check_memory, memory_checks, parametrize_memory_checks
from .methods import check_method, method_checks, parametrize_method_checks
from .networks import check_network, network_checks, parametrize_network_checks
from .toys import toy_images, toy_learned, toy_learner, toy_rows
from .waiting import Waiting

__all__ = [
    "Check",
    "Waiting",
    "benchmark_checks",
    "check_benchmark",
    "check_memory",
    "check_method",
    "check_network",
    "differences",
    "memory_checks",
    "method_checks",
    "network_checks",
    "parametrize_benchmark_checks",
    "parametrize_memory_checks",
    "parametrize_method_checks",
    "parametrize_network_checks",
    "toy_images",
    "toy_learned",
    "toy_learner",
    "toy_rows",
]
