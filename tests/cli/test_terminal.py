"""Lists and rankings on the terminal: at once, readable at 80 columns, the next command last."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest
from contested import contest, over_datasets
from farshore.report.verdict import judge
from reporting import filled, result
from sweeping import experiment
from typer.main import get_command
from typer.testing import CliRunner

from farshore.adaptation import ADAPTATIONS
from farshore.benchmarks import BENCHMARKS, OWN_DATA
from farshore.cli.app import app
from farshore.cli.plan_progress import PlanProgress
from farshore.cli.ranked import print_datasets, print_ranking, print_verdict
from farshore.cli.tables import PlainConsole, fold
from farshore.data.downloads.public_files import is_prepared
from farshore.methods import METHODS
from farshore.runs import catalog
from farshore.runs.engines.carry_out import Progress
from farshore.runs.engines.work import TaskOutcome
from farshore.runs.plan.experiment import make_book
from farshore.runs.plan.plan import Plan, make_plan
from farshore.runs.store.store import Store


@pytest.mark.parametrize("command", ["methods", "benchmarks"])
def test_lists_do_not_import_torch(command: str) -> None:
    script = (
        "import sys; from farshore.cli.app import app\n"
        f"try: app([{command!r}])\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'pandas', 'scipy', 'sklearn'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "what it" in ended.stdout


def test_the_list_of_methods_is_true() -> None:
    """What the registries say of the methods without importing them."""
    listed = METHODS.listed | ADAPTATIONS.listed
    assert {name: each.group for name, each in listed.items()} == {
        name: catalog.find(name).group for name in listed
    }
    assert all(each.line for each in listed.values())
    assert {each.group for each in listed.values()} == set(catalog.GROUPS)


def test_the_list_of_benchmarks_is_true() -> None:
    kinds = {name: BENCHMARKS.get(name) for name in BENCHMARKS.listed}
    assert {name: (kind.needs_preparation(), kind.own_data) for name, kind in kinds.items()} == {
        name: (each.files or None, each.group == OWN_DATA)
        for name, each in BENCHMARKS.listed.items()
    }
    assert all(each.line for each in BENCHMARKS.listed.values())


def test_lists_say_what_is_prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("covertype-zones-seed-0", "cifar10-c-severity-3-published-seed-1"):
        (tmp_path / "prepared" / name).mkdir(parents=True)
        (tmp_path / "prepared" / name / "manifest.json").write_text("{}")
    (tmp_path / "prepared" / "wm811k-seed-0").mkdir()  # a build that was killed has no manifest
    prepared = {each.files for each in BENCHMARKS.listed.values() if each.files}
    assert {name for name in prepared if is_prepared(name, tmp_path)} == {
        "covertype-zones",
        "cifar10-c",
    }
    monkeypatch.setenv("FARSHORE_DATA", str(tmp_path))
    lines = CliRunner().invoke(app, ["benchmarks"]).output.splitlines()
    state = {line.split()[0]: line for line in lines if line.strip()}
    assert " prepared " in state["covertype-zones"]
    assert "not prepared" in state["covertype"]
    assert " included " in state["rotated-digits"]


def test_command_summaries_are_not_cut_off() -> None:
    shown = CliRunner().invoke(app, ["--help"], terminal_width=80).output
    for name, command in get_command(app).commands.items():
        line = next(text for text in shown.splitlines() if text.startswith(f"  {name} "))
        summary = line.split(maxsplit=1)[1]
        assert (command.help or "").startswith(summary)
        assert summary.endswith(".")
        assert not summary.endswith("...")


def printed(width: int, *, terminal: bool = False) -> PlainConsole:
    return PlainConsole(width=width, file=io.StringIO(), force_terminal=terminal)


def text_of(console: PlainConsole) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


SCORES = {
    "finetune": {f"{name}>b": [15.0 + 20 * index, 16.0] for index, name in enumerate("acde")},
    "er": {f"{name}>b": [69.0 + index, 70.0] for index, name in enumerate("acde")},
    "naive-cl-andmask": {f"{name}>b": [65.0 + index, 61.0] for index, name in enumerate("acde")},
    "joint": {f"{name}>b": [80.0, 81.0] for name in "acde"},
}


@pytest.mark.parametrize("width", [80, 100, 140])
def test_the_ranking_is_readable_at_80_columns(width: int) -> None:
    console = printed(width)
    made = contest(SCORES)
    verdict = judge(made)
    further = {name: {"er": "12.5"} for name in ("sources train", "BWT", "rows per step")}
    print_ranking(console, made, verdict, "toy", further=further)
    text = text_of(console)
    assert all(len(line) <= width for line in text.splitlines()), text
    assert "…" not in text
    rows = [line.split() for line in text.splitlines() if " ± " in line]
    assert [row[:2] for row in rows] == [
        ["er", "1"],
        ["naive-cl-andmask", "2"],
        ["finetune", "3"],
        ["joint", "-"],
    ]
    assert rows[0][2:5] == ["70.2", "±", "1.0"]
    assert "upper bound (offline)" in text
    if width == 80:
        assert "a wider terminal also shows: " in text
        assert "BWT" in text.split("also shows:")[1]
    else:
        assert "minus er" in text
        assert width == 100 or "also shows" not in text


def test_many_data_sets_are_folded_and_named() -> None:
    console = printed(80)
    made = over_datasets({"er": [70.0 + index for index in range(14)], "si": [60.0] * 14})
    print_datasets(console, made, judge(made))
    text = text_of(console)
    assert all(len(line) <= 80 for line in text.splitlines()[:-1])
    assert "data 13" in text.split("also shows:")[1]


def test_the_verdict_and_the_next_command_come_last() -> None:
    console = printed(80)
    made = contest(SCORES)
    print_verdict(console, made, judge(made), ("farshore methods er", "learn more"))
    lines = text_of(console).splitlines()
    assert lines[0] == judge(made).sentence
    assert lines[-2:] == ["next, learn more:", "  farshore methods er"]


def test_constant_predictors_are_marked() -> None:
    console = printed(80)
    made = contest(SCORES, balanced={"finetune": 10.2})
    print_ranking(console, made, judge(made), "toy")
    assert "finetune !" in text_of(console)
    assert "level of chance: finetune" in text_of(console)


def test_folding_drops_the_last_secondary_columns_first() -> None:
    header, rows, left_out = fold(
        ["method", "score", "one", "two"], [["er", "1", "2" * 30, "3" * 30]], ["one", "two"], 60
    )
    assert (header, left_out) == (["method", "score", "one"], ["two"])
    assert rows == [["er", "1", "2" * 30]]


def planned(folder: Path, **search: int) -> tuple[Plan, Store]:
    toy = experiment(
        search={"trials": 1, "seeds": 1, **search}, part={"orders": ["listed", "reversed"]}
    )
    filled(folder, toy, lambda entry: 0.7 if entry.run.method == "er" else 0.6)
    store = Store(folder)
    return make_plan(toy, store, make_book(folder / "none.yaml")), store


@pytest.mark.parametrize("trials", [1, 2])
def test_the_live_view_names_runs_orders_and_the_best_so_far(tmp_path: Path, trials: int) -> None:
    """During a search, no score of the target is shown."""
    plan, store = planned(tmp_path, trials=trials)
    console = printed(100, terminal=True)
    progress = Progress(total=len(plan.runs), done=1, running=1)
    progress.current = [plan.runs[1]]
    with PlanProgress(console, plan, store) as view:
        view.report(None, None, progress)
        view.report(plan.runs[0], TaskOutcome(plan.runs[0].name, "done", "", 1.0), progress)
        lines = view.bar.lines
    order = plan.runs[1].run.order
    assert f"now: {plan.runs[1].run.method} on heart-hospitals" in lines[0]
    assert (f"order {' '.join(order)}" if order else "listed order") in lines[0]
    best = [line for line in lines if "best mean so far: er 70.0%" in line]
    assert len(best) == (1 if trials == 1 else 0)


def test_a_log_has_one_line_per_run_with_its_order(tmp_path: Path) -> None:
    plan, store = planned(tmp_path)
    console = printed(120)
    progress = Progress(total=len(plan.runs), done=1)
    reordered = next(each for each in plan.runs if each.run.order)
    with PlanProgress(console, plan, store) as view:
        view.report(None, None, progress)
        view.report(reordered, TaskOutcome(reordered.name, "done", "", 1.0), progress)
    (line,) = text_of(console).splitlines()
    assert f"order {' '.join(reordered.run.order or ())}, seed" in line


def test_run_ends_with_its_levels_and_the_next_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from farshore.cli.run_output import show_levels
    from farshore.runs.run import Run

    made = result(Run(benchmark="heart-hospitals", method="cl-coral"), 0.7)
    console = printed(80)
    show_levels(made, console)
    text = text_of(console)
    assert "chance 50.0%" in text
    assert text.splitlines()[-1].startswith(
        "  farshore compare heart-hospitals --methods finetune,er,cl-coral"
    )
