"""Recorded comparisons in a report: which of the paper's tables is beside them, and the command
that was typed.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from ..plan.comparison import EXTENDED
from ..plan.experiment import Experiment, Part

COMPARED = "All methods ran at their defaults or at the settings given, without a search."


def paper_name(experiment: Experiment) -> str:
    """The name under which the paper's numbers are looked for. A comparison is held against the
    paper only under the paper's own conditions.
    """
    if experiment.command != "compare":
        return experiment.name
    usual = all(part.orders == ["listed"] and not _given(part) for part in experiment.parts)
    return "compare" if usual else ""


def compare_commands(experiment: Experiment, options: str = "") -> list[str]:
    """What to type for the same comparison: one line for each group of methods with equal seeds
    and orders. `options` are added to each.
    """
    return [_command(experiment, part) + options for part in experiment.parts]


def _command(experiment: Experiment, part: Part) -> str:
    seeds = (part.search or experiment.search).run_seeds
    # Seeds count from 0; those of one comparison always do.
    words = ["farshore", "compare", *part.benchmarks, "--methods", ",".join(part.methods)]
    words += ["--seeds", str(max(seeds) + 1), "--orders", ",".join(part.orders)]
    for name, value in _given(part).items():
        if name != "settings":
            words += [f"--{name.replace('_', '-')}", str(value)]
    words += ["--scenario-seed", str(experiment.scenario_seed)] if experiment.scenario_seed else []
    words += set_options(part.settings.items())
    return shlex.join(words)


def set_options(settings: Iterable[tuple[str, object]]) -> list[str]:
    """Settings as a command line gives them."""
    return [word for name, value in settings for word in ("--set", f"{name}={value}")]


def _given(part: Part) -> dict[str, object]:
    """The conditions of a part that are not the usual ones."""
    return part.model_dump(mode="json", exclude={"benchmarks", *EXTENDED}, exclude_defaults=True)
