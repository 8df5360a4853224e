"""The protocol: one run in, one result out, and a target that cannot leak."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from farshore.benchmarks import BENCHMARKS
from farshore.benchmarks.rotated_digits import RotatedDigits
from farshore.data.domain import Domain
from farshore.data.scenario import Scenario
from farshore.errors import FarshoreError, SealedTargetError, StateError
from farshore.runs import catalog
from farshore.runs.plan.select import select_methods
from farshore.runs.protocol import execute
from farshore.runs.result import Result
from farshore.runs.run import Run

FAST = {"benchmark": "heart-hospitals", "steps": 6}


class NoiseTarget(RotatedDigits):
    """rotated-digits with a target of noise: same name, same rows, other pictures and labels."""

    name = "noise-target"

    def make(self, sources, target, seed):
        domains, make_target, notes = RotatedDigits().make(
            sources, target, seed
        )  # the domains' seeds depend on the name
        real = make_target()
        noise = torch.randint(
            0, 256, real.inputs.shape, generator=torch.Generator().manual_seed(9)
        ).to(torch.uint8)
        labels = real.labels.flip(0)
        return domains, lambda: Domain(target, noise, labels, real.train, real.validation), notes


@pytest.fixture
def noise_target():
    BENCHMARKS.add("noise-target", NoiseTarget)
    yield "noise-target"
    BENCHMARKS.remove("noise-target")


@pytest.mark.parametrize("method", select_methods(["all"]))
def test_a_target_of_noise_changes_no_trained_weight(method: str, noise_target: str) -> None:
    short = {"stage_steps": 2} if method == "shot++" else {}
    results = [
        execute(Run(benchmark=name, method=method, steps=3, settings=short))
        for name in ("rotated-digits", noise_target)
    ]
    assert results[0].target is not None
    assert results[1].target is not None
    assert results[0].target.weights == results[1].target.weights
    assert results[0].matrices == results[1].matrices
    differs = results[0].target.scores["log_loss"] != results[1].target.scores["log_loss"]
    assert differs == (catalog.find(method).kind != "reference")  # which sees no inputs


def test_a_method_that_reaches_for_the_target_fails_loudly() -> None:
    scenario = RotatedDigits().scenario()
    for reach in (
        lambda: scenario.target.inputs,
        lambda: scenario.target.labels,
        lambda: len(scenario.target),
        lambda: scenario.target[0],
        lambda: list(scenario.target),
        lambda: scenario.target.open(torch.nn.Linear(2, 2)),
    ):
        with pytest.raises(SealedTargetError, match="75"):
            reach()
    assert scenario.target.opened == []


def test_the_same_run_twice_gives_the_same_numbers_and_another_seed_others() -> None:
    first, second, other = (execute(Run(method="er", seed=seed, **FAST)) for seed in (0, 0, 1))
    keep = {"matrices", "settings", "rows_per_step", "memory_bytes"}
    assert first.model_dump(include=keep) == second.model_dump(include=keep)
    assert first.target.scores == second.target.scores
    assert first.target.weights == second.target.weights
    assert first.target.weights != other.target.weights


def test_a_domains_data_do_not_depend_on_method_batch_size_or_run_seed() -> None:
    seen = []

    class Recorder(RotatedDigits):
        name = "recorder"

        def scenario(self, **options) -> Scenario:
            made = super().scenario(**options)
            seen.append(made)
            return made

    BENCHMARKS.add("recorder", Recorder)
    try:
        for method, seed, size in (("finetune", 0, 4), ("er", 1, 7)):
            execute(
                Run(
                    benchmark="recorder",
                    method=method,
                    seed=seed,
                    steps=2,
                    settings={"batch_size": size},
                )
            )
    finally:
        BENCHMARKS.remove("recorder")
    for one, two in zip(seen[0].sources, seen[1].sources, strict=True):
        assert torch.equal(one.inputs, two.inputs)
        assert torch.equal(one.labels, two.labels)
        assert torch.equal(one.train, two.train)


def test_the_result_says_what_was_measured() -> None:
    result = execute(Run(method="er", **FAST))
    assert result.sources == ["cleveland", "hungarian", "switzerland"]
    assert result.rows_per_step == [32, 64, 96]
    assert [len(row) for row in result.matrices["train"]] == [3, 3, 3]
    assert result.target.name == "va"
    assert result.target.rows == 200
    assert sum(map(sum, result.target.confusion)) == 200
    assert set(result.target.scores) == {
        "accuracy",
        "macro_f1",
        "balanced_accuracy",
        "auroc",
        "log_loss",
        "calibration_error",
    }
    assert result.target_score == result.target.scores["accuracy"]
    for split, matrix in result.matrices.items():
        final = result.source_scores[split]
        assert [scores["accuracy"] for scores in final] == matrix[-1]
        assert all(set(scores) == set(result.target.scores) for scores in final)
    assert result.source_score(2) == pytest.approx(sum(result.matrices["train"][-1]) / 3)
    assert result.source_score(1) == pytest.approx(sum(result.matrices["validation"][-1]) / 3)
    assert result.memory_items == 100
    assert result.memory_bytes == 100 * (
        4 * 39 + 8 + 4 * 2
    )  # 39 features, a label and two logits a row
    assert result.seconds["total"] >= result.seconds["training"] > 0
    assert len(result.step_milliseconds) == 3
    assert result.versions["torch"] == torch.__version__


def test_order_and_target_are_settings() -> None:
    result = execute(
        Run(method="finetune", target="cleveland", order=("va", "switzerland", "hungarian"), **FAST)
    )
    assert result.sources == ["va", "switzerland", "hungarian"]
    assert result.target.name == "cleveland"
    assert result.target.rows == 303


def test_a_diverged_run_is_a_result() -> None:
    result = execute(
        Run(
            method="cl-vrex",
            settings={"penalty_weight": 1e5, "learning_rate": 1e20, "anneal_steps": 0},
            **FAST,
        )
    )
    assert result.status == "diverged"
    assert "diverged" in result.message
    assert result.target is None
    assert result.target_score is None
    assert result.backward_transfer() is None


def test_a_result_round_trips(tmp_path: Path) -> None:
    result = execute(Run(method="er", **FAST), save_model=tmp_path / "learner")
    result.save(tmp_path / "deep" / "result.json")
    assert Result.read(tmp_path / "deep" / "result.json") == result
    assert json.loads((tmp_path / "deep" / "result.json").read_text())["run"]["method"] == "er"
    (tmp_path / "cut.json").write_text((tmp_path / "deep" / "result.json").read_text()[:100])
    with pytest.raises(StateError, match="not a complete result"):
        Result.read(tmp_path / "cut.json")
    from farshore.learner.loading import load

    assert load(tmp_path / "learner").system.steps_done == 18


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"benchmark": "rotated-digit"}, "did you mean 'rotated-digits'"),
        ({"method": "fintune"}, "did you mean 'finetune'"),
        ({"steps": 0}, "steps = 0"),
        ({"memory": 2}, "smaller than the number of domains"),
        ({"settings": {"batchsize": 3}}, "did you mean 'batch_size'"),
        ({"target": "vaa"}, "did you mean 'va'"),
        ({"order": ("va",)}, "which is the target"),
        ({"order": ("cleveland",)}, "every source once"),
        ({"device": "tpu"}, "unknown device"),
        ({"nework": "mlp"}, "unknown name 'nework': did you mean 'network'"),
        ({"network": "mpl"}, "unknown network 'mpl': did you mean 'mlp'"),
        ({"network_settings": {"widht": 3}}, "did you mean 'width'"),
        ({"options": {"severity": 3}}, "unknown option of heart-hospitals 'severity'"),
    ],
)
def test_errors_in_a_run_are_reported_before_the_first_step(values: dict, message: str) -> None:
    with pytest.raises(FarshoreError, match=message):
        execute(Run.build(**{"benchmark": "heart-hospitals", "method": "er", **values}))


FIRST = """
import sys
from farshore.runs.protocol import execute
from farshore.runs.run import Run
before = set(sys.modules)
result = execute(Run(benchmark="heart-hospitals", method="cl-coral", steps=2))
late = sorted(name for name in set(sys.modules) - before if name.startswith(("torch._", "sympy")))
print(result.status, late)
"""


def test_a_first_run_is_timed_without_pytorchs_late_imports() -> None:
    found = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True)
    assert found.stdout == "done []\n", found.stdout + found.stderr


def test_a_run_that_is_not_promising_is_stopped_between_two_domains_with_the_target_sealed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "farshore.runs.protocol._measure_target", lambda *_: pytest.fail("the target was opened")
    )
    asked: list[list[list[float]]] = []

    def promising(matrix: list[list[float]]) -> bool:
        asked.append([list(row) for row in matrix])
        return len(matrix) < 2

    result = execute(Run(**FAST, method="er", halving=True), promising=promising)
    assert (result.status, result.target, result.stages) == (
        "pruned",
        None,
        ["cleveland", "hungarian"],
    )
    assert result.message.startswith("stopped after hungarian")
    assert asked == [result.matrices["validation"][:1], result.matrices["validation"]]
    assert (result.source_score(), result.backward_transfer(), result.target_score) == (
        None,
        None,
        None,
    )
