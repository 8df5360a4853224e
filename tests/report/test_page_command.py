"""`farshore report` as a person types it, and the page at the end of `farshore compare`."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import pytest
from reporting import BOTH, NUMBERS, filled
from sweeping import EXPERIMENTS, experiment, swept

from farshore.cli.app import main
from farshore.report.figures.shape import comparable, finished
from farshore.results.collect import collect
from farshore.runs.plan.experiment import make_book
from farshore.runs.store.store import record_experiment


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def typed(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["farshore", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return int(ended.value.code or 0), " ".join(printed.out.split()), printed.err

    return typed


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight tiny runs and the experiment that planned them."""
    folder = tmp_path_factory.mktemp("swept")
    toy = experiment()
    swept(toy, folder)
    record_experiment(toy, folder, make_book(EXPERIMENTS / "none.yaml"))
    return folder


def test_the_page_and_the_other_forms_are_written(command, runs: Path, tmp_path: Path) -> None:
    for ending in ("html", "md", "csv", "tex"):
        path = tmp_path / "made" / f"report.{ending}"
        code, out, err = command("report", runs, "-o", path)
        assert (code, err) == (0, "")
        assert f"{path} is written" in out
        assert "cl-coral" in path.read_text()
    page = (tmp_path / "made" / "report.html").read_text()
    for name in ("selection", "accuracy-matrix", "step-time"):
        assert f'id="figure-{name}"' in page
    assert 'id="figure-features"' not in page


def test_published_numbers_stand_beside_ours(command, runs: Path, tmp_path: Path) -> None:
    numbers = tmp_path / "published.csv"
    numbers.write_text(
        "experiment,method,variant,column,mean,error,title,note\n"
        "toy,cl-coral,,heart-hospitals,72.8,2.6,Their table,Theirs had more seeds.\n"
        "other,er,,heart-hospitals,11.1,,,\n"
    )
    for ending in ("html", "md", "csv", "tex"):
        path = tmp_path / f"report.{ending}"
        assert command("report", runs, "--published", numbers, "-o", path)[0] == 0
        text = path.read_text()
        assert "72.8" in text
        assert "11.1" not in text
        if ending != "csv":
            assert "Their table" in text
            assert "Theirs had more seeds." in text
    code, _, err = command("report", runs, "--published", tmp_path / "none.csv")
    assert (code, "cannot be read" in err) == (2, True)


def test_the_page_is_written_to_the_current_folder_by_default(
    command, runs: Path, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command("report", runs)[0] == 0
    assert (tmp_path / "report.html").stat().st_size > 5e5


def test_a_figure_alone_as_page_numbers_and_json(command, runs: Path, tmp_path: Path) -> None:
    for ending in ("html", "csv", "json"):
        assert (
            command("report", runs, "--figure", "step-time", "-o", tmp_path / f"figure.{ending}")[0]
            == 0
        )
    frame = pd.read_csv(tmp_path / "figure.csv")
    assert set(frame["method"]) == {"er", "cl-coral"}
    assert (frame["milliseconds_a_step"] > 0).all()
    assert "Plotly" in (tmp_path / "figure.html").read_text()


def test_the_diagram_of_ranks_alone(command, tmp_path: Path) -> None:
    filled(tmp_path, experiment(part=BOTH), lambda entry: NUMBERS[entry.run.method])
    words = ("report", tmp_path, "--figure", "critical-difference", "-o")
    for ending in ("svg", "csv"):
        assert command(*words, tmp_path / f"ranks.{ending}")[0] == 0
    assert (tmp_path / "ranks.svg").read_text().startswith("<svg")
    ranks = pd.read_csv(tmp_path / "ranks.csv")
    assert dict(zip(ranks["method"], ranks["mean_rank"], strict=True)) == {
        "cl-coral": 1.0,
        "er": 2.0,
        "finetune": 3.0,
    }
    code, _, err = command(*words, tmp_path / "ranks.html")
    assert (code, "end it in .svg, .csv" in err) == (2, True)


def test_wrong_input_is_one_clear_line(command, runs: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    blocked = tmp_path / "file"
    blocked.write_text("")
    for words, message in (
        ((tmp_path / "none",), "there is no folder"),
        ((EXPERIMENTS / "main.yaml",), "contains no runs: give a folder"),
        ((empty,), "contains no finished run"),
        ((runs, "-o", "report.pdf"), "end it in .html, .md, .csv, .tex"),
        (
            (runs, "--figure", "orders", "-o", tmp_path / "a.html"),
            "it needs runs with more than one order",
        ),
        ((runs, "--figure", "umap", "-o", tmp_path / "a.html"), "unknown figure 'umap'"),
        (
            (runs, "--figure", "critical-difference", "-o", tmp_path / "a.svg"),
            "it needs ranks of at least three methods",
        ),
        ((runs, "--figure", "orders", "-o", "figure.png"), "end it in .html, .csv, .json"),
        ((runs, "-o", blocked / "report.md"), "cannot be written"),
    ):
        code, _, err = command("report", *words)
        assert code == 2, words
        assert message in err
        assert err.count("\n") == 1


def test_a_damaged_run_is_named_and_left_out(command, tmp_path: Path) -> None:
    toy = experiment(search={"trials": 1, "seeds": 2})
    swept(toy, tmp_path)
    record_experiment(toy, tmp_path, make_book(EXPERIMENTS / "none.yaml"))
    broken = sorted(tmp_path.glob("*/result.json"))[0]
    broken.write_text("{}")
    code, out, _ = command("report", tmp_path, "-o", tmp_path / "report.html")
    assert code == 0
    assert f"note: {broken} is damaged" in out
    page = (tmp_path / "report.html").read_text()
    assert f"{broken} is damaged" in page
    assert "Read this first" in page


@pytest.mark.parametrize("file", ["", "result.json"])
def test_a_single_run_gets_a_page_with_figures(command, tmp_path: Path, file: str) -> None:
    typed = ("run", "heart-hospitals", "er", "--steps", 2, "--out", tmp_path / "r")
    assert command(*typed)[0] == 0
    (folder,) = (path.parent for path in (tmp_path / "r").glob("*/result.json"))
    code, _, err = command("report", folder / file, "-o", tmp_path / "one.html")
    assert (code, err) == (0, "")
    page = (tmp_path / "one.html").read_text()
    assert 'id="figure-accuracy-matrix"' in page
    assert "<h1>er on heart-hospitals</h1>" in page
    assert command("report", tmp_path / "r", "-o", tmp_path / "all.html")[0] == 0


COMPARE = ("compare", "heart-hospitals", "--steps", 2, "--workers", 1)


def test_compare_ends_with_a_page_of_its_own_experiment(command, tmp_path: Path) -> None:
    words = ("--methods", "er,finetune", "--seeds", 2, "--set", "batch_size=8")
    swept(experiment(part={"methods": ["si"]}, search={"trials": 1, "seeds": 1}), tmp_path)
    code, out, _ = command(*COMPARE, *words, "--orders", "listed,reversed", "--runs", tmp_path)
    assert code == 0
    assert f"the page is {tmp_path}/compare-heart-hospitals.html" in out
    page = (tmp_path / "compare-heart-hospitals.html").read_text()
    assert 'id="figure-orders"' in page
    assert '<th scope="row">finetune</th>' in page
    assert '<th scope="row">si</th>' not in page


def test_figures_show_all_runs_of_a_comparison_from_any_command(command, tmp_path: Path) -> None:
    assert command("run", "heart-hospitals", "er", "--steps", 2, "--out", tmp_path)[0] == 0
    assert command(*COMPARE, "--methods", "er", "--seeds", 2, "--runs", tmp_path)[0] == 0
    for only in (None, "compare-heart-hospitals"):
        runs = comparable(finished(collect(tmp_path, only).frame, tmp_path))
        assert set(runs["experiment"]) == {"compare-heart-hospitals"}
        assert sorted(runs["seed"]) == [0, 1]


def test_compare_without_plotly_says_how_to_install_it_and_keeps_its_results(
    command, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setitem(sys.modules, "plotly", None)
    code, out, _ = command(*COMPARE, "--methods", "er", "--seeds", 1, "--runs", tmp_path)
    assert code == 0
    assert (
        "no compare-heart-hospitals.html: the page needs plotly and Jinja2: from a checkout, pip "
        "install '.[report]'" in out
    )
    assert len(list(tmp_path.glob("*/result.json"))) == 1
