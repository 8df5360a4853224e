"""`farshore methods`: what there is, with the paper and the settings of each."""

from __future__ import annotations

import inspect
from typing import Annotated

import typer


def methods(
    name: Annotated[
        str | None, typer.Argument(help="show this method's equation, paper and settings")
    ] = None,
) -> None:
    """List the methods by group, or explain one of them.

    Example: farshore methods er
    """
    from .. import catalog
    from .tables import make_console, plain_table

    console = make_console()
    if name is None:
        rows = []
        for group, kinds in catalog.grouped().items():
            rows += [
                [group if place == 0 else "", kind.name, kind.reference]
                for place, kind in enumerate(kinds)
            ]
        console.print(plain_table("methods", ["group", "name", "paper"], rows, text=True))
        console.print("farshore methods NAME explains one and lists its settings", highlight=False)
        return
    kind = catalog.find(name)
    console.print(f"{kind.name} ({kind.group}; {kind.reference})\n", highlight=False)
    console.print(inspect.getdoc(kind) or "", highlight=False, markup=False)
    rows = []
    for key, plan in kind.Settings.plans().items():
        default = (
            f"{plan.default} ({plan.other_default} unless {plan.flag})"
            if plan.flag
            else f"{plan.default}"
        )
        searches = [plan.search, plan.other_search] if plan.flag else [plan.search]
        search = " / ".join(str(each) if each is not None else "fixed" for each in searches)
        rows.append([key, default, search, kind.Settings.model_fields[key].description or ""])
    console.print(
        plain_table("\nsettings", ["name", "default", "search", "meaning"], rows, text=True)
    )
