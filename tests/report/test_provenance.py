"""Where the numbers come from, and commands that give them again."""

from __future__ import annotations

import subprocess
from pathlib import Path

from farshore.comparison import Comparison, rank, select_orders
from reporting import VERSIONS, filled, result, write
from sweeping import EXPERIMENTS, experiment, swept

from farshore.benchmarks import BENCHMARKS
from farshore.plan.experiment import make_book, read_experiment
from farshore.plan.record import record_experiment
from farshore.protocol import Run, execute
from farshore.report.build import build_report
from farshore.report.provenance import compare_command

PART = {"benchmarks": ["cifar10-c", "heart-hospitals"], "methods": ["finetune", "er"]}


def facts(runs: Path) -> dict[str, str]:
    return dict(build_report(runs).provenance.facts)


def test_a_result_says_what_it_ran_on_and_with_which_data() -> None:
    found = execute(Run(benchmark="heart-hospitals", method="finetune", steps=1))
    assert found.hardware["processor"]
    assert "gpu" not in found.hardware
    assert found.data == {"set": "heart-hospitals", "origin": "embedded in farshore"}


def test_old_results_without_them_are_read(tmp_path: Path) -> None:
    plan = filled(tmp_path, experiment(part=PART), lambda planned: 0.5)
    text = (tmp_path / plan.runs[0].name / "result.json").read_text()
    assert '"hardware": {}' in text  # as made by hand; one without the keys reads the same
    found = facts(tmp_path)
    assert found["processor"] == "not recorded"
    assert found["data of heart-hospitals"] == "manifest not recorded"


def test_the_facts(tmp_path: Path) -> None:
    note = "resnet18 starts from the official ImageNet weights (sha256 f37072fd47e89c5e)"
    data = {"set": "cifar10-c-seed-0", "version": "1", "sha256": "ab" * 32}
    change = {"notes": (note,), "hardware": {"processor": "abacus", "gpu": "big"}, "data": data}
    plan = filled(tmp_path, experiment(part=PART), lambda planned: 0.5, change=change)
    first = plan.runs[0]
    write(tmp_path, result(first.run, 0.5, versions={**VERSIONS, "torch": "2.8"}, **change), first)
    found = facts(tmp_path)
    assert found["runs"].startswith("16;")
    assert found["version of farshore"] == "0.1.0"
    assert found["PyTorch"] == "2.7 (15 runs); 2.8 (1 run)"
    assert found["commit"] == "c0ffee"
    assert (found["processor"], found["GPU"]) == ("abacus", "big")
    assert found["results versions"] == "all 1"
    assert (
        found["experiment toy"]
        == "2 trials for each of 2 seeds, search seed 0, scenario seed 0, selected by "
        "source-validation"
    )
    assert found["data of cifar10-c"] == f"cifar10-c-seed-0 (sha256 {'ab' * 8}); {note}"


def test_the_commands_give_the_same_runs_again(tmp_path: Path) -> None:
    found = experiment()
    swept(found, tmp_path / "runs")
    record_experiment(found, tmp_path / "runs", make_book(EXPERIMENTS / "none.yaml"))
    commands = list(build_report(tmp_path / "runs").provenance.commands)
    assert commands[0].startswith("pip install 'farshore[report]==")
    assert commands[-2:] == [
        "farshore sweep again/toy.yaml --runs runs-again",
        "farshore report runs-again -o report-again.html",
    ]
    subprocess.run(
        ["bash", "-e"], input="\n".join(commands[1:-2]), text=True, cwd=tmp_path, check=True
    )
    again = read_experiment(tmp_path / "again" / "toy.yaml")
    assert again == found


def test_what_others_need_is_swept_first_and_data_are_prepared(tmp_path: Path) -> None:
    main = experiment(name="main", part={"benchmarks": ["rotated-mnist"], "methods": ["finetune"]})
    filled(tmp_path, main, lambda planned: 0.5, change={"versions": VERSIONS})
    record_experiment(
        read_experiment(EXPERIMENTS / "backward_transfer.yaml"),
        tmp_path,
        lambda name: main.model_copy(update={"name": name}),
    )
    commands = [
        line for line in build_report(tmp_path).provenance.commands if line.startswith("farshore")
    ]
    assert commands[0] == "farshore prepare rotated-mnist"
    assert [line.split()[2] for line in commands[1:4]] == [
        "again/main.yaml",
        "again/naive.yaml",
        "again/backward_transfer.yaml",
    ]


def test_runs_without_a_recorded_experiment_name_it(tmp_path: Path) -> None:
    filled(tmp_path, experiment(part=PART), lambda planned: 0.5, record=False)
    commands = build_report(tmp_path).provenance.commands
    assert (
        "farshore sweep experiments/toy.yaml --runs runs-again  # this file is not recorded with "
        "the runs" in commands
    )


def test_the_command_of_a_comparison() -> None:
    listed = ("0", "15", "30", "45")
    run = Run(
        benchmark="rotated-digits",
        method="er",
        order=listed[::-1],
        memory=50,
        scenario_seed=3,
        device="cuda:0",
        settings={"a": 1},
    )
    found = Comparison(
        benchmark="rotated-digits",
        metric="accuracy",
        rows=rank([result(run, 0.5)]),
        results=[result(run, 0.5)],
    )
    assert compare_command(found) == (
        "farshore compare rotated-digits --methods er --seeds 1 --orders reversed --memory 50 "
        "--scenario-seed 3 --set a=1 --device cuda:0"
    )


def test_an_order_without_a_word_can_be_asked_for_again() -> None:
    first, second, *rest = BENCHMARKS.get("cifar10-c").listed(
        BENCHMARKS.get("cifar10-c").default_target
    )
    made = result(
        Run(benchmark="cifar10-c", method="er", order=(second, first, *rest)), 0.5
    ).model_copy(update={"sources": [second, first, *rest]})
    command = compare_command(
        Comparison(benchmark="cifar10-c", metric="accuracy", rows=rank([made]), results=[made])
    )
    word = command.split("--orders ")[1].split()[0]
    assert select_orders("cifar10-c", [word], target=None, seed=0) == [(second, first, *rest)]
