"""Where the numbers come from: versions, hardware, data, search, and commands to reproduce them."""

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap
from shlex import quote
from typing import Any

import pandas as pd

from ..benchmarks import BENCHMARKS
from ..errors import INSTALL
from ..results.frame import ALONE
from ..runs.plan.bounded_yaml import write_yaml
from ..runs.plan.commands import compare_commands, run_words
from ..runs.plan.experiment import Experiment
from ..runs.result import Result
from ..runs.run import Run
from ..tasks.metrics import several

SHOWN = 8
UNKNOWN = "not recorded"
# What each run says of itself: the name of the fact, and how it is read from result and config.
FACTS: dict[str, Callable[[Result, Mapping[str, Any]], str]] = {
    "version of farshore": lambda result, _: result.versions.get("farshore", UNKNOWN),
    "PyTorch": lambda result, _: result.versions.get("torch", UNKNOWN),
    "Python": lambda result, _: result.versions.get("python", UNKNOWN),
    "machine": lambda result, _: result.versions.get("machine", UNKNOWN),
    "commit": lambda _, config: str(config.get("commit") or UNKNOWN),
    "processor": lambda result, _: result.hardware.get("processor", UNKNOWN),
    "GPU": lambda result, _: result.hardware.get("gpu", ""),
    "device": lambda result, _: result.run.device,
    "threads per run": lambda result, _: result.versions.get("threads", UNKNOWN),
}


@dataclass(frozen=True)
class Provenance:
    """Where the numbers come from: (name, value) pairs, and commands that reproduce the tables."""

    facts: tuple[tuple[str, str], ...] = ()
    commands: tuple[str, ...] = ()


def finished_runs(frame: pd.DataFrame) -> pd.DataFrame:
    """Every run of a frame that has a result, once."""
    return frame[frame["result"].notna()].drop_duplicates("run")


def provenance(frame: pd.DataFrame, experiments: Mapping[str, Experiment]) -> Provenance:
    """The facts about all results; a fact that differs between them lists values with counts."""
    runs = finished_runs(frame)
    results, configs = list(runs["result"]), list(runs["config"])
    both = list(zip(results, configs, strict=True))
    facts = {"runs": _runs(results)} if results else {}
    facts |= {name: _counted(filter(None, starmap(read, both))) for name, read in FACTS.items()}
    times = sorted(result.target.opened_at for result in results if result.target is not None)
    period = f"{times[0]} to {times[-1]}" if times else ""
    facts |= {"results versions": _results_versions(both), "targets opened": period}
    facts |= {f"experiment {stem}": _search(each) for stem, each in experiments.items()}
    facts |= _data(results)
    known = tuple((what, value) for what, value in facts.items() if value)
    return Provenance(known, tuple(commands(runs, experiments)))


# The statuses of runs that ended without a score on the target.
ENDS = {"diverged": "diverged", "pruned": "stopped early by the search"}
# The folder into which the commands write their runs.
AGAIN = "runs-again"


def commands(runs: pd.DataFrame, experiments: Mapping[str, Experiment]) -> list[str]:
    """Commands to paste that repeat all finished runs and build the same tables."""
    results, alone = list(runs["result"]), runs[runs["experiment"] == ALONE]
    lines = []
    if results:
        newest = max(result.versions.get("farshore", UNKNOWN) for result in results)
        # Behind a #, on one line, so that nothing in a text from a result is a command.
        comment = " ".join("".join(c if c.isprintable() else " " for c in newest).split())[:60]
        lines = [f"{INSTALL.format('report')}  # in a checkout of farshore {comment}"]
    for name in dict.fromkeys(result.run.benchmark for result in results):
        if name in BENCHMARKS and BENCHMARKS.get(name).set_name is not None:
            lines.append(shlex.join(["farshore", "prepare", name]))
    device = " --device cuda" if any(each.run.device.startswith("cuda") for each in results) else ""
    swept = {stem: item for stem, item in experiments.items() if item.command == "sweep"}
    lines += _sweep_commands(swept, device)
    for experiment in experiments.values():
        if experiment.command == "compare":
            lines += compare_commands(experiment, f" --runs {AGAIN}{device}")
    named = {str(config.get("planned", {}).get("experiment") or "") for config in runs["config"]}
    recorded = {experiment.name for experiment in experiments.values()}
    lines += [
        f"farshore sweep {quote(f'reproduction/experiments/{name}.yaml')} --runs {AGAIN}{device}"
        "  # this file is not recorded with the runs"
        for name in sorted(named - recorded - {""})
    ]
    lines += [run_command(result.run) for result in alone["result"]]
    return [*lines, f"farshore report {AGAIN} -o report-again.html"] if results else lines


def _sweep_commands(experiments: Mapping[str, Experiment], device: str) -> list[str]:
    lines = []
    for stem, experiment in experiments.items():
        folder = _folder(stem, experiment)
        contents = write_yaml(experiment.model_dump(mode="json", exclude_defaults=True))
        text = contents.rstrip().split("\n")
        end = "END"
        while end in text:  # no line of the file may end it early
            end += "_"
        file = quote(f"{folder}/{experiment.name}.yaml")
        lines += [f"mkdir -p {quote(folder)}", f"cat > {file} <<'{end}'", *text, end]

    def needs_others(item: tuple[str, Experiment]) -> bool:
        taken = any(part.settings_from is not None for part in item[1].parts)
        return taken or bool(item[1].reads)

    for stem, experiment in sorted(experiments.items(), key=needs_others):
        file = quote(f"{_folder(stem, experiment)}/{experiment.name}.yaml")
        lines.append(f"farshore sweep {file} --runs {AGAIN}{device if experiment.parts else ''}")
    return lines


def _folder(stem: str, experiment: Experiment) -> str:
    return "again" + stem.removeprefix(experiment.name).replace(".", "-")


def run_command(run: Run) -> str:
    """The command that repeats a single run, with every option that affects it."""
    data, method, *rest = run_words(run)
    words = ["farshore", "run", data, method, "--seed", str(run.seed)]
    options = {"target", "order", "steps", "memory", "network", "scenario_seed", "device"}
    changed = run.model_dump(mode="json", include=options, exclude_defaults=True)
    for name, value in changed.items():
        text = ",".join(value) if isinstance(value, list) else str(value)
        words += [f"--{name.replace('_', '-')}", text]
    return shlex.join([*words, *rest, "--out", AGAIN])


def mixed_versions(frame: pd.DataFrame) -> list[str]:
    """A problem if the results come from several versions of farshore."""
    results = finished_runs(frame)["result"]
    versions = Counter(result.versions.get("farshore", UNKNOWN) for result in results)
    if len(versions) < 2:
        return []
    counted = sorted(versions.items())
    counts = ", ".join(f"{version}: {several(count, 'run')}" for version, count in counted)
    return [
        f"The results come from several versions of farshore ({counts}), and numbers may differ "
        "for that reason alone; repeat the older runs."
    ]


def _runs(results: Sequence[Result]) -> str:
    statuses = Counter[str](result.status for result in results)
    counts = {words: statuses[status] for status, words in ENDS.items()}
    hours = sum(result.seconds["total"] for result in results) / 3600
    ended = [f"{count} of them {words}" for words, count in counts.items() if count]
    return f"{', '.join([str(len(results)), *ended])}; {hours:.2f} hours together"


def _search(experiment: Experiment) -> str:
    if experiment.reads:
        return f"a table of the selected runs of {' and '.join(experiment.reads)}"
    sources = {part.settings_from for part in experiment.parts} - {None}
    if sources:
        names = ", ".join(sorted(map(str, sources)))
        return f"settings from {names}; scenario seed {experiment.scenario_seed}"
    search = experiment.search
    if experiment.command == "compare":
        searches = [part.search or experiment.search for part in experiment.parts]
        lists = dict.fromkeys(" ".join(map(str, search.run_seeds)) for search in searches)
        seeds = f"run seeds {' and '.join(lists)}, scenario seed {experiment.scenario_seed}"
        return f"a comparison without a search, {seeds}"
    return (
        f"{search.trials} trials for each of {len(search.run_seeds)} seeds, search seed "
        f"{search.seed}, scenario seed {experiment.scenario_seed}, "
        f"selected by {experiment.selection}"
    )


def _data(results: Sequence[Result]) -> dict[str, str]:
    """One fact per data set: its prepared form with a checksum, corruptions, and shared notes."""
    facts = {}
    for benchmark in dict.fromkeys(result.title for result in results):
        of_benchmark = [result for result in results if result.title == benchmark]
        data = _counted(_data_version(result) for result in of_benchmark)
        made = [result.data.get("corruptions") for result in of_benchmark]
        corruptions = _counted(f"{each} corruptions" for each in made if each is not None)
        shared = set(of_benchmark[0].notes).intersection(*(result.notes for result in of_benchmark))
        texts = [data, *filter(None, [corruptions]), *sorted(shared)]
        facts[f"data of {benchmark}"] = "; ".join(texts)
    return facts


def _data_version(result: Result) -> str:
    if not result.data:
        return "manifest not recorded"
    digest = result.data.get("sha256")
    more = f"sha256 {digest[:16]}" if digest else result.data.get("origin", "")
    return f"{result.data['set']} ({more})"


def _results_versions(runs: Sequence[tuple[Result, Mapping[str, Any]]]) -> str:
    by_name: dict[str, set[int]] = {}
    for result, config in runs:
        recorded = config.get("named_by", {}).get("results_versions", {})
        names = {"method": result.run.method, "benchmark": result.run.benchmark}
        for kind in filter(recorded.__contains__, names):
            by_name.setdefault(names[kind], set()).add(recorded[kind])
    texts = [f"{name} {sorted(found)}" for name, found in by_name.items() if found != {1}]
    return "; ".join([*texts, "all others 1" if texts else "all 1"]) if by_name else ""


def _counted(values: Iterable[str]) -> str:
    """The only value, or the most frequent values with their counts."""
    counts = Counter(values).most_common()
    if len(counts) < 2:
        return counts[0][0] if counts else ""
    more = f"; and {len(counts) - SHOWN} more" if len(counts) > SHOWN else ""
    return "; ".join(f"{value} ({several(count, 'run')})" for value, count in counts[:SHOWN]) + more
