from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
import torch
from confined import confine
from mutated_models import FEW_METHODS, make_models
from safetensors.torch import load, save

from farshore.deployment.changes import learn
from farshore.deployment.model import Model
from farshore.deployment.new_model import NewModel
from farshore.deployment.site import Columns
from farshore.errors import FarshoreError, StateError


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    make_models(folder, FEW_METHODS)
    return folder


def rewritten(model: Path, change) -> None:
    """Change the learner's tensors and write a manifest that fits."""
    manifest = json.loads((model / "manifest.json").read_bytes())
    name = manifest["parts"]["learner"]["tensors"]
    tensors = load((model / name).read_bytes())
    change(tensors)
    data = save(tensors)
    (model / name).write_bytes(data)
    manifest["files"][name] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    (model / "manifest.json").write_text(json.dumps(manifest))


def test_mutated_models_work_or_are_refused(models: Path) -> None:
    confine("mutated_models:open_mutated_once", cases=25, seed=3, arguments=(str(models),))


def test_a_moment_of_another_shape_is_refused_before_a_kernel_reads_it(models: Path) -> None:
    import shutil

    shutil.copytree(models / "cl-coral", models / ".moment")

    def shorten(tensors: dict[str, torch.Tensor]) -> None:
        name = next(name for name in tensors if name.endswith("exp_avg") and tensors[name].ndim > 1)
        tensors[name] = tensors[name][:1].contiguous()

    rewritten(models / ".moment", shorten)
    with pytest.raises(StateError, match=r"optimizers.0.state.\d+.exp_avg has shape"):
        Model.open(models / ".moment")


def test_a_label_that_is_no_class_is_refused(models: Path) -> None:
    import shutil

    shutil.copytree(models / "er", models / ".label")
    rewritten(
        models / ".label",
        lambda tensors: tensors["/system/memory/rows/0/labels"].fill_(7),
    )
    with pytest.raises(StateError, match="numbers from 7 to 7, not from 0 to 1"):
        Model.open(models / ".label")


@pytest.mark.parametrize(
    ("new", "options", "words"),
    [
        (NewModel(memory=0), {}, "memory = 0 is not allowed"),
        (NewModel(), {"max_drop": float("nan")}, "--max-drop nan is not allowed"),
        (NewModel(), {"max_drop": -0.1}, "--max-drop -0.1 is not allowed"),
        (NewModel(), {"validation": float("nan")}, "--validation nan is not allowed"),
        (NewModel(), {"validation": float("inf")}, "--validation inf is not allowed"),
        (NewModel(classes=["no", "no", "yes"]), {}, "'no' is named twice"),
        (NewModel(settings={"batch_size": 10**11}), {}, "batch_size = 100000000000"),
        (NewModel(), {"size": 0}, "--size 0 is not allowed"),
        (NewModel(), {"name": "../../x"}, "a name cannot be a path"),
        (NewModel(), {"name": "a\0b"}, "control characters"),
        (NewModel(), {"name": "x" * 1000}, "at most 100 characters"),
        (NewModel(), {"name": ".hidden"}, "start with a dot"),
    ],
)
def test_options_that_mean_nothing_are_refused_ahead_of_everything(
    new: NewModel, options: dict, words: str, models: Path, tmp_path: Path
) -> None:
    with pytest.raises(FarshoreError, match=words):
        learn(
            tmp_path / "model",
            models / "site0.csv",
            columns=Columns(label="label"),
            new=new,
            steps=2,
            **{"name": "a", **options},
        )
    assert not (tmp_path / "model" / "manifest.json").exists()


def test_a_batch_that_no_memory_holds_is_refused_before_it_is_allocated(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farshore.base.allocation.usable_bytes", lambda: 10_000)
    with pytest.raises(FarshoreError, match="lower batch_size"):
        learn(
            tmp_path / "model",
            models / "site0.csv",
            name="a",
            columns=Columns(label="label"),
            new=NewModel(method="er", settings={"batch_size": 5000}),
            steps=2,
        )
