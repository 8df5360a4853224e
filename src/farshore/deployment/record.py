"""The form of a model's record of sites: damaged or hostile values are refused before use."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch

from ..base.forms import NAMES, FormError, Like, ListOf, MapOf, Maybe, check_form, check_keys
from ..learner.learner import Learner
from ..tasks.calibration import TEMPERATURES
from .arrive import SCORES
from .held_out import check_held_out, check_reliability

KEYS = (
    *("columns", "sites", "sides", "moments", "held_out", "reliability", "calibration"),
    "forgotten",
)
# What a measured site has; models of older versions have other numbers beside.
ARRIVAL = dict.fromkeys(("rows", "known", "accuracy", "confidence"), 0.0)
BESIDE = ("looks", "atc", "distance", *SCORES)
PROFILE = dict.fromkeys(("rows", "missing", "unknown", "varying"), 0.0)
FACTS: dict[str, Any] = {
    **{"when": "", "rows": 0, "versions": MapOf(""), "command": "", "profile": PROFILE},
    **dict.fromkeys(("scores", "before", "after", "arrival"), MapOf(0.0)),
    **{"classes": MapOf(0), "agreement": Maybe(0.0), "promised": Maybe(0.0)},
}
CALIBRATION = {"temperature": 0.0, "offsets": ListOf(0.0), "rows": 0, "labelled": True, "when": ""}
# No number of rows, share or distance of a real site is larger.
LARGEST = 1e12


def check_record(record: Mapping[str, Any], learner: Learner) -> None:
    """Raise a FormError unless a record of sites is one of this learner's."""
    if not record:
        return
    check_keys(record, dict.fromkeys(KEYS), "the record")
    check_form(record["forgotten"], NAMES, "forgotten")
    check_form(record["columns"], MapOf(None), "columns")
    check_form(record["sites"], MapOf(FACTS), "sites")
    for name, facts in record["sites"].items():
        _check_facts(facts, f"sites.{name}")
    check_form(record["sides"], MapOf(True), "sides")
    check_form(record["moments"], MapOf(None), "moments")
    check_held_out(record["held_out"], learner)
    check_reliability(record["reliability"])
    _check_calibration(record["calibration"], learner)
    if record["moments"] and learner.shape is not None:
        _check_moments(record["moments"], learner)


def _check_facts(facts: Mapping[str, Any], where: str) -> None:
    if "error" in facts["arrival"]:
        names = ("rows", "known", "error", *SCORES, *({"guess"} & facts["arrival"].keys()))
        check_form(facts["arrival"], dict.fromkeys(names, 0.0), f"{where}.arrival")
        _check_quantiles(facts["arrival"], where)
    elif facts["arrival"]:
        numbers = {name: 0.0 for name in BESIDE if name in facts["arrival"]}
        check_form(facts["arrival"], ARRIVAL | numbers, f"{where}.arrival")
        _check_quantiles(facts["arrival"], where)
    for part in ("arrival", "profile", "classes"):
        for name, value in facts[part].items():
            if not 0 <= value <= LARGEST:
                raise FormError(f"{where}.{part}.{name} is {value}, which no site has")
    shares = ("accuracy", "confidence", "looks", *SCORES)
    for name in shares if "error" not in facts["arrival"] else ():
        if not facts["arrival"].get(name, 0) <= 1:
            raise FormError(f"{where}.arrival.{name} is not a share")


def _check_quantiles(arrival: Mapping[str, float], where: str) -> None:
    scores = [arrival[name] for name in SCORES if name in arrival]
    if len(scores) not in (0, len(SCORES)) or scores != sorted(scores):
        raise FormError(f"{where}.arrival has row scores that are no quantiles")


def _check_calibration(stored: Any, learner: Learner) -> None:
    spread = {"spread": 0.0} if stored is not None and "spread" in stored else {}
    check_form(stored, Maybe(CALIBRATION | spread), "calibration")
    if stored is None:
        return
    if not 0 < stored.get("spread", 1.0) <= LARGEST:
        raise FormError("calibration.spread is not a positive number")
    low, high = TEMPERATURES
    if not 0.99 * low <= stored["temperature"] <= 1.01 * high:
        raise FormError(f"calibration.temperature is not from {low} to {high}")
    if len(stored["offsets"]) != learner.known_task.outputs:
        raise FormError("calibration.offsets are not those of the classes")
    if any(abs(offset) > 100 for offset in stored["offsets"]):
        raise FormError("calibration.offsets are too large")


def _check_moments(stored: Any, learner: Learner) -> None:
    shape, dtype = learner.inside_form
    width = learner.system.features(torch.zeros(1, *shape, dtype=dtype)).shape[1]
    number = partial(Like, dtype=torch.float32, finite=True)
    form = {"mean": number((width,)), "precision": number((width, width)), "limit": number(())}
    check_form(stored, MapOf(form), "moments")
