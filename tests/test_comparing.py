"""`farshore.compare`: the numbers of the command line, on frames, files and benchmarks."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sweeping import MEASURED

import farshore
from farshore.benchmarks.heart_hospitals import read_heart
from farshore.cli.app import main
from farshore.cli.engine_options import EngineOptions
from farshore.errors import FarshoreError
from farshore.results.tidy_table import tidy_table
from farshore.runs.engines.engine import InlineEngine
from farshore.runs.store.store import Store

QUICK = {"methods": ["finetune", "ridge"], "seeds": 1, "steps": 2, "memory": 20}


def heart_frame() -> pd.DataFrame:
    """A few columns of three hospitals; `thal` is text that looks like numbers, with gaps."""
    frame = read_heart().groupby("hospital").sample(40, random_state=0)
    frame = frame[frame["hospital"] != "switzerland"]
    sick = (frame["num"] > 0).map({True: "yes", False: "no"})
    return frame[["hospital", "age", "sex", "thal"]].assign(disease=sick).reset_index(drop=True)


def scores(runs: Path) -> pd.DataFrame:
    frame = tidy_table(Store(runs)).drop(columns=[*MEASURED, "benchmark", "options"])
    return frame.sort_values("run", ignore_index=True)


def test_a_frame_gives_the_numbers_of_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    made = farshore.compare(heart_frame(), domain="hospital", label="disease", runs="here", **QUICK)
    assert made.failures == []
    assert {result.target.name for result in made.results} == {"cleveland", "hungarian", "va"}
    line = (
        "farshore compare table.csv --domain hospital --label disease --methods "
        "finetune,ridge --seeds 1 --steps 2 --memory 20 --target each --runs there --workers 1"
    )
    heart_frame().to_csv("table.csv", index=False)
    monkeypatch.setattr(sys, "argv", line.split())
    # No processes and no page: they cost seconds and change no number.
    monkeypatch.setattr(EngineOptions, "make", lambda *_: InlineEngine())
    monkeypatch.setattr("farshore.cli.ranking.write_page", lambda *_: "no page")
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (0, None)
    printed = " ".join(capsys.readouterr().out.split())
    assert "methods compared on table.csv: accuracy on the unseen target in %" in printed
    assert "over 3 unseen targets" in printed
    assert "finetune on table.csv, target va, seed 0" in printed
    pd.testing.assert_frame_equal(scores(Path("here")), scores(Path("there")))


def test_a_comparison_resumes_ranks_and_reports(tmp_path: Path) -> None:
    asked = {"domain": "hospital", "label": "disease", "runs": tmp_path / "runs", **QUICK}
    first = farshore.compare(heart_frame(), **asked)
    (saved,) = (tmp_path / "runs" / "data").iterdir()
    opened = [result.target.opened_at for result in first.results]
    again = farshore.compare(heart_frame(), **{**asked, "methods": ["majority", *QUICK["methods"]]})
    assert list((tmp_path / "runs" / "data").iterdir()) == [saved]
    assert again.name == first.name
    kept = [result for result in again.results if result.run.method != "majority"]
    assert sorted(result.target.opened_at for result in kept) == sorted(opened)
    table, targets = again.table, again.targets
    ranked = table[table["kind"] == "continual"]
    assert ranked["rank"].tolist() == list(range(1, len(ranked) + 1))
    assert ranked["score"].is_monotonic_decreasing
    best = table.iloc[0]
    assert best["score"] == pytest.approx(targets[best["method"]].mean())
    assert best["error"] == pytest.approx(targets[best["method"]].sem())
    assert best["worst"] == targets[best["method"]].min()
    assert best["worst_target"] == targets[best["method"]].idxmin()
    other = table[table["difference"].notna()].iloc[0]
    paired = targets[other["method"]] - targets[other["reference"]]
    assert other["difference"] == pytest.approx(paired.mean())
    assert other["low"] < paired.mean() < other["high"]
    assert (best["unit"], best["units"]) == ("target", 3)
    verdict = again.verdict
    assert verdict.ranking.reference == other["reference"]
    assert [each.row for each in verdict.ranking.standings] == table["method"].tolist()
    text = again.report(tmp_path / "report.md").read_text()
    assert "mean over 3 targets" in text


def test_other_data_and_what_is_refused(tmp_path: Path) -> None:
    made = farshore.compare("heart-hospitals", runs=tmp_path, **QUICK)
    assert {result.target.name for result in made.results} == {"va"}
    assert made.table["targets"].tolist() == [1, 1]
    with pytest.raises(FarshoreError, match="did you mean 'heart-hospitals'"):
        farshore.compare("heart-hospital", runs=tmp_path, **QUICK)
    with pytest.raises(FarshoreError, match="there is no file or folder"):
        farshore.compare(tmp_path / "no.csv", runs=tmp_path, **QUICK)
    with pytest.raises(FarshoreError, match="unknown option"):
        farshore.compare("heart-hospitals", runs=tmp_path, labels="x", **QUICK)


@pytest.mark.parametrize("name", ["../../x", "/tmp/x", ".x", "a\nb", "", "x" * 101])
def test_a_frame_is_written_into_the_folder_of_runs(tmp_path: Path, name: str) -> None:
    runs = tmp_path / "some" / "runs"
    with pytest.raises(FarshoreError, match="a name"):
        farshore.compare(
            heart_frame(), domain="hospital", label="disease", name=name, runs=runs, **QUICK
        )
    assert list(tmp_path.rglob("*")) == []


def test_each_run_chooses_its_metric_by_its_sources_and_the_table_has_one(tmp_path: Path) -> None:
    """The first site alone has a rare class: the run whose target it is must not know that."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=160), "site": np.repeat(list("abcd"), 40)})
    frame["y"] = np.where(np.arange(160) % 2, "p", "q")
    frame.loc[0, "y"] = "r"
    frame.loc[40:160:6, "y"] = "r"
    made = farshore.compare(frame, domain="site", label="y", runs=tmp_path, **QUICK)
    own = {result.target.name: result.metric for result in made.results}
    assert own == {"a": "accuracy", "b": "macro_f1", "c": "macro_f1", "d": "macro_f1"}
    assert all("metric" not in result.run.options for result in made.results)
    assert set(made.frame["metric"]) == {"macro_f1"}
    for result, score in zip(made.frame["result"], made.frame["score"], strict=True):
        assert score == result.target.scores["macro_f1"]
    runs = [result for result in made.results if result.run.method == "ridge"]
    known = [scores["macro_f1"] for run in runs for scores in run.source_scores["validation"]]
    table = made.table.set_index("method")
    assert table.loc["ridge", "source_validation"] == pytest.approx(np.mean(known))
    frame.loc[0:39, "y"] = np.where(np.arange(40) % 2, "p", "q")
    balanced = farshore.compare(frame, domain="site", label="y", runs=tmp_path, **QUICK)
    weights = [
        {(run.run.method, run.target.weights) for run in each.results if run.target.name == "a"}
        for each in (made, balanced)
    ]
    assert weights[0] == weights[1]
