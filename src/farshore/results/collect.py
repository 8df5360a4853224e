"""All runs of a folder, of one run in it, or of one recorded experiment, as one frame.

Recorded experiments are planned again, so that what was planned and has not run is known. Runs that
belong to none of them keep the name of the experiment that they name themselves.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from ..base.inert import inert
from ..benchmarks import BENCHMARKS
from ..errors import FarshoreError
from ..runs import catalog
from ..runs.plan.experiment import Experiment
from ..runs.plan.plan import Plan, make_plan
from ..runs.plan.select import select_methods
from ..runs.result import Result
from ..runs.store.store import ReadingStore, is_run_folder, recorded_experiments
from ..tasks.metrics import several
from .frame import ALONE, frame_of_plan, frame_of_results, row_name
from .select import select

WRITERS = "that `farshore run --out`, `farshore compare` or `farshore sweep` wrote into"


@dataclass(frozen=True)
class Collected:
    """The runs of a folder, with the plans behind them.

    frame: all rows, each under the name of its recorded experiment, selected by its rule.
    plans: by the name under which an experiment is recorded.
    problems: runs that cannot be read, experiments that cannot be planned, versions that differ.
    only: the experiment that was asked for; empty for all of them.
    """

    folder: Path
    frame: pd.DataFrame
    plans: Mapping[str, Plan] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    only: str = ""

    @property
    def names(self) -> list[str]:
        """The recorded experiments, then those that runs without a plan name."""
        names = dict.fromkeys([*self.plans, *self.frame["experiment"]])
        return [name for name in names if not self.only or name == self.only]

    def shown(self) -> pd.DataFrame:
        """The rows of all experiments that were asked for."""
        return self.frame[self.frame["experiment"].isin(self.sources())]

    def sources(self) -> list[str]:
        """The experiments whose runs the tables show."""
        return list(dict.fromkeys(source for name in self.names for source in self.read_by(name)))

    def read_by(self, name: str) -> list[str]:
        """The experiments whose runs the table of this one shows: itself, or those it reads."""
        experiment = self.experiment(name)
        if experiment is None or not experiment.reads:
            return [name]
        ending = name.removeprefix(experiment.name)
        return [read + ending for read in experiment.reads]

    def table_of(self, name: str) -> pd.DataFrame:
        """The rows of an experiment's table: of what it reads, and rows of others beside them."""
        sources = self.read_by(name)
        frames = [self.runs_of(source) for source in sources]
        data_sets = {benchmark for frame in frames for benchmark in frame["benchmark"]}
        experiment = self.experiment(name)
        ending = name.removeprefix(experiment.name) if experiment is not None else ""
        for beside in experiment.beside if experiment is not None else ():
            other = self.runs_of(beside.experiment + ending)
            other = other[other["method"].isin(select_methods(beside.methods))]
            other = other[other["benchmark"].isin(data_sets)]
            names = [row_name(method, beside.variant) for method in other["method"]]
            frames.append(other.assign(variant=beside.variant, row=names))
        whole = pd.concat(frames, ignore_index=True)
        place = ["row", "benchmark", "target", "order", "seed", "trial", "held_out"]
        again = whole.duplicated(place) & (whole["experiment"] != sources[0])
        return whole.loc[~again]

    def runs_of(self, name: str) -> pd.DataFrame:
        """The rows of one experiment."""
        return self.frame[self.frame["experiment"] == name]

    def experiment(self, name: str) -> Experiment | None:
        """The recorded experiment of this name; None for runs without one."""
        return self.plans[name].experiment if name in self.plans else None


def collect(path: Path, experiment: str | None = None) -> Collected:
    """Read the runs of a folder, of the folder of one run, or of one experiment in a folder."""
    folder, run = _find(path)
    store = ReadingStore(folder, run)
    plans, problems = _plans(store, experiment) if run is None else ({}, [])
    frames = []
    for name, plan in plans.items():
        rows = frame_of_plan(plan, store, name=name)
        if len(rows):
            frames.append(select(rows, plan.selection))
    planned = {name for frame in frames for name in frame["run"]}
    readable = store.all() if experiment is None else ()
    others = [each for each in readable if each[0] not in planned]
    tabled = {str(frame["experiment"].iloc[0]) for frame in frames}
    shown, left_out = _sort(others, tabled) if run is None else (others, [])
    # A run with a held-out source only judges a trial; it is not a result of its own.
    shown = [each for each in shown if not each[1].run.held_out or run is not None]
    if shown:
        frames.append(select(frame_of_results(shown, alone=run is not None)))
    frame = pd.concat(frames, ignore_index=True) if frames else frame_of_results([])
    problems = [*store.problems, *problems, *left_out]
    if not problems and (frame["status"] == "missing").all():
        of = f" of {experiment}" if experiment else ""
        raise FarshoreError(f"{path} contains no finished run{of}: give a folder {WRITERS}")
    return Collected(folder, frame, plans, tuple(problems), experiment or "")


def planned_frame(plan: Plan, runs: Path) -> pd.DataFrame:
    """The runs of a plan as they are in a folder, those that count selected by its rule."""
    return select(frame_of_plan(plan, ReadingStore(runs)), plan.selection)


def _find(path: Path) -> tuple[Path, str | None]:
    """The folder of runs, and the name of the only run to show, if the path is one."""
    if path.is_file():
        if path.name != "result.json":
            raise FarshoreError(
                f"{str(path)!r} contains no runs: give a folder {WRITERS}, the folder of one run "
                "in it, or its result.json"
            )
        path = path.parent
    if not path.is_dir():
        raise FarshoreError(f"there is no folder {str(path)!r}: give one {WRITERS}")
    if is_run_folder(path):
        return path.parent, path.name or path.resolve().name
    return path, None


def _plans(store: ReadingStore, only: str | None) -> tuple[dict[str, Plan], list[str]]:
    """The plans of the recorded experiments, or of the one named `only`."""
    problems: list[str] = []
    plans: dict[str, Plan] = {}
    recorded = recorded_experiments(store.runs, problems)
    wanted = set(recorded) if only is None else {only}
    if only in recorded:
        experiment = recorded[only][0]
        named = (*experiment.reads, *(beside.experiment for beside in experiment.beside))
        wanted |= {name + only.removeprefix(experiment.name) for name in named}
    for name, (experiment, book) in recorded.items():
        if name not in wanted:
            continue
        try:
            with inert():
                plans[name] = make_plan(experiment, store, book, available_only=False)
        except FarshoreError as error:
            problems.append(f"{name} has no table because it cannot be planned: {error}")
    return plans, problems


# Name, result and config of a run.
Read = tuple[str, Result, Mapping[str, Any]]


def _sort(runs: Sequence[Read], tabled: set[str]) -> tuple[list[Read], list[str]]:
    """The runs of no plan that are shown, and sentences about the others.

    Shown are runs of experiments without a plan, with the newest results version of each system.
    The others are left over from a changed experiment or an older results version.
    """
    newest: dict[tuple[str, str], int] = {}
    for run in runs:
        for key, version in _versions(run).items():
            newest[key] = max(version, newest.get(key, 0))
    installed = dict.fromkeys(newest, 0)
    for kind, name in newest:
        if kind == "method" and name in catalog.names():
            installed[kind, name] = catalog.find(name).results_version
        elif kind == "benchmark" and name in BENCHMARKS:
            installed[kind, name] = BENCHMARKS.get(name).results_version
    superseded = [run for run in runs if _older(run, newest)]
    current = [run for run in runs if not _older(run, newest)]
    outdated = [run for run in current if _older(run, installed)]
    shown = [run for run in current if _experiment(run) not in tabled]
    stray = [run for run in current if _experiment(run) in tabled and not _older(run, installed)]
    old = "of an older results version than"
    gone = "are left out of the tables."
    texts = {
        f"{old} others of the same system {gone}": superseded,
        f"{old} the installed farshore has; the same command would repeat them.": outdated,
        f"that belong to no recorded plan (the experiment has changed since) {gone}": stray,
    }
    left_out = []
    for text, of in texts.items():
        counts = Counter(result.run.method for _, result, _ in of).most_common()
        named = ", ".join(f"{count} of {method}" for method, count in counts[:4])
        others = " and others" if len(counts) > 4 else ""
        left_out += [f"{several(len(of), 'run')} ({named}{others}) {text}"] if of else []
    return shown, left_out


def _older(run: Read, versions: Mapping[tuple[str, str], int]) -> bool:
    return any(version < versions[key] for key, version in _versions(run).items())


def _experiment(run: Read) -> str:
    return str((run[2].get("planned") or {}).get("experiment") or ALONE)


def _versions(run: Read) -> dict[tuple[str, str], int]:
    """The results versions that a run was made with, by (kind, name) of the system."""
    _, result, config = run
    named = config.get("named_by")
    versions = named.get("results_versions", {}) if isinstance(named, Mapping) else {}
    names = {"method": result.run.method, "benchmark": result.run.benchmark}
    return {(kind, name): int(versions[kind]) for kind, name in names.items() if kind in versions}
