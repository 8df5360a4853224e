"""The name of a run: a hash of everything that determines its numbers."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from ...benchmarks import BENCHMARKS, make_benchmark
from ...benchmarks.benchmark import Benchmark
from ...data.scenario import arrange
from ...networks.build import network_origin
from ...networks.pretrained.own_module import is_own_module
from ...settings import RunSettings
from .. import catalog
from ..run import NormalRun, Run


@dataclass(frozen=True)
class NamedRun:
    """A run in its normal form, its name, and what the name is made of."""

    run: NormalRun
    name: str
    described: Mapping[str, Any]

    def on(self, device: str) -> "NamedRun":
        """The same run on another device, which does not count for the name."""
        return replace(self, run=NormalRun(self.run.model_copy(update={"device": device})))


def name_run(run: NormalRun, benchmark: Benchmark | None = None) -> NamedRun:
    """The run in canonical form, however it was written, and its name: 16 hexadecimal digits.

    benchmark: the run's own, if there is one at hand: it need not read its data again.
    """
    benchmark = benchmark or make_benchmark(run.benchmark, run.options)
    run = _canonical(run, benchmark)
    described = _describe(run, benchmark)
    digits = hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()
    return NamedRun(run, digits[:16], described)


def run_name(run: Run) -> str:
    """The name of a run."""
    return name_run(run.normal()).name


def _canonical(run: NormalRun, benchmark: Benchmark) -> NormalRun:
    """The run without a target or order that are usual; unknown ones are refused."""
    usual = benchmark.usual_target()
    if run.order is None and (run.target is None or benchmark.own_data):
        return run if run.target != usual else run.model_copy(update={"target": None})
    target = benchmark.choose_target(run.target)
    listed = [name for name in benchmark.listed(target) if name not in run.left_out]
    sources = arrange([*listed, target], target, run.order)
    order = None if sources == listed else run.order
    return run.model_copy(update={"target": None if target == usual else target, "order": order})


def _describe(run: NormalRun, benchmark: Benchmark) -> dict[str, Any]:
    """What the name is made of: scenario, method, settings, seeds and the two results versions.

    Device, commit and the way the run was written do not count. Default values are left out, so
    that a new field does not rename old runs. Own data are described by the contents of the files,
    not by their location.
    """
    described = run.model_dump(mode="json", exclude_defaults=True, exclude={"device", "options"})
    paths = benchmark.path_options
    options = {name: value for name, value in run.options.items() if name not in paths}
    more = {"options": options, "data": benchmark.data_digest()}
    described |= _weights(run) | {name: value for name, value in more.items() if value}
    method = catalog.find(run.method).results_version
    versions = {"method": method, "benchmark": benchmark.results_version}
    return described | {"results_versions": versions}


def _weights(run: Run) -> dict[str, Any]:
    """The fields of the network, in which files count by their contents, not by their location."""
    if run.network is None and "weights" not in run.network_settings:
        return {}
    name = run.network or BENCHMARKS.get(run.benchmark).usual_network()
    origin = network_origin(name, run.network_settings)
    if origin is None:
        return {}
    settings = {key: value for key, value in run.network_settings.items() if key != "weights"}
    named = {} if is_own_module(name) else {"network": name}
    return {"network": "own", **named, "network_settings": settings, "weights": origin}


def typed_settings(method: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with their fields' types; invalid values are refused when the run starts."""
    typed = dict(settings)
    for model in (catalog.find(method).Settings, RunSettings):
        values = {name: value for name, value in settings.items() if name in model.model_fields}
        try:
            validated = model.model_validate(values)
        except ValidationError:
            continue
        typed |= {name: getattr(validated, name) for name in values}
    return typed
