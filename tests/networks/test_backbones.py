"""Backbones by name: of libraries, of a user's own file, and fixed features."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import farshore
from farshore.errors import FarshoreError
from farshore.networks import form
from farshore.networks.build import (
    build_network,
    is_pretrained,
    on_meta,
    plain_network_settings,
    settle_network,
)
from farshore.networks.freezing import divide, freeze_all_but_last, last_block
from farshore.networks.network import Network
from farshore.networks.pretrained import hf

VIT = {
    "hidden_size": 12,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "image_size": 16,
    "patch_size": 8,
}
MODELS = {
    "vit": VIT,
    "dinov2": {**VIT, "mlp_ratio": 1},
    "convnext": {"depths": [1, 1], "hidden_sizes": [4, 8], "num_stages": 2},
    "clip": {
        "vision_config": VIT,
        "text_config": {**VIT, "vocab_size": 20, "bos_token_id": 0, "eos_token_id": 1},
    },
}
# Importing transformers takes longer than these tests.
slow_import = pytest.mark.soak
PROCESSOR = {
    "size": {"shortest_edge": 20},
    "crop_size": {"height": 16, "width": 16},
    "resample": 3,
    "image_mean": [0.4, 0.5, 0.6],
    "image_std": [0.1, 0.2, 0.3],
}


def save_model(folder: Path, kind: str) -> Path:
    """A small random model of transformers, as the library saves it."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(kind, **MODELS[kind])
    transformers.AutoModel.from_config(config).save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(PROCESSOR))
    return folder


@pytest.fixture(scope="module")
def vit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("models") / "vit", "vit")


def pixels(rows: int = 4, size: int = 16, seed: int = 0) -> Tensor:
    draws = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (rows, 3, size, size), dtype=torch.uint8, generator=draws)


# ---- transformers -------------------------------------------------------------------------------


@slow_import
@pytest.mark.parametrize("kind", MODELS)
def test_a_model_of_transformers_becomes_a_network(tmp_path: Path, kind: str) -> None:
    name = f"hf:{save_model(tmp_path / kind, kind)}"
    settled = settle_network(name, {})
    assert settled.form == form.InputForm(16, "bicubic", (0.4, 0.5, 0.6), (0.1, 0.2, 0.3))
    assert "model.safetensors (sha256 " in settled.origin
    network = build_network(name, (3, 16, 16), 5, {}).eval()
    features = network.extract(pixels())
    assert features.shape == (4, network.feature_dim)
    assert network(pixels(size=24)).shape == (4, 5)  # any other size, and grey
    assert network(pixels()[:, :1]).shape == (4, 5)
    # Every parameter has a gradient: some methods ask for all of them.
    gradients = torch.autograd.grad(network(pixels()).sum(), list(network.parameters()))
    assert len(gradients) == len(list(network.parameters()))
    # The settings alone rebuild the architecture, without files.
    rebuilt = build_network("hf:elsewhere", (3, 16, 16), 5, settled.settings, restored=True)
    rebuilt.load_state_dict(network.state_dict())
    assert torch.equal(rebuilt.eval()(pixels()), network(pixels()))


@slow_import
def test_the_weights_are_those_of_the_files(vit: Path) -> None:
    from transformers import AutoModel

    model = AutoModel.from_pretrained(vit).eval()
    network = build_network(f"hf:{vit}", (3, 16, 16), 5, {}).eval()
    mean, std = (torch.tensor(PROCESSOR[key]).view(3, 1, 1) for key in ("image_mean", "image_std"))
    with torch.no_grad():
        states = model(pixel_values=(pixels() / 255 - mean) / std).last_hidden_state
        assert torch.allclose(network.extract(pixels()), states[:, 0], atol=1e-5)
    random = build_network(f"hf:{vit}", (3, 16, 16), 5, {"weights": "none"}).eval()
    assert not torch.allclose(random.extract(pixels()), network.extract(pixels()))
    with pytest.raises(FarshoreError, match="named by its folder, hf:FOLDER"):
        build_network(f"hf:{vit}", (3, 16, 16), 5, {"weights": str(vit / "model.safetensors")})


@slow_import
def test_missing_weights_say_which_file_goes_where(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(FarshoreError, match=r"hf download no/body.*model\.safetensors.*hf:FOLDER"):
        build_network("hf:no/body", (3, 16, 16), 2, {})


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [
        ("hf:x/y", "transformers", "transformers"),
        ("timm:resnet18", "timm", "timm"),
        ("torchvision:resnet18", "torchvision", "torchvision"),
    ],
)
def test_a_missing_library_names_its_extra(
    monkeypatch: pytest.MonkeyPatch, name: str, package: str, extra: str
) -> None:
    for module in [each for each in sys.modules if each.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(FarshoreError, match=rf"needs the package {package}.*\.\[{extra}\]"):
        build_network(name, (3, 16, 16), 2, {})
    assert is_pretrained(name, {})  # known without the library
    with pytest.raises(FarshoreError, match="unknown setting of network"):
        plain_network_settings(name, {"wieghts": "none"})


@slow_import
def test_a_hostile_configuration_runs_no_code(vit: Path, tmp_path: Path) -> None:
    settled = dict(settle_network(f"hf:{vit}", {}).settings)
    config = {**settled["config"], "auto_map": {"AutoModel": "evil.Model"}}
    network = hf.builder(str(tmp_path))(
        (3, 16, 16), 2, weights="none", config=config, mean=(0.0,) * 3, std=(1.0,) * 3
    )
    assert type(network.features.model).__module__.startswith("transformers.")
    huge = {**settled, "config": {**settled["config"], "num_hidden_layers": 10**9}}
    with pytest.raises(FarshoreError, match="num_hidden_layers = 1,000,000,000"):
        build_network("hf:x", (3, 16, 16), 2, huge, restored=True)
    with pytest.raises(FarshoreError, match="the config of network 'hf:x/y' is not stored"):
        build_network("hf:x/y", (3, 16, 16), 2, {}, restored=True)
    form = {"mean": (0.0,) * 3, "std": (1.0,) * 3}
    with pytest.raises(FarshoreError, match="for a model of the hub use hf:NAME"):
        build_network("timm:hf-hub:evil/model", (3, 16, 16), 2, form, restored=True)
    with pytest.raises(FarshoreError, match=r"is a model of the kind '\?'"):
        build_network(
            "hf:x", (3, 16, 16), 2, {**settled, "config": {"model_type": "?"}}, restored=True
        )


# ---- a file of the user's own --------------------------------------------------------------------

MODULE = """
import torch
from torch import nn

class Bright(nn.Module):
    input_size, interpolation, mean, std = 20, "bicubic", (0.5,) * 3, (0.25,) * 3
    def __init__(self, width):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Conv2d(3, width, 3), nn.Conv2d(width, width, 3))
    def forward(self, images):
        return self.layers(images).mean(dim=(2, 3))

def bright(width: int = 4):
    return Bright(width)

def text():
    return "no module"
"""


@pytest.fixture
def module(tmp_path: Path) -> str:
    (tmp_path / "own.py").write_text(MODULE)
    return f"{tmp_path / 'own.py'}:bright"


def test_a_factory_in_a_file_becomes_a_network(module: str, tmp_path: Path) -> None:
    settled = settle_network(module, {"width": "6"})
    assert (settled.settings, settled.form.size) == ({"width": 6}, 20)
    assert "own.py (sha256 " in settled.origin
    network = build_network(module, (3, 20, 20), 3, {"width": 6})
    assert (network.feature_dim, network.classes) == (6, 3)
    assert network.inputs.mean.flatten().tolist() == [0.5] * 3
    with pytest.raises(FarshoreError, match="did you mean 'width'"):
        build_network(module, (3, 20, 20), 3, {"widht": 6})
    with pytest.raises(FarshoreError, match=r"unknown function in .*own\.py 'brigth'"):
        build_network(module.replace("bright", "brigth"), (3, 20, 20), 3, {})
    with pytest.raises(FarshoreError, match="returns a str"):
        build_network(module.replace("bright", "text"), (3, 20, 20), 3, {})
    with pytest.raises(FarshoreError, match=r"there is no file .*none\.py"):
        build_network("none.py:f", (3, 20, 20), 3, {})
    (tmp_path / "wrong.py").write_text("raise ValueError('no luck')")
    with pytest.raises(FarshoreError, match="cannot be imported: ValueError: no luck"):
        build_network(f"{tmp_path / 'wrong.py'}:f", (3, 20, 20), 3, {})


def test_loading_a_model_never_imports_the_file_that_it_names(module: str, tmp_path: Path) -> None:
    file = Path(module.partition(":")[0])
    learner = farshore.Learner(module, memory=10)
    labels = np.arange(8) % 2
    learner.learn(pixels(8).numpy(), labels, steps=2)
    learner.save(tmp_path / "model")
    ran = tmp_path / "ran"
    file.write_text(f"__import__('pathlib').Path({str(ran)!r}).touch()\n" + MODULE)
    with pytest.raises(FarshoreError, match=r"loading a model runs no code: name it again"):
        farshore.load(tmp_path / "model")
    with pytest.raises(FarshoreError, match="name it again"):
        farshore.load(tmp_path / "model", network="resnet18")
    assert not ran.exists()
    again = farshore.load(tmp_path / "model", network=module)
    assert ran.exists()
    assert np.array_equal(again.predict_proba(pixels()), learner.predict_proba(pixels()))


# ---- other libraries -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["torchvision:resnet18", "timm:resnet10t"])
def test_models_of_other_libraries(name: str, tmp_path: Path) -> None:
    """Skipped where the library is not installed; torchvision needs a build for this torch."""
    library = name.partition(":")[0]
    pytest.importorskip(library, reason=f"{library} is not installed", exc_type=ImportError)
    settled = settle_network(name, {"weights": "none"})
    assert settled.form.size >= 128
    network = build_network(name, (3, 32, 32), 4, {"weights": "none"}).eval()
    logits = network(pixels(2, 32))
    assert logits.shape == (2, 4)
    parts = divide(network, "last-block")
    if parts.frozen is not None:
        assert torch.allclose(parts.rest.eval()(parts.frozen(pixels(2, 32))), logits, atol=1e-5)
    assert sum(value.numel() for value in parts.rest.parameters()) > 10**6
    learner = farshore.Learner(
        name, network_settings={"weights": "none"}, settings={"batch_size": 2}, memory=4
    )
    learner.learn(pixels(6, 32).numpy(), [0, 1] * 3, steps=1)
    learner.save(tmp_path)
    loaded = farshore.load(tmp_path).predict_proba(pixels(2, 32))
    assert np.array_equal(loaded, learner.predict_proba(pixels(2, 32)))
    with pytest.raises(FarshoreError, match="unknown model of"):
        settle_network(f"{library}:resnet1", {})


# ---- fixed features and freezing -----------------------------------------------------------------


def test_histograms_tell_colours_and_edges() -> None:
    network = build_network("histogram", (3, 32, 32), 2, {})
    assert not list(network.features.parameters())
    red = torch.zeros(1, 3, 32, 32, dtype=torch.uint8)
    red[:, 0] = 200
    stripes = torch.zeros(1, 3, 32, 32, dtype=torch.uint8)
    stripes[..., ::4] = 255
    images = torch.cat([red, red.flip(1), stripes, stripes.transpose(2, 3)])
    features = network.extract(images)
    assert features.shape == (4, network.feature_dim)
    assert torch.isfinite(features).all()
    distance = torch.cdist(features, features) + 10 * torch.eye(4)
    assert float(distance.min()) > 1
    assert torch.allclose(network.extract(red), network.extract(red.flip(3)))


def test_the_last_block_of_any_network() -> None:
    blocks = nn.ModuleList([nn.Linear(8, 8) for _ in range(4)])
    wrapped = nn.Module()
    wrapped.stem, wrapped.layers, wrapped.norm = nn.Linear(3, 8), blocks, nn.LayerNorm(8)
    assert last_block(wrapped) is blocks[-1]
    with pytest.raises(FarshoreError, match="no blocks"):
        last_block(nn.Linear(2, 2))
    features = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.5), nn.Conv2d(4, 4, 3), nn.Flatten()
    )
    network = Network(features, nn.Linear(4, 2))
    before = {name: value.clone() for name, value in network.state_dict().items()}
    freeze_all_but_last(network)
    names = [name for name, _ in network.named_parameters()]
    assert names == ["features.3.weight", "features.3.bias", "classifier.weight", "classifier.bias"]
    network.train()
    with network.batchnorm("train"):
        out = network(torch.randn(6, 3, 5, 5))
    assert out.shape == (6, 2)
    after = network.state_dict()
    assert all(torch.equal(value, after[name]) for name, value in before.items())
    assert [features[place].training for place in (1, 2)] == [False, False]


def test_a_divided_network_computes_the_same() -> None:
    torch.manual_seed(0)
    network = build_network("resnet18", (3, 32, 32), 4, {"weights": "none", "width": 4}).eval()
    expected = network(pixels(3, 32))
    for train in ("head", "last-block"):
        parts = divide(network, train)
        assert parts.frozen is not None
        assert torch.equal(parts.rest.eval()(parts.frozen(pixels(3, 32))), expected)
        assert not any(value.requires_grad for value in parts.frozen.parameters())
        parts.frozen.train()
        assert not parts.frozen.training


def test_a_network_that_needs_real_tensors_is_built_with_them() -> None:
    class Counts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(torch.full((1,), 2).tolist()[0], 2)

    assert on_meta(Counts).layer.in_features == 2
