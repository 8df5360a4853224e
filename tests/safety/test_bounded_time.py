"""What has no end, or more parts than anybody carries out, is refused before it is read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from mutated_models import table

import farshore
from farshore.deployment.changes import learn
from farshore.deployment.new_model import NewModel
from farshore.deployment.site import Columns

EXPERIMENT = """
name: e
about: x
search: {{trials: {trials}, seeds: {seeds}, by: {by}}}
parts:
  - benchmarks: [{benchmark}]
    methods: [er]
    orders: [{order}]
"""
USUAL = {"trials": 1, "seeds": 1, "by": "random", "benchmark": "rotated-digits", "order": "listed"}
COLUMNS = Columns(label="label")
ENDLESS = ("pipe.csv", "pipe.parquet", "zero.csv", "zero.parquet", "random.tsv")


def written(folder: Path, **changes: object) -> Path:
    file = folder / "e.yaml"
    file.write_text(EXPERIMENT.format(**(USUAL | changes)))
    return file


def endless(folder: Path, name: str) -> Path:
    """A pipe that nobody writes to, or a link to a device."""
    if name.startswith("pipe"):
        os.mkfifo(folder / name)
    else:
        (folder / name).symlink_to("/dev/zero" if name.startswith("zero") else "/dev/urandom")
    return folder / name


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"trials": 10**9}, "search.trials = 1000000000 is not allowed"),
        ({"trials": 100_000, "seeds": 10_000}, "1,000,000,000 runs or more, and at most 100,000"),
        ({"trials": 100_000, "seeds": 10_000, "by": "optuna"}, "1,000,000,000 runs or more"),
        ({"order": "random100000000"}, "use random1 to random720"),
        ({"order": "random" + "9" * 5000}, "unknown order 'random999"),
        ({"order": "balanced:" + "9" * 5000}, "at most 24"),
    ],
)
def test_more_than_anybody_runs_is_refused(
    typed, tmp_path: Path, changes: dict[str, object], words: str
) -> None:
    if changes.get("by") == "optuna":
        pytest.importorskip("optuna")
    code, out = typed("sweep", written(tmp_path, **changes), "--dry-run", "--runs", tmp_path / "r")
    assert code == 2, out
    assert words in out
    assert len(out) < 1500


def test_a_number_of_seeds_is_counted_before_they_are(typed, tmp_path: Path) -> None:
    words = ["compare", "rotated-digits", "--methods", "er", "--runs", tmp_path]
    code, out = typed(*words, "--seeds", 10**9)
    assert code == 2, out
    assert "1,000,000,000 seeds are not allowed: use at most 10,000" in out


@pytest.mark.parametrize("name", ENDLESS)
def test_a_table_without_an_end_is_refused(typed, tmp_path: Path, name: str) -> None:
    site, file = tmp_path / "site.csv", endless(tmp_path, name)
    table(40, 0).to_csv(site, index=False)
    learn(tmp_path / "m", site, name="a", columns=COLUMNS, new=NewModel(), steps=1)
    data = f"{{table: {{path: {file}, domain: d, label: y}}}}"
    for words in (
        ["sweep", written(tmp_path, benchmark=data), "--dry-run", "--runs", tmp_path / "r"],
        ["compare", file, "--domain", "d", "--label", "y", "--runs", tmp_path / "r"],
        ["learn", tmp_path / "new", file, "--label", "y", "--name", "b"],
        ["predict", tmp_path / "m", file],
        ["evaluate", tmp_path / "m", file],
    ):
        code, out = typed(*words)
        assert code == 2, out
        assert f"{name} is a pipe or a device: give a file" in out


@pytest.mark.parametrize("command", ["learn", "run", "predict"])
def test_a_line_that_quotes_a_long_cell_is_short(
    typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    frame = table(40, 0)
    frame.to_csv(tmp_path / "site.csv", index=False)
    learn(tmp_path / "m", tmp_path / "site.csv", name="a", columns=COLUMNS, new=NewModel(), steps=1)
    frame["d"] = ["p", "q"] * 20
    frame["a"] = frame["a"].astype(object)
    frame.loc[2, "a"] = "x y" * 33_000
    frame.to_csv(tmp_path / "long.csv", index=False)
    words = {
        "learn": [tmp_path / "new", tmp_path / "long.csv", "--label", "label", "--name", "b"],
        "run": [tmp_path / "long.csv", "ncm", "--domain", "d", "--label", "label", "--target", "q"],
        "predict": [tmp_path / "m", tmp_path / "long.csv"],
    }
    code, out = typed(command, *words[command])
    assert code == 2, out[:3000]
    assert "'a'" in out
    assert "x yx yx y" in out
    assert len(out) < 1500


@pytest.mark.parametrize("command", ["show", "report", "sweep"])
def test_a_path_longer_than_the_system_allows_is_one_line(
    typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out = typed(command, "a" * 5000)
    assert code == 2, out[:3000]
    assert "longer than a path may be: aaa" in out
    assert len(out) < 1500


@pytest.mark.parametrize("how", ["pipe.csv", "zero.csv"])
def test_a_folder_of_runs_with_pipes_and_devices_is_read(typed, tmp_path: Path, how: str) -> None:
    runs = tmp_path / "runs"
    farshore.compare("rotated-digits", methods="ncm", seeds=1, runs=runs)
    files = sorted(path for path in runs.rglob("*") if path.suffix in (".json", ".yaml", ".sha256"))
    assert len(files) == 4
    for file in files:
        kept = file.rename(tmp_path / "kept")
        endless(tmp_path, how).rename(file)
        for words in (["results", runs], ["report", runs, "-o", tmp_path / "page.md"]):
            code, out = typed(*words)
            assert code in (0, 2), out
            assert code == 0 or "no finished run" in out
        file.unlink()
        kept.rename(file)


@pytest.mark.parametrize("where", ["tables/runs.csv", "compare-rotated-digits.html", "tables"])
def test_nothing_is_written_through_links_in_a_folder_of_runs(
    typed, tmp_path: Path, where: str
) -> None:
    runs, mine = tmp_path / "runs", tmp_path / "mine"
    farshore.compare("rotated-digits", methods="ncm", seeds=1, runs=runs)
    (runs / where).parent.mkdir(exist_ok=True)
    if where == "tables":
        mine.mkdir()
    else:
        mine.write_text("mine")
    (runs / where).symlink_to(mine)
    if where.endswith("html"):
        words = ["compare", "rotated-digits", "--methods", "ncm", "--seeds", 1, "--runs", runs]
    else:
        words = ["results", runs]
    code, out = typed(*words)
    assert code == (2 if where == "tables" else 0), out
    if where == "tables":
        assert "nothing is written through links" in out
        assert list(mine.iterdir()) == []
    else:
        assert mine.read_text() == "mine"
        assert not (runs / where).is_symlink()


@pytest.mark.parametrize("where", ["", "stages", "model", "stages/1", "progress.jsonl"])
@pytest.mark.parametrize("again", [False, True])
def test_a_run_writes_through_no_link_of_its_folder(
    typed, tmp_path: Path, where: str, again: bool
) -> None:
    """Somebody's model lies where a link of the folder of a run points."""
    words = ["run", "rotated-digits", "ncm", "--out", tmp_path / "runs"]
    assert typed(*words)[0] == 0
    (folder,) = (path.parent for path in (tmp_path / "runs").glob("*/result.json"))
    mine = tmp_path / "mine"
    folder.rename(mine)
    if where:
        folder.mkdir()
        (folder / where).parent.mkdir(exist_ok=True)
        (folder / where).symlink_to(mine / "model" if where != "progress.jsonl" else mine / where)
    else:
        if not again:
            (mine / "result.json").unlink()
        folder.symlink_to(mine)
    before = {path: path.read_bytes() for path in mine.rglob("*") if path.is_file()}
    code, out = typed(*words, *["--again"][: int(again)])
    assert code == 2, out
    assert "nothing is written through links" in out
    assert {path: path.read_bytes() for path in mine.rglob("*") if path.is_file()} == before
