"""docs/referee.md: published numbers on natural sequences beside ours, claim by claim.

It is made from referee-head.md, the table of the experiment `referee`, and the files of anchors/.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pandas as pd

from farshore.results import summary
from reproduction import ANCHORS, DOCS
from reproduction.arithmetic import (
    UNLIMITED,
    Difference,
    Scores,
    Unit,
    mean,
    names,
    paired_difference,
    scores,
    summary_of,
)
from reproduction.finished_runs import SCORE, rows_of
from reproduction.formatting import filled, interval, markdown, printed, several

PAGE = DOCS / "referee.md"
HEAD = Path(__file__).parent / "referee-head.md"
LAST = "40"
OFFLINE = ("joint", "joint-linear", "joint-forest", "joint-trees", "majority")


@cache
def published() -> pd.DataFrame:
    """The published numbers."""
    return pd.read_csv(ANCHORS / "published.csv", dtype={"target": str})


def anchors(benchmark: str, target: str | None = None) -> list[tuple[str, float, str]]:
    """Method, number and source of what is published on a data set."""
    frame = published()
    chosen = frame[frame["benchmark"] == benchmark]
    if target is not None:
        chosen = chosen[chosen["target"] == target]
    return list(chosen[["method", "score", "source"]].itertuples(index=False, name=None))


def measured(benchmark: str) -> dict[str, Scores]:
    """Scores in percent by method and place, of methods that ran at all targets; may be empty."""
    by_method = scores(rows_of("referee", benchmark))
    targets = max((len(names(runs, Unit.TARGET)) for runs in by_method.values()), default=0)
    return {
        name: runs for name, runs in by_method.items() if len(names(runs, Unit.TARGET)) == targets
    }


def gap(benchmark: str, first: str, second: str) -> Difference | None:
    """The paired difference of two methods; None if one has not run."""
    by_method = measured(benchmark)
    one, other = (by_method.get(name, {}) for name in (first, second))
    return paired_difference(one, other) if one and other else None


def verdict(found: Difference | None) -> str:
    """What a difference says of a claim that it is above zero."""
    if found is None:
        return "not run"
    if not found.certain:
        return "open"
    return "yes" if found.mean > 0 else "no"


CLAIMS = (
    ("elec2", "Learning in order beats all data at once (DRAIN 12.7, offline 23.0)", "er", "joint"),
    ("elec2", "Replay beats fine-tuning", "er", "finetune"),
    ("diabetes130", "Plain training beats GroupDRO (61.2, 60.0)", "er", "groupdro"),
    ("diabetes130", "Plain training beats CORAL (61.2, 57.1)", "er", "cl-coral"),
    ("diabetes130", "Plain training beats MMD (61.2, 57.0)", "er", "cl-mmd"),
    ("diabetes130", "Plain training beats V-REx (61.2, 50.6)", "er", "cl-vrex"),
    ("diabetes130", "Boosted trees beat networks on all data (61.8, 61.2)", "joint-trees", "joint"),
    ("rotated-mnist-time", "EvoS beats fine-tuning without keeping rows", "evos", "finetune"),
    ("rotated-mnist-time", "EvoS reaches replay without keeping rows", "evos", "er"),
)


def claims_section() -> str:
    """One row per claim: the difference that decides it."""
    rows = []
    for benchmark, claim, first, second in CLAIMS:
        found = gap(benchmark, first, second)
        units = "" if found is None else f", {several(found.units, str(found.unit))}"
        decided = f"`{first}` minus `{second}`"
        rows.append([benchmark, claim, decided, interval(found) + units, verdict(found)])
    return markdown(["data set", "claim", "here", "points of accuracy [95%]", "holds"], rows)


def mark(name: str) -> str:
    """The method, and that it has no rank."""
    return f"`{name}`" + (" (reference)" if name in OFFLINE else "")


def failed(benchmark: str) -> str:
    """A sentence on runs without a score."""
    frame = rows_of("referee", benchmark)
    lost = frame[frame[SCORE].isna()]
    if not len(lost):
        return ""
    counts = lost.groupby("method").size()
    totals = frame.groupby("method").size()
    parts = [f"{count} of {totals[name]} of `{name}`" for name, count in counts.items()]
    return f"\nRuns that diverged and have no score: {', '.join(parts)}.\n"


def designed(by_method: dict[str, Scores]) -> str:
    """The number of targets and seeds of the runs."""
    runs = [place for each in by_method.values() for place in each]
    counts = [several(len(names(runs, unit)), str(unit)) for unit in (Unit.TARGET, Unit.SEED)]
    return f"\n{', '.join(counts)}.\n"


def elec2_section() -> str:
    """Errors over the last eight fortnights and in the last one, with the online learners."""
    by_method = measured("elec2")
    rows = []
    for name in sorted(by_method, key=lambda name: -mean(by_method[name])):
        over = summary_of(by_method[name], Unit.TARGET)
        last = {place: value for place, value in by_method[name].items() if place[1] == LAST}
        rows.append(
            [
                mark(name),
                printed((100 - over.mean, over.error or 0.0)),
                f"{100 - mean(last):.1f}" if last else "-",
                interval(gap("elec2", name, "er")) if name != "er" else "-",
            ]
        )
    header = ["method", "mean error ± standard error", "last", "accuracy minus `er` [95%]"]
    ours = markdown(header, rows) + designed(by_method) if rows else PENDING
    online = pd.read_csv(ANCHORS / "prequential.csv", dtype={"target": str})
    learners = [
        [
            str(name),
            *(part for kind in ("prequential", "frozen") for part in over_targets(each, kind)),
        ]
        for name, each in online.groupby("learner", sort=False)
    ]
    heads = ["learner", "online: mean error", "last", "frozen: mean error", "last"]
    parts = [ours + failed("elec2"), markdown(heads, learners), table_of_anchors("elec2", "error")]
    return "\n".join(parts)


def over_targets(frame: pd.DataFrame, column: str) -> tuple[str, str]:
    """Mean and standard error over targets, and the last target, of a learner's errors."""
    places = {("", each.target, "", "", 0): 100 * each[column] for _, each in frame.iterrows()}
    over = summary.estimate(places, Unit.TARGET, UNLIMITED)
    assert over is not None
    return printed((over.mean, over.error or 0.0)), f"{over.values[LAST]:.1f}"


def diabetes_section() -> str:
    """Accuracies over seeds."""
    by_method = measured("diabetes130")
    rows = []
    for name in sorted(by_method, key=lambda name: -mean(by_method[name])):
        over = summary_of(by_method[name], Unit.SEED)
        against = interval(gap("diabetes130", name, "er")) if name != "er" else "-"
        rows.append([mark(name), printed((over.mean, over.error or 0.0)), against])
    header = ["method", "accuracy ± standard error over seeds", "minus `er` [95%]"]
    ours = markdown(header, rows) + designed(by_method) if rows else PENDING
    return ours + failed("diabetes130") + "\n" + table_of_anchors("diabetes130", "accuracy")


def angles_section() -> str:
    """Accuracies at each angle."""
    by_method = measured("rotated-mnist-time")
    if not by_method:
        return PENDING + "\n" + table_of_anchors("rotated-mnist-time", "accuracy")
    rows = []
    for target in ("60", "70", "80"):
        cells = []
        for runs in by_method.values():
            here = {place: value for place, value in runs.items() if place[1] == target}
            cells.append(f"{mean(here):.1f}" if here else "-")
        ((_, score, _),) = anchors("rotated-mnist-time", target)
        rows.append([target, f"{score:.1f}", *cells])
    header = ["degrees", "EvoS, published", *(mark(name) for name in by_method)]
    return markdown(header, rows) + designed(by_method) + failed("rotated-mnist-time")


def table_of_anchors(benchmark: str, measure: str) -> str:
    """The published numbers on a data set."""
    frame = published()
    rows = [
        [each.method, each.target, f"{each.score:.1f}", each.source]
        for each in frame[frame["benchmark"] == benchmark].itertuples()
    ]
    return markdown(["published", "target", measure, "source"], rows)


PENDING = "These runs have not been carried out yet.\n"


def text() -> str:
    """The whole page."""
    sections = {
        "claims": claims_section,
        "elec2": elec2_section,
        "diabetes130": diabetes_section,
        "rotated-mnist-time": angles_section,
    }
    return filled(HEAD, sections)
