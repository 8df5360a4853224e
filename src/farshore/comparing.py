"""`farshore.compare`: compare methods on your own data or on a benchmark, in Python.

It plans, carries out and records the same runs as `farshore compare`: each can resume the
other's runs, and both give the same numbers for the same data.
"""

import csv
import hashlib
import html
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pandas as pd

from .base.files import write_inside
from .base.names import check_name
from .base.notebook import html_table, in_notebook
from .benchmarks import BENCHMARKS, make_benchmark
from .benchmarks.own.image_folder import ImageFolder
from .benchmarks.own.table import OwnTable
from .data.tables.frames import as_table
from .errors import FarshoreError, no_such_file, unknown
from .methods.optimization import choose_device
from .report.build import write_report
from .report.plots import plot_scores
from .results.frame import frame_of_plan
from .results.measures import mean_numbers
from .results.select import scored, select
from .results.summary import Ranking, Standing, Unit, by_unit, estimate, rank, scores_of
from .results.verdict import Verdict, judge
from .runs.engines.carry_out import Progress, ReportProgress, carry_out, open_runs
from .runs.engines.engine import Engine, InlineEngine
from .runs.engines.local import LocalEngine
from .runs.engines.work import WorkOutcome
from .runs.plan.comparison import make_comparison, plan_comparison
from .runs.plan.plan import Plan, Planned
from .runs.plan.select import USUAL_METHODS, fitting, references, select_methods
from .runs.result import Result
from .runs.store.store import Store
from .tasks.metrics import several

if TYPE_CHECKING:
    import plotly.graph_objects as go


@dataclass(frozen=True, repr=False)
class Comparison:
    """A finished comparison.

    name: the name of its record in the folder `runs`, for `farshore report --experiment`.
    frame: one row per planned run, with `selected` for those that count.
    failures: one line per run that failed; calling `compare` again retries them.
    """

    name: str
    runs: Path
    frame: pd.DataFrame = field(repr=False)
    failures: list[str] = field(default_factory=list)

    @property
    def results(self) -> list[Result]:
        """The result of every finished run."""
        return [result for result in self.frame["result"] if result is not None]

    @property
    def verdict(self) -> Verdict:
        """Who is ahead, what backs it, and the recommended method, as `farshore compare` says."""
        return judge(self.frame)

    @property
    def table(self) -> pd.DataFrame:
        """One row per method: ranked ones first, the best mean score on the unseen target on top.

        `score` is a mean over units: targets; with one target, last sources, orders or seeds.
        `error` is its standard error over them, and `score_low` and `score_high` are its 95%
        interval. `difference` is paired with `reference` by target, order and seed; `low` and
        `high` are its 95% interval. All of these are empty with fewer than three units. `worst` is
        the score at the `worst_target`. `guessing` is true for methods that do not tell the classes
        apart. Scores are fractions.
        """
        ranking = rank(self.frame)
        numbers = mean_numbers(self.frame)
        rows = [self._row(each, ranking, numbers.get(each.row, {})) for each in ranking.standings]
        return pd.DataFrame(rows).astype({"rank": "Int64"})

    def _row(
        self, standing: Standing, ranking: Ranking, numbers: Mapping[str, float | None]
    ) -> dict[str, Any]:
        found, paired = standing.estimate, standing.difference
        scores = scores_of(scored(self.frame), standing.row)
        over_targets = estimate(scores, Unit.TARGET, ranking.metric)
        score, compared = (
            {name: getattr(each, name, None) for name in ("mean", "error", "low", "high")}
            for each in (found, paired)
        )
        return {
            "method": standing.row,
            "kind": standing.kind,
            "rank": standing.rank,
            **dict(zip(("score", "error", "score_low", "score_high"), score.values(), strict=True)),
            "unit": str(ranking.unit),
            "units": found.units if found is not None else 0,
            "targets": over_targets.units if over_targets is not None else 0,
            "worst": over_targets.values[over_targets.worst] if over_targets is not None else None,
            "worst_target": over_targets.worst if over_targets is not None else "",
            "reference": ranking.reference if paired is not None else "",
            "difference": compared["mean"],
            "low": compared["low"],
            "high": compared["high"],
            "guessing": standing.guessing,
            "source_validation": numbers.get("source_validation_score"),
            "backward_transfer": numbers.get("backward_transfer"),
            "seconds_per_run": numbers.get("seconds"),
            "runs": standing.runs,
            "planned": standing.planned,
        }

    @property
    def targets(self) -> pd.DataFrame:
        """The mean score of every method at every target: a row per target, a column per method."""
        runs = scored(self.frame)
        columns = {
            each.row: by_unit(scores_of(runs, each.row), Unit.TARGET)
            for each in rank(self.frame).standings
            if each.estimate is not None
        }
        return pd.DataFrame(columns).rename_axis("target")

    def __repr__(self) -> str:
        runs = several(len(self.results), "run")
        return f"Comparison {self.name!r} of {runs}: {self.verdict.sentence}"

    def _repr_html_(self) -> str:
        """For notebooks: the verdict and the ranking."""
        ranking = self.verdict.ranking
        metric = ranking.metric
        rows = []
        for each in ranking.standings:
            mean = metric.text(each.estimate.mean if each.estimate else None)
            minus = metric.text(each.difference.mean if each.difference else None, sign=True)
            rows.append([each.row, each.rank or "", mean, minus])
        heading = ["method", "rank", f"{metric.label} {metric.unit}", f"minus {ranking.reference}"]
        return html_table(str(self), heading, rows)

    def plot(self) -> "go.Figure":
        """A figure of all scores on the unseen targets, as the report shows it (plotly)."""
        return plot_scores(self.frame, self.verdict.ranking)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write the report of this comparison as .html, .md, .csv or .tex; return the path."""
        write_report(self.runs, Path(path), experiment=self.name)
        return Path(path)


def compare(
    data: Any,
    *,
    domain: str | None = None,
    label: str | None = None,
    methods: Sequence[str] | str | None = None,
    target: str | None = None,
    orders: Sequence[str] | str = "listed",
    seeds: int = 3,
    scenario_seed: int = 0,
    steps: int | None = None,
    memory: int | None = None,
    network: str | None = None,
    network_settings: Mapping[str, Any] = MappingProxyType({}),
    settings: Mapping[str, Any] = MappingProxyType({}),
    runs: str | os.PathLike[str] = "runs",
    workers: int = 1,
    device: str = "auto",
    name: str = "frame",
    progress: bool | None = None,
    **options: Any,
) -> Comparison:
    """Compare methods by their score on domains that they have not seen.

    Runs that are already in the folder `runs` are not repeated, so a call that was stopped resumes.

    data: a data frame (pandas, Polars or Arrow), the path of a table or of a folder of images, or
        the name of a benchmark. A frame is written as a table into the folder `runs`, under `name`
        and a hash of its contents, and then read like any other file.
    domain, label: the columns of a table with the domain and with the class.
    methods: names of methods and groups; by default a few quick ones of different kinds, and for
        reference the most frequent class and, for tables, ordinary models fitted to all sources at
        once (joint-linear, joint-forest, joint-trees), which are not ranked.
    target: the domain that stays unseen, or `each`: every domain in turn. The default is the
        benchmark's own target, and `each` for your own data.
    orders: orders of the sources, written as for `farshore compare --orders`.
    seeds: number of run seeds, counted from 0.
    workers: number of runs at a time, each in its own process; 1 runs them in this process.
    device: cpu, cuda, or auto: cuda if there is a GPU, otherwise cpu.
    progress: True prints a line per run to standard error, False nothing; by default a notebook
        shows a bar.
    options: further options of the benchmark, for example `time`, `group` or `drop`.
    """
    folder = Path(runs)
    if seeds < 1 or workers < 1:
        raise FarshoreError(f"seeds = {seeds} and workers = {workers} must be at least 1")
    given = {"domain": domain, "label": label, **options}
    benchmark, chosen = find_data(data, given, folder, name)
    if methods is None:
        made = make_benchmark(benchmark, chosen)
        methods = [*fitting(USUAL_METHODS, made), *references(made)]
    of_network = {"network": network, "network_settings": dict(network_settings)}
    comparison = make_comparison(
        {"benchmark": benchmark, "options": chosen, **of_network},
        select_methods([methods] if isinstance(methods, str) else methods),
        seeds=range(seeds),
        orders=[orders] if isinstance(orders, str) else orders,
        scenario_seed=scenario_seed,
        target=target,
        steps=steps,
        memory=memory,
        settings=settings,
    )
    store = Store(folder)
    plan = plan_comparison(comparison, store, device=choose_device(device))
    failures = carry_out_quietly(plan, store, workers, progress)
    frame = select(frame_of_plan(plan, store), plan.selection)
    if failures and (frame["status"] == "missing").all():
        raise FarshoreError(failures[0])
    return Comparison(plan.name, folder, frame, failures)


def find_data(
    data: Any, options: dict[str, Any], runs: Path, name: str
) -> tuple[str, dict[str, Any]]:
    """The benchmark that `data` stands for, and its options, those that are not None."""
    options = {key: value for key, value in options.items() if value is not None}
    if not isinstance(data, str | os.PathLike):
        frame = as_table(data)
        if frame is None:
            raise FarshoreError("the data are not a table: give a frame, a path or a benchmark")
        return OwnTable.name, {**options, "path": str(_save(frame, options, runs, name))}
    path = Path(data).expanduser()
    if isinstance(data, str) and data in BENCHMARKS.names():
        return data, options
    if not path.exists():
        if isinstance(data, str) and path.name == data and not path.suffix:
            raise unknown("benchmark", data, BENCHMARKS.names())
        raise no_such_file(data)
    kind = ImageFolder if path.is_dir() else OwnTable
    return kind.name, {**options, "path": str(data)}


def _save(frame: pd.DataFrame, options: Mapping[str, Any], runs: Path, name: str) -> Path:
    """Write a frame as a table of texts and numbers; from here on it is a file like any other.

    Frames with equal contents share one file in the folder of runs.
    """
    table = OwnTable({**options, "path": check_name(name, "name")}).in_one_form(frame)
    contents = table.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC).encode()
    path = runs / "data" / f"{name}-{hashlib.sha256(contents).hexdigest()[:12]}.csv"
    if not path.is_file():
        write_inside(runs, path, contents)
    return path


def carry_out_quietly(plan: Plan, store: Store, workers: int, progress: bool | None) -> list[str]:
    """Carry out the open runs; return one line per failure."""
    todo, _ = open_runs(plan, store)
    if not todo:
        return []
    engine: Engine = InlineEngine() if workers == 1 else LocalEngine(workers)
    with engine, _shown(progress) as report:
        return carry_out(plan, store, engine, todo=todo, report=report).failures


@contextmanager
def _shown(progress: bool | None) -> Iterator[ReportProgress]:
    """What is told of each run: nothing, a line, or in a notebook a bar that moves."""

    def line(planned: Planned | None, outcome: WorkOutcome | None, state: Progress) -> None:
        if progress and planned is not None and outcome is not None:
            target = f", target {planned.condition.target}" if planned.condition.target else ""
            what = f"{planned.run.method}{target}, seed {planned.seed}"
            ended = f"{outcome.status} in {outcome.seconds:.1f} s"
            print(f"[{state.done}/{state.total}] {what}: {ended}", file=sys.stderr)

    if progress is not None or not in_notebook():
        yield line
        return
    # Not rich's bar, which warns where ipywidgets is missing.
    from IPython.display import HTML, display

    shown = display(HTML("starting"), display_id=True)
    done = 0

    def advance(_: Planned | None, __: WorkOutcome | None, state: Progress) -> None:
        nonlocal done
        done = state.done
        now = html.escape(state.current[0].run.method if state.current else "runs")
        bar = f'<progress value="{state.done}" max="{state.total}"></progress>'
        shown.update(HTML(f"{now} {bar} {state.done}/{state.total}"))

    yield advance
    shown.update(HTML(f"{done} runs"))
