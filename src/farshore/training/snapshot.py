"""Snapshots of a trainer: taken, checked part by part, and restored."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from ..base.forms import NAMES, FormError, MapOf, check_form, check_keys, is_count, like_all
from ..base.trees import mapped
from ..memory.memory import KeptForm, Memory
from ..methods.method import Method, unknown_parts
from ..methods.optimization import check_optimizers
from .checkpoints import load_optimizers

if TYPE_CHECKING:
    from .trainer import Trainer

PARTS = dict.fromkeys(
    ("steps_done", "domains", "network", "optimizers", "memory", "method", "generators")
)
# Attributes that a method gets from its trainer, which saves them separately.
FROM_TRAINER = ("settings", "domains", "network", "memory", "generator", "opts")


def take_snapshot(trainer: "Trainer", *, inside_domain: bool) -> dict[str, Any]:
    """The state of a trainer; `inside_domain`: with what the method keeps only there."""
    method = trainer.method
    state = {
        "steps_done": trainer.steps_done,
        "domains": list(method.domains),
        "network": dict(method.network.state_dict()),
        "optimizers": [optimizer.state_dict() for optimizer in method.opts],
        "memory": trainer.memory.state_dict() if trainer.memory is not None else None,
        "method": method.state_dict(),
        "generators": trainer.generators.state_dict(),
    }
    if trainer.average is not None:
        state["average"] = trainer.average.state_dict()
    if inside_domain:
        state["within"] = _within(method)
    return state


def restore_snapshot(trainer: "Trainer", state: Mapping[str, Any]) -> None:
    """Restore a snapshot, after a check of every part of it."""
    method = trainer.method
    _check(trainer, state)
    trainer.steps_done = state["steps_done"]
    method.network.load_state_dict(state["network"])
    load_optimizers(method.opts, state["optimizers"])
    if trainer.average is not None:
        trainer.average.load_state_dict(state["average"])
    if trainer.memory is not None:
        trainer.memory.load_state_dict(state["memory"], trainer.device)
    method.domains = list(state["domains"])
    method.load_state_dict(state["method"])
    for name, value in state.get("within", {}).items():
        setattr(method, name, mapped(value, lambda each: each.to(trainer.device)))
    trainer.generators.load_state_dict(state["generators"])


def _check(trainer: "Trainer", state: Mapping[str, Any]) -> None:
    """Raise a FormError unless every part of a snapshot fits what it belongs to."""
    method, network = trainer.method, trainer.method.network
    optional = {"average": trainer.average is not None, "within": "within" in state}
    parts = PARTS | {name: None for name, expected in optional.items() if expected}
    check_keys(state, parts, "the state")
    if trainer.average is not None:
        trainer.average.check_state(state["average"], inside_domain="within" in state)
    if not is_count(state["steps_done"]):
        raise FormError("steps_done is not a number of steps")
    check_form(state["domains"], NAMES, "domains")
    check_form(state["network"], like_all(network.state_dict()), "network")
    check_optimizers(method.opts, state["optimizers"])
    if trainer.memory is not None:
        _check_memory(trainer, trainer.memory, state)
    elif state["memory"] is not None:
        raise FormError("there is a memory, but the method keeps no rows")
    check_form(state["method"], method.state_form(), "method")
    check_form(state["generators"], trainer.generators.state_dict(), "generators")
    _check_within(method, state.get("within", {}))


def _check_memory(trainer: "Trainer", memory: Memory, state: Mapping[str, Any]) -> None:
    """Raise a FormError unless the memory has rows of this network and of the learned domains."""
    method, setup = trainer.method, trainer.setup
    widths = {"features": method.network.feature_dim, "logits": setup.classes}
    outputs = {name: widths[name] for name in method.replay.stores}
    if setup.weighted:
        outputs["weights"] = 1
    memory.check_state(state["memory"], KeptForm(setup.shape, setup.task, outputs))
    names = state["memory"].get("names", [])
    if names not in ([], state["domains"]):
        raise FormError("memory.names are not the domains that were learned")


def _check_within(method: Method, within: Any) -> None:
    """Refuse attributes that no method sets during a domain, or that replace its parts."""
    own = _within(method)
    check_form(within, MapOf(None), "within")
    for name, value in within.items():
        defined = getattr(type(method), name, None)
        taken = name in FROM_TRAINER or callable(defined) or isinstance(defined, property)
        if taken or name.startswith("__") or not name.isidentifier():
            raise FormError(f"within has an unknown entry {name[:60]!r}")
        check_form(value, unknown_parts(own.get(name)), f"within.{name}")


def _within(method: Method) -> dict[str, Any]:
    """What the method keeps only within a domain."""
    return {
        name: value
        for name, value in vars(method).items()
        if name not in FROM_TRAINER and _is_plain(value)
    }


def _is_plain(value: Any) -> bool:
    """Whether an attribute is state, tensors and plain values; parameters are the network's."""
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(_is_plain(item) for item in value)
    if isinstance(value, Tensor):
        return not isinstance(value, nn.Parameter)
    return value is None or isinstance(value, bool | int | float | str)
