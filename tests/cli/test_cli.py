"""The command line: output, errors with exit code 2, and a `--help` without heavy imports."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import farshore
from farshore.cli.app import main
from farshore.runs.store.store import run_folders


def typed(
    arguments: list[str], capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command."""
    monkeypatch.setattr(sys, "argv", ["farshore", *arguments])
    with pytest.raises(SystemExit) as exited:
        main()
    printed = capsys.readouterr()
    return int(exited.value.code or 0), printed.out, printed.err


@pytest.fixture
def command(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch):
    return lambda *arguments: typed(list(arguments), capsys, monkeypatch)


def test_help_does_not_import_torch() -> None:
    check = (
        "import sys; sys.argv = ['farshore', '--help']\nfrom farshore.cli.app import "
        "main\ntry:\n    main()\nexcept SystemExit:\n    pass\n"
    )
    check += (
        "assert not {'torch', 'sklearn', 'pandas', 'scipy', 'plotly', 'jinja2'} & "
        "set(sys.modules), 'heavy'"
    )
    process = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    assert "Start with: farshore demo" in process.stdout


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
    (folder,) = run_folders(tmp_path)
    result = folder.read()
    assert result.run.seed == 2
    assert result.settings["batch_size"] == 4
    assert f"saved in {folder.path}: result.json and model" in " ".join(out.split())
    learner = farshore.load(folder.model)
    assert [domain["name"] for domain in learner.domains] == result.sources


RUN = ("run", "heart-hospitals", "er", "--steps", "3")


def test_a_finished_run_is_shown_and_not_repeated(command, tmp_path: Path) -> None:
    command(*RUN, "--out", str(tmp_path))
    (folder,) = run_folders(tmp_path)
    written = folder.result.stat().st_mtime_ns
    explicit = ("--order", "cleveland,hungarian,switzerland", "--target", "va")
    code, out, _ = command(*RUN, *explicit, "--out", str(tmp_path))
    assert code == 0
    assert "learned" not in out
    assert "target va (unseen, 200 rows)" in out
    assert f"found in {folder.path}" in out
    assert "nothing was trained" in out
    assert folder.result.stat().st_mtime_ns == written
    code, out, _ = command(*RUN, "--out", str(tmp_path), "--again")
    assert (code, out.count("learned")) == (0, 3)
    assert folder.result.stat().st_mtime_ns > written
    assert [stored.path for stored in run_folders(tmp_path)] == [folder.path]


def test_a_damaged_result_is_repeated_by_run(command, tmp_path: Path) -> None:
    command(*RUN, "--out", str(tmp_path))
    (folder,) = run_folders(tmp_path)
    folder.result.write_text("{}")
    code, out, _ = command(*RUN, "--out", str(tmp_path))
    assert code == 0
    assert "is damaged" in out
    assert "the run is repeated" in out
    assert folder.read().status == "done"


def test_without_out_no_files_remain(command, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code, out, _ = command(*RUN)
    assert (code, list(tmp_path.iterdir())) == (0, [])
    assert "saved in" not in out


def test_run_compare_and_sweep_share_one_run(command, tmp_path: Path) -> None:
    runs = str(tmp_path / "runs")
    settings = ("--set", "batch_size=8", "--memory", "50")
    assert command(*RUN, "--seed", "0", *settings, "--out", runs)[0] == 0
    (folder,) = run_folders(tmp_path / "runs")
    written = folder.result.stat().st_mtime_ns
    compare = ("compare", "heart-hospitals", "--methods", "er", "--seeds", "1", "--steps", "3")
    code, out, _ = command(*compare, *settings, "--runs", runs)
    assert (code, "done in" in out) == (0, False)
    (tmp_path / "mine.yaml").write_text(
        "name: mine\nabout: the same\nsearch: {trials: 1, seeds: [0]}\nparts:\n"
        "- benchmarks: [heart-hospitals]\n  methods: [er]\n  steps: 3\n  memory: 50\n"
        "  settings: {batch_size: 8}\n"
    )
    code, out, _ = command("sweep", str(tmp_path / "mine.yaml"), "--runs", runs)
    assert (code, "done in" in out) == (0, False)
    assert [stored.path for stored in run_folders(tmp_path / "runs")] == [folder.path]
    assert folder.result.stat().st_mtime_ns == written


def test_the_same_command_twice_gives_the_same_numbers_to_the_last_digit(
    command, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        command("run", "rotated-digits", "cl-coral", "--steps", "4", "--out", str(tmp_path / name))
    first, second = (
        json.loads(next((tmp_path / name).glob("*/result.json")).read_text()) for name in ("a", "b")
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
        (["compare", "heart-hospitals", "--engine", "slurm"], "use local or ray"),
        (["compare", "heart-hospital"], "did you mean 'heart-hospitals'"),
        (["compare", "heart-hospitals", "--steps", "0"], "steps = 0"),
        (
            ["compare", "heart-hospitals", "--severity", "3"],
            "unknown option of heart-hospitals 'severity'",
        ),
        (
            ["compare", "heart-hospitals", "--methods", "er", "--set", "penalty_weight=1"],
            "unknown setting 'penalty_weight'",
        ),
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


def test_a_diverged_run_is_reported(command) -> None:
    code, out, _ = command(
        "run", "heart-hospitals", "er", "--set", "learning_rate=1e30", "--steps", "20"
    )
    assert code == 1
    assert "diverged" in out


def test_methods_lists_all_and_explains_one(command) -> None:
    from farshore.adaptation import ADAPTATIONS
    from farshore.cli.method_groups import method_groups
    from farshore.methods import METHODS
    from farshore.runs import catalog

    _, out, _ = command("methods")
    assert all(name in out for name in catalog.names())
    assert len(method_groups()["paper"]) == 27
    listed = METHODS.listed | ADAPTATIONS.listed
    assert all(each.line in out for each in listed.values())
    groups = [
        line.split()[0] for line in out.splitlines() if line.startswith("  ") and line[2].isalpha()
    ]
    assert groups == ["name", *(f"{group}:" for group in catalog.GROUPS), "farshore"]
    _, out, _ = command("methods", "cl-coral")
    assert catalog.find("cl-coral").reference in " ".join(out.split())
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


def test_compare_ranks_and_repeats_nothing(command, tmp_path: Path) -> None:
    arguments = ("compare", "heart-hospitals", "--seeds", "2", "--steps", "3", "--workers", "1")
    arguments += ("--methods", "er,finetune", "--orders", "listed,reversed")
    code, out, _ = command(*arguments, "--runs", str(tmp_path))
    assert code == 0
    assert "2 seeds, 2 orders" in out
    assert "by last source" in out
    folders = {folder.path: folder for folder in run_folders(tmp_path)}
    assert len(folders) == 8
    by_method: dict[str, list[float]] = {}
    for folder in folders.values():
        result = folder.read()
        by_method.setdefault(result.run.method, []).append(100 * result.target_score)
    # A few steps leave a method at the level of chance, which is marked.
    table = out[out.index("on the unseen target in %") :].replace(" !", "")
    lines = [line.split() for line in table.splitlines() if line.startswith(("  er", "  finetune"))]
    shown = {method: (rank, float(score)) for method, rank, score, *_ in lines[:2]}
    best_first = sorted(by_method, key=lambda method: -sum(by_method[method]))
    assert {method: rank for method, (rank, _) in shown.items()} == {
        method: str(number) for number, method in enumerate(best_first, 1)
    }
    for method, scores in by_method.items():
        assert shown[method][1] == pytest.approx(sum(scores) / 4, abs=0.051)
    written = {path: folder.result.stat().st_mtime_ns for path, folder in folders.items()}
    code, again, _ = command(*arguments, "--runs", str(tmp_path))
    assert code == 0
    assert "done in" not in again
    assert out[out.index("methods compared on heart-hospitals") :] == again
    assert written == {path: folder.result.stat().st_mtime_ns for path, folder in folders.items()}


def test_compare_lists_offline_and_adapted_methods_below_unranked(command, tmp_path: Path) -> None:
    arguments = ("--methods", "adaptation,urm,finetune", "--seeds", "1", "--steps", "2")
    code, out, _ = command(
        "compare", "heart-hospitals", *arguments, "--workers", "1", "--runs", str(tmp_path)
    )
    assert code == 0
    # A few steps leave a method at the level of chance, which is marked.
    table = out[out.index("on the unseen target in %") :].replace(" !", "")
    positions = [
        table.index(word)
        for word in ("finetune", "all data at once", "urm", "adapted to the target", "tent")
    ]
    assert positions == sorted(positions)
    ranks = [line.split()[:2] for line in table.splitlines()]
    assert [rank for rank in ranks if rank[:1] in (["finetune"], ["urm"], ["tent"])] == [
        ["finetune", "1"],
        ["urm", "-"],
        ["tent", "-"],
    ]


def test_run_prints_what_an_adaptation_saw_and_that_nothing_was_adapted(command) -> None:
    code, out, _ = command("run", "heart-hospitals", "tent", "--steps", "2")
    assert code == 0
    assert "target va (inputs seen, labels not, 200 rows)" in out
    assert "no normalisation layer" in out
    _, out, _ = command("run", "heart-hospitals", "urm", "--steps", "2")
    assert "urm (offline) on heart-hospitals" in out
    assert "after all sources" in out
