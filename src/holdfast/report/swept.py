"""Tables of the experiments that a folder of runs records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from .. import systems
from ..benchmarks import BENCHMARKS
from ..comparison import select_methods
from ..errors import HoldfastError
from ..search.selection import Rule
from ..sweep.experiment import Book, Experiment
from ..sweep.record import TINY, recorded_experiments
from .assemble import Frame, assemble
from .measures import MEASURES, TARGET, Measure, is_generated
from .names import dataset_label, datasets_in_order
from .paper import PaperTable, paper_table
from .planned import Entries, Measured, measure_plan
from .reading import ReadingStore
from .table import Column, Table

PAPER_SEARCH = (20, 3)
# Rows of another experiment that the paper prints in the same table: from where, which methods, and what sets them apart.
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


def swept_tables(store: ReadingStore) -> Swept:
    """A table for each recorded experiment that has runs."""
    found = Swept()
    for stem, (experiment, book) in recorded_experiments(store.runs, found.problems).items():
        found.experiments[stem] = experiment
        try:
            table, names = _table(stem, experiment, book, store)
        except HoldfastError as error:
            found.problems.append(f"{stem} cannot be planned again, so it has no table: {error}")
            continue
        found.names |= names
        if table.rows:
            found.tables.append(table)
        else:
            found.problems.append(f"{stem} is recorded here, but none of its runs has ended: it has no table")
    return found


def _table(stem: str, experiment: Experiment, book: Book, store: ReadingStore) -> tuple[Table, set[str]]:
    measure = MEASURES[experiment.table] if experiment.table is not None else TARGET
    if experiment.name == "step_time":
        measure = MEASURES["step time"]
    tiny = stem.endswith(TINY)
    paper = None if tiny else paper_table(experiment.name)
    made: list[Measured] = [measure_plan(each, store, book, measure) for each in _read(experiment, book)]
    entries: Entries = {}
    for one in made:
        for key, cells in one.entries.items():
            entries.setdefault(key, {}).update({column: cell for column, cell in cells.items() if column not in entries.get(key, {})})
    if experiment.table == "naive and tailored":
        entries = {key: cells for key, cells in entries.items() if _group(key[0]) in ("finetune", "naive", "tailored")}
    columns = _columns(made, entries)
    names = {name for one in made for name in one.names}
    if experiment.name in BESIDE:
        names |= _add_beside(experiment, entries, columns, store, book)
    several_orders = any(len(part.orders) > 1 for one in made for part in one.experiment.parts)
    varied = any(part.vary for part in experiment.parts)
    frame = Frame(
        stem,
        experiment.about[:1].upper() + experiment.about[1:],
        _about(made[0].experiment, measure),
        measure.unit,
        measure.higher_is_better,
        averaged=not varied,
        ranked=measure.ranked and not several_orders,
        partial=any(one.plan.waiting or one.plan.absent for one in made),
        notes=tuple(_notes(experiment, made, paper, tiny, several_orders)),
    )
    return assemble(frame, columns, entries, paper), names


def _read(experiment: Experiment, book: Book) -> Iterator[Experiment]:
    """The experiment itself, or those that it reads."""
    if not experiment.reads:
        yield experiment
    for name in experiment.reads:
        yield book(name)


def _columns(made: list[Measured], entries: Entries) -> list[Column]:
    keys = {key: value for one in made for key, value in one.keys.items()}
    metrics = {key: metric for one in made for key, metric in one.metrics.items()}
    ordered = [key for name in datasets_in_order(benchmark for benchmark, _ in keys.values()) for key in keys if keys[key][0] == name]
    columns = []
    for key in ordered:
        benchmark, order = keys[key]
        label = dataset_label(benchmark) if order == "listed" else f"{dataset_label(benchmark)}, {order}"
        columns.append(Column(key, label, metrics.get(key, _metric(benchmark)), is_generated(entries.values(), key)))
    absent = dict.fromkeys(name for one in made for name in one.plan.absent)
    return [*columns, *(Column(name, dataset_label(name)) for name in absent)]


def _add_beside(experiment: Experiment, entries: Entries, columns: list[Column], store: ReadingStore, book: Book) -> set[str]:
    """Rows of main that the paper shows in the same table, where main is recorded and they have run."""
    source, methods, variant = BESIDE[experiment.name]
    try:
        made = measure_plan(book(source), store, book, TARGET)
    except HoldfastError:
        return set()
    keys = {column.key for column in columns}
    for method in select_methods(methods):
        cells = {key: cell for key, cell in made.entries.get((method, ""), {}).items() if key in keys}
        if any(cell.mean is not None for cell in cells.values()):
            entries[method, variant] = cells
    return made.names


def _about(experiment: Experiment, measure: Measure) -> str:
    search, rule = experiment.search, experiment.selection
    if any(part.search is None and part.settings_from is None for part in experiment.parts):
        spread = "mean ± standard error over seeds"
        trials = f"the best of {search.trials} trials" if search.trials > 1 else "the defaults"
        return f"{_first(measure.title)} ({measure.unit}): {spread}; {search.seeds} seeds, of each {trials}{_by(rule, search.trials)}."
    return f"{_first(measure.title)} ({measure.unit}): mean ± standard error over seeds."


def _by(rule: Rule, trials: int) -> str:
    return f", selected by {rule}" if trials > 1 else ""


def _notes(experiment: Experiment, made: list[Measured], paper: PaperTable | None, tiny: bool, several_orders: bool) -> Iterator[str]:
    if tiny:
        yield "Tiny scale: two steps a domain on embedded data. It shows that the experiment runs through, and its numbers mean nothing."
    if any(one.experiment.selection == "oracle" for one in made):
        yield "Selected on the target itself: this says what honest selection costs, and is no result."
    for one in made:
        search = one.experiment.search
        if paper is not None and experiment.name != "adaptation" and (search.trials, search.seeds) != PAPER_SEARCH:
            yield f"The paper searched 20 trials of 3 seeds; here {one.experiment.name} has {search.trials} of {search.seeds}."
        for benchmark, (why, count) in one.plan.absent.items():
            yield f"{benchmark}: {why}; {count} runs cannot be looked for."
        if one.plan.waiting:
            more = f" (and {len(one.plan.waiting) - 1} more)" if len(one.plan.waiting) > 1 else ""
            yield f"Not planned yet: {one.plan.waiting[0]}{more}."
    if several_orders:
        yield "Orders of the same data set are no independent observations: there are no ranks and no tests here."
    yield from dict.fromkeys(note for one in made for note in one.notes)


def _group(method: str) -> str:
    return systems.find(method).group


def _metric(benchmark: str) -> str:
    return BENCHMARKS.get(benchmark).metric if benchmark in BENCHMARKS else "accuracy"


def _first(text: str) -> str:
    return text[:1].upper() + text[1:]
