"""Lists and rankings on the terminal: at once, readable at 80 columns, the next command last."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

import pytest
from framed import made_frame, over_data_sets
from reporting import filled, result
from sweeping import experiment
from typer.main import get_command
from typer.testing import CliRunner

from farshore.adaptation import ADAPTATIONS
from farshore.benchmarks import BENCHMARKS, OWN_DATA
from farshore.cli.app import app
from farshore.cli.engine_options import print_line
from farshore.cli.plan_progress import PlanProgress
from farshore.cli.ranking import print_ranking, print_results, print_units
from farshore.cli.tables import PlainConsole, fold
from farshore.data.downloads.public_files import is_prepared
from farshore.methods import METHODS
from farshore.results.frame import frame_of_plan
from farshore.results.select import select
from farshore.results.verdict import judge
from farshore.runs import catalog
from farshore.runs.engines.carry_out import Progress
from farshore.runs.engines.work import WorkOutcome
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


@pytest.mark.parametrize(
    ("command", "printed"), [("show", "farshore show: loading, torch False"), ("methods", "")]
)
def test_a_command_that_loads_torch_says_before_that_it_has_begun(
    command: str, printed: str
) -> None:
    script = (
        "import io, sys; from farshore.cli.app import app\n"
        "class Terminal(io.StringIO):\n"
        "    def isatty(self): return True\n"
        "    def write(self, text):\n"
        "        print(text.strip() and f\"{text}, torch {'torch' in sys.modules}\")\n"
        "real, sys.stderr = sys.stderr, Terminal()\n"
        f"try: app([{command!r}, *{['no-model'] if command == 'show' else []!r}])\n"
        "except BaseException: pass\n"
        "sys.stderr = real"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ended.stderr == ""
    if printed:
        assert ended.stdout.splitlines()[0] == printed
    else:
        assert "loading" not in ended.stdout


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
    assert {name: (kind.set_name, kind.own_data) for name, kind in kinds.items()} == {
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
    words = " ".join(shown.split())
    for name, command in get_command(app).commands.items():
        summary = (command.help or "").split("\n")[0]
        assert summary.endswith(".")
        assert f" {name} {summary} " in f"{words} ", name


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


def cut(text: str, width: int) -> list[str]:
    """Lines that are cut off or too long; sentences, which the terminal wraps, do not count."""
    sentences = ("±", "a wider terminal also", "No errors", "Too few", "Over fewer")
    lines = [line for line in text.splitlines() if not line.startswith(sentences)]
    return [line for line in lines if len(line.rstrip()) > width or "…" in line]


@pytest.mark.parametrize("width", [80, 100, 140])
def test_the_ranking_is_readable_at_80_columns(width: int) -> None:
    console = printed(width)
    further = {name: {"er": "12.5"} for name in ("sources train", "BWT", "rows per step")}
    print_ranking(console, judge(made_frame(SCORES)), "toy", further=further)
    text = text_of(console)
    assert not cut(text, width), text
    rows = [line.split() for line in text.splitlines() if " ± " in line]
    assert [row[:2] for row in rows] == [
        ["er", "1"],
        ["naive-cl-andmask", "2"],
        ["finetune", "3"],
        ["joint", "-"],
    ]
    # The means of the four orders are 69.5, 70, 70.5 and 71: deviation 0.65, over √4.
    assert rows[0][2:5] == ["70.2", "±", "0.3"]
    assert "all data at once" in text
    assert "standard error of the mean" in text
    assert "over 4 orders." in text
    assert "minus er" in " ".join(text.split()) or width == 80
    if width == 80:
        assert "BWT" in text.split("also shows: ")[1]
    else:
        assert width == 100 or "also shows" not in text


@pytest.mark.parametrize("width", [80, 100])
def test_headings_between_rows_cut_no_column(width: int) -> None:
    """Every kind of row, and a method that lacks a score: headings are longer than the names."""
    scores = {
        "er": {"a>b": [60.0]},
        "si": {"a>b": [None]},
        "ewc": {"a>b": [50.0], "b>a": [40.0]},
        "joint": {"a>b": [70.0]},
        "tent": {"a>b": [65.0]},
        "majority": {"a>b": [30.0]},
    }
    console = printed(width)
    print_ranking(console, judge(made_frame(scores)), "toy")
    text = text_of(console)
    assert not cut(text, width), text
    for heading in ("scores are missing", "all data at once", "adapted to the target"):
        assert f"  {heading} " in text, text
    words = {word for line in text.splitlines()[:5] for word in line.split()}
    assert {"method", "rank", "unseen", "target", "worst", "best", "better", "in"} <= words, text
    assert "No errors or intervals: 2 last sources" in text


def test_a_name_that_is_too_long_is_broken_and_not_cut() -> None:
    variant = "learning_rate 0.001, " * 6
    console = printed(80)
    frame = made_frame(SCORES, variant=variant)
    print_ranking(console, judge(frame), "toy")
    text = text_of(console)
    assert not cut(text, 80), text
    table = text.split("a wider terminal")[0].splitlines()
    firsts = [re.split("  +", line.strip())[0] for line in table]
    names = "".join(firsts).replace(" ", "")
    assert names.count("learning_rate0.001") == 6 * len(SCORES)


def test_the_score_at_every_unit_is_shown_as_far_as_it_fits() -> None:
    console = printed(80)
    frame = over_data_sets({"er": [70.0 + index for index in range(14)], "si": [60.0] * 14})
    print_units(console, frame, judge(frame).ranking)
    lines = text_of(console).splitlines()
    assert not cut("\n".join(lines), 80)
    assert [line.split() for line in lines if "data 13" in line] == [["data", "13", "83.0", "60.0"]]
    many = {f"{name}>b": [50.0] for name in "acdefghijklmn"}
    console = printed(80)
    print_units(console, frame := made_frame({"er": many}), judge(frame).ranking)
    assert text_of(console) == ""  # a line for each of many orders says little


def test_the_verdict_and_the_next_command_come_last(tmp_path: Path) -> None:
    toy = experiment(search={"trials": 1, "seeds": 1}, part={"orders": ["listed", "reversed"]})
    plan = filled(tmp_path, toy, lambda entry: 0.7 if entry.run.method == "er" else 0.6)
    frame = select(frame_of_plan(plan, Store(tmp_path)))
    console = printed(80)
    print_results(console, frame, toy, tmp_path, more=["one more"], where="the page is here")
    lines = text_of(console).splitlines()
    verdict = judge(frame)
    start = lines.index(verdict.sentence)
    assert lines[start + 1].startswith("heart-hospitals, accuracy; ")
    assert lines[start + 2 : -3] == [f"- {text}" for text in (*verdict.details, "one more")]
    assert lines[-3:] == [
        "the page is here",
        "next, see what the recommended method does:",
        "  farshore methods er",
    ]


def test_constant_predictors_are_marked() -> None:
    console = printed(80)
    print_ranking(console, judge(made_frame(SCORES, balanced={"finetune": 10.2})), "toy")
    assert "finetune !" in text_of(console)


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
        view.report(plan.runs[0], WorkOutcome(plan.runs[0].name, "done", "", 1.0), progress)
        lines = view.bar.lines
    order = plan.runs[1].run.order
    assert f"now: {plan.runs[1].run.method} on heart-hospitals" in lines[0]
    assert (f"order {' '.join(order)}" if order else "listed order") in lines[0]
    best = [line for line in lines if "best mean so far: er 70.0%" in line]
    assert len(best) == (1 if trials == 1 else 0)


def test_the_bar_moves_until_the_first_run_has_ended(tmp_path: Path) -> None:
    """Workers load PyTorch first: a bar without a total moves to and fro, and seconds count."""
    plan, store = planned(tmp_path)
    with PlanProgress(printed(80, terminal=True), plan, store) as view:
        (task,) = view.bar.tasks
        assert task.total is None
        view.report(None, None, Progress(total=8, running=2))
        assert task.total is None
        assert task.description == "2 running"
        assert task.elapsed is not None
        view.report(None, None, Progress(total=8, done=1, running=2))
        assert (task.total, task.completed) == (8, 1)


def test_sentences_wrap_by_words_in_a_terminal_and_not_in_a_log(tmp_path: Path) -> None:
    page = tmp_path / "a.html"
    page.write_text("")
    text = "a sentence with many words " * 6 + f"the page is {page}"
    wrapped = printed(80, terminal=True)
    print_line(wrapped, text)
    plain = re.sub(r"\x1b\[[\d;]*m|\x1b\]8;[^\x1b]*\x1b\\", "", text_of(wrapped))
    assert " ".join(plain.split()).startswith("a sentence with many words a sentence")
    assert all(len(line) <= 80 for line in plain.splitlines())
    assert page.as_uri() in text_of(wrapped)
    log = printed(80)
    print_line(log, text)
    assert text_of(log) == f"{text}\n"


def test_a_log_has_one_line_per_run_with_its_order(tmp_path: Path) -> None:
    plan, store = planned(tmp_path)
    console = printed(120)
    progress = Progress(total=len(plan.runs), done=1)
    reordered = next(each for each in plan.runs if each.run.order)
    with PlanProgress(console, plan, store) as view:
        view.report(None, None, progress)
        view.report(reordered, WorkOutcome(reordered.name, "done", "", 1.0), progress)
    (line,) = text_of(console).splitlines()
    assert f"order {' '.join(reordered.run.order or ())}, seed" in line


def test_run_ends_with_its_levels_and_the_next_command() -> None:
    """The level of guessing is in the metric of the table; own data are typed as a path."""
    from farshore.cli.run_output import show_levels
    from farshore.runs.run import Run

    made = result(Run(benchmark="heart-hospitals", method="cl-coral"), 0.7, metric="macro_f1")
    assert made.target is not None
    target = made.target.model_copy(update={"confusion": [[6, 0], [2, 2]]})
    console = printed(80)
    show_levels(made.model_copy(update={"target": target}), console, made.run)
    lines = text_of(console).splitlines()
    # 6 of 10 rows: F1 of this class is 2 · 0.6 / 1.6 = 0.75, that of the other one is 0.
    assert lines[0] == "2 classes, always predicting the most frequent one scores 37.5%"
    assert lines[-1] == (
        "  farshore compare heart-hospitals --methods finetune,er,cl-coral --orders balanced:3"
    )
    options = {"path": "a b.csv", "domain": "site", "label": "y", "time": "year"}
    run = made.run.model_copy(update={"benchmark": "table", "options": options})
    console = printed(200)
    show_levels(made, console, run)
    assert text_of(console).splitlines()[-1] == (
        "  farshore compare 'a b.csv' --domain site --label y --time year --methods "
        "finetune,er,cl-coral"
    )
