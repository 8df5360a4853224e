"""What a benchmark decides about networks: the normal form of a run, and whose defaults it has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from farshore.benchmarks import BENCHMARKS
from farshore.benchmarks.rotated_digits import RotatedDigits
from farshore.runs.protocol import execute
from farshore.runs.run import Run


class Wide(RotatedDigits):
    """Names its network in every run, and leaves the defaults to the network."""

    name = "wide-digits"
    profile = "large-data"
    profile_follows_network = True

    @classmethod
    def normal_network(
        cls, network: str | None, settings: Mapping[str, Any], options: Mapping[str, Any]
    ) -> tuple[str | None, dict[str, Any], dict[str, Any]]:
        return super().normal_network(network or "mlp", {"width": 48, **settings}, options)


@pytest.fixture
def wide() -> Iterator[str]:
    BENCHMARKS.add(Wide.name, Wide)
    yield Wide.name
    BENCHMARKS.remove(Wide.name)


def test_the_benchmark_completes_the_network_of_a_run(wide: str) -> None:
    run = Run.build(benchmark=wide, method="er")
    assert (run.network, run.network_settings) == ("mlp", {"width": 48})
    asked = Run.build(benchmark=wide, method="er", network_settings={"width": "8"})
    assert asked.network_settings == {"width": 8}
    assert Run.build(benchmark="rotated-digits", method="er").network is None
    assert run.normal() == run


@pytest.mark.parametrize(("follows", "rate"), [(False, 5e-5), (True, 1e-3)])
def test_the_defaults_are_those_of_the_network_if_the_benchmark_says_so(
    wide: str, follows: bool, rate: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Wide, "profile_follows_network", follows)
    result = execute(Run.build(benchmark=wide, method="er", steps=1))
    assert result.settings["learning_rate"] == rate
