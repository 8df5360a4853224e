"""SNR: the thresholds' worked numbers, and resets that touch nothing but their unit."""

from __future__ import annotations

import math

import pytest
import torch
from attached import attached, drawing, small_network, trained, weights
from torch import nn

from farshore.methods.snr import Clocks, firing, outgoing, resettable, restart
from farshore.networks.cnn import cnn
from farshore.networks.network import HiddenUnits, Network
from farshore.testing import differences


def clocks(units=1, threshold=4, longest=16, **silences):
    made = Clocks(units, threshold, longest, torch.device("cpu"))
    for length, count in silences.items():
        made.ended[:, int(length[1:])] = count
    return made


@pytest.mark.parametrize(
    ("rejection", "silences", "threshold"),
    [
        (0.01, {"b0": 500, "b1": 90, "b2": 9, "b3": 1}, 2),
        (0.005, {"b0": 500, "b1": 90, "b2": 9, "b3": 1}, 3),
        (0.01, {"b1": 90, "b4": 10}, 8),  # ten resets at the threshold: it doubles
        (
            0.01,
            {"b0": 500},
            4,
        ),  # never silent: it stays (the official code would go down to one batch)
    ],
)
def test_thresholds_follow_the_quantile_of_the_silences(rejection, silences, threshold):
    made = clocks(**silences)
    made.adapt(rejection)
    assert made.threshold.tolist() == [threshold]
    assert int(made.ended.sum()) == 0


def test_a_threshold_never_passes_the_longest_silence_that_is_recorded():
    made = clocks(threshold=12, longest=16, b12=10)
    made.adapt(0.01)
    assert made.threshold.tolist() == [16]


def test_clocks_count_silent_batches_and_record_how_they_end():
    made = clocks(units=2, threshold=2, longest=3)
    overdue = [
        made.tick(torch.tensor(fired)).tolist()
        for fired in ([True, True], [False, True], [True, False], [False, False])
    ]
    assert overdue == [[False, False]] * 3 + [[False, True]]
    assert made.ended.tolist() == [[1, 1, 0, 0], [2, 0, 1, 0]]
    assert made.silence.tolist() == [1, 0]


def optimised(network):
    """The network with an Adam that has taken a few steps."""
    optimizer = torch.optim.Adam(network.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        network(
            torch.randn(9, *_shape(network), generator=torch.Generator().manual_seed(1)).to(
                next(network.parameters())
            )
        ).square().sum().backward()
        optimizer.step()
    return optimizer


def _shape(network):
    first = next(
        module for module in network.modules() if isinstance(module, nn.Linear | nn.Conv2d)
    )
    return (first.in_features,) if isinstance(first, nn.Linear) else (first.in_channels, 8, 8)


def snapshot(network, optimizer):
    return [
        {
            "weight": p.detach().clone(),
            **{k: v.clone() for k, v in optimizer.state[p].items() if v.ndim},
        }
        for p in network.parameters()
    ]


def changed(before, after):
    """For each parameter the entries that differ, of the weight and of the moments."""
    return [
        torch.stack([a[key] != b[key] for key in a]).any(dim=0)
        for a, b in zip(before, after, strict=True)
    ]


def expected_entries(network, layer, units):
    """Which entries a reset of `units` may touch, by parameter."""
    marks = {id(p): torch.zeros_like(p, dtype=torch.bool) for p in network.parameters()}
    marks[id(layer.writer.weight)][units] = True
    marks[id(layer.writer.bias)][units] = True
    if layer.normalisation is not None:
        marks[id(layer.normalisation.weight)][units] = True
        marks[id(layer.normalisation.bias)][units] = True
    (reader,) = layer.readers
    block = (reader.in_features if isinstance(reader, nn.Linear) else reader.in_channels) // len(
        layer.writer.weight
    )
    for unit in units:
        marks[id(reader.weight)][:, unit * block : (unit + 1) * block] = True
    return list(marks.values())


def flattening():
    """A convolution whose map is flattened: each channel has 16 columns in the classifier."""
    return Network(
        nn.Sequential(nn.Conv2d(1, 4, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten()),
        nn.Linear(64, 3),
    )


@pytest.mark.parametrize(
    ("make", "layer"),
    [
        (small_network, 0),
        (small_network, 1),
        (flattening, 0),
        *[(None, place) for place in range(4)],
    ],
)
def test_a_reset_touches_its_units_and_their_optimiser_state_and_nothing_else(make, layer):
    torch.manual_seed(0)
    network = make() if make is not None else cnn((1, 8, 8), 3, width=8)
    hidden = network.hidden_units()[layer]
    optimizer = optimised(network)
    before = snapshot(network, optimizer)
    steps = [float(optimizer.state[p]["step"]) for p in network.parameters()]
    units = torch.zeros(len(hidden.writer.weight), dtype=torch.bool)
    units[[0, 2]] = True
    restart(hidden, units, [optimizer], torch.Generator().manual_seed(0))
    touched = changed(before, snapshot(network, optimizer))
    for found, allowed in zip(touched, expected_entries(network, hidden, [0, 2]), strict=True):
        assert torch.equal(found, allowed)
    assert steps == [float(optimizer.state[p]["step"]) for p in network.parameters()]
    assert float(hidden.writer.bias.detach()[units].abs().sum()) == 0
    assert float(hidden.writer.weight.detach()[units].abs().max()) <= 1 / math.sqrt(
        hidden.writer.weight[0].numel()
    )
    assert float(optimizer.state[hidden.writer.weight]["exp_avg_sq"][units].abs().sum()) == 0


def test_grouped_readers_number_their_inputs_within_a_group():
    reader = nn.Conv2d(4, 6, 1, groups=2)
    units = torch.tensor([False, True, True, False])
    assert outgoing(reader, units)[:, :, 0, 0].tolist() == [[False, True]] * 3 + [[True, False]] * 3


def silent(network, unit):
    """Silence one unit of the first hidden layer."""
    with torch.no_grad():
        network.hidden_units()[0].writer.bias[unit] = -1e3
    return network


def test_the_reset_of_a_silent_unit_leaves_the_logits_alone_bit_for_bit():
    network = silent(small_network(), 1)
    batch = drawing(8)
    before = network(batch.inputs)
    layer = network.hidden_units()[0]
    with firing([layer]) as fired:
        network(batch.inputs)
    assert not bool(fired[0][1])
    restart(layer, ~fired[0], [], torch.Generator().manual_seed(0))
    assert torch.equal(network(batch.inputs), before)
    with firing([layer]) as fired:
        network(batch.inputs)
    assert bool(fired[0][1])  # it takes part again


@pytest.mark.parametrize(
    ("between", "positive"),
    [
        ((nn.BatchNorm1d(2), nn.ReLU()), "norm"),
        ((nn.ReLU(), nn.BatchNorm1d(2)), "writer"),
        ((nn.ReLU(),), "writer"),
    ],
)
def test_firing_is_seen_where_the_relu_reads(between, positive):
    writer = nn.Linear(1, 2)
    network = Network(nn.Sequential(writer, *between), nn.Linear(2, 2))
    (layer,) = network.hidden_units()
    assert layer.preactivation is (writer if positive == "writer" else between[0])


def test_a_channel_fires_if_any_place_of_its_map_does():
    writer = nn.Conv2d(1, 2, 1, bias=False)
    nn.init.constant_(writer.weight, 1.0)
    with torch.no_grad():
        writer.weight[1] = -1
    network = Network(nn.Sequential(writer, nn.ReLU(), nn.Flatten()), nn.Linear(8, 2))
    image = torch.zeros(3, 1, 2, 2)
    image[1, 0, 1, 1] = 0.5
    with firing(network.hidden_units()) as fired:
        network(image)
    assert fired[0].tolist() == [True, False]


def test_a_unit_that_stays_silent_is_reset_after_its_threshold_and_counted():
    network = silent(small_network(), 1)
    method = attached("snr", network, initial_threshold=3)
    resets = [int(method.update(drawing(8))["resets"]) for _ in range(3)]
    assert resets[:2] == [0, 0]
    assert resets[2] >= 1
    assert float(network.hidden_units()[0].writer.bias.detach()[1]) == 0
    assert not any(module._forward_hooks for module in network.modules())


def test_thresholds_adapt_every_few_steps_of_the_run():
    method = attached("snr", small_network(), threshold_period=2)
    for each in method.clocks:
        each.ended[:, 1] = 1
    method.before_step(0, 0)
    method.before_step(1, 1)
    assert method.clocks[0].threshold.tolist() == [16] * 5
    method.before_step(2, 0)
    assert method.clocks[0].threshold.tolist() == [1] * 5


def test_without_resets_it_is_finetuning(blobs, pictures):
    never = {"initial_threshold": 10**6, "threshold_period": 10**6}
    assert (
        differences(weights(trained("snr", blobs, **never)), weights(trained("finetune", blobs)))
        == []
    )
    often = {"initial_threshold": 1}
    assert differences(weights(trained("snr", blobs, **often)), weights(trained("finetune", blobs)))
    trained("snr", pictures, network="cnn", domains=2, steps=4, **often)


def test_networks_without_hidden_units_and_frozen_layers_are_left_alone():
    network = Network(nn.Identity(), nn.Linear(4, 3)).double()
    assert int(attached("snr", network).update(drawing(4))["resets"]) == 0
    frozen = small_network()
    frozen.features[0].weight.requires_grad_(False)
    assert [layer.writer for layer in attached("snr", frozen).layers] == [frozen.features[2]]
    writer = nn.Linear(4, 3)
    assert not resettable(
        HiddenUnits("0", writer, None, (nn.Linear(4, 2),))
    )  # three units, four columns
