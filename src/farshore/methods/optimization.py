"""Devices, optimisers, and a check for diverged training."""

import inspect
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer

from ..base.forms import FormError, Like, check_form, check_keys
from ..errors import DivergedError, FarshoreError
from ..settings import RunSettings

# The name of whatever device is best here.
AUTO = "auto"
# What the optimisers keep per parameter. Counters are numbers, everything else is like a parameter.
COUNTERS = ("step", "steps")
ADAM = {"step": None, "exp_avg": None, "exp_avg_sq": None}
MOMENTS: dict[type[Optimizer], dict[str, None]]
MOMENTS = {Adam: ADAM, AdamW: ADAM, SGD: {"momentum_buffer": None}}


def make_optimizer(
    run: RunSettings,
    parameters: Iterable[nn.Parameter],
    *,
    rate: float,
    decay: float,
    backbone: Iterable[nn.Parameter] = (),
) -> Optimizer:
    """Create the run's optimiser, fused over all parameters; on a GPU its step can be captured.

    backbone: those of the parameters that have the step size `backbone_rate`, if it is set.
    """
    parameters = list(parameters)
    device = parameters[0].device
    groups: list[Any] = parameters
    if run.backbone_rate is not None:
        slow = {id(parameter) for parameter in backbone}
        parts = [
            [value for value in parameters if (id(value) in slow) is own] for own in (False, True)
        ]
        rates = (rate, run.backbone_rate)
        rated = zip(parts, rates, strict=True)
        groups = [{"params": part, "lr": each} for part, each in rated if part]
    kind = {"adam": Adam, "adamw": AdamW, "sgd": SGD}[run.optimizer]
    own = {"momentum": run.momentum} if kind is SGD else {"capturable": device.type == "cuda"}
    return plain(kind)(groups, lr=rate, weight_decay=decay, fused=True, **own)


@cache
def plain(kind: type[Optimizer]) -> Any:
    """The same optimiser without what PyTorch wraps around its methods for `torch.compile`.

    The wrappers import the compiler, which costs a process a second and 120 MB and does nothing for
    a step that is not compiled. As in the wrapper, `step` computes without gradients. No events for
    a profiler are recorded: on a small network they take time that counts.
    """
    names = ("add_param_group", "state_dict", "load_state_dict")
    inside: dict[str, Any] = {name: inspect.unwrap(getattr(kind, name)) for name in names}
    if kind in MOMENTS:
        inside["moments"] = MOMENTS[kind]
    step = torch.no_grad()(inspect.unwrap(kind.step))
    step.hooked = True  # otherwise PyTorch wraps it in such an event
    return type(kind.__name__, (kind,), {**inside, "step": step, "zero_grad": _drop_gradients})


def _drop_gradients(optimizer: Optimizer, set_to_none: bool = True) -> None:
    """`zero_grad` of `plain` optimisers; it always drops the gradients."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = None


def choose_device(name: str) -> str:
    """Return the name of the device to use: `auto` is cuda if there is a GPU, otherwise cpu."""
    if name != AUTO:
        return name
    return "cuda" if torch.cuda.is_available() else "cpu"


def find_device(name: str) -> torch.device:
    """Return the device called `name`; raise an error if it is unknown or not available."""
    name = choose_device(name)
    try:
        device = torch.device(name)
    except RuntimeError:
        why = f"unknown device {name!r}: try 'auto', 'cpu', 'cuda' or 'cuda:0'"
        raise FarshoreError(why) from None
    if device.type == "cuda" and not torch.cuda.is_available():
        why = f"device {name!r} is not available: this PyTorch sees no CUDA GPU; try 'cpu'"
        raise FarshoreError(why)
    if (
        device.type == "cuda"
        and device.index is not None
        and device.index >= torch.cuda.device_count()
    ):
        raise FarshoreError(
            f"device {name!r} is not available: this machine has {torch.cuda.device_count()} "
            "CUDA GPUs"
        )
    if device.type not in ("cpu", "cuda"):
        raise FarshoreError(f"device {name!r} is not supported: try 'cpu' or 'cuda'")
    return device


def check_optimizers(optimizers: Sequence[Optimizer], states: Any) -> None:
    """Raise a FormError unless these are states of these optimisers, parameter by parameter.

    Fused kernels do not check the shapes of moments: a wrong one would crash the process.
    """
    if not isinstance(states, list) or len(states) != len(optimizers):
        raise FormError(f"optimizers is not a list of {len(optimizers)} states")
    for number, (optimizer, state) in enumerate(zip(optimizers, states, strict=True)):
        where = f"optimizers.{number}"
        fresh = optimizer.state_dict()
        check_keys(state, fresh, where)
        if not isinstance(state["param_groups"], list):
            raise FormError(f"{where}.param_groups is not a list")
        check_form(state["param_groups"], fresh["param_groups"], f"{where}.param_groups")
        for stored, own in zip(state["param_groups"], fresh["param_groups"], strict=True):
            _check_group(stored, own, f"{where}.param_groups")
        parameters = [value for group in optimizer.param_groups for value in group["params"]]
        _check_moments(optimizer, state["state"], parameters, f"{where}.state")


def _check_group(stored: Mapping[str, Any], own: Mapping[str, Any], where: str) -> None:
    """Check that switches and parameters are the optimiser's own; a device may change `capturable`.

    Numbers such as the learning rate may have been changed by a schedule.
    """
    for name, value in own.items():
        fixed = isinstance(value, bool | str) or value is None or name == "params"
        if fixed and name != "capturable" and stored[name] != value:
            raise FormError(f"{where}: {name} is not the optimiser's own")


def _check_moments(
    optimizer: Optimizer, stored: Any, parameters: Sequence[nn.Parameter], where: str
) -> None:
    if not isinstance(stored, Mapping):
        raise FormError(f"{where} is not a dictionary")
    # An optimiser of a method's own may name its entries too.
    declared = getattr(optimizer, "moments", None)
    names = dict.fromkeys(declared) if declared else MOMENTS.get(type(optimizer))
    for index, moments in stored.items():
        if type(index) is not int or not 0 <= index < len(parameters):
            raise FormError(f"{where} has an entry for no parameter")
        parameter, place = parameters[index], f"{where}.{index}"
        check_keys(moments, names or dict(moments), place)
        for name, value in moments.items():
            number = isinstance(value, Tensor) and value.ndim == 0
            if name in COUNTERS or (names is None and number):
                Like((), torch.float32, finite=True).check(value, f"{place}.{name}")
            elif value is not None or name != "momentum_buffer":
                Like(tuple(parameter.shape), parameter.dtype).check(value, f"{place}.{name}")


def check_finite(network: nn.Module, domain: str, step: int) -> None:
    """Raise DivergedError if a parameter is no longer finite."""
    detached = [parameter.detach() for parameter in network.parameters()]
    norms = torch.stack(torch._foreach_norm(detached, 1))
    if not math.isfinite(float(norms.sum())):  # one device synchronisation for all parameters
        raise DivergedError(
            f"training on domain {domain!r} diverged by step {step + 1}: lower learning_rate or "
            "the penalty's weight"
        )
