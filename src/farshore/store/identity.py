"""The name of a run: a hash of all that decides its numbers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from .. import catalog
from ..benchmarks import BENCHMARKS
from ..data.scenario import arrange
from ..protocol import Run
from ..settings import RunSettings


def canonical(run: Run) -> Run:
    """The same run in one spelling, however it was asked for.

    The usual target and the listed order are left out, and settings have the types of their fields
    (a command line gives texts). A target or an order that the benchmark does not have is refused.
    """
    update: dict[str, Any] = {"settings": typed_settings(run.method, run.settings)}
    if run.data is None:
        kind = BENCHMARKS.get(run.benchmark)
        target = run.target or kind.default_target
        domains = [name for name in kind.domains if name not in run.left_out]
        sources = arrange(domains, target, run.order)
        listed = [name for name in kind.listed(target) if name not in run.left_out]
        update["target"] = None if target == kind.default_target else target
        update["order"] = None if sources == listed else run.order
    return run.model_copy(update=update)


def description(run: Run) -> dict[str, Any]:
    """What the name is made of: scenario, method, settings, seeds and the two versions. Not the
    device, nor the commit, nor how the run was spelled.

    Values that are at their defaults are left out, so that a new field of a run renames no old
    one.
    """
    run = canonical(run)
    described = run.model_dump(mode="json", exclude_defaults=True, exclude={"device"})
    of_benchmark = 1 if run.data is not None else BENCHMARKS.get(run.benchmark).results_version
    return described | {
        "results_versions": {
            "method": catalog.find(run.method).results_version,
            "benchmark": of_benchmark,
        }
    }


def run_name(run: Run) -> str:
    """Sixteen hexadecimal digits."""
    return hashlib.sha256(json.dumps(description(run), sort_keys=True).encode()).hexdigest()[:16]


def typed_settings(method: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with the types of their fields; what cannot be read stays as it is, and is
    refused when the run begins.
    """
    typed = dict(settings)
    for model in (catalog.find(method).Settings, RunSettings):
        values = {name: value for name, value in settings.items() if name in model.model_fields}
        try:
            read = model.model_validate(values)
        except ValidationError:
            continue
        typed |= {name: getattr(read, name) for name in values}
    return typed
