"""Tables of the experiments that a folder of runs records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ..benchmarks import BENCHMARKS
from ..errors import FarshoreError
from ..plan.experiment import Book, Experiment
from ..plan.record import TINY, recorded_experiments
from ..plan.select import select_methods
from .assemble import Frame, assemble
from .compared import COMPARED, paper_name
from .measures import MEASURES, TARGET, Measure, is_generated
from .names import dataset_label, datasets_in_order, in_order, method_group, several
from .paper import PaperTable, paper_table
from .planned import Entries, Gathered, gather
from .reading import ReadingStore
from .table import Column, Table

PAPER_SEARCH = (20, 3)
# The order of tables in a report; experiments of one's own come after the main table.
FIRST = ("main", "main.tiny")
LAST = (
    "naive",
    "naive_vs_tailored",
    "adaptation",
    "source",
    "backward_transfer",
    "runtime",
    "no_alignment",
    "dynamic_priors",
    "memory_50",
    "memory_25",
    "other_target",
    "half_steps",
    "orders",
    "sensitivity",
    "step_time",
    "feature_space",
)
# Rows of another experiment that the paper prints in the same table: from where, which methods, and
# what sets them apart.
BESIDE: dict[str, tuple[str, tuple[str, ...], str]] = {
    "adaptation": ("main", ("finetune", "tailored"), ""),
    "no_alignment": ("main", ("tailored",), "with alignment"),
    "dynamic_priors": ("main", ("cl-vrex", "cl-fishr", "cl-coral", "cl-mmd"), "static priors"),
}


@dataclass
class Swept:
    """The tables, the runs that their plans name, and what a reader must know."""

    tables: list[Table] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    experiments: dict[str, Experiment] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def swept_tables(store: ReadingStore, only: str | None = None) -> Swept:
    """A table for each recorded experiment that has runs, or for the one called `only`."""
    found = Swept()
    recorded = recorded_experiments(store.runs, found.problems)
    gathered: dict[str, Gathered] = {}
    for stem in _ordered(recorded):
        if only not in (None, stem):
            continue
        experiment, book = recorded[stem]
        found.experiments[stem] = experiment
        try:
            table, names = _table(
                stem, experiment, _Source(store, book, stem.removeprefix(experiment.name), gathered)
            )
        except FarshoreError as error:
            found.problems.append(f"{stem} cannot be planned again, so it has no table: {error}")
            continue
        found.names |= names
        if table.rows:
            found.tables.append(table)
        else:
            found.problems.append(
                f"{stem} is recorded here, but none of its runs has ended: it has no table"
            )
    return found


@dataclass(frozen=True)
class _Source:
    """Finds what has run of an experiment, each once: many tables read main."""

    store: ReadingStore
    book: Book
    ending: str
    gathered: dict[str, Gathered]

    def find(self, name: str) -> Gathered:
        key = name + self.ending
        if key not in self.gathered:
            self.gathered[key] = gather(self.book(name), self.store, self.book)
        return self.gathered[key]


def _ordered(stems: Sequence[str] | dict[str, tuple[Experiment, Book]]) -> list[str]:
    last = [stem for name in LAST for stem in stems if stem.partition(".")[0] == name]
    return in_order(
        stems, [*FIRST, *(stem for stem in stems if stem not in FIRST and stem not in last), *last]
    )


def _table(stem: str, experiment: Experiment, source: _Source) -> tuple[Table, set[str]]:
    measure = MEASURES[experiment.table] if experiment.table is not None else TARGET
    if experiment.name == "step_time":
        measure = MEASURES["step time"]
    tiny = stem.endswith(TINY)
    paper = None if tiny else paper_table(paper_name(experiment))
    read = [source.find(name) for name in experiment.reads or [experiment.name]]
    entries: Entries = {}
    for one in read:
        for key, cells in one.cells(measure).items():
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
            if method_group(key[0])[0] in ("finetune", "naive", "tailored")
        }
    columns = _columns(read, entries)
    names = {name for one in read for name in one.names}
    if experiment.name in BESIDE:
        names |= _add_beside(experiment, entries, columns, source)
    parts = [part for one in read for part in one.experiment.parts]
    orders = {(name, order) for part in parts for name in part.benchmarks for order in part.orders}
    several_orders = len(orders) > len({name for name, _ in orders})
    frame = Frame(
        stem,
        _first(experiment.about),
        _about(read[0].experiment, measure),
        measure.unit,
        measure.higher_is_better,
        averaged=not any(part.vary for part in parts),
        # One seed that was the best of several, or orders of one data set, are no ground for ranks.
        ranked=measure.ranked and not several_orders and not any(part.best_seed for part in parts),
        partial=any(one.plan.waiting or one.plan.absent for one in read),
        notes=tuple(_notes(experiment, read, paper, tiny, several_orders)),
    )
    return assemble(frame, columns, entries, paper), names


def _columns(read: Sequence[Gathered], entries: Entries) -> list[Column]:
    keys = {key: value for one in read for key, value in one.keys().items()}
    metrics = {key: metric for one in read for key, metric in one.metrics().items()}
    ordered = [
        key
        for name in datasets_in_order(benchmark for benchmark, _ in keys.values())
        for key in keys
        if keys[key][0] == name
    ]
    columns = []
    for key in ordered:
        benchmark, order = keys[key]
        label = (
            dataset_label(benchmark)
            if order == "listed"
            else f"{dataset_label(benchmark)}, {order}"
        )
        columns.append(
            Column(
                key,
                label,
                metrics.get(key, _metric(benchmark)),
                is_generated(entries.values(), key),
            )
        )
    absent = dict.fromkeys(name for one in read for name in one.plan.absent)
    return [*columns, *(Column(name, dataset_label(name)) for name in absent)]


def _add_beside(
    experiment: Experiment, entries: Entries, columns: Sequence[Column], source: _Source
) -> set[str]:
    """Rows of main that the paper shows in the same table, where main is recorded and they have
    run.
    """
    name, methods, variant = BESIDE[experiment.name]
    try:
        found = source.find(name)
    except FarshoreError:
        return set()
    keys, given = {column.key for column in columns}, found.cells(TARGET)
    for method in select_methods(methods):
        cells = {key: cell for key, cell in given.get((method, ""), {}).items() if key in keys}
        if (method, variant) not in entries and any(
            cell.mean is not None for cell in cells.values()
        ):
            entries[method, variant] = cells
    return found.names


def _about(experiment: Experiment, measure: Measure) -> str:
    """One sentence: what the numbers are and how they were selected."""
    head = f"{_first(measure.title)} ({measure.unit}): mean ± standard error over seeds"
    search = experiment.search
    if any(part.search is not None or part.settings_from is not None for part in experiment.parts):
        return f"{head}."
    seeds = several(len(search.run_seeds), "seed")
    if experiment.command == "compare":
        return f"{head}; {seeds}."
    if search.trials == 1:
        return f"{head}; {seeds} at the defaults."
    return (
        f"{head}; {seeds}, of each the best of {search.trials} trials, selected by "
        f"{experiment.selection}."
    )


def _notes(
    experiment: Experiment,
    read: Sequence[Gathered],
    paper: PaperTable | None,
    tiny: bool,
    several_orders: bool,
) -> Iterator[str]:
    if tiny:
        yield (
            "Tiny scale: two steps a domain on embedded data. It shows that the experiment "
            "runs through, and its numbers mean nothing."
        )
    if any(one.experiment.selection == "oracle" for one in read):
        yield (
            "Selected on the target itself: this says what honest selection costs, and is no "
            "result."
        )
    if experiment.command == "compare":
        yield COMPARED
    for one in read:
        search = one.experiment.search
        seeds = len(search.run_seeds)
        if (
            paper is not None
            and experiment.name != "adaptation"
            and experiment.command == "sweep"
            and (search.trials, seeds) != PAPER_SEARCH
        ):
            yield (
                f"The paper searched 20 trials of 3 seeds; here {one.experiment.name} has "
                f"{search.trials} of {seeds}."
            )
        for benchmark, absent in one.plan.absent.items():
            yield f"{benchmark}: {absent.why}; {absent.runs} runs cannot be looked for."
        if one.plan.waiting:
            more = f" (and {len(one.plan.waiting) - 1} more)" if len(one.plan.waiting) > 1 else ""
            yield f"Not planned yet: {one.plan.waiting[0].sentence}{more}."
    if several_orders:
        yield (
            "Orders of the same data set are no independent observations: there are no ranks "
            "and no tests here."
        )
    yield from dict.fromkeys(note for one in read for note in one.notes())


def _metric(benchmark: str) -> str:
    return BENCHMARKS.get(benchmark).metric if benchmark in BENCHMARKS else "accuracy"


def _first(text: str) -> str:
    return text[:1].upper() + text[1:]
