"""Own data with many domains and rare classes: what is printed, and what is measured."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scenarios import make_scenario

from farshore import Result
from farshore.cli.app import main


def type_in(line: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", line.split())
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def write_sites(path: Path, sites: int, rare: int = 0) -> None:
    """A table of sites with 40 rows each; `rare` rows of the first one are of a third class."""
    rng = np.random.default_rng(0)
    rows = 40 * sites
    label = np.where(rng.random(rows) < 0.5, "a", "b").astype(object)
    label[:rare] = "c"
    label[40 : 40 + 10 * rare] = "c"
    x = rng.normal(size=rows) + (label == "a")
    site = np.repeat([f"hospital {number}" for number in range(sites)], 40)
    pd.DataFrame({"x": x, "site": site, "y": label}).to_csv(path, index=False)


def test_a_matrix_of_29_domains_is_summed_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_sites(tmp_path / "t.csv", 29)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "argv", ["farshore"])
    line = ["run", "t.csv", "majority", "--domain", "site", "--label", "y"]
    monkeypatch.setattr(sys, "argv", ["farshore", *line, "--target", "hospital 3", "--out", "out"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    printed = capsys.readouterr().out
    assert "…" not in printed
    assert printed.index("after hospital 4") < printed.index("after hospital 10")
    assert "mean so far" in printed
    assert "result.json, under matrices" in printed
    assert " -> hospital 28; unseen: hospital 3" in printed
    result = Result.read(next(tmp_path.glob("out/*/result.json")))
    row = result.matrices["validation"][9]
    shown = next(line for line in printed.splitlines() if "after hospital 10" in line).split()[3:]
    learned, later = row[:10], row[10:]
    expected = [row[9], np.mean(learned), min(learned), np.mean(later)]
    assert shown == [f"{100 * value:.1f}" for value in expected]


@pytest.mark.parametrize(("rare", "metric"), [(1, "macro_f1"), (2, "accuracy"), (0, "accuracy")])
def test_rare_classes_are_measured_by_macro_f1(
    rare: int, metric: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    write_sites(tmp_path / "t.csv", 3, rare)
    options = {"path": "t.csv", "domain": "site", "label": "y"}
    for order in (["hospital 0", "hospital 1"], ["hospital 1", "hospital 0"]):
        made = make_scenario("table", options, target="hospital 2", order=order)
        assert made.metric == metric
    frame = pd.read_csv("t.csv")
    frame[frame["site"] == "hospital 0"].drop(columns="site").to_csv("one.csv", index=False)
    assert (
        type_in("farshore learn model one.csv --label y --name one --method ncm", monkeypatch) == 0
    )
    assert ("scores are macro F1" in capsys.readouterr().out) == (metric == "macro_f1")


def test_the_target_never_decides_the_metric(tmp_path: Path) -> None:
    write_sites(tmp_path / "t.csv", 3, rare=1)
    options = {"path": str(tmp_path / "t.csv"), "domain": "site", "label": "y"}
    assert make_scenario("table", options, target="hospital 0").metric == "accuracy"
    made = make_scenario("table", options, target="hospital 2")
    assert made.metric == "macro_f1"
    assert any("class 'c' has 2.5% of the rows of hospital 0" in note for note in made.notes)
    for target in ("hospital 0", "hospital 1"):  # selection: the left-out target stays unused
        inner = make_scenario(
            "table", options, target=target, left_out=["hospital 2"], held_out=True
        )
        assert inner.metric == made.metric
    earlier = make_scenario("table", options, target="hospital 0", left_out=["hospital 2"])
    assert earlier.metric == "accuracy"  # a target whose later domains are left out is unseen too
    given = make_scenario("table", {**options, "metric": "accuracy"}, target="hospital 2")
    assert given.metric == "accuracy"


@pytest.mark.soak
def test_a_reader_that_stops_early_is_no_error(tmp_path: Path) -> None:
    rows = 4000
    frame = pd.DataFrame({"x": np.arange(rows) % 7, "y": np.arange(rows) % 2})
    frame.to_csv(tmp_path / "t.csv", index=False)
    farshore = f"{sys.executable} -m farshore"
    command = (
        f"{farshore} learn model t.csv --label y --name a --method ncm > /dev/null && "
        f"{farshore} predict model t.csv | head -2; echo codes ${{PIPESTATUS[@]}}"
    )
    ended = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "codes 0 0" in ended.stdout
    assert "rror" not in ended.stderr
    assert "ipe" not in ended.stderr
