"""Networks: exact layers, parameter counts, hidden units, BatchNorm modes."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from farshore.errors import FarshoreError
from farshore.networks.build import build_network
from farshore.networks.network import Network


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def test_the_cnn_is_domainbeds() -> None:
    network = build_network("cnn", (1, 28, 28), 10, {})
    assert count(network.features) == 370_560
    assert count(network) == 371_850
    assert network.feature_dim == 128
    kinds = [nn.Conv2d, nn.ReLU, nn.GroupNorm] * 4 + [nn.AdaptiveAvgPool2d, nn.Flatten]
    assert all(isinstance(layer, kind) for layer, kind in zip(network.features, kinds, strict=True))
    assert [layer.stride for layer in network.features if isinstance(layer, nn.Conv2d)] == [
        (1, 1),
        (2, 2),
        (1, 1),
        (1, 1),
    ]


def test_fresh_group_normalised_features_sum_to_zero_in_every_group() -> None:
    network = build_network("cnn", (1, 28, 28), 10, {})
    images = torch.randint(0, 256, (3, 1, 28, 28), dtype=torch.uint8)
    groups = network.extract(images).detach().reshape(3, 8, 16).sum(dim=2)
    assert float(groups.abs().max()) < 1e-4


def test_the_mlp_has_four_linear_layers_and_none_after_the_last_but_the_head() -> None:
    network = build_network("mlp", (50,), 6, {})
    assert [type(layer).__name__ for layer in network.features] == [
        "Linear",
        "ReLU",
        "Linear",
        "ReLU",
        "Linear",
    ]
    assert count(network) == 51 * 256 + 2 * 257 * 256 + 257 * 6


def test_images_are_scaled_inside_the_model() -> None:
    for name in ("cnn", "mlp"):
        network = build_network(name, (1, 8, 8), 2, {"width": 8})
        images = torch.randint(0, 256, (4, 1, 8, 8), dtype=torch.uint8)
        assert torch.allclose(network(images), network(images.float() / 255))


def test_width_and_depth_are_checked() -> None:
    with pytest.raises(FarshoreError, match="multiple of 8"):
        build_network("cnn", (1, 8, 8), 2, {"width": 12})
    with pytest.raises(FarshoreError, match="depth"):
        build_network("mlp", (4,), 2, {"depth": 1})
    assert len(build_network("mlp", (4,), 2, {"depth": 2, "dropout": 0.5}).features) == 4


def test_a_network_without_known_feature_size_is_refused() -> None:
    with pytest.raises(FarshoreError, match="feature_dim"):
        Network(nn.Linear(3, 3), nn.Sequential(nn.Linear(3, 2)))
    assert Network(nn.Linear(3, 3), nn.Sequential(nn.Linear(3, 2)), feature_dim=3).feature_dim == 3


def test_hidden_units_name_writers_and_readers() -> None:
    cnn = build_network("cnn", (1, 8, 8), 3, {"width": 8})
    units = cnn.hidden_units()
    assert [layer.writer.out_channels for layer in units] == [8, 16, 16, 16]
    assert all(isinstance(layer.normalisation, nn.GroupNorm) for layer in units)
    assert units[-1].readers == (cnn.classifier,)
    assert units[0].readers == (units[1].writer,)
    mlp = build_network("mlp", (4,), 3, {"width": 8})
    # The last feature layer has no ReLU: its outputs are features, not hidden units.
    assert [layer.writer for layer in mlp.hidden_units()] == [mlp.features[0], mlp.features[2]]


def with_batchnorm() -> Network:
    return Network(nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.ReLU()), nn.Linear(5, 2))


@pytest.mark.parametrize(
    ("mode", "moves", "uses_batch"),
    [("train", True, True), ("frozen", False, False), ("no_update", False, True)],
)
def test_batchnorm_modes(mode: str, moves: bool, uses_batch: bool) -> None:
    network = with_batchnorm().train()
    layer = network.batchnorms()[0]
    inputs = torch.randn(16, 3) * 4 + 2
    before = layer.running_mean.clone()
    with network.batchnorm(mode):
        normalised = layer(network.features[0](inputs)).detach()
    assert torch.equal(before, layer.running_mean) is not moves
    assert (float(normalised.mean(dim=0).abs().max()) < 1e-4) is uses_batch
    assert layer.training
    assert layer.track_running_stats
