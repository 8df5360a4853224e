"""A frozen backbone: what is trained, features that are computed once, and what a step changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import farshore
from farshore.data.domain import Domain
from farshore.data.feature_files import FeatureCache
from farshore.errors import FarshoreError
from farshore.learner.feature_cache import Extraction, features_of, with_features
from farshore.learner.learner import Learner
from farshore.networks.build import build_network
from farshore.networks.freezing import Frozen, divide
from farshore.observer import Observer
from farshore.runs.protocol import execute
from farshore.runs.run import Run
from farshore.training.augmentation import Augmentation
from farshore.training.execution.execution import Way
from farshore.training.execution.extractor import StepChanges, extraction

OWN = """
from torch import nn
def mean():
    module = nn.Sequential(nn.AvgPool2d(4), nn.Flatten())
    module.interpolation = "bicubic"
    return module
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three sites of small pictures."""
    root = tmp_path_factory.mktemp("sites")
    rng = np.random.default_rng(0)
    for shift, site in enumerate(("a", "b", "c")):
        for shade, label in enumerate(("dark", "light")):
            (root / site / label).mkdir(parents=True)
            for number in range(6):
                values = rng.integers(0, 90, (12, 12, 3)) + 90 * shade + 20 * shift
                image = Image.fromarray(values.astype(np.uint8))
                image.save(root / site / label / f"{number}.png")
    return root


def images(rows: int = 12, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    shades = np.arange(rows) % 2
    return (rng.integers(0, 90, (rows, 3, 16, 16)) + 100 * shades[:, None, None, None]).astype(
        np.uint8
    )


LABELS = np.arange(12) % 2


def small_network() -> farshore.Network:
    torch.manual_seed(3)
    network = build_network("resnet18", (3, 16, 16), 2, {"weights": "none", "width": 2})
    for layer in network.batchnorms():
        layer.running_mean.normal_()
    return network


def run(folder: Path, **fields: Any) -> Run:
    given = {"benchmark": "image-folder", "method": "er", "target": "c", "steps": 2, "memory": 8}
    options = {"path": str(folder), "size": 8, **fields.pop("options", {})}
    return Run.build(**{**given, "options": options, **fields})


# ---- what is trained -----------------------------------------------------------------------------


@pytest.mark.parametrize("train", ["head", "last-block", "all"])
def test_only_what_is_asked_for_is_trained(train: str, tmp_path: Path) -> None:
    network = small_network()
    settings = {"train": train, "batch_size": 4}
    learner = Learner(network, "er", memory=6, settings=settings, seed=1)
    before = network.state_dict()
    for number in range(2):
        learner.learn(images(seed=number), LABELS, domain=str(number), steps=3)
    names = list(before)
    state = learner.state_dict()
    frozen = list(state.get("frozen", {}).values())
    trained = state["system"]["network"]
    if train == "all":
        assert not frozen
        assert any("features.conv1" in name for name in trained)
    else:
        fixed = {
            "head": [name for name in names if name.startswith("features.")],
            "last-block": [
                name for name in names if name.startswith("features.") and "layer4" not in name
            ],
        }[train]
        assert len(frozen) == len(fixed)  # statistics of BatchNorm too
        for stored, name in zip(frozen, fixed, strict=True):
            assert torch.equal(stored, before[name])
        assert len(trained) == len(names) - len(fixed)
    # Saved, loaded and continued: the same as without a break.
    learner.save(tmp_path)
    again = farshore.load(tmp_path, network=network)
    assert np.array_equal(again.predict_proba(images()), learner.predict_proba(images()))
    for each in (learner, again):
        each.learn(images(seed=5), LABELS, domain="next", steps=2)
    assert np.array_equal(again.predict_proba(images()), learner.predict_proba(images()))


def test_a_network_that_cannot_be_divided_freezes_its_first_blocks() -> None:
    torch.manual_seed(0)
    features = nn.Sequential(
        nn.Conv2d(3, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Conv2d(4, 4, 3),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )
    network = farshore.Network(features, nn.Linear(4, 2))
    learner = Learner(network, settings={"train": "last-block", "batch_size": 4}, memory=6)
    x = images().astype(np.float32) / 255
    learner.learn(x, LABELS, steps=3)
    before, after = network.state_dict(), learner.state_dict()["system"]["network"]
    same = {name for name, value in before.items() if torch.equal(value, after[name])}
    assert same == {name for name in before if name.startswith(("features.0", "features.1"))}


def test_backbone_and_classifier_have_their_own_step_sizes() -> None:
    network = small_network()
    settings = {"train": "all", "optimizer": "sgd", "learning_rate": 0.1, "batch_size": 4}
    moved = {}
    for rate in (None, 1e-9):
        learner = Learner(network, memory=6, settings={**settings, "backbone_rate": rate})
        learner.learn(images(), LABELS, steps=1)
        after = learner.state_dict()["system"]["network"]
        moved[rate] = {
            name: float((after[name] - value).abs().max())
            for name, value in network.state_dict().items()
            if name in ("features.conv1.weight", "classifier.weight")
        }
    assert moved[1e-9]["features.conv1.weight"] < 1e-6 < moved[None]["features.conv1.weight"]
    assert moved[1e-9]["classifier.weight"] == pytest.approx(moved[None]["classifier.weight"])
    with pytest.raises(FarshoreError, match=r"backbone_rate = 0\.1 is not allowed here"):
        Learner("histogram", "er", settings={"backbone_rate": 0.1}).learn(images(), LABELS, steps=1)


@pytest.mark.parametrize(
    ("network", "settings", "message"),
    [
        ("cnn", {"train": "head"}, "start from random numbers: use train=all"),
        ("resnet18", {"train": "all", "store": "features"}, "use train=head"),
        ("histogram", {"augment": "standard"}, "augment_copies=4"),
        ("histogram", {"augment_copies": 2}, "it is for train=head with"),
        ("cnn", {"head_width": 3}, "it is for train=head"),
        ("mlp", {"augment": "standard"}, "it is for networks of images"),
        ("histogram", {"train": "half"}, "'auto', 'head', 'last-block' or 'all'"),
    ],
)
def test_settings_that_do_not_go_together(
    network: str, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(FarshoreError, match=message):
        Learner(network, settings=settings)


def test_methods_without_steps_train_no_block() -> None:
    with pytest.raises(FarshoreError, match="trains no block: use train=head"):
        Learner(small_network(), "ridge", settings={"train": "last-block"})
    with pytest.raises(FarshoreError, match="reads every image once"):
        Learner("cnn", "ncm", settings={"augment": "strong"})


# ---- the cache -----------------------------------------------------------------------------------


class Counter(Observer):
    def __init__(self) -> None:
        self.computed: list[str] = []

    def start(self, domain: str, steps: int) -> None:
        if domain.startswith("features of"):
            self.computed.append(domain.removeprefix("features of "))


def frozen_part() -> Frozen:
    frozen = divide(small_network(), "head").frozen
    assert frozen is not None
    return frozen


def domain(seed: int = 0, name: str = "site") -> Domain:
    labels = torch.from_numpy(LABELS)
    return Domain.divided(name, torch.from_numpy(images(seed=seed)), labels, validation=0.25)


def test_features_are_computed_once_for_the_same_inputs_and_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, count, device = FeatureCache(tmp_path), Counter(), torch.device("cpu")
    extraction = Extraction(frozen_part(), device, observer=count)
    monkeypatch.setattr("farshore.learner.feature_cache.LARGEST_READ", 0)
    first = with_features(domain(), extraction, cache)
    assert isinstance(first.inputs, np.memmap)
    assert not first.inputs.flags.writeable
    second = with_features(domain(), Extraction(frozen_part(), device, observer=count), cache)
    assert count.computed == ["site"]
    assert np.array_equal(first.inputs, second.inputs)
    plain = features_of(domain().inputs, extraction)
    assert np.array_equal(first.inputs, plain.numpy())  # with and without a cache: the same bits
    count.computed.clear()
    other = frozen_part()
    with torch.no_grad():
        next(other.parameters()).add_(1e-3)
    with_features(domain(), Extraction(other, device, observer=count), cache)
    with_features(domain(1), extraction, cache)
    shifted = frozen_part()
    shifted.inputs.mean.add_(0.1)  # not part of the stored weights
    with_features(domain(), Extraction(shifted, device, observer=count), cache)
    assert count.computed == ["site"] * 3


@pytest.mark.parametrize("damage", ["flip", "cut", "no facts", "other shape", "pickle"])
def test_a_damaged_file_is_computed_again(tmp_path: Path, damage: str) -> None:
    cache, count = FeatureCache(tmp_path), Counter()
    extraction = Extraction(frozen_part(), torch.device("cpu"), observer=count)
    expected = with_features(domain(), extraction, cache).inputs
    (file,) = tmp_path.rglob("*.npy")
    contents = bytearray(file.read_bytes())
    if damage == "flip":
        contents[-3] ^= 1
        file.write_bytes(contents)
    elif damage == "cut":
        file.write_bytes(contents[:-8])
    elif damage == "no facts":
        file.with_suffix(".json").unlink()
    elif damage == "other shape":
        file.with_suffix(".json").write_text(json.dumps({"shape": [1], "sha256": "0"}))
    else:
        np.save(file, np.array([object()], dtype=object), allow_pickle=True)
    again = with_features(domain(), extraction, cache)
    assert count.computed == ["site"] * 2
    assert torch.equal(again.inputs, expected)


def test_a_folder_that_cannot_be_written_costs_only_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    notes: list[str] = []
    count = Counter()
    count.note = notes.append  # type: ignore[method-assign]
    extraction = Extraction(frozen_part(), torch.device("cpu"), observer=count)
    made = with_features(domain(), extraction, FeatureCache(tmp_path / "file"))
    assert torch.equal(made.inputs, features_of(domain().inputs, extraction))
    assert notes
    assert notes[0].startswith("features are not cached: ")


def test_the_features_of_a_target_are_made_when_it_is_opened(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FARSHORE_FEATURES", str(tmp_path))
    stages: list[tuple[str, int]] = []

    class Stages(Observer):
        def start(self, domain: str, steps: int) -> None:
            stages.append((domain, len(list(tmp_path.rglob("*.npy")))))

    first = execute(run(folder), observer=Stages())
    assert [name for name, _ in stages if not name.startswith("reading")] == [
        "features of a", "features of b", "a", "b", "features of c",
    ]  # fmt: skip
    assert dict(stages)["b"] == 2
    assert len(list(tmp_path.rglob("*.npy"))) == 3
    stages.clear()
    second = execute(run(folder, method="ncm"), observer=Stages())
    assert not [name for name, _ in stages if name.startswith("features")]
    again = execute(run(folder))
    assert again.target == first.target.model_copy(update={"opened_at": again.target.opened_at})
    assert second.status == "done"


def test_a_result_says_which_weights(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    result = execute(run(folder, method="ncm", network=f"{tmp_path / 'own.py'}:mean"))
    assert result.run_settings["train"] == "head"
    assert result.network["origin"].startswith("own.py (sha256 ")
    assert result.run.options["interpolation"] == "bicubic"  # as the network says
    plain = execute(run(folder, network="cnn", network_settings={"width": 8}))
    assert "origin" not in plain.network
    assert plain.run_settings["train"] == "all"
    assert plain.settings["learning_rate"] == 1e-3


def test_copies_are_of_training_rows_only() -> None:
    count = Counter()
    extraction = Extraction(frozen_part(), torch.device("cpu"), "strong", copies=2, observer=count)
    site = domain()
    made = with_features(site, extraction, None)
    rows = len(site.train)
    assert (len(made), len(made.train)) == (len(site) + 2 * rows, 3 * rows)
    assert torch.equal(made.validation, site.validation)
    assert torch.equal(made.labels[made.train], site.labels[site.train].repeat(3))
    assert torch.equal(made.inputs[: len(site)], features_of(site.inputs, extraction))
    copies = made.inputs[len(site) :].reshape(2, rows, -1)
    assert not torch.equal(copies[0], copies[1])
    assert torch.equal(made.inputs, with_features(site, extraction, None).inputs)


# ---- inside a step -------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["er", "cl-coral", "der++", "cl-fishr"])
def test_parts_of_a_batch_give_the_same_gradient(method: str) -> None:
    probabilities = []
    for micro in (None, 3):
        settings = {"micro_batch": micro, "batch_size": 8, "optimizer": "sgd"}
        learner = Learner("cnn", method, 6, settings=settings, network_settings={"width": 8})
        for number in range(2):
            learner.learn(images(seed=number), LABELS, domain=str(number), steps=3)
        probabilities.append(learner.predict_proba(images(seed=9)))
    assert np.allclose(*probabilities, atol=1e-5)


def test_parts_of_a_batch_count_once_for_batchnorm() -> None:
    torch.manual_seed(0)
    network = farshore.Network(
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.5), nn.Flatten()),
        nn.Linear(4 * 14 * 14, 2),
    ).train()
    changes = StepChanges(micro_batch=5)
    x = torch.randn(10, 3, 16, 16)
    device, way = torch.device("cpu"), Way()
    with extraction(network, way, device, print, changes):
        network(x).sum().backward()
    assert int(network.batchnorms()[0].num_batches_tracked) == 2
    assert all(value.grad is not None for value in network.parameters())


def test_augmentation_changes_images_in_training_alone() -> None:
    x = torch.rand(64, 3, 16, 16)
    draws = torch.Generator().manual_seed(0)
    standard = Augmentation("standard", draws)(x)
    strong = Augmentation("strong", draws)(x)
    assert standard.shape == strong.shape == x.shape
    assert float((standard.mean((1, 2, 3)) - x.mean((1, 2, 3))).abs().max()) < 0.1
    assert float((strong.mean((1, 2, 3)) - x.mean((1, 2, 3))).abs().max()) > 0.1
    ramp = torch.linspace(0, 1, 16).expand(64, 3, 16, 16)
    flips = [
        float((Augmentation("standard", draws, flip=flip)(ramp)[..., 0] > 0.5).float().mean())
        for flip in (True, False)
    ]
    assert 0.3 < flips[0] < 0.7
    assert flips[1] == 0
    table = torch.rand(5, 4)
    assert Augmentation("strong", draws)(table) is table


def test_the_memory_keeps_images_as_they_are_and_scores_are_repeatable() -> None:
    settings = {"augment": "strong", "batch_size": 4, "memory_fill": "reservoir"}
    learner = Learner("cnn", settings=settings, network_settings={"width": 8}, memory=6)
    learner.learn(images(), LABELS, steps=4)
    kept = next(iter(learner.system.kept_rows().values()))["inputs"]
    known = {image.tobytes() for image in images()}
    assert all(row.numpy().tobytes() in known for row in kept)
    assert np.array_equal(learner.predict_proba(images()), learner.predict_proba(images()))
    plain = Learner("cnn", settings={"batch_size": 4}, network_settings={"width": 8}, memory=6)
    plain.learn(images(), LABELS, steps=4)
    assert not np.array_equal(learner.predict_proba(images()), plain.predict_proba(images()))


def test_a_step_that_does_not_fit_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_large(self: object, batches: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr("farshore.training.trainer.Trainer.step", too_large)
    learner = Learner("cnn", settings={"batch_size": 4}, network_settings={"width": 8})
    with pytest.raises(FarshoreError, match=r"a step on 4 rows: set micro_batch=2 \(the same grad"):
        learner.learn(images(), LABELS, steps=1)
    learner = Learner("mlp", settings={"batch_size": 4})
    with pytest.raises(FarshoreError, match="a step on 4 rows: lower batch_size"):
        learner.learn(np.random.default_rng(0).normal(size=(12, 3)), LABELS, steps=1)
