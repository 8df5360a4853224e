from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from torch import Tensor

from farshore.errors import FarshoreError
from farshore.learner.learner import Learner
from farshore.learner.loading import load
from farshore.methods import METHODS, continual
from farshore.networks.build import build_network
from farshore.networks.form import IMAGENET_MEAN, IMAGENET_STD
from farshore.testing import differences

SMALL = {"weights": "none", "width": 8}


def images(domain: int, rows: int = 12, channels: int = 3) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(domain)
    labels = torch.arange(rows) % 2
    made = torch.randint(0, 90, (rows, channels, 32, 32), generator=generator)
    made[labels == 1, :, :16] += 120 - 20 * domain
    return made.to(torch.uint8), labels


def learner(method: str, **settings: object) -> Learner:
    fields = METHODS.get(method).Settings.model_fields
    early: dict[str, object] = {
        "anneal_steps": 1,
        "warmup_steps": 1,
        "random_features": 8,
        "members": "cl-mix+ncm",
        "features": "network",
    }
    early = {key: value for key, value in early.items() if key in fields}
    return Learner(
        "resnet18",
        method,
        memory=6,
        settings={"batch_size": 4, **early, **settings},
        network_settings=SMALL,
        classes=[0, 1],
    )


@pytest.mark.parametrize(
    "method", [name for name in continual() if not METHODS.get(name).tables_only]
)
def test_every_method_steps_and_resumes_exactly(method: str, tmp_path: Path) -> None:
    straight, resumed = learner(method), learner(method)
    for domain in range(2):
        straight.learn(*images(domain), domain=f"d{domain}", steps=2)
        resumed.learn(*images(domain), domain=f"d{domain}", steps=2)
        resumed.save(tmp_path)
        resumed = load(tmp_path)
    assert differences(straight.state_dict(), resumed.state_dict()) == []
    assert bool(torch.isfinite(straight.logits(images(0)[0])).all())


def test_it_is_torchvisions_resnet18() -> None:
    network = build_network("resnet18", (3, 64, 64), 10, {"weights": "none"})
    names = network.features.state_dict()
    assert (
        sum(p.numel() for p in network.parameters()) == 11_689_512 - 513_000 + 5130
    )  # torchvision's, less its head of 1,000
    assert len(names) == 120
    assert {
        "conv1.weight",
        "bn1.running_var",
        "layer2.0.downsample.0.weight",
        "layer4.1.bn2.num_batches_tracked",
    } <= set(names)
    assert network.feature_dim == 512
    assert len(network.batchnorms()) == 20
    assert sum(layer.num_features for layer in network.batchnorms()) == 4800
    units = network.hidden_units()
    assert len(units) == 8
    assert all(
        unit.writer.out_channels == unit.readers[0].in_channels == unit.normalisation.num_features
        for unit in units
    )


def test_one_channel_is_repeated_to_three() -> None:
    torch.manual_seed(0)
    grey = build_network("resnet18", (1, 48, 48), 9, SMALL).eval()
    wafer, _ = images(0, rows=2, channels=1)
    assert torch.allclose(grey(wafer), grey(wafer.repeat(1, 3, 1, 1)))
    mean, std = (torch.tensor(each).view(1, 3, 1, 1) for each in (IMAGENET_MEAN, IMAGENET_STD))
    plain = (wafer.float() / 255 - mean) / std
    assert torch.allclose(grey.inputs(wafer), plain)
    with pytest.raises(FarshoreError, match="1 or 3"):
        build_network("resnet18", (2, 48, 48), 9, SMALL)


def test_weights_of_both_kinds_load_and_wrong_ones_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from safetensors.torch import save_file

    monkeypatch.setenv("FARSHORE_DATA", str(tmp_path))
    with pytest.raises(FarshoreError, match="--weights none"):
        build_network("resnet18", (3, 32, 32), 5, {})
    torch.manual_seed(1)
    source = build_network("resnet18", (3, 32, 32), 7, {"weights": "none"})
    state = {
        **source.features.state_dict(),
        "fc.weight": torch.zeros(7, 512),
        "fc.bias": torch.zeros(7),
    }
    torch.save(state, tmp_path / "own.pth")
    (tmp_path / "weights").mkdir()
    save_file(
        {name: t.half() if t.is_floating_point() else t for name, t in state.items()},
        tmp_path / "weights" / "half.safetensors",
    )
    torch.manual_seed(2)
    exact = build_network("resnet18", (3, 32, 32), 5, {"weights": str(tmp_path / "own.pth")})
    assert differences(dict(exact.features.state_dict()), dict(source.features.state_dict())) == []
    half = build_network(
        "resnet18", (3, 32, 32), 5, {"weights": "half.safetensors"}
    )  # by its name in ROOT/weights
    assert torch.allclose(half.features.conv1.weight, source.features.conv1.weight, atol=1e-3)
    assert half.features.conv1.weight.dtype == torch.float32
    with pytest.raises(FarshoreError, match="is not a file"):
        build_network("resnet18", (3, 32, 32), 5, {"weights": "absent.pth"})
    with pytest.raises(FarshoreError, match="width 64"):
        build_network("resnet18", (3, 32, 32), 5, {"weights": "half.safetensors", "width": 8})
    torch.save({"conv1.weight": torch.zeros(1)}, tmp_path / "other.pth")
    with pytest.raises(FarshoreError, match="does not fit"):
        build_network("resnet18", (3, 32, 32), 5, {"weights": str(tmp_path / "other.pth")})
    (tmp_path / "weights" / "resnet18-f37072fd.pth").write_bytes(b"not the official file")
    with pytest.raises(FarshoreError, match="not the published file"):
        build_network("resnet18", (3, 32, 32), 5, {"weights": "imagenet"})


def test_a_pth_file_runs_no_code(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self):  # type: ignore[no-untyped-def]
            return os.mkdir, (str(tmp_path / "was-run"),)

    torch.save({"conv1.weight": Evil()}, tmp_path / "evil.pth")
    with pytest.raises(FarshoreError, match="cannot be read as weights"):
        build_network("resnet18", (3, 32, 32), 5, {"weights": str(tmp_path / "evil.pth")})
    assert not (tmp_path / "was-run").exists()


def test_a_saved_learner_does_not_need_the_file_it_began_with(tmp_path: Path) -> None:
    source = build_network("resnet18", (3, 32, 32), 7, {"weights": "none"})
    torch.save(dict(source.features.state_dict()), tmp_path / "own.pth")
    settings = {"weights": str(tmp_path / "own.pth")}
    made = Learner("resnet18", "finetune", settings={"batch_size": 2}, network_settings=settings)
    made.learn(*images(0, rows=4), domain="a", steps=1)
    made.save(tmp_path / "model")
    (tmp_path / "own.pth").unlink()
    assert torch.equal(
        load(tmp_path / "model").logits(images(0, rows=4)[0]), made.logits(images(0, rows=4)[0])
    )


def test_modes_of_batchnorm() -> None:
    """Replay is one joint forward in training mode; priors and stored logits come from
    evaluation mode.
    """
    made = learner("cl-vrex")
    modes: list[tuple[bool, int]] = []
    made.learn(*images(0), domain="a", steps=1)
    held = made.system.memory.state_dict()["rows"][0]
    network = made.system.method.network.eval()
    with torch.no_grad():
        assert torch.allclose(network(held["inputs"]), held["logits"], atol=1e-5)
    network.features.bn1.register_forward_hook(
        lambda module, inputs, out: modes.append((module.training, len(inputs[0])))
    )
    made.learn(*images(1), domain="b", steps=1)
    assert (True, 8) in modes  # four current rows and four replayed ones together
    assert all(rows == 8 for training, rows in modes if training)
    frozen = learner("er", freeze_batchnorm=True)
    frozen.learn(*images(0), domain="a", steps=2)
    assert torch.equal(frozen.system.method.network.features.bn1.running_mean, torch.zeros(8))
    assert not torch.equal(
        frozen.system.method.network.features.bn1.weight, torch.ones(8)
    )  # scale and shift are still trained


@pytest.mark.parametrize(
    "method", ["cl-andmask", "naive-cl-andmask", "cl-fishr", "cl-coral", "star"]
)
def test_running_statistics_move_once_a_step(method: str) -> None:
    """Per-domain gradients share the joint forward, and neither priors nor stored logits move
    the statistics.
    """
    made = learner(method)
    made.learn(*images(0), domain="a", steps=1)
    made.learn(*images(1), domain="b", steps=2)
    assert int(made.system.method.network.features.bn1.num_batches_tracked) == 3
