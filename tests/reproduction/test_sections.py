"""docs/reproduction.md is made from the committed tables; its rules hold on other tables too."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from reproduction import arithmetic
from reproduction.arithmetic import Scores
from reproduction.compared import TAILORED
from reproduction.finished_runs import AS_IT_IS, SCORE
from reproduction.sections import claims, covertype, rotated_mnist, search, sensitivity

# Student's t for 95% and 2 degrees of freedom.
T2 = 4.302652729911275
RUN = {"target": "t", "run_seed": 0}


def made(mean: float, half: float) -> Scores:
    """Differences at three last sources with this mean and this half of a 95% interval."""
    gap = half * math.sqrt(3) / T2
    return {
        ("", "t", last, f"x {last}", 0): value
        for last, value in zip("abc", (mean - gap, mean, mean + gap), strict=True)
    }


@pytest.mark.parametrize(
    ("differences", "words"),
    [
        ([(7, 1), (4, 1)], "**reproduced**"),
        ([(7, 1), (2, 1)], "**partly**"),  # less than half of the paper's 6
        ([(7, 1)], "**partly**"),  # one data set alone
        ([(7, 1), (1, 2)], "**partly**"),
        ([(1, 2), (-3, 1)], "**not reproduced**"),
        ([(1, 2)], "**open**"),
        ([], "not run"),
    ],
)
def test_verdicts_follow_the_rule(differences: list[tuple[float, float]], words: str) -> None:
    found = []
    for mean, half in differences:
        runs = made(mean, half)
        found.append(claims.larger(runs, dict.fromkeys(runs, 0.0), 6))
        assert found[-1] is not None
        interval = f"{mean:+.1f} [{mean - half:+.1f}, {mean + half:+.1f}]"
        assert (found[-1].text, found[-1].n) == (interval, "3 last sources")
        assert found[-1].runs == "3 orders, 1 seed each"
    assert claims.verdict([each for each in found if each is not None]) == words


def test_a_claim_that_hangs_on_the_weakest_baseline_holds_only_in_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scores = {"er": 0.7, "fdr": 0.7, "sarl": 0.1}
    rows = [
        {**RUN, "method": name, "order": order, SCORE: score + jitter}
        for name, score in scores.items()
        for order, jitter in (("a,b", 0.0), ("b,a", 0.1 * (name == "fdr")), ("a,c", 0.02))
    ]
    monkeypatch.setattr(claims, "rows_of", lambda *_: pd.DataFrame(rows))
    found = claims.between(["er"], ["fdr", "sarl"], 2, claims.usual())("covertype")
    assert found is not None
    assert found.remark.startswith("without `sarl`: -3.3")
    assert (found.holds, found.strongly) == (True, False)
    alone = claims.between(["er", "sarl"], ["fdr"], 0, claims.usual())("covertype")
    assert alone is not None
    assert alone.remark.startswith("without `sarl`: -3.3")


def test_run_times_are_compared_as_ratios_of_medians(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times = {"er-ace": 2.0, "fdr": 4.0, "sarl": 400.0}
    times |= dict.fromkeys(TAILORED, 8.0)
    rows = [
        {**RUN, "method": name, "order": order, "seconds_of_training": seconds * factor}
        for name, seconds in times.items()
        for order, factor in (("a,b", 1), ("b,a", 3), ("a,c", 9))
    ]
    monkeypatch.setattr(claims, "rows_of", lambda *_: pd.DataFrame(rows))
    found = claims.run_time("covertype")
    assert found is not None
    assert (found.text, found.n) == ("2.00 times [2.00, 2.00]", "3 last sources")
    assert not found.holds


def test_sensitivity_is_paired_with_the_default_in_the_same_orders(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def row(order: str, score: float, settings: str) -> dict[str, object]:
        return {
            **RUN,
            "method": "cl-coral",
            "order": order,
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
    assert (found.text, found.n) == ("0 of 2 values, the worst -10.0", "2 last sources")
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
        {"method": name, "order": f"{first},{last}", "run_seed": 0, SCORE: score}
        for name, gain in (("finetune", 0.0), ("cope", 0.01))  # the paper's cope: 68.7 ± 3.2
        for last, score in ((last, score + gain) for last, score in scores.items())
        for first in ("a", "b")
    ]
    monkeypatch.setattr(rotated_mnist, "rows_of", lambda *_: pd.DataFrame(rows))
    text = rotated_mnist.last_section()
    assert "1 of 2 systems are near" in text
    assert "with no last source: `cope`." in text
    assert "| `finetune` | 20.0 | **39.0** | 60.0 | 80.0 | 39.5 ± 1.7 |" in text


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
                SCORE: score,
                AS_IT_IS: as_it_is if order == "b,a" else 0.99,
                covertype.SOURCES: 0.65,
            }
            for name, (score, as_it_is) in target[benchmark].items()
            for order in ("a,b", "b,a")
            for seed in (1, 2)
            for trial in range(arithmetic.TRIALS)
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
    lasts = {last: ("", "t", last, f"x {last}") for last in "abc"}
    first = {(*place, seed): 1.0 + 2 * seed for place in lasts.values() for seed in (0, 1)}
    second = {(*place, 0): 5.0 for place in lasts.values()}
    few = {(*lasts["a"], 0): 100.0}
    pooled = arithmetic.pooled({"x": first, "y": second, "z": few}, ["x", "y", "z", "absent"])
    assert pooled == {(*place, 0): 3.0 for place in lasts.values()}


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
    chosen = arithmetic.selected(frame)
    assert sorted(zip(chosen["method"], chosen["run_seed"], chosen["trial"], strict=True)) == [
        ("er", 1, 0),
        ("er", 2, 1),
        ("fdr", 1, 0),
    ]
    shuffled = frame.assign(target_score_unseen=frame["target_score_unseen"].to_numpy()[::-1])
    assert list(arithmetic.selected(shuffled).index) == list(chosen.index)


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

    trials = range(arithmetic.TRIALS)
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
