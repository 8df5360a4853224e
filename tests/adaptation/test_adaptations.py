"""Every adaptation through the protocol: inputs in, logits out, labels out of reach."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest
import torch

from farshore.adaptation import ADAPTATIONS
from farshore.adaptation.adaptation import Adaptation
from farshore.benchmarks import BENCHMARKS
from farshore.benchmarks.heart_hospitals import HeartHospitals
from farshore.benchmarks.rotated_digits import RotatedDigits
from farshore.data.domain import Domain
from farshore.data.inputs import Inputs
from farshore.errors import SealedTargetError
from farshore.learner.loading import load
from farshore.methods.method import Method
from farshore.runs import catalog
from farshore.runs.protocol import execute
from farshore.runs.result import Result
from farshore.runs.run import Run
from farshore.settings import MethodSettings
from farshore.training.profiles import PROFILES

ADAPTATION = pytest.mark.parametrize("name", ADAPTATIONS.names())
SHORT = {"shot++": {"stage_steps": 6}, "cotta": {"augmentations": 2, "confidence_threshold": 1.0}}


def run(benchmark: str, name: str, **values) -> Result:
    settings = {**SHORT.get(name, {}), **values.pop("settings", {})}
    return execute(
        Run(
            benchmark=benchmark,
            method=name,
            steps=values.pop("steps", 5),
            settings=settings,
            **values,
        )
    )


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch):
    """All logits that adaptations hand back."""
    found = []
    for name in ADAPTATIONS.names():
        kind = ADAPTATIONS.get(name)
        real = kind.adapt

        def adapt(self, network, target, generator, real=real):
            found.append(real(self, network, target, generator))
            return found[-1]

        monkeypatch.setattr(kind, "adapt", adapt)
    return found


def scrambled(benchmark: type) -> type:
    """The same benchmark with other labels on the target."""

    class Scrambled(benchmark):
        name = "scrambled"

        def make(self, sources, target, seed):
            domains, make_target, notes = benchmark().make(sources, target, seed)

            def wrong() -> Domain:
                real = make_target()
                labels = (real.labels + 1) % len(self.classes)
                return Domain(real.name, real.inputs, labels, real.train, real.validation)

            return domains, wrong, notes

    return Scrambled


@ADAPTATION
@pytest.mark.parametrize("benchmark", [RotatedDigits, HeartHospitals])
def test_scrambled_target_labels_change_nothing(name: str, benchmark: type, kept) -> None:
    BENCHMARKS.add("scrambled", scrambled(benchmark))
    try:
        right, wrong = run(benchmark.name, name), run("scrambled", name)
    finally:
        BENCHMARKS.remove("scrambled")
    assert torch.equal(kept[0], kept[1])
    assert right.target.weights == wrong.target.weights
    assert right.notes == wrong.notes
    assert right.target.scores["accuracy"] != wrong.target.scores["accuracy"]
    predicted = [
        np.array(result.target.confusion).sum(axis=0).tolist() for result in (right, wrong)
    ]
    assert predicted[0] == predicted[1]


@ADAPTATION
def test_deterministic_and_marked(name: str) -> None:
    first, second = run("rotated-digits", name), run("rotated-digits", name)
    assert first.target.scores == second.target.scores
    assert first.kind == "adaptation"
    assert first.target.rows == sum(map(sum, first.target.confusion)) == 359
    assert (
        first.matrices == run("rotated-digits", "finetune").matrices
    )  # the source model is the fine-tuned one
    assert any("score" in note for note in first.notes)
    assert Result.model_validate_json(first.model_dump_json()) == first


@ADAPTATION
def test_the_source_model_is_that_of_finetune_and_stays_frozen(name: str, tmp_path: Path) -> None:
    result = execute(
        Run(benchmark="heart-hospitals", method=name, steps=4, settings=SHORT.get(name, {})),
        save_model=tmp_path,
    )
    plain = execute(Run(benchmark="heart-hospitals", method="finetune", steps=4))
    assert result.target.weights == plain.target.weights
    assert load(tmp_path).method_type.name == "finetune"


@ADAPTATION
def test_the_source_is_a_setting(name: str) -> None:
    first = run("heart-hospitals", name, settings={"source": "first-domain"})
    joint = run("heart-hospitals", name, settings={"source": "joint"})
    in_turn = run("heart-hospitals", name)
    assert first.stages == ["cleveland"]
    assert joint.stages == ["all sources"]
    assert joint.rows_per_step == [96]
    assert in_turn.stages == in_turn.sources
    assert first.matrices["validation"][0] == in_turn.matrices["validation"][0]
    assert len({result.target.weights for result in (first, joint, in_turn)}) == 3
    assert first.backward_transfer() is None


@ADAPTATION
def test_settings_of_source_and_adaptation_are_told_apart(name: str) -> None:
    shared = {"learning_rate": 0.01, "optimizer": "sgd", "batch_size": 4}
    result = run("heart-hospitals", name, settings={"adaptation_rate": 0.0, **shared})
    plain = execute(Run(benchmark="heart-hospitals", method="finetune", steps=5, settings=shared))
    assert result.target.weights == plain.target.weights
    assert result.settings["adaptation_rate"] == 0
    assert result.run_settings["optimizer"] == "sgd"
    assert result.rows_per_step == [4, 4, 4]
    assert result.settings["batch_size"] == 4
    # Without learning rate and batch statistics nothing can change.
    assert result.target.confusion == plain.target.confusion


@ADAPTATION
def test_only_the_source_models_settings_are_searched(name: str) -> None:
    kind = ADAPTATIONS.get(name).Settings
    for profile in map(PROFILES.get, PROFILES.names()):
        assert kind.distributions(profile, name) == MethodSettings.distributions(profile)


@ADAPTATION
def test_it_is_no_method_and_takes_inputs_alone(name: str) -> None:
    kind = ADAPTATIONS.get(name)
    assert issubclass(kind, Adaptation)
    assert not issubclass(kind, Method)
    assert list(inspect.signature(kind.adapt).parameters) == [
        "self",
        "network",
        "target",
        "generator",
    ]
    text = inspect.getdoc(kind) or ""
    assert "Equation:" in text
    assert "Paper:" in text
    assert (kind.name, kind.group) == (name, "adaptation")
    assert kind.reference


@ADAPTATION
def test_global_random_numbers_are_left_alone(name: str) -> None:
    results = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        before = torch.random.get_rng_state()
        results.append(run("rotated-digits", name).target.scores)
        assert torch.equal(before, torch.random.get_rng_state())
    assert results[0] == results[1]


def test_logits_are_scored_against_the_labels_of_their_own_rows() -> None:
    """The digits' network has no batch statistics: without learning rate TENT is fine-tuning,
    row by row.
    """
    still = run(
        "rotated-digits",
        "tent",
        steps=40,
        settings={"adaptation_rate": 0.0, "adaptation_batch": 50},
    )
    plain = execute(Run(benchmark="rotated-digits", method="finetune", steps=40))
    assert still.target.confusion == plain.target.confusion
    assert still.target.scores["log_loss"] == pytest.approx(plain.target.scores["log_loss"])
    assert plain.target.scores["accuracy"] > 0.2


def test_the_target_comes_shuffled_by_the_scenarios_seed_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = []
    kind = ADAPTATIONS.get("tent")
    real = kind.adapt

    def adapt(self, network, target, draws):
        seen.append(torch.cat(list(target.batches(50))))
        return real(self, network, target, draws)

    monkeypatch.setattr(kind, "adapt", adapt)
    for seed in (0, 1):
        run("rotated-digits", "tent", seed=seed)
    run("rotated-digits", "tent", settings={"adaptation_batch": 7})
    assert torch.equal(seen[0], seen[1])
    assert torch.equal(seen[0], seen[2])
    frozen = RotatedDigits().make(["0"], "75", 0)[1]()
    assert not torch.equal(seen[0], frozen.inputs)
    assert sorted(seen[0].flatten(1).sum(1).tolist()) == sorted(
        frozen.inputs.flatten(1).sum(1).tolist()
    )


def test_while_it_adapts_no_target_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = RotatedDigits().scenario()

    def reach(self, network, target, draws):
        from farshore.data.seal import FrozenModel

        return scenario.target.open(FrozenModel(network))

    monkeypatch.setattr(ADAPTATIONS.get("tent"), "adapt", reach)
    with pytest.raises(SealedTargetError, match="sealed while the adaptation 'tent'"):
        run("rotated-digits", "tent")


def test_what_leaves_the_numbers_is_a_diverged_result(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run("rotated-digits", "shot++", settings={"adaptation_rate": 1e20})
    assert result.status == "diverged"
    assert "adaptation_rate" in result.message
    assert result.target is None


def test_adaptations_of_other_packages_are_found_by_their_name() -> None:
    class Mute(Adaptation):
        """Predicts the first class."""

        name = "mute"
        reference = "nobody"
        measure = "a score"

        def adapt(self, network, target, generator):
            return torch.eye(10)[:1].expand(len(target), 10)

    ADAPTATIONS.add("mute", Mute)
    try:
        assert "mute" in catalog.names()
        result = run("rotated-digits", "mute")
    finally:
        ADAPTATIONS.remove("mute")
    assert np.array(result.target.confusion)[:, 1:].sum() == 0
    assert result.notes == ["a score"]


def test_inputs_are_read_from_tensors_and_memory_maps_alike(tmp_path: Path) -> None:
    values = np.arange(40, dtype=np.uint8).reshape(10, 4)
    np.save(tmp_path / "x.npy", values)
    order = torch.tensor([9, 0, 3, 4, 5])
    for source in (torch.from_numpy(values), np.load(tmp_path / "x.npy", mmap_mode="r")):
        inputs = Inputs(source, order)
        assert len(inputs) == 5
        assert inputs.shape == (4,)
        assert inputs.take(torch.tensor([1, 0])).tolist() == [[0, 1, 2, 3], [36, 37, 38, 39]]
        parts = list(inputs.batches(2))
        assert [len(part) for part in parts] == [2, 2, 1]
        assert torch.equal(torch.cat(parts), torch.from_numpy(values)[order])
