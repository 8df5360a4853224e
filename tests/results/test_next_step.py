"""The next command is one that a person would type, and it answers what is still open."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from reporting import filled, result, steady, write
from sweeping import experiment
from typer.main import get_command

from farshore.cli.app import app
from farshore.cli.data_options import DataOptions, TextOptions
from farshore.report.build import build_report
from farshore.results.next_step import LEARN_FLAGS
from farshore.runs.plan.commands import FLAGS
from farshore.runs.plan.comparison import make_comparison
from farshore.runs.plan.plan import Planned
from farshore.runs.run import Run

HEART = {"benchmark": "heart-hospitals"}
COMMANDS = get_command(app).commands
OWN_DATA = (
    "farshore demo --data patients.csv && "
    "farshore audit patients.csv --domain hospital --label disease"
)


def tied(planned: Planned) -> float:
    """Scores without a clear winner."""
    return 0.6 + 0.05 * (len(str(planned.run.order)) % 2) * (planned.run.method == "er")


def clear(planned: Planned) -> float:
    return {"er": 0.8}.get(planned.run.method, 0.6) + 0.001 * len(str(planned.run.target))


def after(
    runs: Path,
    data: dict[str, Any],
    score: Callable[[Planned], float | None],
    *,
    methods: Sequence[str] = ("er", "finetune"),
    orders: Sequence[str] = ("listed",),
    seeds: int = 3,
    **fields: Any,
) -> tuple[str, str]:
    """The next command after a comparison, and its reason."""
    comparison = make_comparison(data, methods, orders=orders, seeds=range(seeds), **fields)
    filled(runs, comparison, score)
    return checked(runs)


def checked(runs: Path) -> tuple[str, str]:
    """The next command and its reason; the command line accepts all of its words."""
    report = build_report(runs)
    command = report.next_command.replace(f" --runs {runs}", "")
    for typed in command.split(" && "):
        program, name, *words = shlex.split(typed)
        assert program == "farshore"
        COMMANDS[name].make_context(name, words)
    return command, report.next_reason


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table of four sites."""
    path = tmp_path / "my sites.csv"
    rows = [f"{site},{row},{'yes' if row % 2 else 'no'}" for site in "abcd" for row in range(20)]
    path.write_text("\n".join(["site,x,sick", *rows]) + "\n")
    return path


def write_photos(folder: Path) -> Path:
    """A folder of pictures by domain and class: four domains, two classes."""
    for number in range(48):
        place = folder / "abcd"[number % 4] / "xy"[number // 24]
        place.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (5 * number, 0, 0)).save(place / f"{number}.png")
    return folder


def own(table: Path) -> dict[str, Any]:
    options = {"path": str(table), "domain": "site", "label": "sick"}
    return {"benchmark": "table", "options": options}


def test_after_one_order_come_more_orders(tmp_path: Path) -> None:
    assert after(tmp_path, HEART, clear, steps=20) == (
        "farshore compare heart-hospitals --methods er,finetune --seeds 3 --orders balanced:3 "
        "--steps 20",
        "see whether another order changes it",
    )


def test_too_few_last_sources_are_tested_over_more_orders(tmp_path: Path) -> None:
    assert after(tmp_path, HEART, clear, orders=["listed", "reversed"], seeds=1) == (
        "farshore compare heart-hospitals --methods er,finetune --seeds 1 --orders balanced:3",
        "test the difference over more orders",
    )


def test_too_few_targets_are_tested_over_all_of_them(tmp_path: Path) -> None:
    fields = {"orders": ["listed", "reversed"], "seeds": 1, "target": "each:va/cleveland"}
    assert after(tmp_path, HEART, clear, **fields) == (
        "farshore compare heart-hospitals --methods er,finetune --seeds 1 --orders "
        "listed,reversed --target each",
        "leave every domain out in turn",
    )


def test_a_clear_answer_is_followed_by_the_same_question_about_own_data(tmp_path: Path) -> None:
    fields = {"orders": ["listed", "reversed"], "seeds": 1, "target": "each"}
    assert after(tmp_path, HEART, clear, **fields) == (
        OWN_DATA,
        "the same question about a table, such as your own",
    )


def test_missing_runs_are_finished_first(tmp_path: Path) -> None:
    def partly(planned: Planned) -> float | None:
        return NotImplemented if planned.seed == 2 else 0.6

    assert after(tmp_path, HEART, partly, memory=50) == (
        "farshore compare heart-hospitals --methods er,finetune --seeds 3 --orders listed "
        "--memory 50",
        "finish the runs that are missing",
    )


def test_own_data_are_left_out_in_turn_and_named_as_they_are_typed(
    tmp_path: Path, table: Path
) -> None:
    fields = {"orders": ["listed", "reversed"], "seeds": 1, "target": "d"}
    assert after(tmp_path / "runs", own(table), clear, **fields) == (
        f"farshore compare '{table}' --domain site --label sick --methods er,finetune --seeds 1 "
        "--orders listed,reversed",
        "leave every domain out in turn",
    )


def test_an_order_that_names_the_sources_has_no_place_in_each_target(
    tmp_path: Path, table: Path
) -> None:
    fields = {"orders": ["b/a/c", "c/a/b"], "seeds": 1, "target": "d"}
    command, _ = after(tmp_path / "runs", own(table), clear, **fields)
    assert command.endswith("--orders listed")


@pytest.mark.parametrize(("score", "method"), [(clear, "er"), (tied, "er")])
def test_after_an_answer_on_own_data_the_model_is_trained(
    tmp_path: Path, table: Path, score: Callable[[Planned], float], method: str
) -> None:
    fields = {"orders": ["listed", "reversed"], "seeds": 1}
    assert after(tmp_path / "runs", own(table), score, **fields) == (
        f"farshore learn model/ first-site.csv --name 'site 1' --label sick --method {method}",
        "train the model that you deploy, one site after another",
    )


def test_after_an_answer_on_listed_images_a_folder_per_class_is_learned(
    tmp_path: Path, typed: Callable[..., tuple[int, str]]
) -> None:
    """The columns of the list are none of the folder's; the command works as it is printed."""
    folder = write_photos(tmp_path / "photos")
    rows = [
        f"{path.relative_to(folder)},{path.parts[-3]},{path.parts[-2]}"
        for path in sorted(folder.rglob("*.png"))
    ]
    (folder / "list.csv").write_text("\n".join(["file,place,kind", *rows]) + "\n")
    options = {"path": str(folder / "list.csv"), "image": "file", "domain": "place"}
    data = {"benchmark": "image-table", "options": {**options, "label": "kind", "size": 8}}
    data["network"] = "histogram"
    fields = {"orders": ["listed", "reversed"], "seeds": 1}
    command, _ = after(tmp_path / "runs", data, clear, **fields)
    assert command == (
        "farshore learn model/ first-site/ --name 'site 1' --size 8 --method er --network histogram"
    )
    words = shlex.split(command)[4:]
    code, printed = typed("learn", tmp_path / "model", folder / "a", *words, "--steps", 1)
    assert (code, "learned site 1" in printed) == (0, True), printed


def test_two_sites_allow_no_further_comparison(tmp_path: Path) -> None:
    """One of two sites is too few sources for leaving each out in turn."""
    path = tmp_path / "two.csv"
    rows = [f"{site},{row},{row % 2}" for site in "ab" for row in range(20)]
    path.write_text("\n".join(["site,x,sick", *rows]) + "\n")
    command, _ = after(tmp_path / "runs", own(path), clear, seeds=1, target="b")
    assert command.startswith("farshore learn model/ ")


def test_after_a_sweep_the_recommended_method_is_explained(tmp_path: Path) -> None:
    part = {"benchmarks": ["heart-hospitals"], "methods": ["er", "cl-coral"]}
    filled(tmp_path, experiment(part=part), steady)
    assert checked(tmp_path) == ("farshore methods er", "see what the recommended method does")


def test_a_run_is_followed_by_a_comparison_under_the_conditions_that_were_typed(
    tmp_path: Path, table: Path, typed: Callable[..., tuple[int, str]]
) -> None:
    """Size and interpolation, which the network decides, were not typed."""
    photos = write_photos(tmp_path / "my photos")
    conditions = ["--network", "histogram", "--steps", 1]
    code, printed = typed("run", photos, "er", "--target", "a", *conditions)
    assert code == 0, printed
    assert last_command(printed) == (
        f"farshore compare '{photos}' --methods finetune,er --orders balanced:3 "
        "--steps 1 --network histogram"
    )
    given = "--domain site --label sick --target d --steps 1 --memory 20 --network-set width=8"
    of_method = "--set penalty_weight=1 --set average=ema"
    code, printed = typed("run", table, "cl-coral", *f"{given} {of_method}".split())
    assert code == 0, printed
    assert last_command(printed).endswith(
        "--label sick --methods finetune,er,cl-coral --orders balanced:3 --steps 1 --memory 20 "
        "--network-set width=8 --set average=ema"
    )


def last_command(printed: str) -> str:
    """The last line of what a command prints; the command line accepts all of its words."""
    command = printed.splitlines()[-1].strip()
    for typed in command.split(" && "):
        program, name, *words = shlex.split(typed)
        assert program == "farshore"
        COMMANDS[name].make_context(name, words)
    return command


def test_after_single_runs_comes_a_comparison_of_the_same_data(tmp_path: Path, table: Path) -> None:
    runs = tmp_path / "runs"
    for method in ("cl-coral", "si"):
        write(runs, result(Run(**own(table), method=method, target="d"), 0.6))
    assert checked(runs) == (
        f"farshore compare '{table}' --domain site --label sick --methods "
        "finetune,er,si,cl-coral --orders balanced:3",
        "compare with other methods over several orders",
    )


def test_what_is_typed_as_a_flag_is_a_flag_of_the_command() -> None:
    flags = {each.name for kind in (DataOptions, TextOptions) for each in fields(kind)}
    assert set(FLAGS) == flags - {"written", "option", "network", "network_set", "train"}
    learn = {each.name for each in COMMANDS["learn"].params}
    assert set(FLAGS) & learn == LEARN_FLAGS
