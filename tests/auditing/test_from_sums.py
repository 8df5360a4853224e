"""Answers from sums: those of refitting, and no row of a left-out site in them but its scores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from farshore.auditing import from_sums as module
from farshore.auditing.from_sums import SiteSums, from_sums
from farshore.benchmarks import make_benchmark
from farshore.benchmarks.benchmark import Benchmark
from farshore.runs.protocol import execute
from farshore.runs.run import Run

SETTINGS = {"ridge": {"random_features": 30}, "slda": {}, "ncm": {}}


def table(folder: Path, noise: str | None = None) -> dict[str, str]:
    draws, other = np.random.default_rng(0), np.random.default_rng(1)
    parts = []
    for number, site in enumerate("abcde"):
        x = draws.normal(size=(60 + number, 3)) + 0.3 * number
        ill = x[:, 0] - x[:, 1] + draws.normal(0, 0.8, len(x)) > 0
        if site == noise:
            x, ill = other.normal(50, 30, x.shape), other.random(len(x)) < 0.5
        part = pd.DataFrame(x.round(4), columns=["x0", "x1", "x2"])
        parts.append(part.assign(site=site, ill=np.where(ill, "yes", "no")))
    path = folder / f"{noise}.csv"
    pd.concat(parts).to_csv(path, index=False)
    return {"path": str(path), "domain": "site", "label": "ill"}


def benchmark(options: dict[str, str]) -> Benchmark:
    return make_benchmark("table", options)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PERMUTATIONS", 1)
    monkeypatch.setattr(module, "RESAMPLES", 3)


@pytest.mark.parametrize("method", SETTINGS)
def test_the_scores_are_those_of_the_runs(method: str, tmp_path: Path) -> None:
    options = table(tmp_path)
    found = from_sums(benchmark(options), method, SETTINGS[method])
    assert found is not None
    for site in "ace":  # the first one, whose rows scale the others, one between, the last
        run = Run(
            benchmark="table",
            options=options,
            method=method,
            target=site,
            settings=SETTINGS[method],
            steps=1,
        )
        assert found.scores[site] == pytest.approx(execute(run).target_score, rel=1e-9)


@pytest.mark.parametrize("method", SETTINGS)
def test_heads_are_those_of_refitting(method: str, tmp_path: Path) -> None:
    given = benchmark(table(tmp_path))
    sites = SiteSums(given.scenario(target="e", seed=0), method, SETTINGS[method])
    head, _ = sites.head("abd")
    for name in "bad":
        domain = next(each for each in given.scenario(target="e").sources if each.name == name)
        sites.system.learn(domain, steps=1)
    kept = sites.system.model
    for one, two in ((head.weight, kept.weight), (head.bias, kept.bias)):
        assert torch.allclose(one.float(), two, rtol=1e-9, atol=0)


def test_noise_at_a_left_out_site_changes_no_weight(tmp_path: Path) -> None:
    heads = []
    for noise in (None, "d"):
        scenario = benchmark(table(tmp_path, noise)).scenario(target="e", seed=0)
        sites = SiteSums(scenario, "ridge", SETTINGS["ridge"])
        heads.append((sites.head("abc"), sites.head("abcd")))
    (one, with_d), (two, with_noise) = heads
    assert torch.equal(one[0].weight, two[0].weight)
    assert torch.equal(one[0].bias, two[0].bias)
    assert not torch.equal(with_d[0].weight, with_noise[0].weight)
    found = [from_sums(benchmark(table(tmp_path, each)), "slda") for each in (None, "d")]
    assert found[0].scores["d"] != found[1].scores["d"]
    # Learning noise costs the others.
    assert found[1].values["d"].mean < found[0].values["d"].mean


def test_a_value_is_the_gain_of_learning_the_site_too(tmp_path: Path) -> None:
    options = table(tmp_path)
    found = from_sums(benchmark(options), "ncm")
    sites = SiteSums(benchmark(options).scenario(target="e", seed=0), "ncm", {})
    sites.add(benchmark(options).scenario(target="b", seed=0).sources[-1])
    gains = [
        sites.score(sites.head(set("abcde") - {at}), at)
        - sites.score(sites.head(set("abcde") - {at, "c"}), at)
        for at in "bde"
    ]
    assert found.values["c"].sites == 3
    assert found.values["c"].mean == pytest.approx(np.mean(gains))
    assert set(found.values) == set("bcde")
    assert found.curve is not None
    assert found.low <= found.high


def test_a_site_drawn_twice_counts_twice(tmp_path: Path) -> None:
    sites = SiteSums(benchmark(table(tmp_path)).scenario(target="e", seed=0), "ncm", {})
    twice = sites.head("aab")[0]
    sites.sums["a"] = {name: 2 * value for name, value in sites.sums["a"].items()}
    assert torch.equal(twice.weight, sites.head("ab")[0].weight)


def test_sites_in_the_order_of_time_have_no_answer(tmp_path: Path) -> None:
    options = table(tmp_path)
    frame = pd.read_csv(options["path"])
    frame.assign(day=range(len(frame))).to_csv(options["path"], index=False)
    assert from_sums(benchmark({**options, "time": "day"}), "ncm") is None
