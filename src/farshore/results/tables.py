"""A table of one experiment, independent of its form: columns, rows and cells.

Every number comes from `farshore.results.summary`. Several data sets: a column each, the average,
the ranks, and the difference from the reference. One data set: the mean over its units, the worst
unit, the difference from the reference, and a column per target or order if there are few.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd

from ..benchmarks import BENCHMARKS
from ..runs import catalog
from ..tasks.metrics import MIXED, Metric, listed, several
from .measures import Measure
from .published import SUMMARIES, Published
from .select import observed
from .summary import Difference, Estimate, Ranking, Unit, estimate, metric_of, scores_of, unit_of
from .tests import DECIMALS, rank_methods

# The headings above the rows of each kind. Only the first kind is ranked.
SECTIONS: dict[str, str] = {
    "continual": "",
    "offline": "Trained on all sources at once (never ranked)",
    "adaptation": "Adapted to the target's inputs (never ranked)",
    "reference": "For reference (never ranked)",
}
# A data set with more targets, or more orders, than this has no column for each of them.
MOST_TARGETS, MOST_ORDERS = 12, 4
# Summaries of the ranks over several data sets, as the paper prints them.
RANKS = {
    "rank mean": "mean of the ranks on the data sets, ties averaged",
    "rank geometric mean": "geometric mean of the ranks on the data sets",
    "rank median": "median of the ranks on the data sets",
}
GENERATED, PART = "generated data", "part of the data"


class CellStatus(StrEnum):
    """The outcome of a cell in one word; its counts give the details."""

    DONE = "done"
    # A number, but some planned runs or trials have none.
    PARTIAL = "partial"
    # No number: all runs diverged, were stopped, or have no value of the measure.
    DIVERGED = "diverged"
    PRUNED = "pruned"
    UNDEFINED = "undefined"
    MISSING = "missing"


@dataclass(frozen=True)
class Counts:
    """Runs behind a cell, `planned` and `done`; trials are of the seed with the fewest."""

    planned: int = 0
    done: int = 0
    diverged: int = 0
    pruned: int = 0
    undefined: int = 0
    trials: int = 0
    trials_planned: int = 0

    @property
    def ended(self) -> int:
        """How many runs have ended, with or without a number."""
        return self.done + self.diverged + self.pruned + self.undefined

    @property
    def lacking(self) -> bool:
        """Whether something planned has not run."""
        return self.ended < self.planned or self.trials < self.trials_planned

    @property
    def notes(self) -> tuple[str, ...]:
        """What readers must know; the reason for a missing number comes first."""
        if not self.ended:
            return (CellStatus.MISSING.value,)
        ends = (
            (f"diverged: {self.diverged} of {self.planned} runs", self.diverged),
            (f"stopped early: {self.pruned} of {self.planned} runs", self.pruned),
            ("not defined", self.undefined),
        )
        missing = (
            (f"{self.ended} of {self.planned} runs", self.ended < self.planned),
            (f"{self.trials} of {self.trials_planned} trials", self.trials < self.trials_planned),
        )
        ordered = (*missing, *ends) if self.done else (*ends, *missing)
        return tuple(text for text, applies in ordered if applies)


@dataclass(frozen=True)
class Cell:
    """One number in the unit of the table, or why there is none.

    error: standard error over the units; low, high: 95% interval, of differences only.
    at: the unit of a worst score. values: the score at each unit, by its name.
    place: 1, 2 or 3 for the best three of a column among the ranked rows.
    published: the number that was published for it, and its error.
    lacks: what an average lacks; empty if it lacks nothing.
    """

    mean: float | None
    error: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str = ""
    at: str = ""
    values: Mapping[str, float] = field(default_factory=dict)
    counts: Counts = Counts()
    place: int | None = None
    published: float | None = None
    published_error: float | None = None
    generated: bool = False
    part: bool = False
    lacks: str = ""

    @property
    def status(self) -> CellStatus:
        """The outcome in one word."""
        if self.mean is not None:
            lacking = self.counts.lacking or self.counts.done < self.counts.planned
            return CellStatus.PARTIAL if lacking or self.lacks else CellStatus.DONE
        if self.counts.diverged:
            return CellStatus.DIVERGED
        if self.counts.pruned:
            return CellStatus.PRUNED
        return CellStatus.UNDEFINED if self.counts.undefined else CellStatus.MISSING

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for readers; without a number, the first one says why."""
        data = ((self.lacks, self.lacks), (GENERATED, self.generated), (PART, self.part))
        counted = self.counts.notes if self.counts.planned else ()
        return (*counted, *(text for text, applies in data if applies))

    @property
    def difference(self) -> float | None:
        """Our number minus the published one, if both exist."""
        if self.mean is None or self.published is None:
            return None
        return self.mean - self.published


@dataclass(frozen=True)
class Column:
    """A column: a data set, a target or order of one, a rank, or a difference.

    kind: score, worst, difference, average or rank.
    generated: whether the data were generated by farshore's corruption code.
    """

    key: str
    label: str
    kind: str = "score"
    metric: str = ""
    generated: bool = False

    @property
    def title(self) -> str:
        """A longer explanation; may be empty."""
        return RANKS.get(self.key, "")


@dataclass(frozen=True)
class Row:
    """One method. A column that is not in `cells` was not planned for it."""

    row: str
    method: str
    variant: str
    group: str
    kind: str
    cells: Mapping[str, Cell]


@dataclass(frozen=True)
class Table:
    """One table, titled so if not `whole`; `absent` data sets have no column."""

    name: str
    title: str
    about: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    remarks: tuple[str, ...] = ()
    whole: bool = True
    unit: str = "%"
    higher_is_better: bool = True
    published_title: str = ""
    absent: tuple[str, ...] = ()

    def sections(self) -> dict[str, list[Row]]:
        """The rows by the heading above them."""
        sections: dict[str, list[Row]] = {}
        for kind in dict.fromkeys([*catalog.KINDS, *(row.kind for row in self.rows)]):
            of_kind = [row for row in self.rows if row.kind == kind]
            if of_kind:
                sections[SECTIONS.get(kind, kind)] = of_kind
        return sections

    @property
    def decimals(self) -> int:
        """How many decimals to show: one for scores; for times, as many as the smallest needs."""
        if self.unit in ("%", "points"):
            return 1
        sizes = [abs(cell.mean) for cell in self.cells if cell.mean]
        return next((places for places in (1, 2, 3) if sizes and min(sizes) >= 10**-places), 4)

    @property
    def cells(self) -> list[Cell]:
        """The cells of all rows."""
        return [cell for row in self.rows for cell in row.cells.values()]

    @property
    def has_marks(self) -> bool:
        """Whether any cell is among the best three of its column."""
        return any(cell.place for cell in self.cells)

    @property
    def has_published(self) -> bool:
        """Whether any cell has a published number."""
        return any(cell.published is not None for cell in self.cells)


@dataclass(frozen=True)
class Description:
    """All of a table but numbers; `planned`: a plan, not the fullest cell, counts runs."""

    name: str
    title: str
    about: str
    remarks: tuple[str, ...] = ()
    whole: bool = True
    planned: bool = True


def make_table(
    frame: pd.DataFrame,
    description: Description,
    measure: Measure,
    ranking: Ranking | None = None,
    published: Published | None = None,
) -> Table:
    """The table of these runs.

    ranking: of the same runs; None if they are not ranked, because they vary a setting or show
        another measure than the score on the target.
    """
    scored = _measured(observed(frame), measure)
    main = metric_of(scored)
    in_percent = main.scale == 100
    metric = main if measure.ranked and not in_percent else MIXED
    if not measure.ranked:
        better = measure.higher_is_better
        metric = replace(MIXED, scale=1, high=np.inf, low=-np.inf, higher_is_better=better)
    unit = measure.unit
    if unit in ("%", "points") and not in_percent:
        unit = main.unit.strip() or main.label
    averaged = ranking is not None or not measure.ranked
    trials = _trials(frame)
    columns, cells = _columns(scored, metric, ranking, averaged, trials, description.planned)
    ranked = {each.row for each in ranking.ranked} if ranking is not None else None
    rows = [_row(scored, row, cells, published) for row in _ordered(scored, ranking)]
    rows = [row for row in rows if any(cell.counts.ended for cell in row.cells.values())]
    rows = _placed(rows, columns, measure, ranked)
    shown = tuple(column for column in columns if any(column.key in row.cells for row in rows))
    absent = tuple(_absent(scored))
    left = [row for row in dict.fromkeys(scored["row"]) if row not in {each.row for each in rows}]
    counts = [cell.counts for row in rows for cell in row.cells.values()]
    there = description.whole and not absent and not left
    whole = there and not any(each.lacking or each.diverged or each.pruned for each in counts)
    remarks = (
        *([nothing_on(absent)] if absent else []),
        *([f"Nothing has run for {listed(left)}."] if left else []),
        *description.remarks,
        *_about_data(scored),
        *(published.notes if published else ()),
    )
    return Table(
        name=description.name,
        title=description.title + _ending(there, counts),
        about=description.about,
        columns=shown,
        rows=tuple(rows),
        remarks=remarks,
        whole=whole,
        unit=unit,
        higher_is_better=metric.higher_is_better,
        published_title=published.title if published is not None and published.numbers else "",
        absent=absent,
    )


def nothing_on(names: Sequence[str]) -> str:
    """A sentence about data sets on which nothing has run."""
    return f"Nothing has run on {listed(names)}."


def _measured(frame: pd.DataFrame, measure: Measure) -> pd.DataFrame:
    """The frame with the measure as its score; the score on the target stays a fraction."""
    if measure.ranked:
        return frame
    values = [
        measure.read(result) if status == "done" else None
        for result, status in zip(frame["result"], frame["status"], strict=True)
    ]
    return frame.assign(score=pd.Series(values, index=frame.index, dtype=float))


# Cells by row and column.
Cells = dict[tuple[str, str], Cell]


def _columns(
    scored: pd.DataFrame,
    metric: Metric,
    ranking: Ranking | None,
    averaged: bool,
    trials: Mapping[str, tuple[int, int]],
    planned: bool,
) -> tuple[list[Column], Cells]:
    """All columns, and their cells; `averaged`: whether an average over data sets makes sense."""
    scale = 100 if metric.scale == 100 else 1
    cells: Cells = {}
    columns: list[Column] = []

    def add(column: Column, part: pd.DataFrame) -> None:
        columns.append(column)
        unit = unit_of(part)
        fullest = part.groupby(["kind", "row"]).size().groupby("kind").max().to_dict()
        for (kind, row), of_row in part.groupby(["kind", "row"], sort=False):
            found = estimate(scores_of(part, str(row)), unit, metric)
            most = 0 if planned else int(fullest[kind])
            cells[str(row), column.key] = _cell(found, of_row, scale, trials, most)

    # The data sets in which something has run, in the order of the list of benchmarks.
    known = {name: place for place, name in enumerate(BENCHMARKS.names())}
    ran = dict.fromkeys(scored.loc[scored["status"] != "missing", "benchmark"])
    datasets = sorted(ran, key=lambda name: known.get(name, len(known)))
    for name in datasets:
        part = scored[scored["benchmark"] == name]
        label = name if len(datasets) > 1 else _mean_label(part)
        generated = any(_data_kind(result)[0] for result in part["result"])
        add(Column(name, label, "score", _metric(part), generated), part)
    if len(datasets) > 1 and averaged:
        columns.append(Column("average", "average", "average"))
        _add_averages(cells, datasets, int(scored["benchmark"].nunique()))
    if ranking is not None and ranking.ranked:
        columns += _of_ranking(ranking, cells, scale)
    if len(datasets) == 1:
        part = scored[scored["benchmark"] == datasets[0]]
        _add_units(part, cells, metric, datasets[0], columns, add)
    return columns, cells


def _add_averages(cells: Cells, datasets: Sequence[str], planned: int) -> None:
    """The average of every row over the data sets in which it has a score."""
    for row in dict.fromkeys(row for row, _ in cells):
        scored = {name: cell for name in datasets if (cell := cells.get((row, name))) is not None}
        means = {name: cell.mean for name, cell in scored.items() if cell.mean is not None}
        complete = sum(cell.status is CellStatus.DONE for cell in scored.values())
        lacks = f"complete on {complete} of {planned} data sets" if complete < planned else ""
        if means:
            mean = sum(means.values()) / len(means)
            cells[row, "average"] = Cell(mean, unit=str(Unit.DATASET), values=means, lacks=lacks)


def _add_units(
    scored: pd.DataFrame, cells: Cells, metric: Metric, name: str, columns: list[Column], add: Any
) -> None:
    """The worst unit, and a column for each target or order of a data set if there are few."""
    unit = unit_of(scored)
    if unit is Unit.SEED:
        return
    columns.append(Column("worst", f"worst {unit}", "worst"))
    for row in dict.fromkeys(scored["row"]):
        cell = cells[row, name]
        if cell.values:
            at = (min if metric.higher_is_better else max)(cell.values, key=cell.values.__getitem__)
            cells[row, "worst"] = Cell(cell.values[at], at=at)
    by, most = ("target", MOST_TARGETS) if unit is Unit.TARGET else ("order", MOST_ORDERS)
    names = [each for each in dict.fromkeys(scored[by]) if each]
    if len(names) <= most:
        for each in names:
            label = f"target {each}" if by == "target" else each
            add(Column(f"{by} {each}", label, metric=_metric(scored)), scored[scored[by] == each])


def _of_ranking(ranking: Ranking, cells: Cells, scale: float) -> list[Column]:
    """The ranks and the difference from the reference."""
    columns: list[Column] = []
    if ranking.unit is Unit.DATASET:
        columns += _summaries_of_ranks(ranking, cells)
    elif len(ranking.ranked) > 1:
        columns.append(Column("rank", "rank", "rank"))
        for each in ranking.ranked:
            cells[each.row, "rank"] = Cell(float(each.rank or 0))
    if any(each.difference is not None for each in ranking.standings):
        columns.append(Column("difference", f"minus {ranking.reference}", "difference"))
        for each in ranking.standings:
            if each.difference is not None:
                cells[each.row, "difference"] = _difference(each.difference, scale)
    return columns


def _summaries_of_ranks(ranking: Ranking, cells: Cells) -> list[Column]:
    rows = ranking.ranked
    if len(rows) < 2:
        return []
    first = rows[0].estimate
    names = list(first.values) if first is not None else []
    table = [[each.estimate.values[name] for name in names] for each in rows if each.estimate]
    ranks = rank_methods(table, higher_is_better=ranking.metric.higher_is_better)
    summaries = (ranks.mean(axis=1), np.exp(np.log(ranks).mean(axis=1)), np.median(ranks, axis=1))
    for key, values in zip(RANKS, summaries, strict=True):
        for each, value in zip(rows, values, strict=True):
            cells[each.row, key] = Cell(float(value))
    return [Column(key, key, "rank") for key in RANKS]


def _cell(
    found: Estimate | None,
    of_row: pd.DataFrame,
    scale: float,
    trials: Mapping[str, tuple[int, int]],
    most: int,
) -> Cell:
    statuses = list(of_row["status"])
    done = int(of_row["score"].notna().sum())
    kinds = [_data_kind(result) for result in of_row["result"]]
    ended, planned = zip(*(trials[run] for run in of_row["run"]), strict=True)
    counts = Counts(
        planned=max(len(of_row), most),
        done=done,
        diverged=statuses.count("diverged"),
        pruned=statuses.count("pruned"),
        undefined=statuses.count("done") - done,
        trials=min((count for count in ended if count), default=0),
        trials_planned=max(planned),
    )
    generated, part = any(each[0] for each in kinds), any(each[1] for each in kinds)
    cell = Cell(None, counts=counts, generated=generated, part=part)
    if found is None:
        return cell
    values = {name: scale * value for name, value in found.values.items()}
    error = scale * found.error if found.error is not None else None
    return replace(cell, mean=scale * found.mean, error=error, unit=str(found.unit), values=values)


def _difference(found: Difference, scale: float) -> Cell:
    low, high = (scale * value if value is not None else None for value in (found.low, found.high))
    return Cell(scale * found.mean, low=low, high=high, unit=str(found.unit))


def _trials(frame: pd.DataFrame) -> dict[str, tuple[int, int]]:
    """By run: how many trials of its seed ended, with all runs that judge them, of how many."""
    counts: dict[str, tuple[int, int]] = {}
    for _, of_seed in frame.groupby(["experiment", "condition", "seed"], sort=False):
        waiting = set(of_seed.loc[of_seed["status"] == "missing", "trial"])
        trials = set(of_seed["trial"])
        counts |= dict.fromkeys(of_seed["run"], (len(trials - waiting), len(trials)))
    return counts


def _row(scored: pd.DataFrame, row: str, cells: Cells, published: Published | None) -> Row:
    first = scored[scored["row"] == row].iloc[0]
    of_row = {column: cell for (name, column), cell in cells.items() if name == row}
    if published is not None:
        method, variant = first["method"], first["variant"]
        same = published.data_sets(method, variant) == {
            column for column, cell in of_row.items() if cell.mean is not None
        }.intersection(scored["benchmark"])
        for column, cell in of_row.items():
            number = published.find(method, variant, column)
            if number is not None and (same or column not in SUMMARIES):
                of_row[column] = replace(cell, published=number[0], published_error=number[1])
    return Row(row, first["method"], first["variant"], first["group"], first["kind"], of_row)


def _placed(
    rows: Sequence[Row], columns: Sequence[Column], measure: Measure, ranked: set[str] | None
) -> list[Row]:
    """Mark the best three of each column of scores among the ranked rows, or all continual ones."""
    sign = -1 if measure.higher_is_better else 1
    places: dict[tuple[str, str], int] = {}
    for column in columns:
        if column.kind not in ("score", "average", "worst"):
            continue
        cells = {
            row.row: cell
            for row in rows
            if (row.kind == "continual" if ranked is None else row.row in ranked)
            and (cell := row.cells.get(column.key)) is not None
        }
        # An average over fewer data sets than others is another number.
        most = max((len(cell.values) for cell in cells.values()), default=0)
        means = {
            row: sign * round(cell.mean, DECIMALS)
            for row, cell in cells.items()
            if cell.mean is not None and (column.kind != "average" or len(cell.values) == most)
        }
        if len(means) > 1:
            for name, mean in means.items():
                place = 1 + sum(other < mean for other in means.values())
                places |= {(name, column.key): place} if place <= 3 else {}

    def marked(row: Row) -> Row:
        cells = row.cells.items()
        placed = {key: replace(cell, place=places.get((row.row, key))) for key, cell in cells}
        return replace(row, cells=placed)

    return [marked(row) for row in rows]


def _ordered(scored: pd.DataFrame, ranking: Ranking | None) -> list[str]:
    """The rows by rank; without a ranking, by kind and in the order of the catalog."""
    if ranking is not None:
        return [each.row for each in ranking.standings]
    methods = [entry.name for members in catalog.grouped().values() for entry in members]
    keys = list(dict.fromkeys(zip(scored["row"], scored["method"], scored["kind"], strict=True)))

    def position(key: tuple[str, str, str]) -> tuple[int, int]:
        known = ((catalog.KINDS, key[2]), (methods, key[1]))
        first, second = (of.index(it) if it in of else len(of) for of, it in known)
        return first, second

    return [row for row, _, _ in sorted(keys, key=position)]


def _mean_label(part: pd.DataFrame) -> str:
    """The head of the only data set's column: what its mean is over."""
    unit, name = unit_of(part), str(part["benchmark"].iloc[0])
    if unit is Unit.SEED:
        return name
    values = part[{Unit.TARGET: "target", Unit.LAST_SOURCE: "last_source"}.get(unit, "order")]
    count = len({value for value in values if value})
    return f"{name}, mean over {several(count, unit)}"


def _metric(part: pd.DataFrame) -> str:
    return next((name for name in part["metric"] if name), "accuracy")


def _data_kind(result: Any) -> tuple[bool, str]:
    """Whether farshore generated the data's corruptions, and which part of the data they are."""
    data = result.data if result is not None else {}
    return data.get("corruptions") == "generated", str(data.get("part") or "")


def _absent(scored: pd.DataFrame) -> list[str]:
    """The data sets on which nothing has run."""
    ran = {str(name) for name in scored.loc[scored["status"] != "missing", "benchmark"]}
    return [name for name in dict.fromkeys(scored["benchmark"]) if name not in ran]


def _about_data(scored: pd.DataFrame) -> list[str]:
    """Sentences about data that were generated, or of which only a part was used."""
    notes: dict[str, None] = {}
    made = "the corruptions were generated by farshore; they are not the published ones."
    for name, result in zip(scored["benchmark"], scored["result"], strict=True):
        generated, part = _data_kind(result)
        notes |= {f"{name}: {made}": None} if generated else {}
        notes |= {f"{name}: a part of the data ({part}).": None} if part else {}
    return list(notes)


def _ending(all_there: bool, counts: Sequence[Counts]) -> str:
    """What the title adds in brackets if the table is incomplete."""
    words = {
        "partial": not all_there or any(each.lacking for each in counts),
        "with diverged runs": any(each.diverged for each in counts),
        "with runs stopped early": any(each.pruned for each in counts),
    }
    texts = [text for text, applies in words.items() if applies]
    return f" ({', '.join(texts)})" if texts else ""
