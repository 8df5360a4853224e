"""What a report knows beyond its runs: labels, orders, colours, and published numbers.

Everything that builds tables or figures receives an `Overlay`. The plain one adds nothing: methods
and data sets keep the names that users type. The paper's overlay is in `farshore.report.paper`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..benchmarks import BENCHMARKS
from .colours import fill, line
from .names import in_order

# The method that the others are compared with: training without protection against forgetting.
BASELINE = "finetune"
# An overlay's name for the numbers of a comparison at the defaults, with any methods.
COMPARISON = "compare"

Number = tuple[float, float | None]


@dataclass(frozen=True)
class PaperTable:
    """Published numbers for one of our tables, by (method, variant, data set)."""

    name: str
    title: str
    numbers: Mapping[tuple[str, str, str], Number]
    # The end of the paper's rows: the average, and mean, geometric mean and median of the ranks.
    averages: Mapping[str, float] = field(default_factory=dict)
    ranks: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    # Trials and seeds of the search behind the numbers; None without a search.
    search: tuple[int, int] | None = None

    def number(self, method: str, dataset: str, variant: str = "") -> Number | None:
        """Mean and standard error, if they were published."""
        return self.numbers.get((method, variant, dataset))

    def datasets(self) -> list[str]:
        """The data sets with numbers."""
        return list(dict.fromkeys(dataset for _, _, dataset in self.numbers))


@dataclass(frozen=True)
class Beside:
    """Rows of another experiment to show in the same table, as this variant of their methods."""

    experiment: str
    methods: tuple[str, ...]
    variant: str = ""


class Overlay:
    """The plain overlay: no published numbers, names as they are typed, neutral colours."""

    baseline: str = BASELINE

    def numbers(self, experiment: str) -> PaperTable | None:
        """Published numbers to show next to those of an experiment."""
        return None

    def beside(self, experiment: str) -> Beside | None:
        """Rows of another experiment to show in this experiment's table."""
        return None

    def label(self, method: str) -> str:
        """The name of a method for readers."""
        return method

    def dataset_label(self, benchmark: str) -> str:
        """The name of a data set for readers."""
        return benchmark

    def group_label(self, group: str) -> str:
        """The name of a group of methods for readers."""
        return group.replace("-", " ").capitalize()

    def datasets_in_order(self, names: Iterable[str]) -> list[str]:
        """The columns of a table in order."""
        return in_order(names, BENCHMARKS.names())

    def tables_in_order(self, stems: Iterable[str]) -> list[str]:
        """The tables of a report in order, by the names of their recorded experiments."""
        return list(stems)

    def fill(self, group: str) -> str:
        """The background colour of a group's rows and bars."""
        return fill(group)

    def line(self, group: str) -> str:
        """The colour of a group's lines and points, visible on white and on black."""
        return line(group)

    def example(self, figure: str) -> str:
        """An experiment file to suggest for the data of a figure, or an empty text."""
        return ""


NO_OVERLAY = Overlay()
