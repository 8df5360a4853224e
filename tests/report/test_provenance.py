"""Where the numbers come from, and commands that give them again."""

from __future__ import annotations

import subprocess
from pathlib import Path

from reporting import VERSIONS, filled, result, write
from sweeping import EXPERIMENTS, experiment, swept

from farshore.report.build import build_report
from farshore.report.provenance import run_command
from farshore.runs.plan.commands import compare_commands
from farshore.runs.plan.comparison import make_comparison
from farshore.runs.plan.experiment import make_book, read_experiment
from farshore.runs.protocol import execute
from farshore.runs.run import Run
from farshore.runs.store.store import record_experiment

PART = {"benchmarks": ["cifar10-c", "heart-hospitals"], "methods": ["finetune", "er"]}


def facts(runs: Path) -> dict[str, str]:
    return dict(build_report(runs).provenance.facts)


def test_a_result_records_its_hardware_and_data() -> None:
    outcome = execute(Run(benchmark="heart-hospitals", method="finetune", steps=1))
    assert outcome.hardware["processor"]
    assert "gpu" not in outcome.hardware
    assert outcome.data == {"set": "heart-hospitals", "origin": "embedded in farshore"}


def test_results_without_hardware_and_data_are_read(tmp_path: Path) -> None:
    plan = filled(tmp_path, experiment(part=PART), lambda planned: 0.5)
    text = (tmp_path / plan.runs[0].name / "result.json").read_text()
    assert '"hardware": {}' in text  # as made by hand; one without the keys reads the same
    values = facts(tmp_path)
    assert values["processor"] == "not recorded"
    assert values["data of heart-hospitals"] == "manifest not recorded"


def test_the_facts(tmp_path: Path) -> None:
    note = "resnet18 starts from the official ImageNet weights (sha256 f37072fd47e89c5e)"
    data = {"set": "cifar10-c-seed-0", "version": "1", "sha256": "ab" * 32}
    change = {"notes": (note,), "hardware": {"processor": "abacus", "gpu": "big"}, "data": data}
    plan = filled(tmp_path, experiment(part=PART), lambda planned: 0.5, change=change)
    first = plan.runs[0]
    write(tmp_path, result(first.run, 0.5, versions={**VERSIONS, "torch": "2.8"}, **change), first)
    values = facts(tmp_path)
    assert values["runs"].startswith("16;")
    assert values["version of farshore"] == "0.1.0"
    assert values["PyTorch"] == "2.7 (15 runs); 2.8 (1 run)"
    assert values["commit"] == "c0ffee"
    assert (values["processor"], values["GPU"]) == ("abacus", "big")
    assert values["results versions"] == "all 1"
    assert (
        values["experiment toy"]
        == "2 trials for each of 2 seeds, search seed 0, scenario seed 0, selected by "
        "source-validation"
    )
    assert values["data of cifar10-c"] == f"cifar10-c-seed-0 (sha256 {'ab' * 8}); {note}"


def test_the_commands_reproduce_the_same_runs(tmp_path: Path) -> None:
    toy = experiment()
    swept(toy, tmp_path / "runs")
    record_experiment(toy, tmp_path / "runs", make_book(EXPERIMENTS / "none.yaml"))
    commands = list(build_report(tmp_path / "runs").provenance.commands)
    assert commands[0] == "pip install '.[report]'  # in a checkout of farshore 0.1.0"
    assert commands[-2:] == [
        "farshore sweep again/toy.yaml --runs runs-again",
        "farshore report runs-again -o report-again.html",
    ]
    subprocess.run(
        ["bash", "-e"], input="\n".join(commands[1:-2]), text=True, cwd=tmp_path, check=True
    )
    again = read_experiment(tmp_path / "again" / "toy.yaml")
    assert again == toy


def test_required_experiments_come_first_and_data_are_prepared(tmp_path: Path) -> None:
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
        "farshore sweep reproduction/experiments/toy.yaml --runs runs-again  # this file is not "
        "recorded with the runs" in commands
    )


def test_the_commands_of_a_comparison() -> None:
    comparison = make_comparison(
        {"benchmark": "rotated-digits"},
        ["er", "finetune"],
        seeds=range(2),
        orders=["reversed", "45/30/75/15"],
        scenario_seed=3,
        target="0",
        memory=50,
        settings={"batch_size": 8},
    )
    assert compare_commands(comparison, " --runs again") == [
        "farshore compare rotated-digits --methods er,finetune --seeds 2 --orders "
        "reversed,45/30/75/15 --target 0 --memory 50 --scenario-seed 3 --set batch_size=8 "
        "--runs again"
    ]


def test_a_recorded_comparison_prints_its_command_and_no_file(tmp_path: Path) -> None:
    comparison = make_comparison(
        {"benchmark": "heart-hospitals"}, ["er"], seeds=[0], orders=["listed"]
    )
    filled(tmp_path, comparison, lambda planned: 0.5)
    commands = list(build_report(tmp_path).provenance.commands)
    assert commands[1:] == [
        "farshore compare heart-hospitals --methods er --seeds 1 --orders listed --runs runs-again",
        "farshore report runs-again -o report-again.html",
    ]


def test_the_command_of_a_single_run_has_all_its_options() -> None:
    run = Run(
        benchmark="cifar10-c",
        method="cl-coral",
        seed=2,
        scenario_seed=3,
        order=("snow", "frost & fog"),
        options={"severity": 3},
        memory=50,
        settings={"penalty_weight": 3.0},
        device="cuda",
    )
    assert run_command(run) == (
        "farshore run cifar10-c cl-coral --seed 2 --scenario-seed 3 --order 'snow,frost & fog' "
        "--memory 50 --device cuda --severity 3 --set penalty_weight=3.0 --out runs-again"
    )


def test_the_command_of_a_run_on_own_data() -> None:
    options = {"path": "my data.csv", "domain": "site", "label": "class", "drop": ["id", "name"]}
    run = Run(benchmark="table", options=options, method="er", target="site D")
    assert run_command(run) == (
        "farshore run 'my data.csv' er --seed 0 --target 'site D' --domain site --label class "
        "--drop id,name --out runs-again"
    )


def test_single_runs_are_repeated_by_their_own_commands(tmp_path: Path) -> None:
    for seed in (0, 1):
        write(tmp_path, result(Run(benchmark="heart-hospitals", method="er", seed=seed), 0.5))
    commands = build_report(tmp_path).provenance.commands
    assert sorted(line for line in commands if line.startswith("farshore run")) == [
        f"farshore run heart-hospitals er --seed {seed} --out runs-again" for seed in (0, 1)
    ]
