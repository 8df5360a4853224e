"""Numbers and cells as text, and the colours of groups: the same in every form."""

from dataclasses import dataclass
from string import ascii_lowercase

from ..results.tables import Cell, Column, Table
from ..runs import catalog
from ..tasks.metrics import METRICS

NOTHING = "–"


@dataclass(frozen=True)
class Text:
    """A cell as text: the number, its error or interval, the published number, and notes."""

    number: str
    error: str = ""
    interval: str = ""
    published: str = ""
    difference: str = ""
    notes: tuple[str, ...] = ()


def number(value: float | None, decimals: int = 1, *, sign: bool = False) -> str:
    """A number with a typographic minus; a dash for None and NaN."""
    if value is None or value != value:
        return NOTHING
    value = round(value, decimals) + 0.0  # turns -0.0 into 0.0
    shown = f"{value:+.{decimals}f}" if sign and value else f"{value:.{decimals}f}"
    return shown.replace("-", "\u2212")


def cell_text(cell: Cell | None, column: Column, table: Table) -> Text:
    """A cell of a table as text; without a number, its first note says why."""
    if cell is None:
        return Text("" if column.kind == "score" else NOTHING)
    # Ranks that are whole numbers have no decimals.
    decimals = int(column.key != "rank") if column.kind == "rank" else table.decimals
    published = "" if cell.published is None else number(cell.published, decimals)
    if published and cell.published_error is not None:
        published += f" ± {number(cell.published_error, decimals)}"
    if cell.mean is None:
        first, *others = cell.notes or (NOTHING,)
        return Text(first, published=published, notes=tuple(others))
    interval = ""
    if cell.low is not None and cell.high is not None:
        low, high = (number(value, decimals, sign=True) for value in (cell.low, cell.high))
        interval = f"[{low}, {high}]"
    shown = number(cell.mean, decimals, sign=column.kind == "difference")
    shown = f"{shown} ({cell.at})" if cell.at else shown
    error = number(cell.error, decimals) if cell.error is not None else ""
    apart = number(cell.difference, decimals, sign=True) if cell.difference is not None else ""
    return Text(shown, error, interval, published, apart, cell.notes)


def head(column: Column) -> str:
    """The head of a column with its metric, if that is not accuracy, and what its data are."""
    metric = "" if column.metric == "accuracy" else metric_label(column)
    details = [text for text in (metric, "generated data" if column.generated else "") if text]
    return f"{column.label} ({', '.join(details)})" if details else column.label


def letter_of(note: str, letters: dict[str, str]) -> str:
    """The letter of a note in a table: a to z, then aa, ab, ...; a new note gets the next one."""
    if note not in letters:
        index, letter = len(letters), ""
        while index >= 0:
            letter = ascii_lowercase[index % 26] + letter
            index = index // 26 - 1
        letters[note] = letter
    return letters[note]


def legend(table: Table) -> str:
    """What the numbers and marks of a table mean, without the marks."""
    direction = "higher" if table.higher_is_better else "lower"
    kinds = {column.kind for column in table.columns}
    text = f"In {table.unit}; {direction} is better."
    if any(cell.error is not None for cell in table.cells):
        text += " ± is the standard error (divisor n − 1) over the units that the table names."
    if "difference" in kinds:
        intervals = any(cell.low is not None for cell in table.cells)
        words = "in brackets, their 95% interval" if intervals else "too few units for an interval"
        text += f" Differences are paired; {words}."
    return text


def metric_label(column: Column) -> str:
    """The metric of a column in words; empty for ranks and differences."""
    known = METRICS.get(column.metric)
    return known.label if known is not None else column.metric


WHITE, GREY = "#ffffff", "#8a8a8a"
# Colours that people with any colour vision can distinguish, in the order of the catalog's groups.
SERIES = (
    *("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8f8f2a"),
    *("#7a5cc0", "#996633", "#5c8a8a", "#b0457b", "#4c7a34", "#c23b22", "#6b6b6b"),
)


def line(group: str) -> str:
    """The colour of a group's lines and points, visible on white and on black."""
    return SERIES[catalog.GROUPS.index(group)] if group in catalog.GROUPS else GREY


def fill(group: str) -> str:
    """The background colour of a group's rows and bars: its line's, mixed with white."""
    colour = line(group)
    if colour == GREY:
        return WHITE
    parts = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return "#" + "".join(f"{round(255 + 0.35 * (part - 255)):02x}" for part in parts)
