"""What a report shows, independent of its form: cells, rows, tables, significance, provenance.

Every form (page, Markdown, CSV, LaTeX) shows these and computes nothing of its own. Scores are in
percent; `Table.unit` says what a number is where it is something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from .names import listing
from .overlay import WHITE

# The sections of a table by the kind of their rows, in order, with the heading of each. Only the
# first is ranked.
SECTIONS: dict[str, str] = {
    "continual": "",
    "offline": "Trained on all sources at once (never ranked)",
    "adaptation": "Adapted to the target's inputs (never ranked)",
}
# The notes of a cell that depend on nothing but a flag.
GENERATED, PART = "generated data", "part of the data"


class Status(StrEnum):
    """How a cell came out; its counts say the rest."""

    # A number from every planned seed and trial.
    DONE = "done"
    # A number, but some planned seeds, trials or data sets have not run yet.
    PARTIAL = "partial"
    # Some seeds diverged; without a number, all that ran did.
    DIVERGED = "diverged"
    # The search stopped every trial of some seeds early; without a number, of all of them.
    PRUNED = "pruned"
    # The measure has no value for some runs; without a number, for all of them.
    UNDEFINED = "undefined"
    # Nothing has run yet.
    MISSING = "missing"


@dataclass(frozen=True)
class Over:
    """What an average is taken over: so many data sets of so many columns."""

    datasets: int
    of: int


@dataclass(frozen=True)
class Cell:
    """One number: mean and standard error over seeds, the paper's number, and what is behind it.

    `seeds` gave a number, `diverged`, `pruned` and `undefined` ended without one; `trials` are
    those of the seed with the fewest. `place` is 1, 2 or 3 for the best of a column among the
    ranked rows.
    """

    mean: float | None
    error: float | None = None
    paper: float | None = None
    paper_error: float | None = None
    seeds: int = 0
    seeds_planned: int = 0
    trials: int = 0
    trials_planned: int = 0
    diverged: int = 0
    pruned: int = 0
    undefined: int = 0
    place: int | None = None
    # About the data: made by our own corruption code instead of published; less than all of it.
    generated: bool = False
    part_of_the_data: bool = False
    # Set for an average over data sets.
    over: Over | None = None
    # One value per seed that gave a number.
    values: tuple[float, ...] = ()

    @property
    def status(self) -> Status:
        """One word for the whole cell."""
        if not self.ran:
            return Status.MISSING
        if self.mean is not None and self.lacking:
            return Status.PARTIAL
        if self.diverged:
            return Status.DIVERGED
        if self.pruned:
            return Status.PRUNED
        return Status.UNDEFINED if self.undefined else Status.DONE

    @property
    def ended(self) -> int:
        """How many seeds have run, with or without a number."""
        return self.seeds + self.diverged + self.pruned + self.undefined

    @property
    def ran(self) -> bool:
        """Whether any run behind it has ended."""
        return self.mean is not None or self.ended > self.seeds

    @property
    def lacking(self) -> bool:
        """Whether something planned has not run; a diverged seed has run."""
        return (
            not self.ran
            or self.ended < self.seeds_planned
            or self.trials < self.trials_planned
            or (self.over is not None and self.over.datasets < self.over.of)
        )

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's, where both are there."""
        return self.mean - self.paper if self.mean is not None and self.paper is not None else None

    @property
    def whole(self) -> bool:
        """Whether everything planned is in its number."""
        return self.status is Status.DONE

    @property
    def notes(self) -> tuple[str, ...]:
        """What readers must know of it; why there is no number comes first."""
        if self.over is not None and self.mean is not None:
            short = self.over.datasets < self.over.of
            return (f"over {self.over.datasets} of {self.over.of} data sets",) if short else ()
        if self.status is Status.MISSING:
            return (Status.MISSING.value,)
        ends = (
            (f"diverged: {self.diverged} of {self.seeds_planned} seeds", self.diverged),
            (f"stopped early: {self.pruned} of {self.seeds_planned} seeds", self.pruned),
            ("not defined", self.undefined),
        )
        lacks = (
            (f"{self.ended} of {self.seeds_planned} seeds", self.ended < self.seeds_planned),
            (f"{self.trials} of {self.trials_planned} trials", self.trials < self.trials_planned),
        )
        data = ((GENERATED, self.generated), (PART, self.part_of_the_data))
        ordered = (*ends, *lacks, *data) if self.mean is None else (*lacks, *ends, *data)
        return tuple(text for text, applies in ordered if applies)


@dataclass(frozen=True)
class Column:
    """One data set, or one condition on it. `generated`: its data were made by our own
    corruption code, not the published ones.
    """

    key: str
    label: str
    metric: str = "accuracy"
    generated: bool = False


@dataclass(frozen=True)
class Row:
    """One method. A column that is not in `cells` was never planned for it. `variant`
    distinguishes rows of the same method.
    """

    method: str
    label: str
    group: str
    kind: str
    cells: Mapping[str, Cell]
    average: Cell | None = None
    rank_arithmetic: float | None = None
    rank_geometric: float | None = None
    rank_median: float | None = None
    difference_to_baseline: float | None = None
    variant: str = ""
    # The paper's arithmetic mean, geometric mean and median of ranks, where it prints them.
    paper_ranks: tuple[float, float, float] | None = None
    # How readers see the group: its name and its background.
    group_label: str = ""
    colour: str = WHITE

    @property
    def key(self) -> str:
        """Unlike the label, never the same for two rows of a table."""
        return f"{self.method} {self.variant}".strip()

    @property
    def ranked(self) -> bool:
        """Whether it has a rank."""
        return self.rank_arithmetic is not None

    def complete(self, columns: tuple[Column, ...]) -> bool:
        """Whether it has a number in each of these columns."""
        return all(
            column.key in self.cells and self.cells[column.key].mean is not None
            for column in columns
        )


@dataclass(frozen=True)
class Significance:
    """What the ranks of a table show and what they do not. `sentences` say it in words; the rest
    is for figures and checks.
    """

    methods: tuple[str, ...]
    datasets: tuple[str, ...]
    alpha: float
    mean_ranks: Mapping[str, float]
    friedman: float | None
    friedman_p: float | None
    iman_davenport: float | None
    iman_davenport_p: float | None
    # Nemenyi: two methods whose mean ranks differ by less than this are not distinguishable.
    critical_difference: float | None
    # Groups of methods, best rank first, within which no two are distinguishable.
    cliques: tuple[tuple[str, ...], ...]
    # Wilcoxon signed-rank: a, b, p, p after Holm's correction.
    pairwise: tuple[tuple[str, str, float, float], ...]
    # 95% intervals of the average and of its difference to the baseline, from resampled data sets
    # and seeds.
    bootstrap: Mapping[str, tuple[float, float]]
    bootstrap_difference: Mapping[str, tuple[float, float]]
    sentences: tuple[str, ...]
    # Row keys and the labels to show for them.
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """One table. It is `whole` if everything planned gave a number; otherwise its title says so."""

    name: str
    title: str
    about: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    # Sentences about this table beyond those that its other fields give; the paper's come last.
    remarks: tuple[str, ...] = ()
    paper_remarks: tuple[str, ...] = ()
    # Whether something planned has not run, some seeds diverged, or the search stopped some early.
    partial: bool = False
    diverged: bool = False
    pruned: bool = False
    # Labels of what has no column or row because nothing of it has run.
    lacking_columns: tuple[str, ...] = ()
    lacking_rows: tuple[str, ...] = ()
    higher_is_better: bool = True
    unit: str = "%"
    significance: Significance | None = None
    # Whether ranks and an average over the columns mean something here.
    ranked: bool = True
    # The method that rows are compared with, and how readers see it.
    baseline: str = ""
    baseline_label: str = ""
    # The paper's table, by its name in the overlay; empty where there is none.
    paper: str = ""
    paper_title: str = ""

    @property
    def whole(self) -> bool:
        """Whether everything planned gave a number."""
        return not (self.partial or self.diverged or self.pruned)

    @property
    def unranked(self) -> tuple[str, ...]:
        """Labels of rows that have no rank because a number is missing."""
        if not self.ranked:
            return ()
        return tuple(
            row.label
            for row in self.rows
            if row.kind == "continual" and not row.complete(self.columns)
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What readers must know of the whole table."""
        lacking = (
            *self.lacking_sentences,
            *((f"Nothing has run of {listing(self.lacking_rows)}.",) if self.lacking_rows else ()),
        )
        unranked = (
            (f"Not ranked because a number is missing: {listing(self.unranked)}.",)
            if self.unranked
            else ()
        )
        return (*lacking, *self.remarks, *unranked, *self.paper_remarks)

    @property
    def lacking_sentences(self) -> tuple[str, ...]:
        """That data sets have no column: without them a table looks whole."""
        if not self.lacking_columns:
            return ()
        return (f"Nothing has run on {listing(self.lacking_columns)}.",)

    def sections(self) -> dict[str, list[Row]]:
        """The rows by kind: ranked ones first, then offline and adapted ones."""
        by_kind: dict[str, list[Row]] = {kind: [] for kind in SECTIONS}
        for row in self.rows:
            by_kind.setdefault(row.kind, []).append(row)
        return {kind: rows for kind, rows in by_kind.items() if rows}

    @property
    def decimals(self) -> int:
        """How many to show: one for scores; for times, as many as the smallest needs."""
        if self.unit in ("%", "points"):
            return 1
        sizes = [abs(cell.mean) for row in self.rows for cell in row.cells.values() if cell.mean]
        return next((places for places in (1, 2, 3) if sizes and min(sizes) >= 10**-places), 4)

    @property
    def has_paper(self) -> bool:
        """Whether any cell has a number of the paper."""
        return any(cell.paper is not None for row in self.rows for cell in row.cells.values())


@dataclass(frozen=True)
class Provenance:
    """Where the numbers come from: (what, value) pairs, and commands that reproduce the tables."""

    facts: tuple[tuple[str, str], ...] = ()
    commands: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """All of it. `problems` are what readers must know first: damaged runs, mixed versions,
    missing data sets.
    """

    title: str
    tables: tuple[Table, ...] = ()
    provenance: Provenance = field(default_factory=Provenance)
    problems: tuple[str, ...] = ()
    # Names of the experiments that the folder records.
    experiments: tuple[str, ...] = ()

    @property
    def has_paper(self) -> bool:
        """Whether any table has numbers of the paper."""
        return any(table.has_paper for table in self.tables)
