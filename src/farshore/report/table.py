"""What a report says, without its form: cells, rows, tables, significance, provenance.

Every form (page, Markdown, CSV, LaTeX) shows these and computes nothing of its own. Scores are in
percent, as the paper prints them; `Table.unit` says what a number is where it is something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# The paper's colours of the groups, and its names for them. It has no colour for the upper bound;
# its replay colour is for both kinds.
COLOURS: dict[str, str] = {
    "finetune": "#cacaca",
    "optimization": "#f5b4c7",
    "regularization": "#e7c3b0",
    "replay": "#b5d1d6",
    "latent-replay": "#b5d1d6",
    "tailored": "#bdd3b2",
    "naive": "#d8c3f2",
    "adaptation": "#cc6600",
    "upper-bound": "#ffffff",
}
# Borders of the two groups that the paper draws in figures.
BORDERS: dict[str, str] = {"tailored": "#314527", "naive": "#8645d6"}
GROUP_LABELS: dict[str, str] = {
    "finetune": "Finetune",
    "optimization": "Optimization",
    "regularization": "Regularization",
    "replay": "Replay",
    "latent-replay": "Latent replay",
    "tailored": "Tailored (★)",
    "naive": "Naïve",
    "adaptation": "Adaptation",
    "upper-bound": "Upper bound",
}
# The parts of a table by the kind of their rows, in their order; what stands above each. Only the
# first is ranked.
SECTIONS: dict[str, str] = {
    "continual": "",
    "offline": "Learned all sources at once (never ranked)",
    "adaptation": "Adapted to the target's inputs (never ranked)",
}


@dataclass(frozen=True)
class Cell:
    """One number: mean and standard error over seeds, the paper's beside it, and what is not as
    planned in `notes`.

    `trials` are those of the seed with the fewest; `place` is 1, 2 or 3 for the best of a column
    among the ranked rows.
    """

    mean: float | None
    error: float | None = None
    paper: float | None = None
    paper_error: float | None = None
    seeds: int = 0
    seeds_planned: int = 0
    trials: int = 0
    trials_planned: int = 0
    place: int | None = None
    notes: tuple[str, ...] = ()
    # One value a seed, of those that gave a number.
    values: tuple[float, ...] = ()

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's, where both are there."""
        return self.mean - self.paper if self.mean is not None and self.paper is not None else None

    @property
    def whole(self) -> bool:
        """Whether every planned seed and trial is in it."""
        return (
            self.mean is not None
            and self.seeds == self.seeds_planned
            and self.trials == self.trials_planned
        )


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
    """One method. A column that is not in `cells` was never planned for it. `variant` sets apart
    rows of the same method.
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
    difference_to_finetune: float | None = None
    variant: str = ""
    # The paper's arithmetic mean, geometric mean and median of ranks, where it prints them.
    paper_ranks: tuple[float, float, float] | None = None

    @property
    def key(self) -> str:
        """Unlike the label, never the same for two rows of a table."""
        return f"{self.method} {self.variant}".strip()

    @property
    def ranked(self) -> bool:
        """Whether it has a rank."""
        return self.rank_arithmetic is not None

    @property
    def colour(self) -> str:
        """Of its group, as in the paper."""
        return COLOURS.get(self.group, "#ffffff")


@dataclass(frozen=True)
class Significance:
    """What the ranks of a table show, and what they do not. `sentences` say it in words; the
    rest is for figures and checks.
    """

    methods: tuple[str, ...]
    datasets: tuple[str, ...]
    alpha: float
    mean_ranks: Mapping[str, float]
    friedman: float | None
    friedman_p: float | None
    iman_davenport: float | None
    iman_davenport_p: float | None
    # Nemenyi: two methods whose mean ranks are less apart than this are not told apart.
    critical_difference: float | None
    # Groups of methods, best rank first, within which no two are told apart.
    cliques: tuple[tuple[str, ...], ...]
    # Wilcoxon signed-rank: a, b, p, p after Holm's correction.
    pairwise: tuple[tuple[str, str, float, float], ...]
    # 95% intervals of the average and of its difference to Finetune, from resampled data sets and
    # seeds.
    bootstrap: Mapping[str, tuple[float, float]]
    bootstrap_difference: Mapping[str, tuple[float, float]]
    sentences: tuple[str, ...]
    # Row keys and the labels to show for them.
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """A table beside the paper's. `whole` is False where anything planned is missing, and the
    title says so then.
    """

    name: str
    title: str
    about: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    whole: bool = True
    higher_is_better: bool = True
    unit: str = "%"
    significance: Significance | None = None
    # Whether ranks and an average over the columns mean something here.
    ranked: bool = True
    # The paper's table, by its name in the package's numbers; empty where the paper has none.
    paper: str = ""
    paper_title: str = ""

    def sections(self) -> dict[str, list[Row]]:
        """The rows by kind: ranked ones first, offline and adapted ones apart."""
        found: dict[str, list[Row]] = {kind: [] for kind in SECTIONS}
        for row in self.rows:
            found.setdefault(row.kind, []).append(row)
        return {kind: rows for kind, rows in found.items() if rows}

    @property
    def decimals(self) -> int:
        """How many to show: one for scores, as the paper does; of times as many as the smallest
        needs to be seen.
        """
        if self.unit in ("%", "points"):
            return 1
        sizes = [abs(cell.mean) for row in self.rows for cell in row.cells.values() if cell.mean]
        return next((places for places in (1, 2, 3) if sizes and min(sizes) >= 10**-places), 4)

    @property
    def has_paper(self) -> bool:
        """Whether any cell has the paper's number beside it."""
        return any(cell.paper is not None for row in self.rows for cell in row.cells.values())


@dataclass(frozen=True)
class Provenance:
    """Where the numbers come from: (what, value) pairs to show, and the commands that give the
    tables again.
    """

    facts: tuple[tuple[str, str], ...] = ()
    commands: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """All of it. `problems` are what a reader must know before the numbers: damaged runs, mixed
    versions, missing data sets.
    """

    title: str
    tables: tuple[Table, ...] = ()
    provenance: Provenance = field(default_factory=Provenance)
    problems: tuple[str, ...] = ()
    # Names of the experiments that the folder records.
    experiments: tuple[str, ...] = ()
