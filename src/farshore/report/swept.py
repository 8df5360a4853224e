"""Tables of the experiments that are recorded with the runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ..benchmarks import BENCHMARKS
from ..errors import FarshoreError
from ..runs.plan.experiment import Book, Experiment, Part
from ..runs.plan.record import TINY, recorded_experiments
from ..runs.plan.select import DRAWN, in_turn, select_methods
from ..runs.search.selection import select
from ..runs.store.read_once import ReadingStore
from .assemble import Frame, assemble
from .compared import COMPARED, paper_name
from .contest import Contest, Observed, make_contest
from .measures import MEASURES, TARGET, Measure, column_generated
from .names import method_group, several
from .over_units import add_unit_columns
from .overlay import Beside, Overlay, PaperTable
from .planned import Entries, Gathered, gather
from .table import Column, Table

EACH_TARGET = (
    "Several domains were the target in turn, and each target counts once: the mean and its error "
    "are taken over targets, so more seeds do not make the error smaller. Differences are "
    "paired: the same target, the same order, the same seed. Targets of one data set share their "
    "training rows, so there are no ranks over the columns."
)


@dataclass
class Swept:
    """The tables, the names of their planned runs, the experiments, and problems to report."""

    tables: list[Table] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    experiments: dict[str, Experiment] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def swept_tables(store: ReadingStore, overlay: Overlay, only: str | None = None) -> Swept:
    """A table for each recorded experiment that has runs, or only for the one named `only`."""
    swept = Swept()
    recorded = recorded_experiments(store.runs, swept.problems)
    gathered: dict[str, Gathered] = {}
    for stem in overlay.tables_in_order(recorded):
        if only not in (None, stem):
            continue
        experiment, book = recorded[stem]
        swept.experiments[stem] = experiment
        source = _Source(store, book, stem.removeprefix(experiment.name), gathered)
        try:
            table, names = _table(stem, experiment, source, overlay)
        except FarshoreError as error:
            swept.problems.append(f"{stem} has no table because it cannot be planned: {error}")
            continue
        swept.names |= names
        if table.rows:
            swept.tables.append(table)
        else:
            swept.problems.append(f"{stem} has no table because none of its runs has finished")
    return swept


@dataclass(frozen=True)
class _Source:
    """Finds the runs of an experiment and caches them: several tables may read the same one."""

    store: ReadingStore
    book: Book
    ending: str
    gathered: dict[str, Gathered]

    def find(self, name: str) -> Gathered:
        key = name + self.ending
        if key not in self.gathered:
            self.gathered[key] = gather(self.book(name), self.store, self.book)
        return self.gathered[key]


def _table(
    stem: str, experiment: Experiment, source: _Source, overlay: Overlay
) -> tuple[Table, set[str]]:
    measure = MEASURES[experiment.table] if experiment.table is not None else TARGET
    tiny = stem.endswith(TINY)
    paper = None if tiny else overlay.numbers(paper_name(experiment))
    read = [source.find(name) for name in experiment.reads or [experiment.name]]
    entries: Entries = {}
    for gathered in read:
        for key, cells in gathered.cells(measure).items():
            entries.setdefault(key, {}).update(
                {
                    column: cell
                    for column, cell in cells.items()
                    if column not in entries.get(key, {})
                }
            )
    if experiment.table == "naive and tailored":
        entries = {
            key: cells
            for key, cells in entries.items()
            if key[0] == overlay.baseline or method_group(key[0])[0] in ("naive", "tailored")
        }
    columns = add_unit_columns(read, entries, _columns(read, entries, overlay), measure, overlay)
    names = {name for gathered in read for name in gathered.names}
    beside = overlay.beside(experiment.name)
    if beside is not None:
        names |= _add_beside(beside, entries, columns, source)
    parts = [part for gathered in read for part in gathered.experiment.parts]
    keys = {key for gathered in read for key in gathered.keys().values()}
    # Several targets or orders of one data set.
    several_units = len(keys) > len({dataset for dataset, _ in keys})
    frame = Frame(
        stem,
        _capitalized(experiment.about),
        _about(read[0].experiment, measure),
        measure.unit,
        measure.higher_is_better,
        averaged=not several_units and not any(part.vary for part in parts),
        # Neither the best seed alone nor several orders of one data set justify ranks.
        ranked=measure.ranked and not several_units and not any(part.best_seed for part in parts),
        partial=any(gathered.plan.waiting or gathered.plan.absent for gathered in read),
        remarks=tuple(_remarks(experiment, read, paper, tiny, several_units, overlay)),
        contest=_contest(read, parts, overlay) if measure is TARGET else None,
    )
    return assemble(frame, columns, entries, overlay, paper), names


def _contest(read: Sequence[Gathered], parts: Sequence[Part], overlay: Overlay) -> Contest | None:
    """The runs behind the table; None if it varies settings or shows the best seed alone."""
    if any(part.vary or part.best_seed for part in parts):
        return None
    whole = not any(gathered.plan.waiting or gathered.plan.absent for gathered in read)
    runs: dict[tuple[str, str, str, str, int], Observed] = {}
    for gathered in read:
        for group in gathered.groups:
            condition = group.condition
            for number, seed in group.seeds.items():
                whole &= len(seed.trials) == seed.planned
                # A trial that diverged or was stopped counts as a run without a score.
                trial = select(seed.trials, gathered.experiment.selection) or next(
                    iter(seed.trials), None
                )
                if trial is not None:
                    key = (condition.method, group.variant, group.key, condition.order, number)
                    run = Observed(condition.method, group.variant, number, trial.result)
                    runs.setdefault(key, run)
    return make_contest(runs.values(), overlay, whole=whole)


def _columns(read: Sequence[Gathered], entries: Entries, overlay: Overlay) -> list[Column]:
    keys = {key: value for gathered in read for key, value in gathered.keys().items()}
    metrics = {key: metric for gathered in read for key, metric in gathered.metrics().items()}
    ordered = [
        key
        for name in overlay.datasets_in_order(benchmark for benchmark, _ in keys.values())
        for key in keys
        if keys[key][0] == name
    ]
    columns = []
    for key in ordered:
        benchmark, order = keys[key]
        label = overlay.dataset_label(benchmark) + ("" if order == "listed" else f", {order}")
        columns.append(
            Column(
                key,
                label,
                metrics.get(key, _metric(benchmark)),
                column_generated(entries.values(), key),
            )
        )
    absent = dict.fromkeys(name for gathered in read for name in gathered.plan.absent)
    return [*columns, *(Column(name, overlay.dataset_label(name)) for name in absent)]


def _add_beside(
    beside: Beside, entries: Entries, columns: Sequence[Column], source: _Source
) -> set[str]:
    """Add the rows of another recorded experiment that have numbers; return its runs' names."""
    variant = beside.variant
    try:
        other = source.find(beside.experiment)
    except FarshoreError:
        return set()
    keys, other_cells = {column.key for column in columns}, other.cells(TARGET)
    for method in select_methods(beside.methods):
        of_method = other_cells.get((method, ""), {})
        cells = {key: cell for key, cell in of_method.items() if key in keys}
        if (method, variant) not in entries and any(
            cell.mean is not None for cell in cells.values()
        ):
            entries[method, variant] = cells
    return other.names


def _about(experiment: Experiment, measure: Measure) -> str:
    """One sentence about what the numbers are and how they were selected."""
    over = "targets" if any(in_turn(part.target) for part in experiment.parts) else "seeds"
    head = f"{_capitalized(measure.title)} ({measure.unit}): mean ± standard error over {over}"
    search = experiment.search
    if any(part.search is not None or part.settings_from is not None for part in experiment.parts):
        return f"{head}."
    seeds = several(len(search.run_seeds), "seed")
    if experiment.command == "compare":
        return f"{head}; {seeds}."
    if search.trials == 1:
        return f"{head}; {seeds} at the defaults."
    return (
        f"{head}; {seeds}, each with the best of {search.trials} trials, "
        f"selected by {experiment.selection}."
    )


def _remarks(
    experiment: Experiment,
    read: Sequence[Gathered],
    paper: PaperTable | None,
    tiny: bool,
    several_units: bool,
    overlay: Overlay,
) -> Iterator[str]:
    if tiny:
        yield (
            "Tiny scale: two steps per domain on embedded data. This shows that the experiment "
            "runs; its numbers mean nothing."
        )
    if any(gathered.experiment.selection == "oracle" for gathered in read):
        yield (
            "Settings were selected on the target itself. This measures what honest selection "
            "costs; it is not a result."
        )
    if experiment.command == "compare":
        yield COMPARED
    parts = [part for gathered in read for part in gathered.experiment.parts]
    for gathered in read:
        search, plan = gathered.experiment.search, gathered.plan
        seeds = len(search.run_seeds)
        if (
            paper is not None
            and paper.search is not None
            and experiment.command == "sweep"
            and paper.search != (search.trials, seeds)
        ):
            trials, seeds_of_paper = paper.search
            yield (
                f"The paper searched {several(trials, 'trial')} for each of "
                f"{several(seeds_of_paper, 'seed')}; {gathered.experiment.name} has "
                f"{search.trials} for each of {seeds}."
            )
        for benchmark, absent in plan.absent.items():
            yield f"{benchmark}: {absent.why}; {several(absent.runs, 'run')} cannot be looked up."
        if plan.waiting:
            more = f" (and {len(plan.waiting) - 1} more)" if len(plan.waiting) > 1 else ""
            yield f"Not planned yet: {plan.waiting[0].sentence}{more}."
    if any(in_turn(part.target) for part in parts):
        yield EACH_TARGET
    elif several_units:
        yield (
            "Orders of the same data set share their rows, so there are no ranks over the columns. "
            "Differences are paired: the same order, the same seed; each order counts once. They "
            "hold for these targets, not for other data sets."
        )
    elif not tiny and not all(part.orders == [DRAWN] for part in parts):
        yield (
            "One order of the sources. Another order may change the scores by more than the "
            "methods differ; `orders: all` or `balanced:k` measures it."
        )
    yield from dict.fromkeys(note for gathered in read for note in gathered.notes(overlay))


def _metric(benchmark: str) -> str:
    return BENCHMARKS.get(benchmark).metric if benchmark in BENCHMARKS else "accuracy"


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]
