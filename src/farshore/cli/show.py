"""`farshore show`: what a model has learned, and its accuracy now."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .data_options import OwnNetworkFlag


def show(
    model: Annotated[Path, typer.Argument(help="folder of the model")],
    network: OwnNetworkFlag = None,
) -> None:
    """Show what MODEL has learned and how accurate it is now.

    Lists its method and settings and, for each site, when it was learned, the number of rows, and
    the current accuracy on the rows that were kept.

    Example: farshore show model/
    """
    from ..deployment.familiarity import past_rows
    from ..deployment.model import Model
    from .run import percent
    from .tables import make_console, plain_table

    opened = Model.open(model, network=network)
    learner = opened.learner
    config = learner.config
    console = make_console()
    facts = [
        ["method", config["method"]],
        ["network", str(config["network"] or "your own")],
        ["classes", ", ".join(str(label) for label in learner.classes or []) or "not known yet"],
        [
            "settings",
            ", ".join(f"{name} {value}" for name, value in config["settings"].items())
            or "defaults",
        ],
        ["label column", opened.columns.label or "-"],
        ["steps done", str(sum(domain["steps"] for domain in learner.domains))],
        [
            "bytes on disk",
            f"{sum(path.stat().st_size for path in model.rglob('*') if path.is_file()):,}",
        ],
    ]
    if learner.shape is not None:
        usage = learner.system.usage()
        memory = f"{usage.memory_items} of {learner.capacity} rows ({usage.memory_bytes:,} bytes)"
        keeps = learner.method_type.keeps_rows()
        facts.append(["memory", memory if keeps else "this method keeps no rows"])
    console.print(plain_table(str(model), ["", ""], facts, text=True))
    past, now = past_rows(learner), opened.standing()
    rows = []
    for domain in learner.domains:
        name, site = domain["name"], opened.sites.get(domain["name"], {})
        kept = str(len(past[name][1])) if name in past else "-"
        rows.append(
            [
                name,
                site.get("when", "-"),
                str(domain["rows"]),
                str(domain["steps"]),
                kept,
                percent(now.get(name)),
            ]
        )
    rows += [
        [name, "", "", "", str(len(labels)), percent(now[name])]
        for name, (_, labels) in past.items()
        if name not in opened.sites
    ]
    console.print(
        plain_table(
            "sites", ["", "learned", "rows", "steps", "kept rows", f"{learner.metric} now, %"], rows
        )
    )
