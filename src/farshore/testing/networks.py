"""The battery of networks: features and classifier, settings, and what methods rely on."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from ..base.randomness import seeded
from ..base.trees import copied, differences
from ..errors import FarshoreError
from ..networks import NETWORKS, Network
from ..networks.build import build_network, plain_network_settings
from .battery import Battery, ensure, not_for, refused

# Forms of one row that a network is tried with: a table, grey and coloured images.
SHAPES: tuple[tuple[int, ...], ...] = ((6,), (1, 16, 16), (3, 32, 32))
CLASSES = 3
ROWS = 12
STEPS = 20


@dataclass(frozen=True)
class NetworkCase:
    """The network that is checked, with its settings and the forms of inputs to try."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    shapes: Sequence[tuple[int, ...]] = SHAPES

    def build(self, shape: tuple[int, ...], classes: int = CLASSES, seed: int = 0) -> Network:
        """The network for inputs of this form, with weights that depend on the seed alone."""
        with seeded(torch.Generator().manual_seed(seed)):
            return build_network(self.name, shape, classes, self.settings)

    def forms(self) -> list[tuple[int, ...]]:
        """The forms that the network is for: those that it does not refuse."""
        return list(self._accepted())

    def networks(self) -> Iterator[tuple[Network, Tensor]]:
        """A network for each of its forms, with inputs."""
        for shape, network in self._accepted().items():
            yield network, _inputs(shape)

    def _accepted(self) -> dict[tuple[int, ...], Network]:
        accepted: dict[tuple[int, ...], Network] = {}
        refusals = []
        for shape in self.shapes:
            try:
                accepted[shape] = self.build(shape)
            except FarshoreError as error:
                refusals.append(str(error))
        ensure(accepted, f"it takes no inputs of the forms {list(self.shapes)}: {refusals}")
        return accepted


BATTERY: Battery[Callable[..., Network], NetworkCase] = Battery(NETWORKS, NetworkCase)
network_checks = BATTERY.checks
parametrize_network_checks = BATTERY.parametrize


def check_network(
    network: str | Callable[..., Network],
    *,
    settings: Mapping[str, Any] | None = None,
    shapes: Sequence[tuple[int, ...]] | None = None,
) -> None:
    """Run every check on a network, given by its name or as its builder. The first failure raises.

    shapes: forms of one row to try; those that the network refuses are left out, but one must be
        accepted.
    """
    BATTERY.run(network, settings=settings, shapes=shapes)


@BATTERY.check
def gives_features_and_logits(case: NetworkCase) -> None:
    """Features [n, feature_dim], logits [n, classes], and the logits are those of the features."""
    for network, inputs in case.networks():
        network.eval()
        with torch.no_grad():
            features, logits = network.extract(inputs), network(inputs)
            through = network.classifier(features)
        shapes = {"features": (features, network.feature_dim), "logits": (logits, CLASSES)}
        for what, (made, width) in shapes.items():
            shape, expected = tuple(made.shape), (len(inputs), width)
            ensure(shape == expected, f"its {what} have shape {shape}; {expected} is expected")
        ensure(bool(torch.isfinite(logits).all()), "its logits are not finite numbers")
        ensure(torch.equal(logits, through), "its logits are not the classifier's of its features")
        ensure(network.classes == CLASSES, f"`classes` is {network.classes}, not {CLASSES}")


@BATTERY.check
def rows_are_independent_in_evaluation(case: NetworkCase) -> None:
    """In evaluation mode a row's logits do not depend on the other rows, and nothing changes."""
    for network, inputs in case.networks():
        network.eval()
        before = copied(network.state_dict())
        with torch.no_grad():
            together, alone = network(inputs), network(inputs[:1])
        message = "in evaluation mode the logits of a row depend on the rows beside it"
        ensure(torch.allclose(together[:1], alone, rtol=1e-3, atol=1e-4), message)
        ensure(not differences(before, network.state_dict()), "evaluation changes its state")


@BATTERY.check
def same_seed_gives_the_same_weights(case: NetworkCase) -> None:
    """Weights are drawn from PyTorch's global generator, which a run seeds."""
    for shape in case.forms():
        first, same, other = (case.build(shape, seed=seed).state_dict() for seed in (0, 0, 1))
        ensure(not differences(first, same), "two networks with one seed have other weights")
        ensure(differences(first, other), "another seed gives the same weights")


@BATTERY.check
def state_round_trips(case: NetworkCase) -> None:
    """The state of one network, loaded into another, gives the same logits; so does a copy."""
    for shape in case.forms():
        inputs = _inputs(shape)
        network, other = case.build(shape, seed=0).eval(), case.build(shape, seed=1).eval()
        other.load_state_dict(network.state_dict())
        with torch.no_grad():
            logits = [each(inputs) for each in (network, other, deepcopy(network))]
        ensure(torch.equal(logits[0], logits[1]), "its state_dict() does not hold all its state")
        ensure(torch.equal(logits[0], logits[2]), "a copy gives other logits")


@BATTERY.check
def settings_are_validated(case: NetworkCase) -> None:
    """Unknown settings are refused; the values that are given are understood as texts too."""
    with refused("an unknown setting"):
        plain_network_settings(case.name, {"no_such_setting": 1})
    with refused("an unknown setting"):
        build_network(case.name, case.forms()[0], CLASSES, {**case.settings, "no_such_setting": 1})
    plain = plain_network_settings(case.name, case.settings)
    texts = {name: str(value) for name, value in plain.items() if value is not None}
    read = plain_network_settings(case.name, texts)
    message = f"settings are read from the command line as {read}; {plain} is meant: annotate them"
    ensure(read == {name: plain[name] for name in texts}, message)


@BATTERY.check
def training_lowers_the_loss(case: NetworkCase) -> None:
    """A few steps on a few rows lower the loss, and every parameter gets a gradient."""
    for shape in case.forms():
        network, inputs = case.build(shape).train(), _inputs(shape)
        labels = torch.arange(len(inputs)) % CLASSES
        optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
        losses = []
        with seeded(torch.Generator().manual_seed(0)):  # dropout draws
            for _ in range(STEPS):
                loss = nn.functional.cross_entropy(network(inputs), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(float(loss.detach()))
        idle = [name for name, each in network.named_parameters() if each.grad is None]
        ensure(not idle, f"parameters without a gradient: {', '.join(idle)}")
        ends = f"{losses[0]:.4f} at first, {losses[-1]:.4f} after {STEPS} steps"
        ensure(losses[-1] < losses[0], f"the loss does not fall: {ends}")


@BATTERY.check
def hidden_units_fit_together(case: NetworkCase) -> None:
    """`hidden_units()` names writers and readers that are layers of the network and fit."""
    for network, _ in case.networks():
        layers = set(network.modules())
        for units in network.hidden_units():
            named = [units.writer, *units.readers]
            message = f"hidden units {units.name!r} name layers that are not in the network"
            ensure(units.readers and layers.issuperset(named), message)
            written = _width(units.writer, "out_features", "out_channels")
            ensure(
                all(
                    _width(reader, "in_features", "in_channels") % written == 0
                    for reader in units.readers
                ),
                f"hidden units {units.name!r}: a reader takes another number of units than are "
                "written",
            )


@BATTERY.check
def batchnorm_modes_hold(case: NetworkCase) -> None:
    """`no_update` and `frozen` leave the running statistics alone, `train` moves them, and the
    modes end with the block.
    """
    checked = False
    for network, inputs in case.networks():
        layers = network.batchnorms()
        if not layers:
            continue
        checked = True
        network.train()
        before = copied(network.state_dict())
        for mode in ("frozen", "no_update"):
            with network.batchnorm(mode), torch.no_grad():
                network(inputs)
            moved = differences(before, network.state_dict())
            ensure(not moved, f"batchnorm({mode!r}) moves the running statistics")
        with network.batchnorm("train"), torch.no_grad():
            network(inputs)
        moved = differences(before, network.state_dict())
        ensure(moved, "batchnorm('train') does not move the running statistics")
        message = "a mode of BatchNorm stays after its block"
        ensure(all(layer.training and layer.track_running_stats for layer in layers), message)
    if not checked:
        raise not_for("has no BatchNorm")


def _inputs(shape: tuple[int, ...]) -> Tensor:
    """Rows of this form: floats, or uint8 for images."""
    generator = torch.Generator().manual_seed(3)
    if len(shape) == 3:
        return torch.randint(0, 256, (ROWS, *shape), generator=generator).to(torch.uint8)
    return torch.randn(ROWS, *shape, generator=generator)


def _width(layer: nn.Module, linear: str, convolution: str) -> int:
    """Units that a layer writes or reads."""
    width = getattr(layer, linear, None) or getattr(layer, convolution)
    return int(math.prod(width) if isinstance(width, tuple) else width)
