"""Recorded comparisons: the paper's table to compare them with, and the commands to repeat them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from ..runs.plan.comparison import EXTENDED
from ..runs.plan.experiment import Experiment, Part
from ..runs.run import Run
from .overlay import COMPARISON

COMPARED = "All methods ran with their defaults or the given settings, without a search."


def paper_name(experiment: Experiment) -> str:
    """The name under which the paper's numbers are looked up.

    A comparison is shown with the paper's numbers only if it ran under the paper's conditions.
    """
    if experiment.command != "compare":
        return experiment.name
    default = all(
        part.orders == ["listed"]
        and not _conditions(part)
        and not any(data.options for data in part.data)
        for part in experiment.parts
    )
    return COMPARISON if default else ""


def compare_commands(experiment: Experiment, options: str = "") -> list[str]:
    """The commands that repeat a comparison: one per group of methods with equal seeds and orders.

    `options` are added to each command.
    """
    return [_command(experiment, part) + options for part in experiment.parts]


def _command(experiment: Experiment, part: Part) -> str:
    seeds = (part.search or experiment.search).run_seeds
    data = part.data[0]
    words = ["farshore", "compare", data.benchmark, "--methods", ",".join(part.methods)]
    # The seeds of a comparison count from 0.
    words += ["--seeds", str(max(seeds) + 1), "--orders", ",".join(part.orders)]
    for name, value in _conditions(part).items():
        if name not in ("settings", "network_settings"):
            words += [f"--{name.replace('_', '-')}", str(value)]
    words += assignments("--option", data.options)
    words += assignments("--network-set", part.network_settings)
    words += ["--scenario-seed", str(experiment.scenario_seed)] if experiment.scenario_seed else []
    words += assignments("--set", part.settings)
    return shlex.join(words)


def run_options(run: Run) -> list[str]:
    """The options of a run's benchmark, network and method, as typed on the command line."""
    return [
        *assignments("--option", run.options),
        *assignments("--network-set", run.network_settings),
        *assignments("--set", run.settings),
    ]


def assignments(flag: str, values: Mapping[str, object]) -> list[str]:
    """`FLAG name=value` for each value; lists are joined by commas."""
    texts = {
        name: ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        for name, value in values.items()
    }
    return [word for name, text in texts.items() for word in (flag, f"{name}={text}")]


def _conditions(part: Part) -> dict[str, object]:
    """The conditions of a part that differ from the defaults."""
    return part.model_dump(mode="json", exclude={"benchmarks", *EXTENDED}, exclude_defaults=True)
