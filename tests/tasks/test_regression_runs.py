"""Runs on a label that is a number: sealed, resumable, and told in its own unit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import farshore
from farshore.errors import FarshoreError
from farshore.runs.result import Result
from farshore.runs.resume import Resume
from farshore.testing import check_method
from tests.numbered import executed, table

METHODS = ("finetune", "er", "joint", "ridge", "trees", "majority", "joint-linear", "joint-trees")


def trained(result: Result) -> dict[str, Any]:
    """Everything that must not depend on the target."""
    assert result.target is not None
    return {
        "weights": result.target.weights,
        "matrices": result.matrices,
        "task": result.task,
        "sources": result.source_scores,
    }


@pytest.mark.parametrize("method", METHODS)
def test_a_target_of_noise_changes_nothing_that_is_trained(tmp_path: Path, method: str) -> None:
    found = [
        executed(tmp_path / str(noise), table(noise=noise), method, steps=5)
        for noise in (False, True)
    ]
    assert trained(found[0]) == trained(found[1])
    assert found[0].target.scores["mae"] != found[1].target.scores["mae"]


def test_a_target_of_noise_in_a_frame_changes_nothing_that_is_trained(tmp_path: Path) -> None:
    weights = []
    for noise in (False, True):
        found = farshore.compare(
            table(noise=noise),
            domain="site",
            label="y",
            drop="y2",
            target="d",
            methods=["er", "ridge"],
            seeds=1,
            steps=5,
            runs=tmp_path / str(noise),
            progress=False,
        )
        rows = zip(found.frame["row"], found.frame["result"], strict=True)
        weights.append({row: trained(result) for row, result in rows})
    assert weights[0] == weights[1]


@pytest.mark.parametrize(
    "given",
    [
        {"options": {"log_label": True, "unit": "kWh"}},
        {"options": {"label": "y,y2", "drop": ""}},
        {"settings": {"loss": "quantile", "quantile": 0.8}},
        {"settings": {"loss": "huber", "class_balanced_memory": True}},
    ],
)
def test_no_option_lets_the_target_out(tmp_path: Path, given: dict[str, Any]) -> None:
    found = []
    for noise in (False, True):
        frame = table(noise=noise)
        frame[["y", "y2"]] = frame[["y", "y2"]].abs() + 1
        found.append(executed(tmp_path / str(noise), frame, "er", steps=5, **given))
    assert trained(found[0]) == trained(found[1])
    assert found[0].target.scores["mae"] != found[1].target.scores["mae"]


def test_a_logarithm_of_nothing_in_the_target_is_refused_before_the_first_step(
    tmp_path: Path,
) -> None:
    frame = table()
    frame.loc[frame.index[-1], "y"] = 0
    with pytest.raises(FarshoreError, match="--log-label needs labels above 0, and y is 0 in row"):
        executed(tmp_path, frame, "er", options={"log_label": True}, steps=10**6)


@pytest.mark.parametrize("method", METHODS)
def test_learning_beats_the_sources_mean(tmp_path: Path, method: str) -> None:
    result = executed(tmp_path, table(60), method, settings={"learning_rate": 0.01}, steps=150)
    scores = result.target.scores
    assert (result.metric, result.task["name"], result.classes) == ("mae", "regression", [])
    assert result.target.confusion == []
    if method == "majority":
        assert scores["mae"] == pytest.approx(scores["guess_mae"], rel=1e-4)
        assert scores["skill"] == pytest.approx(0, abs=1e-4)
    else:
        assert scores["skill"] > 0.3
        assert scores["skill"] == pytest.approx(1 - scores["mae"] / scores["guess_mae"], rel=1e-6)
    assert "y: a number, so this is regression" in result.notes[0]


def test_the_skill_has_the_sign_of_a_second_implementation(tmp_path: Path) -> None:
    """The sources' mean by hand, from the rows that the runs trained on."""
    frame = table(60)
    result = executed(tmp_path, frame, "ridge")
    inside = frame["site"] == "d"
    of_mean = (frame["y"][inside] - frame["y"][~inside].mean()).abs().mean()
    # Training rows are 80% of the sources.
    assert result.target.scores["guess_mae"] == pytest.approx(of_mean, rel=0.05)


@pytest.mark.parametrize("method", ["er", "ridge", "trees"])
def test_a_killed_run_continues_bit_for_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    whole = executed(tmp_path / "whole", table(), method)
    learn = farshore.Learner.learn_domain

    def killed(self: Any, domain: Any, **given: Any) -> None:
        if domain.name == "c":
            raise KeyboardInterrupt
        learn(self, domain, **given)

    folder = tmp_path / "resume"
    monkeypatch.setattr(farshore.Learner, "learn_domain", killed)
    with pytest.raises(KeyboardInterrupt):
        executed(tmp_path / "again", table(), method, resume=Resume(folder))
    monkeypatch.setattr(farshore.Learner, "learn_domain", learn)
    resumed = executed(tmp_path / "again", table(), method, resume=Resume(folder))
    assert trained(resumed) == trained(whole)
    assert resumed.target.scores == whole.target.scores


def test_ridge_forgets_a_site_exactly(tmp_path: Path) -> None:
    frame = table()
    x, y, site = frame[["x", "z"]].to_numpy(), frame[["y", "y2"]].to_numpy(), frame["site"]

    def learned(names: str) -> farshore.Learner:
        learner = farshore.Learner(method="ridge")
        for name in names:
            learner.learn(x[site == name], y[site == name], domain=name)
        return learner

    forgot, without = learned("abc"), learned("ac")
    forgot.forget("b")
    assert np.array_equal(forgot.predict(x), without.predict(x))
    assert forgot.predict(x).shape == (len(x), 2)
    assert np.abs(forgot.predict(x) - y).mean(axis=0) == pytest.approx([0, 0], abs=3)


@pytest.mark.parametrize("method", ["er", "ridge", "trees"])
def test_a_saved_learner_of_numbers_comes_back(tmp_path: Path, method: str) -> None:
    frame = table()
    x, y, site = frame[["x", "z"]].to_numpy(), frame["y"].to_numpy(), frame["site"]
    learner = farshore.Learner(method=method)
    for name in "ab":
        learner.learn(x[site == name], y[site == name], domain=name, steps=5)
    learner.save(tmp_path / "m")
    again = farshore.load(tmp_path / "m")
    assert np.array_equal(again.predict(x), learner.predict(x))
    assert (again.metric, again.known_task) == ("mae", learner.known_task)
    for each in (learner, again):
        each.learn(x[site == "c"], y[site == "c"], domain="c", steps=5)
    assert np.array_equal(again.predict(x), learner.predict(x))
    assert again.score(x, y) == learner.score(x, y)
    with pytest.raises(FarshoreError, match="labels are numbers, which have no probabilities"):
        learner.predict_proba(x)


def test_several_labels_and_logarithms_run_end_to_end(tmp_path: Path) -> None:
    both = executed(tmp_path / "2", table(60), "ridge", options={"label": "y,y2", "drop": ""})
    assert both.task["labels"] == ["y", "y2"]
    assert both.target.scores["skill"] > 0.5
    one = executed(tmp_path / "1", table(60), "ridge", options={"log_label": True, "unit": "EUR"})
    assert (one.task["log"], one.task["unit"]) == (True, "EUR")
    assert one.target.scores["skill"] > 0.5
    assert repr(one).endswith("EUR)")


def edited(**cells: Any) -> pd.DataFrame:
    frame = table()
    for name, value in cells.items():
        frame[name] = value(frame)
    return frame


@pytest.mark.parametrize(
    ("frame", "match"),
    [
        (
            edited(y=lambda f: f["y"].astype(object).mask(f.index == 95, "high")),
            "--label y, row 95: 'high' is not a finite number",
        ),
        (edited(y=lambda f: f["y"].mask(f.index == 5, np.inf)), "row 5.*infinite|row 5: 'inf'"),
        (
            edited(y=lambda f: f["y"].mask(f["site"] == "b", 7.0)),
            "domain 'b' has one value of y only",
        ),
        (
            edited(y=lambda f: f["y"].mask(f.groupby("site").cumcount() > 3)),
            "no source has 10 rows with a number",
        ),
    ],
)
def test_bad_labels_are_refused_in_one_line(
    tmp_path: Path, frame: pd.DataFrame, match: str
) -> None:
    with pytest.raises(FarshoreError, match=match) as refused:
        executed(tmp_path, frame, "er")
    assert "\n" not in str(refused.value)


def test_rows_without_a_label_and_small_sites_are_left_out_and_counted(tmp_path: Path) -> None:
    frame = edited(
        y=lambda f: f["y"].mask((f.index == 3) | ((f["site"] == "b") & (f.index % 5 > 0)))
    )
    result = executed(tmp_path, frame, "ridge")
    assert result.sources == ["a", "c"]
    assert "25 rows without a label left out" in result.notes
    assert any(
        "1 source with fewer than 10 labelled rows left out: b (6)" in n for n in result.notes
    )


def test_a_label_that_is_missing_at_one_site_leaves_that_site_out(tmp_path: Path) -> None:
    result = executed(tmp_path, edited(y=lambda f: f["y"].mask(f["site"] == "b")), "ridge")
    assert result.sources == ["a", "c"]


def test_other_units_are_a_warning_that_names_the_sites(tmp_path: Path) -> None:
    frame = edited(y=lambda f: f["y"].where(f["site"] != "c", 2000 * f["y"]))
    found = executed(tmp_path, frame, "ridge").notes
    (warning,) = [note for note in found if "check that both have the same unit" in note]
    assert "at a" in warning
    assert "at c, a factor of" in warning


def test_methods_that_need_classes_name_those_that_fit(tmp_path: Path) -> None:
    for method in ("slda", "ncm", "er-ace"):
        with pytest.raises(FarshoreError, match=f"{method}' needs classes.*use one of .*ridge"):
            executed(tmp_path, table(), method)


def test_a_part_of_a_date_is_a_domain(tmp_path: Path) -> None:
    frame = table()
    start = {"a": "2/%d/2007", "b": "3/%d/2008", "c": "4/%d/2009", "d": "5/%d/2010"}
    frame["sold"] = [start[site] % (1 + n % 28) for n, site in enumerate(frame["site"])]
    options = {"domain": "sold:year", "time": "sold", "time_format": "%m/%d/%Y", "drop": "y2,site"}
    result = executed(tmp_path, frame, "ridge", options=options, target="2010")
    assert result.sources == ["2007", "2008", "2009"]
    with pytest.raises(FarshoreError, match="unknown column in --domain 'sold:week'"):
        executed(tmp_path, frame, "ridge", options=options | {"domain": "sold:week"})


def test_classes_stay_classes_and_the_flag_decides(tmp_path: Path) -> None:
    frame = table()
    frame["y"] = (frame["y"] > 500).astype(int)
    assert executed(tmp_path / "1", frame, "ridge").task == {"name": "classification"}
    forced = executed(tmp_path / "2", frame, "ridge", options={"task": "regression"})
    assert forced.metric == "mae"
    with pytest.raises(FarshoreError, match="looks like a quantity: say that it is a number"):
        executed(tmp_path / "3", table(), "ridge", options={"task": "classification"})


def test_progress_is_told_in_the_labels_unit() -> None:
    from io import StringIO

    from rich.console import Console

    from farshore.cli.progress import ProgressObserver

    for metric, expected in (("mae", "b 12.30"), ("accuracy", "b 50.0")):
        written = StringIO()
        with ProgressObserver(Console(file=written, width=200)) as observer:
            value = 12.3 if metric == "mae" else 0.5
            observer.domain("b", {f"b validation {metric}": value})
        assert expected in written.getvalue()


def test_forgetting_is_a_gain_in_error(tmp_path: Path) -> None:
    result = executed(tmp_path, table(), "finetune")
    matrix = np.array(result.matrices["validation"])
    expected = np.mean([matrix[i][i] - matrix[-1][i] for i in range(2)])
    assert result.backward_transfer() == pytest.approx(expected)


def test_a_comparison_ranks_the_smallest_error_first(tmp_path: Path) -> None:
    found = farshore.compare(
        table(40),
        domain="site",
        label="y",
        drop="y2",
        unit="kWh",
        methods=["er", "ridge", "majority"],
        seeds=1,
        steps=20,
        runs=tmp_path,
        progress=False,
    )
    ranked = found.table
    assert ranked["method"].tolist()[0] == "ridge"
    assert ranked["score"].iloc[0] < ranked["score"].iloc[1]
    assert ranked.set_index("method").loc["majority", "guessing"]
    assert "kWh" in found.verdict.sentence
    assert len(found.targets) == 4
    page = found.report(tmp_path / "page.html").read_text()
    assert "kWh" in page
    assert "lower is better" in page


@pytest.mark.parametrize("method", ["ridge", "majority", "joint", "finetune"])
def test_the_battery_runs_on_numbers(method: str) -> None:
    check_method(method, numbers=True)


@pytest.mark.soak
@pytest.mark.parametrize(
    "method",
    [
        *("er", "agem", "si", "ewc", "upgd", "snr", "der++", "er-kd", "fdr", "cl-mix", "cl-vrex"),
        *("cl-fishr", "cl-coral", "cl-mmd", "cl-andmask", "trees", "auto", "groupdro"),
    ],
)
def test_the_battery_of_every_method_runs_on_numbers(method: str) -> None:
    check_method(method, numbers=True)


@pytest.mark.parametrize("method", ["er-kd", "cl-mix", "cl-andmask", "auto"])
def test_a_target_of_noise_changes_no_other_method(tmp_path: Path, method: str) -> None:
    found = [
        executed(tmp_path / str(noise), table(noise=noise), method, steps=2, memory=20)
        for noise in (False, True)
    ]
    assert trained(found[0]) == trained(found[1])


def test_images_in_a_table_can_have_numbers_as_labels(tmp_path: Path) -> None:
    from PIL import Image

    rng, lines = np.random.default_rng(0), ["file,site,brightness"]
    for site in "abc":
        for number in range(12):
            level = rng.uniform(20, 230)
            name = f"{site}{number}.png"
            Image.fromarray(np.full((6, 6), level, dtype=np.uint8)).save(tmp_path / name)
            lines.append(f"{name},{site},{level / 10:.3f}")
    (tmp_path / "t.csv").write_text("\n".join([*lines, ""]))
    run = farshore.Run.build(
        benchmark="image-table",
        options={
            "path": str(tmp_path / "t.csv"),
            "image": "file",
            "domain": "site",
            "label": "brightness",
            "size": 6,
        },
        method="ridge",
        network="cnn",
        target="c",
        settings={"random_features": 0},
    )
    result = farshore.execute(run)
    assert result.metric == "mae"
    assert result.target.scores["skill"] > 0.9
