"""The paper's columns of rotated-mnist and covertype beside ours, for docs/reproduction.md."""

from __future__ import annotations

import pandas as pd
from claims import group
from paper_scores import Number, near, papers_scores, printed
from protocol_tables import selected, whole
from tidy_tables import AS_IT_IS, SCORE, markdown, means, rows_of, signed, table

from farshore import catalog

Scores = dict[str, Number]


def papers_column() -> Scores:
    """The paper's scores on rotated-mnist by method."""
    return papers_scores("rotated-mnist", "main", "naive", "adaptation")


def in_main_table(name: str) -> bool:
    """Whether a method of the paper is in its main table: neither naive nor adaptation."""
    return name not in (*group("naive"), *group("adaptation"))


def column_section() -> str:
    """The paper's column of rotated-mnist beside ours in the fitted order."""
    frame = table("fitted_order")
    ours, sources = means(frame), means(frame, "source_train_score")
    paper = papers_column()
    shared = [name for name in catalog.names() if name in ours and name in paper]
    rows = [
        [
            f"`{name}`",
            printed(ours[name]),
            printed(paper[name]),
            signed(ours[name][0] - paper[name][0]),
            "yes" if near(ours[name][0], paper[name]) else "no",
            f"{sources[name][0]:.1f}",
        ]
        for name in shared
    ]
    main = [name for name in shared if in_main_table(name)]
    close = [name for name in main if near(ours[name][0], paper[name])]
    summary = (
        f"{len(close)} of the {len(main)} systems of the main table are near the paper: within two "
        "of its standard errors, or 3 points, of its score.\n\n"
    )
    header = ["method", "ours", "paper", "difference", "near", "our sources, training rows"]
    return summary + markdown(header, rows)


def last_section() -> str:
    """Scores on rotated-mnist by the last source, beside the paper's: means over orders."""
    frame = rows_of("all_orders", "rotated-mnist")
    ends = frame["order"].map(lambda order: str(order).split(",")[-1])
    sources = sorted(set(ends), key=int)
    by_end = {source: means(frame[ends == source]) for source in sources}
    paper = papers_column()
    rows, fitting = [], dict[str, list[str]]()
    for name in filter(in_main_table, catalog.names()):
        if name not in paper or not all(name in scored for scored in by_end.values()):
            continue
        fitting[name] = [end for end in sources if near(by_end[end][name][0], paper[name])]
        scored = {end: f"{by_end[end][name][0]:.1f}" for end in sources}
        marked = (f"**{scored[end]}**" if end in fitting[name] else scored[end] for end in sources)
        rows.append([f"`{name}`", *marked, printed(paper[name])])
    middle = sum(not {"15", "30"}.isdisjoint(found) for found in fitting.values())
    none = ", ".join(f"`{name}`" for name, found in fitting.items() if not found)
    summary = (
        f"With 15 or 30 as the last source, {middle} of {len(fitting)} systems are near the paper "
        f"with their default settings (in bold); with no last source: {none or 'none'}.\n\n"
    )
    header = ["method", *(f"last source {source}" for source in sources), "paper"]
    return summary + markdown(header, rows)


def searched_section() -> str:
    """The paper's search for the systems that are not near the paper with their defaults."""
    frame = whole(table("searched_order"))
    chosen = selected(frame)
    paper, defaults = papers_column(), means(table("fitted_order"))
    rows, gained = [], []
    for name in catalog.names():
        of_method = chosen[chosen["method"] == name]
        if not len(of_method) or name not in paper:
            continue
        score = 100 * of_method["target_score_unseen"].mean()
        usual = frame[(frame["method"] == name) & (frame["trial"] == 0)]
        close = near(score, paper[name])
        if close and name in defaults and not near(defaults[name][0], paper[name]):
            gained.append(name)
        rows.append(
            [
                f"`{name}`",
                str(len(of_method)),
                f"{100 * usual['target_score_unseen'].mean():.1f}",
                f"{score:.1f}",
                printed(paper[name]),
                signed(score - paper[name][0]),
                "yes" if close else "no",
            ]
        )
    header = ["method", "seeds", "defaults", "selected", "paper", "difference", "near"]
    names = ", ".join(f"`{name}`" for name in gained)
    close_before = {
        name
        for name in defaults
        if name in paper and in_main_table(name) and near(defaults[name][0], paper[name])
    }
    together = len(close_before | set(filter(in_main_table, gained)))
    summary = (
        f"The search brings {len(gained)} more systems near the paper: {names}. Together with "
        f"those that are near with their defaults, that makes {together} of the 19.\n\n"
    )
    return summary + markdown(header, rows)


def fitted(frame: pd.DataFrame, paper: Number) -> str:
    """The order in which fine-tuning, on the target as it is, is nearest to the paper's score."""
    scored = frame[frame["method"] == "finetune"].groupby("order")[AS_IT_IS].mean()
    return str((100 * scored - paper[0]).abs().idxmin())


def closeness(frame: pd.DataFrame, order: str, paper: Scores) -> dict[str, list[str]]:
    """The methods that are near the paper in an order, on the target balanced and as it is."""
    of_order = frame[frame["order"] == order]
    return {
        column: [
            name
            for name, (mean, _) in means(of_order, column).items()
            if name in paper and near(mean, paper[name])
        ]
        for column in (SCORE, AS_IT_IS)
    }


def beside(frame: pd.DataFrame, paper: Scores) -> str:
    """Scores on the balanced target and on the target as it is beside the paper's, in one order."""
    order = fitted(frame, paper["finetune"])
    of_order = frame[frame["order"] == order]
    balanced, as_it_is = means(of_order), means(of_order, AS_IT_IS)
    close = closeness(frame, order, paper)
    rows = [
        [
            f"`{name}`",
            printed(balanced[name]),
            "yes" if name in close[SCORE] else "no",
            printed(as_it_is[name]),
            "yes" if name in close[AS_IT_IS] else "no",
            printed(paper[name]),
        ]
        for name in catalog.names()
        if name in balanced and name in paper
    ]
    header = ["method", "balanced", "near", "as it is", "near", "paper"]
    return f"Sources in the order {order.replace(',', ', ')}:\n\n" + markdown(header, rows)


def fine_tuning(frame: pd.DataFrame, paper: Scores) -> str:
    """Fine-tuning in every order, and how many systems are near the paper there."""
    plain = frame[frame["method"] == "finetune"].groupby("order")
    columns = [100 * plain[name].mean() for name in (SCORE, AS_IT_IS, "source_train_score")]
    rows = [
        [
            str(order).replace(",", ", "),
            *(f"{scored[order]:.1f}" for scored in columns),
            *(str(len(names)) for names in closeness(frame, str(order), paper).values()),
        ]
        for order in columns[0].index
    ]
    header = [
        "order",
        "fine-tuning, balanced",
        "fine-tuning, as it is",
        "fine-tuning, sources (training rows)",
        "systems near the paper, balanced",
        "systems near the paper, as it is",
    ]
    target, sources = (
        printed(papers_scores("covertype", name)["finetune"]) for name in ("main", "source")
    )
    shared = sum(name in paper for name in set(frame["method"]))
    return (
        markdown(header, rows) + f"\nThe paper's fine-tuning scores {target} on the target and "
        f"{sources} on the sources. {shared} systems are compared.\n"
    )


def covertype_section() -> str:
    """The paper's column of covertype: the target balanced, and as it is."""
    frame = rows_of("all_orders", "covertype")
    paper = papers_scores("covertype", "main", "naive")
    return fine_tuning(frame, paper) + "\n" + beside(frame, paper)


def second_section() -> str:
    """Fine-tuning in the paper's second experiment on covertype, where Rawah is the target."""
    frame = rows_of("orders_ablated", "covertype")
    plain = frame[(frame["target"] == "rawah") & (frame["method"] == "finetune")]
    scored = 100 * plain.groupby("order")[[SCORE, AS_IT_IS]].mean()
    low, high = scored.min(), scored.max()
    balanced, as_it_is = (f"{low[name]:.1f} to {high[name]:.1f}" for name in (SCORE, AS_IT_IS))
    paper = printed(papers_scores("covertype", "other_target")["finetune"])
    return (
        "In the paper's second experiment, with Rawah as the target, fine-tuning scores "
        f"{paper}. Over orders, ours scores {balanced} on the balanced target and {as_it_is} on "
        "the target as it is (experiment `orders_ablated`).\n"
    )
