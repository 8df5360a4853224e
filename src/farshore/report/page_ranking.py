"""A ranking as the page shows it: texts and colours."""

from __future__ import annotations

from dataclasses import dataclass

from .overlay import Overlay
from .page_table import number
from .ranking import RankedRow, Ranking
from .table import SECTIONS

GUESSING = "no better than guessing"


@dataclass(frozen=True)
class PageRankedRow:
    """One method as texts."""

    rank: str
    label: str
    colour: str
    mean: str
    half: str
    worst: str
    best: str
    difference: str
    together: bool
    flag: str


@dataclass(frozen=True)
class PageRanking:
    """The rows of one metric by section; `sections` have a heading unless they are ranked."""

    name: str
    label: str
    unit: str
    higher_is_better: bool
    reference: str
    main: bool
    sections: list[tuple[str, list[PageRankedRow]]]


def page_ranking(ranking: Ranking, overlay: Overlay) -> PageRanking:
    """The ranking for the template."""
    sections: dict[str, list[PageRankedRow]] = {}
    for row in ranking.rows:
        heading = "" if row.rank is not None else SECTIONS.get(row.entrant.kind, "")
        if row.rank is None and row.entrant.kind == "continual":
            heading = "Not ranked because some scores are missing"
        sections.setdefault(heading, []).append(_row(row, ranking.metric.decimals, overlay))
    metric = ranking.metric
    return PageRanking(
        metric.name or "main",
        metric.label,
        metric.unit,
        metric.higher_is_better,
        ranking.reference,
        ranking.main,
        list(sections.items()),
    )


def _row(row: RankedRow, digits: int, overlay: Overlay) -> PageRankedRow:
    return PageRankedRow(
        rank=str(row.rank) if row.rank is not None else "–",
        label=row.entrant.label,
        colour=overlay.fill(row.entrant.group),
        mean=number(row.mean, digits=digits),
        half=number(row.half, digits=digits) if row.half is not None else "",
        worst=number(row.worst, digits=digits),
        best=number(row.best, digits=digits),
        difference=number(row.difference.mean, sign=True, digits=digits)
        if row.difference is not None
        else "",
        together=row.together,
        flag=GUESSING if row.constant else "",
    )
