"""Checks for methods, benchmarks, networks and memories, ours and anybody's: the batteries that
Farshore's own tests run.

`check_method("cl-irm")` runs every check and raises at the first that fails; in a test suite,
`parametrize_method_checks` makes each check a test of its own:

    from farshore.testing import parametrize_method_checks

    @parametrize_method_checks(["cl-irm"])
    def test_method(method, check):
        check(method)

A check raises AssertionError or FarshoreError with a sentence that says what is broken, and
unittest.SkipTest where it does not apply, which pytest understands. Importing this package loads
neither PyTorch nor pytest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.lazy import lazy_exports

if TYPE_CHECKING:
    from .battery import Check as Check
    from .benchmarks import benchmark_checks as benchmark_checks
    from .benchmarks import check_benchmark as check_benchmark
    from .benchmarks import parametrize_benchmark_checks as parametrize_benchmark_checks
    from .memories import check_memory as check_memory
    from .memories import memory_checks as memory_checks
    from .memories import parametrize_memory_checks as parametrize_memory_checks
    from .methods import check_method as check_method
    from .methods import method_checks as method_checks
    from .methods import parametrize_method_checks as parametrize_method_checks
    from .networks import check_network as check_network
    from .networks import network_checks as network_checks
    from .networks import parametrize_network_checks as parametrize_network_checks
    from .toys import toy_images as toy_images
    from .toys import toy_learned as toy_learned
    from .toys import toy_learner as toy_learner
    from .toys import toy_rows as toy_rows
    from .trees import differences as differences
    from .waiting import Waiting as Waiting

EXPORTS = {
    "Check": "battery",
    "Waiting": "waiting",
    "benchmark_checks": "benchmarks",
    "check_benchmark": "benchmarks",
    "check_memory": "memories",
    "check_method": "methods",
    "check_network": "networks",
    "differences": "trees",
    "memory_checks": "memories",
    "method_checks": "methods",
    "network_checks": "networks",
    "parametrize_benchmark_checks": "benchmarks",
    "parametrize_memory_checks": "memories",
    "parametrize_method_checks": "methods",
    "parametrize_network_checks": "networks",
    "toy_images": "toys",
    "toy_learned": "toys",
    "toy_learner": "toys",
    "toy_rows": "toys",
}

__all__ = [*EXPORTS]

if not TYPE_CHECKING:  # a type checker sees the imports above, and refuses any other name
    __getattr__, __dir__ = lazy_exports(__name__, EXPORTS)
