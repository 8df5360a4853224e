"""Where the numbers come from: versions, hardware, data, weights, search and selection, and the
commands that give them again.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from ..benchmarks import BENCHMARKS
from ..errors import install
from ..plan.experiment import Experiment
from ..protocol import Result, Run
from .compared import compare_commands, run_options
from .names import several
from .table import Provenance

SHOWN = 8


@dataclass(frozen=True)
class Used:
    """A result that a table is made of, and what was written down beside it. `alone`: it belongs
    to no experiment.
    """

    result: Result
    config: Mapping[str, Any]
    alone: bool = False


def provenance(used: Sequence[Used], experiments: Mapping[str, Experiment]) -> Provenance:
    """Facts of all results together; a fact that differs between them lists its values with
    their counts.
    """
    results = [each.result for each in used]
    facts: list[tuple[str, str]] = [("runs", _runs(results))] if results else []
    for key, label in (
        ("farshore", "version of farshore"),
        ("torch", "PyTorch"),
        ("python", "Python"),
        ("machine", "machine"),
    ):
        facts.append(
            (label, _counted(result.versions.get(key, "not recorded") for result in results))
        )
    facts += [
        ("commit", _counted(str(each.config.get("commit") or "not recorded") for each in used)),
        (
            "processor",
            _counted(result.hardware.get("processor", "not recorded") for result in results),
        ),
        ("GPU", _counted(result.hardware["gpu"] for result in results if "gpu" in result.hardware)),
        ("device", _counted(result.run.device for result in results)),
        (
            "threads per run",
            _counted(result.versions.get("threads", "not recorded") for result in results),
        ),
        ("results versions", _results_versions(used)),
        ("targets opened", _period(results)),
    ]
    facts += [(f"experiment {stem}", _search(found)) for stem, found in experiments.items()]
    facts += _data(results)
    return Provenance(
        tuple((what, value) for what, value in facts if value),
        tuple(commands(used, experiments)),
    )


# How a run may end otherwise than with a score on the target.
ENDS = {"diverged": "diverged", "pruned": "stopped early by the search"}


# Where the commands put what they give again.
AGAIN = "runs-again"


def commands(used: Sequence[Used], experiments: Mapping[str, Experiment]) -> list[str]:
    """A block to paste that carries everything out again and builds the same tables."""
    results = [each.result for each in used]
    lines = [
        f"{install('report')}  # in a checkout of farshore {version}"
        for version in sorted({result.versions["farshore"] for result in results})[-1:]
    ]
    lines += dict.fromkeys(_prepare(result.run) for result in results if _prepare(result.run))
    device = (
        " --device cuda" if any(result.run.device.startswith("cuda") for result in results) else ""
    )
    swept = {stem: each for stem, each in experiments.items() if each.command == "sweep"}
    lines += _sweep_commands(swept, device)
    for each in experiments.values():
        if each.command == "compare":
            lines += compare_commands(each, f" --runs {AGAIN}{device}")
    unrecorded = sorted(_unrecorded(used, {each.name for each in experiments.values()}))
    lines += [
        f"farshore sweep experiments/{name}.yaml --runs {AGAIN}{device}  # this file is not "
        "recorded with the runs"
        for name in unrecorded
    ]
    lines += [run_command(each.result.run) for each in used if each.alone]
    return [*lines, f"farshore report {AGAIN} -o report-again.html"] if results else lines


def _sweep_commands(experiments: Mapping[str, Experiment], device: str) -> list[str]:
    lines = []
    for stem, experiment in experiments.items():
        folder = _folder(stem, experiment)
        text = yaml.safe_dump(
            experiment.model_dump(mode="json", exclude_defaults=True),
            sort_keys=False,
            allow_unicode=True,
            width=120,
        )
        lines += [
            f"mkdir -p {folder}",
            f"cat > {folder}/{experiment.name}.yaml <<'END'",
            *text.rstrip().splitlines(),
            "END",
        ]
    # Those that others depend on come first.
    for stem, experiment in sorted(experiments.items(), key=lambda item: _depth(item[1])):
        file = f"{_folder(stem, experiment)}/{experiment.name}.yaml"
        lines.append(f"farshore sweep {file} --runs {AGAIN}{device if experiment.parts else ''}")
    return lines


def _folder(stem: str, experiment: Experiment) -> str:
    return "again" + stem.removeprefix(experiment.name).replace(".", "-")


def run_command(run: Run) -> str:
    """What to type for a single run, with every option that decides it."""
    words = ["farshore", "run", run.benchmark, run.method, "--seed", str(run.seed)]
    asked = {"target", "order", "steps", "memory", "network", "scenario_seed", "device"}
    given = run.model_dump(mode="json", include=asked, exclude_defaults=True)
    for name, value in given.items():
        text = ",".join(value) if isinstance(value, list) else str(value)
        words += [f"--{name.replace('_', '-')}", text]
    return shlex.join([*words, *run_options(run), "--out", AGAIN])


def mixed_versions(used: Sequence[Used]) -> list[str]:
    """A problem where results of several versions are in one report."""
    found = Counter(each.result.versions.get("farshore", "not recorded") for each in used)
    if len(found) < 2:
        return []
    counts = ", ".join(
        f"{version}: {several(count, 'run')}" for version, count in sorted(found.items())
    )
    return [
        f"The results come from several versions of farshore ({counts}), and numbers may differ "
        "for that reason alone; repeat the older runs."
    ]


def _runs(results: Sequence[Result]) -> str:
    counts = {
        words: sum(result.status == status for result in results) for status, words in ENDS.items()
    }
    hours = sum(result.seconds["total"] for result in results) / 3600
    return ", ".join(
        [
            f"{len(results)}",
            *(f"{count} of them {words}" for words, count in counts.items() if count),
        ]
    ) + (f"; {hours:.2f} hours together")


def _search(found: Experiment) -> str:
    if found.reads:
        return f"a table of the selected runs of {' and '.join(found.reads)}"
    settings = {part.settings_from for part in found.parts} - {None}
    if settings:
        return (
            f"settings from {', '.join(sorted(str(each) for each in settings))}; scenario "
            f"seed {found.scenario_seed}"
        )
    search = found.search
    if found.command == "compare":
        return (
            f"a comparison without a search, run seeds {_seeds(found)}, scenario seed "
            f"{found.scenario_seed}"
        )
    return (
        f"{search.trials} trials for each of {len(search.run_seeds)} seeds, search seed "
        f"{search.seed}, "
        f"scenario seed {found.scenario_seed}, "
        f"selected by {found.selection}"
    )


def _seeds(comparison: Experiment) -> str:
    searches = [part.search or comparison.search for part in comparison.parts]
    return " and ".join(dict.fromkeys(" ".join(map(str, search.run_seeds)) for search in searches))


def _data(results: Sequence[Result]) -> list[tuple[str, str]]:
    """By data set: what its prepared form is and a checksum over it; then what its results note:
    counts, weights, corruptions.
    """
    facts = []
    by_benchmark: dict[str, list[Result]] = {}
    for result in results:
        by_benchmark.setdefault(result.title, []).append(result)
    for benchmark, found in by_benchmark.items():
        sets = _counted(_set(result) for result in found)
        corruptions = _counted(
            f"{result.data['corruptions']} corruptions"
            for result in found
            if "corruptions" in result.data
        )
        shared = set(found[0].notes).intersection(*(result.notes for result in found))
        texts = [sets, *filter(None, [corruptions]), *sorted(shared)]
        facts.append((f"data of {benchmark}", "; ".join(texts)))
    return facts


def _set(result: Result) -> str:
    if not result.data:
        return "manifest not recorded"
    digest = result.data.get("sha256")
    return result.data["set"] + (
        f" (sha256 {digest[:16]})" if digest else f" ({result.data.get('origin', '')})"
    )


def _results_versions(used: Sequence[Used]) -> str:
    found: dict[str, set[int]] = {}
    for each in used:
        named = (
            each.config.get("named_by", {}).get("results_versions", {})
            if isinstance(each.config.get("named_by"), Mapping)
            else {}
        )
        for kind, name in (
            ("method", each.result.run.method),
            ("benchmark", each.result.run.benchmark),
        ):
            if kind in named:
                found.setdefault(name, set()).add(int(named[kind]))
    if not found:
        return ""
    first = {name: versions for name, versions in found.items() if versions != {1}}
    return (
        "all 1"
        if not first
        else "; ".join(f"{name} {sorted(versions)}" for name, versions in first.items())
        + "; all others 1"
    )


def _period(results: Sequence[Result]) -> str:
    times = sorted(result.target.opened_at for result in results if result.target is not None)
    return f"{times[0]} to {times[-1]}" if times else ""


def _counted(values: Iterable[str]) -> str:
    found = Counter(values).most_common()
    if len(found) < 2:
        return found[0][0] if found else ""
    more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return "; ".join(f"{value} ({several(count, 'run')})" for value, count in found[:SHOWN]) + more


def _unrecorded(used: Sequence[Used], recorded: set[str]) -> set[str]:
    """Experiments that runs name and the folder does not hold."""
    named = (each.config.get("planned", {}) for each in used)
    return {
        str(place["experiment"])
        for place in named
        if isinstance(place, Mapping) and place.get("experiment")
    } - recorded


def _depth(experiment: Experiment) -> int:
    """0 for what needs no other experiment."""
    return int(
        bool(experiment.reads) or any(part.settings_from is not None for part in experiment.parts)
    )


def _prepare(run: Run) -> str:
    """The command that gets the data of a run, if one is needed."""
    if run.benchmark not in BENCHMARKS or BENCHMARKS.get(run.benchmark).needs_preparation() is None:
        return ""
    return f"farshore prepare {run.benchmark}"


def _text(value: Any) -> str:
    """A value as the command line takes it."""
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
