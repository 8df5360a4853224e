"""`farshore show`: what a model has learned, and its accuracy now."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..base.files import write_output
from ..errors import FarshoreError
from .data_options import MODEL, MODEL_NETWORK
from .flags import argument, command, flag

if TYPE_CHECKING:
    from ..deployment.model import Model


@command
def show(
    model: Path = argument(MODEL),
    log: bool = flag("show the change log instead: who did what, and when", False),
    out: Path | None = flag("with --log: a file to write, .md or .json", short="-o"),
    network: str | None = flag(MODEL_NETWORK),
) -> None:
    """Show what MODEL has learned and how accurate it is now.

    Lists its method and settings and, for each site, when it was learned, the number of rows, how
    many are kept in the memory and held out, and the current accuracy on the held-out rows.

    Example: farshore show model/

    Example: farshore show model/ --log -o changes.md
    """
    if log:
        _show_log(model, out, network)
        return
    if out is not None:
        raise FarshoreError("-o is only allowed with --log: leave it out")
    from ..deployment.model import Model
    from .tables import make_console, plain_table

    opened = Model.open(model, network=network)
    console = make_console()
    console.print(plain_table(str(model), ["", ""], _facts(opened, model), text=True))
    metric = f"{opened.learner.metric} now, %"
    header = ["", "learned", "rows", "steps", "kept rows", "held out", metric]
    console.print(plain_table("sites", header, _sites(opened)))


def _facts(opened: Model, folder: Path) -> list[list[str]]:
    """What the model is, and what it stores."""
    from ..deployment.remains import what_is_stored

    learner = opened.learner
    config = learner.config
    settings = config["settings"].items()
    files = [path for path in folder.rglob("*") if path.is_file()]
    facts = [
        ["method", config["method"]],
        ["network", str(config["network"] or "your own")],
        ["classes", ", ".join(str(label) for label in learner.classes or []) or "not known yet"],
        ["settings", ", ".join(f"{name} {value}" for name, value in settings) or "defaults"],
        ["label column", opened.columns.label or "-"],
        ["steps done", str(sum(domain["steps"] for domain in learner.domains))],
        ["bytes on disk", f"{sum(path.stat().st_size for path in files):,}"],
    ]
    if learner.shape is not None:
        usage = learner.system.usage()
        memory = f"{usage.memory_items} of {learner.capacity} rows ({usage.memory_bytes:,} bytes)"
        keeps = learner.method_type.keeps_rows()
        facts.append(["memory", memory if keeps else "this method keeps no rows"])
    if opened.calibration is not None:
        facts.append(["calibrated", f"with {opened.calibration['rows']} rows"])
    for number, line in enumerate(what_is_stored(opened)):
        facts.append(["stored of sites" if number == 0 else "", line])
    return facts


def _sites(opened: Model) -> list[list[str]]:
    """A row per site, and per site of which only kept rows are known."""
    from ..deployment.familiarity import past_rows
    from .run_output import percent

    past, now = past_rows(opened.learner), opened.standing()
    rows = []
    for domain in opened.learner.domains:
        name, site = domain["name"], opened.sites.get(domain["name"], {})
        rows.append(
            [
                name,
                site.get("when", "-"),
                str(domain["rows"]),
                str(domain["steps"]),
                str(len(past[name][1])) if name in past else "-",
                str(len(opened.held_out[name]["labels"])) if name in opened.held_out else "-",
                percent(now.get(name)),
            ]
        )
    return rows + [
        [name, "", "", "", str(len(labels)), "-", percent(now.get(name))]
        for name, (_, labels) in past.items()
        if name not in opened.sites
    ]


def _show_log(model: Path, out: Path | None, network: str | None) -> None:
    """Print the change log, or write it as Markdown or JSON."""
    from ..deployment.log import as_json, as_markdown, rows_of_log
    from ..deployment.model import Model
    from .tables import make_console, plain_table

    if out is not None and out.suffix not in (".md", ".json"):
        raise FarshoreError(f"{str(out)!r} is not allowed: end it in .md or .json")
    entries = Model.open(model, network=network).log
    if out is not None:
        text = as_json(entries) if out.suffix == ".json" else as_markdown(entries)
        write_output(out, text.encode())
        print(f"wrote {out}")
        return
    header, *rows = rows_of_log(entries)
    make_console().print(plain_table(f"changes of {model}", header, rows, text=True))
