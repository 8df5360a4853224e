"""The paper's column of covertype beside ours, with balanced and with natural classes."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from reproduction.arithmetic import Number, means, selected, whole
from reproduction.collect import ROWS
from reproduction.compared import METHODS
from reproduction.finished_runs import AS_IT_IS, SCORE, rows_of
from reproduction.formatting import listed, markdown, printed
from reproduction.paper.scores import near, papers_scores

SOURCES = "source_train_score"


@dataclass(frozen=True)
class Reading:
    """One reading of the paper's data: the benchmark that is learned, and the target's column."""

    name: str
    benchmark: str
    target: str


BALANCED = Reading("balanced", "covertype", SCORE)
NATURAL = Reading("all natural", "covertype-natural", AS_IT_IS)
READINGS = (BALANCED, Reading("natural target", "covertype", AS_IT_IS), NATURAL)
LEARNED = (BALANCED, NATURAL)


def paper(column: str) -> dict[str, Number]:
    """The paper's scores on the target or on the sources, by method."""
    tables = ("source",) if column == SOURCES else ("naive", "main")
    return papers_scores("covertype", *tables)


def close(frame: pd.DataFrame, column: str) -> set[str]:
    """The methods whose mean over these runs is near the paper's."""
    theirs = paper(column)
    return {
        name
        for name, (score, _) in means(frame, column).items()
        if name in theirs and near(score, theirs[name])
    }


def shared(column: str) -> list[str]:
    """The methods that the paper scores and that ran on both data sets."""
    ran = [set(rows_of("all_orders", each.benchmark)["method"]) for each in LEARNED]
    return [name for name in METHODS if name in paper(column) and name in ran[0] & ran[1]]


def in_order(reading: Reading, order: str) -> pd.DataFrame:
    """The runs with default settings in an order."""
    frame = rows_of("all_orders", reading.benchmark)
    return frame[frame["order"] == order]


def close_on_target(reading: Reading, order: str) -> int:
    """How many systems are near the paper on the target."""
    return len(close(in_order(reading, order), reading.target) & set(shared(SCORE)))


def orders() -> list[str]:
    """All orders of the sources."""
    return sorted(set(rows_of("all_orders", BALANCED.benchmark)["order"]))


def orders_table() -> str:
    """Fine-tuning in every order, and how many systems are near the paper there."""
    on_sources = set(shared(SOURCES))
    rows = []
    for order in orders():
        plain = [means(in_order(each, order), each.target)["finetune"] for each in READINGS]
        plain += [means(in_order(each, order), SOURCES)["finetune"] for each in LEARNED]
        rows.append(
            [
                order.replace(",", ", "),
                *(f"{score:.1f}" for score, _ in plain),
                *(str(close_on_target(each, order)) for each in READINGS),
                *(str(len(close(in_order(each, order), SOURCES) & on_sources)) for each in LEARNED),
            ]
        )
    target = [f"target ({each.name})" for each in READINGS]
    sources = [f"sources ({each.name})" for each in LEARNED]
    header = [
        "order",
        *(f"fine-tuning, {column}" for column in (*target, *sources)),
        *(f"near, {column}" for column in (*target, *sources)),
    ]
    theirs = [printed(paper(column)["finetune"]) for column in (SCORE, SOURCES)]
    return (
        markdown(header, rows) + f"\nThe paper's fine-tuning scores {theirs[0]} on the target and "
        f"{theirs[1]} on the sources. We compare {len(shared(SCORE))} systems on the target and "
        f'{len(on_sources)} on the sources. The columns "near" count those within two of the '
        "paper's standard errors, or 3 points.\n"
    )


def fitted() -> str:
    """The order in which most systems are near the paper on the target, by any reading."""
    return max(orders(), key=lambda order: max(close_on_target(each, order) for each in READINGS))


def methods_table() -> str:
    """Every method beside the paper in the order that fits best."""
    order = fitted()
    columns = [
        *((f"target ({each.name})", each, each.target) for each in READINGS),
        *((f"sources ({each.name})", each, SOURCES) for each in LEARNED),
    ]
    scored = [(means(in_order(each, order), column), paper(column)) for _, each, column in columns]
    rows = [
        [
            f"`{name}`",
            *(marked(ours.get(name), theirs.get(name)) for ours, theirs in scored),
            *(printed(paper(column).get(name)) for column in (SCORE, SOURCES)),
        ]
        for name in shared(SCORE)
    ]
    header = ["method", *(title for title, _, _ in columns), "target (paper)", "sources (paper)"]
    return (
        f"Sources in the order {order.replace(',', ', ')} (in bold: near the paper):\n\n"
        + markdown(header, rows)
    )


def marked(ours: Number | None, theirs: Number | None) -> str:
    """A score, in bold if it is near the paper's."""
    fits = ours is not None and theirs is not None and near(ours[0], theirs)
    return f"**{printed(ours)}**" if fits else printed(ours)


def chosen_runs(reading: Reading) -> pd.DataFrame:
    """The selected runs of the paper's search with drawn orders."""
    return selected(whole(rows_of("paper_protocol", reading.benchmark)))


def search_section() -> str:
    """How many selected runs of the paper's search with drawn orders are near the paper."""
    runs = {each: chosen_runs(each) for each in READINGS}
    both = set(runs[BALANCED]["method"]) & set(runs[NATURAL]["method"]) & set(paper(SCORE))
    counts = [
        f"{len(close(frame, each.target) & both)} ({each.name})" for each, frame in runs.items()
    ]
    return (
        "In the [search with drawn orders](search.md), the "
        f"selected runs of {listed(counts)} of {len(both)} systems are "
        "near the paper on the target.\n"
    )


def second_section() -> str:
    """The paper's second experiment on covertype, where Rawah is the target."""
    theirs = papers_scores("covertype", "other_target")
    frames = {
        each: (frame := rows_of("orders_ablated", each.benchmark))[frame["target"] == "rawah"]
        for each in READINGS
    }
    rows = []
    for name in METHODS:
        if name not in theirs or not all(name in set(each["method"]) for each in frames.values()):
            continue
        row = [f"`{name}`"]
        for each, frame in frames.items():
            by_order = 100 * frame[frame["method"] == name].groupby("order")[each.target].mean()
            row.append(f"{by_order.mean():.1f} ({by_order.min():.1f} to {by_order.max():.1f})")
        rows.append([*row, printed(theirs[name])])
    return markdown(["method", *(each.name for each in READINGS), "paper"], rows)


def share_section() -> str:
    """How frequent the one class is that the target shares with Rawah and Neota."""
    rows = ROWS["cache-la-poudre"]
    pine, total = rows["lodgepole-pine"], sum(rows.values())
    return (
        f"Of all rows of Cache la Poudre, {pine / total:.1%} are lodgepole pine ({pine:,} of "
        f"{total:,}). Rawah and Neota have no other class of the target, so a model that predicts "
        "only classes of these areas cannot score more.\n"
    )


def cope_section() -> str:
    """The paper's score of cope on the sources."""
    score = printed(paper(SOURCES)["cope"])
    return (
        f"One more number fits none of these readings: the paper reports {score} for `cope` on the "
        "sources. This is far below chance, so these runs probably failed.\n"
    )
