"""Averages of the weights over the steps of a domain, as a setting of the run.

The steps train the raw weights as ever; the model that predicts, is measured, saved and exported
has the averaged ones. At the next domain training continues from the raw weights.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ..base.forms import FormError, Like, check_form, check_keys, like_all
from ..networks.network import Network
from ..settings import RunSettings
from .execution.execution import match_layout

# Batches from which BatchNorm statistics are estimated, at most.
BATCHNORM_BATCHES = 100


class WeightAverage:
    """The average w̄ of a network's weights w over the steps t = 1, ..., T of a domain.

    `ema`: w̄_t = Σ_i ρ^(t-i) w_i / Σ_i ρ^(t-i), by w̄ ← w̄ + (1 - ρ) / (1 - ρ^t) (w - w̄). This is
    w̄ ← ρ w̄ + (1 - ρ) w without the share of a starting value, which at 100 steps and ρ = 0.99
    would still be a third (Kingma and Ba, 2015, correct their moments alike).
    `swad`: the mean of the weights of all steps after the first `average_start` · T. Cha et al.,
    "SWAD: Domain Generalization by Seeking Flat Minima", NeurIPS 2021, average densely, over every
    step, too, but begin and end where the validation loss says so. Here no step looks at validation
    rows: the window begins at a fixed share of the steps and lasts to the end of the domain.

    Everything that the method and the memory compute at the end of a domain (priors, Fisher
    information, stored logits) is of the raw model: the terms of later steps compare the raw model
    with it. So averaging changes no step: the raw weights, the memory and the random numbers are
    the same to the last bit as without it.

    BatchNorm statistics belong to weights, so those of w̄ are estimated anew, from batches drawn as
    in the steps. All other buffers are those of the raw model.

    Within a domain `mean` holds w̄ and the network w. Between domains `raw` holds w, with its
    BatchNorm statistics, and the network w̄.
    """

    def __init__(self, run: RunSettings, network: Network) -> None:
        self.run = run
        self.network = network
        self.mean: dict[str, Tensor] = {}
        self.raw: dict[str, Tensor] = {}
        self._before: dict[str, Tensor] = {}  # the averaged model, until the first step
        device = next(network.parameters()).device
        # On the device and written in place, so that a step can be recorded.
        self.steps = torch.zeros((), dtype=torch.float64, device=device)
        self.start = 0

    def begin(self, steps: int) -> None:
        """A domain of this many steps starts: continue from the raw weights."""
        if self.raw:
            self._before = _copied(self._values())
            _write(self.raw, self._values())
            self.raw = {}
        self.mean = _copied(self._parameters())
        self.steps.zero_()
        self.start = int(self.run.average_start * steps)

    def cancel(self) -> None:
        """The domain is refused ahead of its first step: be as before `begin`."""
        if self._before:
            self.raw = _copied(self._values())
            _write(self._before, self._values())
        self.mean, self._before = {}, {}

    def lay_out(self) -> None:
        """The steps start: store w̄ in the memory format of w, so that one kernel goes over both."""
        self._before = {}
        for name, parameter in self._parameters().items():
            state = {name: self.mean[name]}
            match_layout(parameter, state)
            self.mean |= state

    @torch.no_grad()
    def update(self) -> None:
        """Take the weights of this step into the average. It reads no value on the host."""
        self.steps.add_(1)
        if self.run.average == "ema":
            decay = self.run.average_decay
            rate = (1 - decay) / (1 - torch.pow(decay, self.steps))
        else:
            # Ahead of the window w̄ is w.
            rate = 1 / (self.steps - self.start).clamp(min=1)
        means, weights = list(self.mean.values()), list(self._parameters().values())
        changes = torch._foreach_sub(weights, means)
        torch._foreach_mul_(changes, rate.to(means[0].dtype))
        torch._foreach_add_(means, changes)

    @torch.no_grad()
    def estimate_batchnorm(self, batches: int, forward: Callable[[], None]) -> None:
        """BatchNorm statistics of w̄ as means over batches that `forward` passes; then w again."""
        layers = [layer for layer in self.network.batchnorms() if layer.track_running_stats]
        if not layers or self.run.freeze_batchnorm:
            return
        raw, momenta = _copied(self._values()), [layer.momentum for layer in layers]
        _write(self.mean, self._values())
        for layer in layers:
            layer.reset_running_stats()
            layer.momentum = None  # a plain mean over the batches
        with self.network.batchnorm("train"):
            for _ in range(min(batches, BATCHNORM_BATCHES)):
                forward()
        for layer, momentum in zip(layers, momenta, strict=True):
            layer.momentum = momentum
        self.mean |= _copied(self._statistics())
        _write(raw, self._values())

    def install(self) -> None:
        """The domain ended: the network gets the averaged weights, the raw ones are kept."""
        self.raw = _copied(self._values())
        _write(self.mean, self._values())
        self.mean = {}

    def state_dict(self) -> dict[str, Any]:
        """The average within a domain, or the raw weights between domains."""
        return {"steps": self.steps, "mean": self.mean, "raw": self.raw}

    def check_state(self, state: Any, *, inside_domain: bool) -> None:
        """Raise a FormError unless `state` is one of this network's average."""
        check_keys(state, self.state_dict(), "average")
        Like((), torch.float64, finite=True).check(state["steps"], "average.steps")
        if float(state["steps"]) < 0:
            raise FormError("average.steps is not a number of steps")
        for part, own in (("mean", self._parameters()), ("raw", self._values())):
            check_form(state[part], like_all(own) if state[part] else {}, f"average.{part}")
        if state["mean"] and state["raw"]:
            raise FormError("average has both a mean and raw weights")
        if inside_domain and not state["mean"]:
            raise FormError("average has no mean, but a domain is being learned")

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state from `state_dict`."""
        device = self.steps.device
        self.steps.copy_(state["steps"])
        self.mean, self.raw = (
            {name: value.to(device, copy=True) for name, value in state[part].items()}
            for part in ("mean", "raw")
        )

    def _parameters(self) -> dict[str, Tensor]:
        return {name: value.detach() for name, value in self.network.named_parameters()}

    def _statistics(self) -> dict[str, Tensor]:
        """The statistics of the BatchNorm layers."""
        return {
            f"{path}.{name}": value
            for path, module in self.network.named_modules()
            if isinstance(module, nn.modules.batchnorm._BatchNorm)
            for name, value in module.named_buffers(recurse=False)
        }

    def _values(self) -> dict[str, Tensor]:
        """What differs between the raw and the averaged model."""
        return self._parameters() | self._statistics()


def _copied(values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in values.items()}


def _write(values: Mapping[str, Tensor], into: Mapping[str, Tensor]) -> None:
    """Write values into the tensors of the same names."""
    for name, value in values.items():
        into[name].copy_(value)
