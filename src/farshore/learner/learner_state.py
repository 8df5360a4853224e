"""What the saved state of a learner looks like, and how it is checked before anything is built."""

import math
from collections.abc import Mapping
from typing import Any

import torch

from ..base.forms import NAMES, FormError, ListOf, MapOf, Maybe, check_form, check_keys
from ..data.domain import RowForm
from ..data.images.image_folder import ImagePreprocessing
from ..data.preprocessing import Preprocessing

# The arguments that recreate the learner.
CONFIG: dict[str, Any] = {
    **dict.fromkeys(("method", "metric", "preprocess", "task"), ""),
    **dict.fromkeys(("memory", "seed"), 0),
    **dict.fromkeys(("network", "profile"), Maybe("")),
    **dict.fromkeys(("settings", "network_settings"), MapOf(None)),
    **{"classes": Maybe(ListOf(None)), "weighted": Maybe(True), "text": NAMES},
}
STATE = dict.fromkeys(("config", "domains", "shape", "dtype", "preprocessing", "system"))
# The weights of the frozen part, if there is one.
FROZEN = "frozen"
# What a label is; older states, all of classes, do not say.
TASK = "task"
LARGEST_INPUT = 1 << 28


def full_config(state: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a stored learner; before there were texts or numbers, it named none."""
    return {"text": [], "task": "auto", **state["config"]}


def check_state(state: Mapping[str, Any]) -> None:
    """Raise a FormError unless the state has the parts of a learner and a list of domains."""
    frozen = {FROZEN: None} if FROZEN in state else {}
    check_keys(state, STATE | frozen | ({TASK: None} if TASK in state else {}), "the state")
    check_form(full_config(state), CONFIG, "config")
    check_form(state["domains"], ListOf({"name": "", "rows": 0, "steps": 0}), "domains")


def stored_form(
    state: Mapping[str, Any], preprocessing: Preprocessing | None, *, own_network: bool
) -> RowForm:
    """Shape and type of a raw row; a FormError if no row has them, or the preprocessing differs.

    own_network: whether the network is a user's own, which may take bytes of any kind; other
        networks take them for images only.
    """
    shape, dtype = _check_shape(state["shape"]), state["dtype"]
    if dtype not in ("float32", "uint8"):
        raise FormError(f"dtype is {str(dtype)[:40]!r}, not float32 or uint8")
    if dtype == "uint8" and len(shape) != 3 and not own_network:
        raise FormError("dtype is uint8, but the rows are not images")
    _check_preprocessing(preprocessing, shape, dtype)
    return shape, getattr(torch, dtype)


def _check_shape(shape: Any) -> tuple[int, ...]:
    """The shape of an input, if it is one that rows can have."""
    check_form(shape, ListOf(0), "shape")
    if not 1 <= len(shape) <= 4 or not all(length >= 1 for length in shape):
        raise FormError(f"shape is {list(shape)[:8]}, which no row has")
    if math.prod(shape) > LARGEST_INPUT:
        raise FormError(f"shape is {list(shape)}, which is too large for a row")
    return tuple(shape)


def _check_preprocessing(
    preprocessing: Preprocessing | None, shape: tuple[int, ...], dtype: str
) -> None:
    """Raise a FormError unless the preprocessing gives inputs of this shape and type."""
    images = isinstance(preprocessing, ImagePreprocessing)
    if preprocessing is not None and dtype != ("uint8" if images else "float32"):
        raise FormError(f"dtype is {dtype}, which the preprocessing does not give")
    if isinstance(preprocessing, ImagePreprocessing):
        made: tuple[int, ...] = (preprocessing.channels, preprocessing.size, preprocessing.size)
    elif preprocessing is not None:
        made = (len(preprocessing.features),)
    else:
        return
    if made != shape:
        raise FormError(f"preprocessing gives rows of shape {list(made)}, not {list(shape)}")
