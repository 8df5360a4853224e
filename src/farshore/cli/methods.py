"""`farshore methods`: what there is, with the paper and the settings of each."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ..settings import Searched


def methods(
    name: Annotated[
        str | None, typer.Argument(help="show this method's equation, paper and settings")
    ] = None,
) -> None:
    """List the methods by group, or explain one of them.

    Example: farshore methods er
    """
    from .. import catalog
    from ..profiles import PROFILES
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
    base = kind.Settings.searched()
    rows = [
        [key, *_pair(each), kind.Settings.model_fields[key].description or ""]
        for key, each in base.items()
    ]
    console.print(
        plain_table("\nsettings", ["name", "default", "search", "meaning"], rows, text=True)
    )
    for profile in map(PROFILES.get, PROFILES.names()):
        differs = [
            [key, *_pair(each)]
            for key, each in kind.Settings.searched(profile, kind.name).items()
            if each != base[key]
        ]
        if differs:
            title = f"\nprofile {profile.name} ({profile.about})"
            console.print(plain_table(title, ["name", "default", "search"], differs, text=True))


def _pair(each: Searched) -> tuple[str, str]:
    return str(each.default), str(each.search) if each.search is not None else "fixed"
