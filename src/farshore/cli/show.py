"""`farshore show`: what a model has learned, and its accuracy now."""

from pathlib import Path

from ..base.files import write_output
from ..errors import FarshoreError
from .data_options import MODEL, MODEL_NETWORK
from .flags import answers, argument, command, flag


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
    from ..deployment.summary import saved_summary, summary
    from ..tasks.metrics import METRICS
    from .run_output import percent
    from .tables import make_console, plain_table

    found = saved_summary(model) if network is None else None
    if found is None:
        from ..deployment.model import Model

        found = summary(Model.open(model, network=network))
    size = sum(path.stat().st_size for path in model.rglob("*") if path.is_file())
    answers.update(model=model, bytes=size, **found)
    facts = [*found["facts"], ["bytes on disk", f"{size:,}"]]
    metric = METRICS.get(found["metric"])
    plain = metric is not None and metric.digits is not None
    shown = metric.text if plain and metric is not None else percent
    sites = [[*texts, shown(score)] for *texts, score in found["sites"]]
    console = make_console()
    console.print(plain_table(str(model), ["", ""], facts, text=True))
    header = ["", "learned", "rows", "steps", "kept rows", "held out"]
    header.append(f"{found['metric']} now" + ("" if plain else ", %"))
    console.print(plain_table("sites", header, sites))


def _show_log(model: Path, out: Path | None, network: str | None) -> None:
    """Print the change log, or write it as Markdown or JSON."""
    from ..deployment.log import as_json, as_markdown, rows_of_log
    from ..deployment.model import Model
    from .tables import make_console, plain_table

    if out is not None and out.suffix not in (".md", ".json"):
        raise FarshoreError(f"{str(out)!r} is not allowed: end it in .md or .json")
    entries = Model.open(model, network=network).log
    answers["log"] = entries
    if out is not None:
        text = as_json(entries) if out.suffix == ".json" else as_markdown(entries)
        write_output(out, text.encode())
        print(f"wrote {out}")
        return
    header, *rows = rows_of_log(entries)
    make_console().print(plain_table(f"changes of {model}", header, rows, text=True))
