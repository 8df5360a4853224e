"""docs/reproduction.md: its numbers come from the committed tables; the runs can be repeated."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
import reporting

from farshore.errors import FarshoreError
from farshore.results.over_units import Difference
from farshore.runs.plan.plan import Plan
from farshore.runs.store.store import Store
from farshore.runs.transfer import backward_transfer
from reproduction import ROOT, TABLES, covertype_rows, finished_runs, run
from reproduction.pages import reproduction
from reproduction.sections import claims, covertype, rotated_mnist, search, sensitivity


def test_the_page_is_made_from_the_committed_tables() -> None:
    assert reproduction.PAGE.read_text() == reproduction.text(), "run `make docs`"
    assert sum(path.stat().st_size for path in TABLES.iterdir()) < 5_000_000


def test_every_table_is_of_an_experiment_and_carries_all_metrics() -> None:
    tables = sorted(path.stem for path in TABLES.glob("*.csv"))
    assert set(tables) <= {*reproduction.COLLECTED, "recommended"}
    for name in tables:
        frame = finished_runs.table(name)
        done = frame[frame["status"] == "done"]
        assert len(done)
        for metric in ("accuracy", "macro_f1", "balanced_accuracy", "log_loss"):
            assert done[f"target_{metric}"].notna().all()


def difference(mean: float, half: float) -> Difference:
    return Difference(24, 24, mean, half / 2, mean - half, mean + half, 12)


@pytest.mark.parametrize(
    ("differences", "words"),
    [
        ([difference(7, 1), difference(4, 1)], "**reproduced**"),
        ([difference(7, 1), difference(2, 1)], "**partly**"),  # less than half of the paper's 6
        ([difference(7, 1)], "**partly**"),  # one data set alone
        ([difference(7, 1), difference(1, 2)], "**partly**"),
        ([difference(1, 2), difference(-3, 1)], "**not reproduced**"),
        ([difference(1, 2)], "**open**"),
        ([], "not run"),
    ],
)
def test_verdicts_follow_the_rule(differences: list[Difference], words: str) -> None:
    assert claims.verdict([claims.larger(each, 6) for each in differences]) == words


def test_a_claim_that_hangs_on_the_weakest_baseline_holds_only_in_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scores = {"er": 0.7, "fdr": 0.7, "sarl": 0.1}
    rows = [
        {"method": name, "order": order, "run_seed": 0, "target_score_unseen": score + jitter}
        for name, score in scores.items()
        for order, jitter in (("a,b", 0.0), ("b,a", 0.1 * (name == "fdr")), ("c,a", 0.02))
    ]
    monkeypatch.setattr(claims, "rows_of", lambda *_: pd.DataFrame(rows))
    found = claims.between(["er"], ["fdr", "sarl"], expected=2)("covertype")
    assert found is not None
    assert "without `sarl`: -3.3" in found.text
    assert (found.holds, found.strongly) == (True, False)
    alone = claims.between(["er", "sarl"], ["fdr"], expected=0)("covertype")
    assert alone is not None
    assert "without `sarl`: -3.3" in alone.text


def test_run_times_are_compared_as_ratios_of_medians(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times = {"er-ace": 2.0, "fdr": 4.0, "sarl": 400.0}
    times |= dict.fromkeys(claims.TAILORED, 8.0)
    rows = [
        {"method": name, "order": order, "run_seed": 0, "seconds_of_training": seconds * factor}
        for name, seconds in times.items()
        for order, factor in (("a,b", 1), ("b,a", 3), ("c,a", 9))
    ]
    monkeypatch.setattr(claims, "rows_of", lambda *_: pd.DataFrame(rows))
    found = claims.run_time("covertype")
    assert found is not None
    assert found.text == "2.00 times [2.00, 2.00], 3 orders, 1 seed each"
    assert not found.holds


def test_sensitivity_is_paired_with_the_default_in_the_same_orders(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def row(order: str, score: float, settings: str) -> dict[str, object]:
        return {
            "method": "cl-coral",
            "order": order,
            "run_seed": 0,
            "settings": settings,
            "target_score_unseen": score,
        }

    frames = {
        "all_orders": [row("a,b", 0.5, "{}"), row("b,a", 0.7, "{}"), row("c,a", 0.0, "{}")],
        "orders_sensitivity": [
            row("a,b", 0.53, '{"penalty_weight": 10.0}'),
            row("b,a", 0.71, '{"penalty_weight": 10.0}'),
            row("a,b", 0.4, '{"alignment_weight": 0.1}'),
        ],
    }
    monkeypatch.setattr(sensitivity, "rows_of", lambda name, _: pd.DataFrame(frames[name]))
    changes = sensitivity.changes_by_weight("covertype", ["cl-coral"])
    assert set(changes) == {("cl-coral", "penalty_weight"), ("cl-coral", "alignment_weight")}
    [(value, change)] = changes["cl-coral", "penalty_weight"].items()
    assert (value, change.units) == (10.0, 2)
    assert change.mean == pytest.approx(2.0)
    found = claims.robust("covertype")
    assert found is not None
    assert found.text == "0 of 2 values, the worst -10.0; 2 orders, 1 seed each"
    assert not found.holds
    assert not found.strongly
    # Runs of the default in the same experiment are the reference, and no change.
    frames["orders_sensitivity"] += [
        row("a,b", 0.52, '{"alignment_weight": 1.0}'),
        row("b,a", 0.7, '{"alignment_weight": 1.0}'),
    ]
    changes = sensitivity.changes_by_weight("covertype", ["cl-coral"])
    assert set(changes["cl-coral", "alignment_weight"]) == {0.1}
    assert changes["cl-coral", "penalty_weight"][10.0].mean == pytest.approx(1.0)


def test_scores_are_compared_with_the_paper_by_the_last_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scores = {"0": 0.2, "15": 0.39, "30": 0.6, "45": 0.8}  # the paper's fine-tuning: 39.5 ± 1.7
    rows = [
        {"method": name, "order": f"{first},{last}", "run_seed": 0, finished_runs.SCORE: score}
        for name, gain in (("finetune", 0.0), ("cope", 0.01))  # the paper's cope: 68.7 ± 3.2
        for last, score in ((last, score + gain) for last, score in scores.items())
        for first in ("a", "b")
    ]
    monkeypatch.setattr(rotated_mnist, "rows_of", lambda *_: pd.DataFrame(rows))
    text = rotated_mnist.last_section()
    assert "1 of 2 systems are near" in text
    assert "with no last source: `cope`." in text
    assert "| `finetune` | 20.0 | **39.0** | 60.0 | 80.0 | 39.5 ± 1.7 |" in text


def test_the_target_as_it_is_weights_the_recalls_by_class_size() -> None:
    classes = ("spruce-fir", "lodgepole-pine", "ponderosa-pine", "aspen", "douglas-fir")
    always_lodgepole = [[0, 0, 0, 0, 0], [0, 9, 0, 0, 0], [0, 9, 0, 0, 0], [0] * 5, [0, 9, 0, 0, 0]]
    score = covertype_rows.score_as_it_is("cache-la-poudre", classes, always_lodgepole)
    assert score == pytest.approx(3_026 / 36_968)
    half = [[0] * 5, [0, 0, 9, 0, 0], [0, 0, 4, 0, 4], [0] * 5, [0, 0, 0, 0, 9]]
    score = covertype_rows.score_as_it_is("cache-la-poudre", classes, half)
    assert score == pytest.approx((21_454 / 2 + 9_741) / 36_968)
    assert covertype_rows.score_as_it_is("neota", classes, half) is None


def test_readings_of_balance_are_compared_with_the_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    # The paper's fine-tuning: 8.1 ± 0.0 on the target, 64.3 ± 0.5 on the sources; fdr: 38.3, 80.0.
    balanced, natural = covertype.LEARNED
    target = {
        balanced.benchmark: {"finetune": (0.3, 0.2), "fdr": (0.38, 0.4)},
        natural.benchmark: {"finetune": (0.09, 0.08), "fdr": (0.5, 0.39)},
    }

    def rows(_: str, benchmark: str) -> pd.DataFrame:
        return pd.DataFrame(
            {
                "method": name,
                "order": order,
                "run_seed": seed,
                "trial": trial,
                "source_validation_score": trial / 100,
                finished_runs.SCORE: score,
                finished_runs.AS_IT_IS: as_it_is if order == "b,a" else 0.99,
                covertype.SOURCES: 0.65,
            }
            for name, (score, as_it_is) in target[benchmark].items()
            for order in ("a,b", "b,a")
            for seed in (1, 2)
            for trial in range(search.TRIALS)
        )

    monkeypatch.setattr(covertype, "rows_of", rows)
    lines = covertype.orders_table().splitlines()
    assert lines[3] == "| b, a | 30.0 | 20.0 | 8.0 | 65.0 | 65.0 | 1 | 1 | 2 | 1 | 1 |"
    assert covertype.fitted() == "b,a"
    assert (
        "| `finetune` | 30.0 ± 0.0 | 20.0 ± 0.0 | **8.0 ± 0.0** | **65.0 ± 0.0** | "
        "**65.0 ± 0.0** | 8.1 ± 0.0 | 64.3 ± 0.5 |"
    ) in covertype.methods_table()
    monkeypatch.setattr(covertype, "whole", lambda frame: frame[frame["order"] == "b,a"])
    assert "1 (balanced), 1 (natural target) and 2 (all natural) of 2" in (
        covertype.search_section()
    )


def test_groups_are_averaged_over_shared_orders_and_seeds() -> None:
    orders = [("a", "b"), ("b", "a"), ("c",)]
    first = {order: {0: 1.0, 1: 3.0} for order in orders}
    second = {order: {0: 5.0} for order in orders}
    few = {("a", "b"): {0: 100.0}}
    pooled = claims.pooled({"x": first, "y": second, "z": few}, ["x", "y", "z", "absent"])
    assert pooled == {order: {0: 3.0} for order in orders}


def test_the_gain_by_learning_is_positive_even_where_much_is_forgotten() -> None:
    matrix = [[0.9, 0.5, 0.3], [0.8, 0.9, 0.4], [0.2, 0.6, 0.9]]
    assert finished_runs.gain_by_learning(matrix) == pytest.approx((0.1 + 0.5) / 2)
    assert backward_transfer(matrix) == pytest.approx((-0.7 - 0.3) / 2)
    assert finished_runs.gain_by_learning(matrix[:1]) is None


def test_no_table_has_a_run_that_its_experiment_no_longer_plans() -> None:
    # The name of a run changes with the results version of its method and of its data set.
    for name in (*reproduction.COLLECTED, "recommended"):
        recorded = finished_runs.table(name)["run"]
        assert set(recorded) <= {planned.name for planned in finished_runs.planned_runs(name)}
        assert recorded.is_unique, name


@pytest.fixture
def own_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the tables, which a test may change."""
    copy = Path(shutil.copytree(TABLES, tmp_path / "tables"))
    monkeypatch.setattr(finished_runs, "TABLES", copy)
    finished_runs.table.cache_clear()
    yield copy
    finished_runs.table.cache_clear()


def test_collecting_adds_to_the_tables_and_replaces_the_same_runs(
    own_tables: Path, tmp_path: Path
) -> None:
    path, store = own_tables / "readings.csv", Store(tmp_path / "runs")
    known = pd.read_csv(path, dtype=str)
    finished_runs.collect(store.runs, ["readings"])  # an empty store: nothing changes
    assert pd.read_csv(path, dtype=str).equals(known)

    first, second = finished_runs.planned_runs("readings")[:2]
    for planned in (first, second):
        reporting.write(store.runs, reporting.result(planned.run, 0.25), planned)
    known[known["run"] != first.name].to_csv(path, index=False)  # one is missing, one is there
    finished_runs.table.cache_clear()
    finished_runs.collect(store.runs, ["readings"])
    again = pd.read_csv(path, dtype=str)
    others = ~known["run"].isin([first.name, second.name])
    assert sorted(again["run"]) == sorted(known["run"])
    assert again[others].drop(columns="device").equals(known[others])
    assert set(again[~others]["target_score_unseen"].astype(float)) == {0.25}
    assert set(again[~others]["device"]) == {"cpu"}


def test_collecting_drops_runs_that_are_no_longer_planned(own_tables: Path, tmp_path: Path) -> None:
    path = own_tables / "readings.csv"
    known = pd.read_csv(path, dtype=str)
    known.assign(run=["0" * 16, *known["run"][1:]]).to_csv(path, index=False)
    finished_runs.table.cache_clear()
    finished_runs.collect(tmp_path, ["readings"])
    assert list(pd.read_csv(path, dtype=str)["run"]) == list(known["run"][1:])
    known[:1].assign(run="0" * 16).to_csv(path, index=False)  # none of them is planned
    finished_runs.table.cache_clear()
    finished_runs.collect(tmp_path, ["readings"])
    assert finished_runs.table("readings").empty


def test_the_command_covers_every_experiment_of_a_data_set(tmp_path: Path) -> None:
    others = ("image_benchmarks", "protocol_ablated")
    assert run.experiments_of("rotated-mnist") == [
        name for name in run.COLLECTED if name not in others
    ]
    assert "fitted_order" not in run.experiments_of("covertype")
    assert run.experiments_of("wm811k") == ["image_benchmarks"]
    with pytest.raises(FarshoreError, match=r"known: cifar10-c, covertype, .*, wm811k"):
        run.experiments_of("imagenet")


def test_missing_runs_are_those_that_the_tables_do_not_have(
    own_tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = own_tables / "image_benchmarks.csv"
    known = pd.read_csv(path, dtype=str)
    known[1:].to_csv(path, index=False)
    finished_runs.table.cache_clear()
    # Planned as if the data were here.
    monkeypatch.setattr(
        run, "make_plan", lambda *_, **__: Plan(runs=finished_runs.planned_runs(path.stem))
    )
    [everything] = run.make_plans("wm811k", Store(tmp_path), "cpu")
    [missing] = run.make_plans("wm811k", Store(tmp_path), "cpu", missing=True)
    names = {planned.name for planned in missing.runs}
    assert known["run"][0] in names
    assert names.isdisjoint(known["run"][1:])
    assert names | set(known["run"]) == {planned.name for planned in everything.runs}
    assert (tmp_path / "experiments" / "image_benchmarks.yaml").is_file()


@pytest.mark.soak
def test_a_data_set_is_reproduced_at_tiny_scale(tmp_path: Path) -> None:
    # One with few runs: the experiments of the others run at this scale in test_experiments.py.
    command = [sys.executable, str(ROOT / "docs" / "run.py"), "--table", "wm811k"]
    subprocess.run([*command, "--scale", "tiny", "--runs", str(tmp_path)], check=True, cwd=ROOT)
    assert len(list(tmp_path.glob("*/result.json"))) >= 20


def test_trials_are_selected_by_the_sources_never_by_the_target() -> None:
    frame = pd.DataFrame(
        {
            "method": ["er", "er", "er", "er", "fdr"],
            "run_seed": [1, 1, 2, 2, 1],
            "trial": [0, 1, 0, 1, 0],
            "source_validation_score": [0.9, 0.8, 0.7, 0.95, 0.5],
            "target_score_unseen": [0.1, 0.9, 0.8, 0.2, 0.3],
        }
    )
    chosen = search.selected(frame)
    assert sorted(zip(chosen["method"], chosen["run_seed"], chosen["trial"], strict=True)) == [
        ("er", 1, 0),
        ("er", 2, 1),
        ("fdr", 1, 0),
    ]
    shuffled = frame.assign(target_score_unseen=frame["target_score_unseen"].to_numpy()[::-1])
    assert list(search.selected(shuffled).index) == list(chosen.index)


def test_ablations_under_the_search_are_paired_draw_by_draw(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def row(trial: int, score: float, settings: str, seed: int = 1) -> dict[str, object]:
        return {
            "method": "cl-coral",
            "run_seed": seed,
            "trial": trial,
            "settings": settings,
            "target_score_unseen": score,
            "source_validation_score": trial / 100,
        }

    trials = range(search.TRIALS)
    without = '{"alignment_weight": 0.0}'
    frames = {
        "paper_protocol": [row(trial, 0.5 + trial / 100, "{}") for trial in trials],
        "protocol_ablated": [
            *(row(trial, 0.4 + trial / 100, without) for trial in trials),
            row(0, 0.0, without, seed=2),  # not all of its trials have run
            row(0, 0.9, '{"priors": "dynamic"}'),
        ],
    }
    monkeypatch.setattr(search, "rows_of", lambda name, _: pd.DataFrame(frames[name]))
    _, _, *lines = search.ablated_section("covertype").splitlines()
    assert [line.split(" | ")[:3] for line in lines] == [
        ["| no alignment", "`cl-coral`", "+10.0 [+10.0, +10.0], better in 20 of 20"],
        ["| no alignment", "their mean", "+10.0 [+10.0, +10.0], better in 20 of 20"],
    ]
    assert "45.2 ± 3.9 | 37.5 ± 1.6" in lines[0]  # the paper's, with and without alignment
