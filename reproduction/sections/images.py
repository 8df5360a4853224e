"""The image data sets."""

from __future__ import annotations

from farshore.benchmarks import BENCHMARKS
from reproduction.arithmetic import means
from reproduction.finished_runs import rows_of
from reproduction.formatting import markdown, printed, signed
from reproduction.paper.scores import papers_scores


def images_section() -> str:
    """The image data sets, by order: too few orders for an interval over them."""
    return "\n".join(map(images_table, ("wm811k", "cifar10-c")))


def images_table(benchmark: str) -> str:
    """Methods on one image data set in the listed and in the reversed order."""
    frame = rows_of("image_benchmarks", benchmark)
    if frame.empty:
        return f"## {benchmark}\n\nNot run yet.\n"
    kind = BENCHMARKS.get(benchmark)
    listed = [name for name in kind.domains if name != kind.default_target]
    orders = {"listed": listed, "reversed": listed[::-1]}
    by_order = [means(frame[frame["order"] == ",".join(order)]) for order in orders.values()]
    overall = means(frame)
    paper = papers_scores(benchmark, "main")
    rows = [
        [
            f"`{name}`",
            *(printed(of_order[name]) for of_order in by_order),
            *(
                signed(of_order[name][0] - of_order["er"][0]) if name != "er" else "-"
                for of_order in by_order
            ),
            printed(paper.get(name)),
        ]
        for name in sorted(overall, key=lambda name: -overall[name][0])
        if all(name in of_order for of_order in by_order)
    ]
    header = ["method", *orders, *(f"{order}, minus `er`" for order in orders), "paper"]
    return f"## {benchmark}\n\nThe listed order is {', '.join(listed)}.\n\n" + markdown(
        header, rows
    )
