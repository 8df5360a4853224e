"""The paper's overlay."""

from __future__ import annotations

from collections.abc import Iterable

from ..names import in_order, method_group
from ..overlay import Beside, Overlay, PaperTable
from .experiments import BESIDE, EXAMPLES, FIRST, LAST
from .labels import DATASETS, FILLS, GROUPS, LINES, METHODS, PREFIXES
from .numbers import paper_table


class PaperOverlay(Overlay):
    """The paper's numbers, labels, colours and orders; everything else stays plain."""

    def numbers(self, experiment: str) -> PaperTable | None:
        """The paper's numbers for an experiment of this name."""
        return paper_table(experiment)

    def beside(self, experiment: str) -> Beside | None:
        """Rows of another experiment that the paper prints in the same table."""
        return BESIDE.get(experiment)

    def label(self, method: str) -> str:
        """The paper's name; a star marks its tailored methods. Plugins keep their own names."""
        group, _ = method_group(method)
        base = method.removeprefix("naive-")
        name = METHODS.get(base, base if group == "other" else base.upper())
        return PREFIXES.get(group, "") + name

    def dataset_label(self, benchmark: str) -> str:
        """The paper's name of a data set."""
        return DATASETS.get(benchmark, benchmark)

    def group_label(self, group: str) -> str:
        """The paper's name of a group."""
        return GROUPS.get(group) or super().group_label(group)

    def datasets_in_order(self, names: Iterable[str]) -> list[str]:
        """The data sets in the order of the paper's tables."""
        return in_order(names, DATASETS)

    def tables_in_order(self, stems: Iterable[str]) -> list[str]:
        """The main table, then a user's own experiments, then the paper's other tables."""
        recorded = list(stems)

        def named(names: Iterable[str]) -> list[str]:
            return [stem for name in names for stem in recorded if stem.partition(".")[0] == name]

        first, last = named(FIRST), named(LAST)
        own = [stem for stem in recorded if stem not in first and stem not in last]
        return [*first, *own, *last]

    def fill(self, group: str) -> str:
        """The paper's background colour of a group."""
        return FILLS.get(group) or super().fill(group)

    def line(self, group: str) -> str:
        """The paper's hue of a group, strong enough for lines."""
        return LINES.get(group) or super().line(group)

    def example(self, figure: str) -> str:
        """The paper's experiment with the data for a figure."""
        return EXAMPLES.get(figure, "")


PAPER = PaperOverlay()
