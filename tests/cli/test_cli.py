"""The command line as a person types it: answers, refusals with exit code 2, and a light
`--help`.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from farshore.cli.app import main


def farshore(
    arguments: list[str], capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command."""
    monkeypatch.setattr(sys, "argv", ["farshore", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    return int(ended.value.code or 0), printed.out, printed.err


@pytest.fixture
def command(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch):
    return lambda *arguments: farshore(list(arguments), capsys, monkeypatch)


def test_help_does_not_import_torch() -> None:
    check = (
        "import sys; sys.argv = ['farshore', '--help']\nfrom farshore.cli.app import "
        "main\ntry:\n    main()\nexcept SystemExit:\n    pass\n"
    )
    check += (
        "assert not {'torch', 'sklearn', 'pandas', 'scipy', 'plotly', 'jinja2'} & "
        "set(sys.modules), 'heavy'"
    )
    done = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "farshore run rotated-digits er" in done.stdout


@pytest.mark.parametrize("name", ["run", "compare", "methods", "benchmarks"])
def test_every_command_explains_itself_with_an_example(name: str, command) -> None:
    code, out, _ = command(name, "--help")
    assert code == 0
    assert f"farshore {name}" in " ".join(out.split())


def test_run_prints_the_headline_and_saves_result_and_state(command, tmp_path: Path) -> None:
    code, out, err = command(
        "run",
        "heart-hospitals",
        "er",
        "--steps",
        "3",
        "--seed",
        "2",
        "--set",
        "batch_size=4",
        "--out",
        str(tmp_path),
    )
    assert (code, err) == (0, "")
    assert "target va (unseen, 200 rows)" in out
    assert "BWT (validation rows)" in out
    assert "learned hungarian" in out
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["run"]["seed"] == 2
    assert result["settings"]["batch_size"] == 4
    assert (tmp_path / "learner" / "manifest.json").exists()


def test_the_same_command_twice_gives_the_same_numbers_to_the_last_digit(
    command, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        command("run", "rotated-digits", "cl-coral", "--steps", "4", "--out", str(tmp_path / name))
    first, second = (
        json.loads((tmp_path / name / "result.json").read_text()) for name in ("a", "b")
    )
    assert first["target"]["scores"] == second["target"]["scores"]
    assert first["matrices"] == second["matrices"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "rotated-digits", "eer"], "did you mean 'er'"),
        (["run", "rotated-digits", "cota"], "did you mean 'cotta'"),
        (
            ["run", "rotated-digits", "tent", "--set", "adaptation_rte=1"],
            "did you mean 'adaptation_rate'",
        ),
        (
            ["run", "rotated-digits", "tent", "--set", "source=all"],
            "'finetune', 'first-domain' or 'joint'",
        ),
        (["methods", "shot+"], "did you mean 'shot++'"),
        (["run", "rotated-digit", "er"], "did you mean 'rotated-digits'"),
        (["run", "missing.csv", "er"], "there is no file or folder 'missing.csv'"),
        (
            ["run", "heart-hospitals", "er", "--set", "learning_rat=1"],
            "did you mean 'learning_rate'",
        ),
        (
            ["run", "heart-hospitals", "cl-coral", "--set", "penalty_weight=-1"],
            "greater than or equal to 0",
        ),
        (["run", "heart-hospitals", "er", "--set", "batch_size"], "name=value"),
        (["run", "heart-hospitals", "er", "--steps", "0"], "steps = 0"),
        (["run", "heart-hospitals", "er", "--memory", "2"], "smaller than the number of domains"),
        (["run", "heart-hospitals", "er", "--device", "gpuu"], "unknown device 'gpuu'"),
        (["run", "heart-hospitals", "er", "--target", "clevelan"], "did you mean 'cleveland'"),
        (["run", "heart-hospitals", "er", "--order", "va,cleveland"], "which is the target"),
        (["methods", "eer"], "did you mean 'er'"),
        (["benchmarks", "heart"], "heart-hospitals"),
        (["compare", "heart-hospitals", "--methods", "tailord"], "did you mean 'tailored'"),
        (["compare", "heart-hospitals", "--seeds", "0"], "at least 1"),
        (["compare", "heart-hospitals", "--orders", "backwards"], "listed, reversed"),
        (["compare", "heart-hospitals", "--workers", "0"], "at least 1"),
    ],
)
def test_a_mistake_is_one_clear_line_and_exit_code_2(
    arguments: list[str], message: str, command
) -> None:
    code, out, err = command(*arguments)
    assert code == 2
    assert message in err
    assert err.startswith("farshore: error: ")
    assert len(err.strip().splitlines()) == 1
    assert "learned" not in out


def test_a_folder_that_cannot_be_written_is_refused_before_the_run(command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, out, err = command("run", "heart-hospitals", "er", "--out", str(tmp_path / "file"))
    assert code == 2
    assert "cannot be written" in err
    assert "learned" not in out


def test_a_diverged_run_says_so(command) -> None:
    code, out, _ = command(
        "run", "heart-hospitals", "er", "--set", "learning_rate=1e30", "--steps", "20"
    )
    assert code == 1
    assert "diverged" in out


def test_methods_lists_all_and_explains_one(command) -> None:
    from farshore import catalog

    _, out, _ = command("methods")
    assert all(name in out for name in catalog.names())
    assert len(catalog.names()) == 29  # the paper's 27, er and der++
    assert all(
        kind.reference in " ".join(out.split())
        for kinds in catalog.grouped().values()
        for kind in kinds
    )
    groups = [
        line.split()[0] for line in out.splitlines() if line.startswith("  ") and line[2].isalpha()
    ]
    assert groups == ["group", *catalog.GROUPS]
    _, out, _ = command("methods", "cl-coral")
    assert "Equation:" in out
    assert "penalty_weight" in out
    assert "10^U(-1, 1)" in out


def test_benchmarks_lists_all_and_describes_one(command) -> None:
    from farshore.benchmarks import BENCHMARKS

    _, out, _ = command("benchmarks")
    assert all(name in out for name in BENCHMARKS.names())
    _, out, _ = command("benchmarks", "heart-hospitals")
    assert "CC BY 4.0" in out
    assert "cleveland, hungarian, switzerland, va" in out


def test_compare_ranks_and_saves(command, tmp_path: Path) -> None:
    arguments = [
        "--methods",
        "er,finetune",
        "--seeds",
        "2",
        "--orders",
        "listed,reversed",
        "--steps",
        "3",
        "--workers",
        "1",
    ]
    code, out, _ = command("compare", "heart-hospitals", *arguments, "--out", str(tmp_path))
    assert code == 0
    assert "2 seeds x 2 orders" in out
    assert "by order of the sources" in out
    assert "switzerland hungarian cleveland" in " ".join(out.split())
    saved = json.loads((tmp_path / "comparison.json").read_text())
    assert len(saved["results"]) == 8
    table = list(csv.DictReader((tmp_path / "comparison.csv").read_text().splitlines()))
    assert [row["rank"] for row in table] == ["1", "2"]
    targets = [float(row["target"]) for row in table]
    assert targets == sorted(targets, reverse=True)
    assert {row["method"] for row in table} == {"er", "finetune"}
    scores = [
        r["target"]["scores"]["accuracy"]
        for r in saved["results"]
        if r["run"]["method"] == table[0]["method"]
    ]
    assert targets[0] == pytest.approx(sum(scores) / 4)


def test_compare_lists_what_saw_more_below_and_unranked(command, tmp_path: Path) -> None:
    arguments = [
        "--methods",
        "adaptation,urm,finetune",
        "--seeds",
        "1",
        "--steps",
        "2",
        "--workers",
        "1",
        "--out",
        str(tmp_path),
    ]
    code, out, _ = command("compare", "heart-hospitals", *arguments)
    assert code == 0
    table = out[out.index("unseen target") :]
    places = [
        table.index(word)
        for word in ("finetune", "upper bound (offline)", "urm", "adapted to the target", "tent")
    ]
    assert places == sorted(places)
    rows = list(csv.DictReader((tmp_path / "comparison.csv").read_text().splitlines()))
    assert [(row["method"], row["rank"]) for row in rows[:2]] == [("finetune", "1"), ("urm", "")]
    assert {(row["kind"], row["rank"]) for row in rows[2:]} == {("adaptation", "")}


def test_run_says_what_an_adaptation_saw_and_that_nothing_was_adapted(command) -> None:
    code, out, _ = command("run", "heart-hospitals", "tent", "--steps", "2")
    assert code == 0
    assert "target va (inputs seen, labels not, 200 rows)" in out
    assert "no normalisation layer" in out
    _, out, _ = command("run", "heart-hospitals", "urm", "--steps", "2")
    assert "urm (offline) on heart-hospitals" in out
    assert "after all sources" in out
