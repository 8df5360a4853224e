"""The design of the study of doses, and what its table says of a run."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest

from farshore.report.figures.features import Features
from farshore.runs.protocol import execute
from farshore.runs.run import Run
from reproduction import doses
from reproduction.collect import planned_runs
from reproduction.compared import TAILORED

# The temperatures of the mask that stand in for balanced penalties.
MASKS = {1e6: "none", 0.3: "0.1", 0.1: "0.5", 0.03: "1.0"}
UNPRINTED = ("cl-vrex", "cl-mmd")


def cell(method: str, settings: dict) -> tuple[str, int, float]:
    """Dose, alignment and distillation of a run, read from its settings."""
    alignment = int(settings.get("alignment_weight") != 0.0)
    distillation = settings.get("distillation_weight", 0.0)
    if method == "cl-andmask":
        dose = "sum" if "mask" in settings else MASKS.get(settings.get("mask_temperature"))
        return dose or "default", alignment, distillation
    if settings.get("penalty_weight") == 0:
        return "none", alignment, distillation
    if "penalty_ratio" in settings:
        return str(settings["penalty_ratio"]), alignment, distillation
    printed = {"statistic_reduction", "alignment_reduction", "distillation_reduction"}
    return "sum" if printed & settings.keys() else "default", alignment, distillation


def expected_cells(method: str) -> set[tuple[str, int, float]]:
    """The whole factorial, without the cells that er, er-kd and `default` stand for."""
    everything = set(product(("none", "default", "0.1", "0.5", "1.0", "sum"), (0, 1), (0.0, 0.5)))
    left_out = {("none", 0, 0.0), ("none", 0, 0.5)}
    left_out |= {("sum", 0, 0.0), ("sum", 0, 0.5)} if method in UNPRINTED else set()
    return everything - left_out


CORNERS = {(1, 0.0), (0, 0.5)}
KEPT = {
    "coloured-digits": (None, None),
    "heart-hospitals": (None, None),
    "rotated-digits": (CORNERS, None),
    "covertype": (CORNERS, {"none", "default", "0.5", "sum"}),
    "covertype-zones": ({(1, 0.0)}, {"default", "0.5"}),
}


def test_the_design_is_the_factorial_thinned_by_its_rule() -> None:
    runs = planned_runs("dose")
    for benchmark, (corners, kept) in KEPT.items():
        of_benchmark = [each for each in runs if each.condition.benchmark == benchmark]
        assert {each.condition.method for each in of_benchmark} == {"er", "er-kd", *TAILORED}
        places = Counter()
        for method in TAILORED:
            cells = {
                each
                for each in expected_cells(method)
                if (corners is None or each[1:] in corners) and (kept is None or each[0] in kept)
            }
            found = Counter(
                cell(method, each.named.run.settings)
                for each in of_benchmark
                if each.condition.method == method
            )
            assert set(found) == cells, (benchmark, method)
            assert len(set(found.values())) == 1
        for each in of_benchmark:
            run = each.named.run
            assert run.steps is None
            assert each.features
            places[run.target, run.order, run.seed] += 1
            if each.condition.method in ("cl-vrex", "cl-fishr"):
                dose = cell(each.condition.method, run.settings)[0]
                assert ("anneal_steps" in run.settings) == (dose not in ("default", "sum"))
        # Every cell has every unit, order and seed, so that all of them are paired.
        assert len(set(places.values())) == 1


def test_the_units_are_targets_or_last_sources() -> None:
    units: dict[str, set] = {name: set() for name in KEPT}
    seeds: dict[str, set] = {name: set() for name in KEPT}
    for each in planned_runs("dose"):
        run = each.named.run
        benchmark = run.benchmark
        units[benchmark].add(each.condition.target or run.order[-1])
        seeds[benchmark].add(run.seed)
    assert {name: len(each) for name, each in units.items()} == {
        "coloured-digits": 4,
        "heart-hospitals": 4,
        "rotated-digits": 4,
        "covertype": 3,
        "covertype-zones": 7,
    }
    assert {name: len(each) for name, each in seeds.items()} == {
        **dict.fromkeys(KEPT, 3),
        "covertype-zones": 1,
    }


def test_scores_on_sources_not_learned_yet_start_with_the_second() -> None:
    matrix = [[0.9, 0.1, 0.2, 0.3], [0.9, 0.9, 0.4, 0.5], [0.9, 0.9, 0.9, 0.9], [0.9] * 4]
    assert doses.unseen_source_score(matrix) == pytest.approx((0.4 + 0.5 + 0.9) / 3)
    assert doses.unseen_source_score(matrix[:1]) is None
    assert doses.mean([None, 1.0, 3.0]) == 2.0


def test_the_probe_ignores_the_target_and_within_classes_what_the_class_tells() -> None:
    rng = np.random.default_rng(0)
    domains = np.repeat(["a", "b", "target"], 200)
    classes = np.where(domains == "a", rng.random(600) < 0.9, rng.random(600) < 0.1).astype(int)
    rows = rng.normal(size=(600, 3))
    rows[:, 0] += 8 * classes  # the class alone
    saved = Features(rows.astype(np.float32), list(domains), domains == "target", classes)
    whole, within = doses.probes(saved)
    assert 0.85 < whole < 0.95  # nine of ten rows are of the source's usual class
    assert 0.4 < within < 0.6  # chance
    saved.features[domains == "target"] = 99.0
    assert doses.probes(saved) == (whole, within)
    rows[domains == "b", 1] += 8  # now the domain itself
    assert doses.probes(Features(rows, list(domains), domains == "target", classes))[1] > 0.95


def test_a_run_as_columns(tmp_path) -> None:
    run = Run(
        benchmark="coloured-digits",
        method="cl-coral",
        steps=2,
        settings={"penalty_ratio": 0.5, "distillation_weight": 0.5},
    )
    result = execute(run)
    columns = doses.dose_columns(result, tmp_path / "features.safetensors")
    assert columns.keys() == set(doses.DOSE_COLUMNS)
    assert columns["penalty_dose"] == pytest.approx(0.5, rel=1e-3)
    assert columns["distillation_dose"] > 0
    assert columns["masked_share"] is columns["domain_probe"] is None
    followed = sum(row[(digit + 1) % 10] for digit, row in enumerate(result.target.confusion))
    assert columns["follows_colour"] == followed / result.target.rows
