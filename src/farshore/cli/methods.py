"""`farshore methods`: list the methods, or explain one."""

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
                [group if index == 0 else "", kind.name, kind.reference]
                for index, kind in enumerate(kinds)
            ]
        console.print(plain_table("methods", ["group", "name", "paper"], rows, text=True))
        console.print("farshore methods NAME explains one and lists its settings")
        return
    kind = catalog.find(name)
    console.print(f"{kind.name} ({kind.group}; {kind.reference})\n")
    console.print(inspect.getdoc(kind) or "")
    base = kind.Settings.searched()
    rows = [
        [key, *_default_and_search(setting), kind.Settings.model_fields[key].description or ""]
        for key, setting in base.items()
    ]
    console.print(
        plain_table("\nsettings", ["name", "default", "search", "meaning"], rows, text=True)
    )
    for profile in map(PROFILES.get, PROFILES.names()):
        differing = [
            [key, *_default_and_search(setting)]
            for key, setting in kind.Settings.searched(profile, kind.name).items()
            if setting != base[key]
        ]
        if differing:
            title = f"\nprofile {profile.name} ({profile.about})"
            console.print(plain_table(title, ["name", "default", "search"], differing, text=True))


def _default_and_search(setting: Searched) -> tuple[str, str]:
    return str(setting.default), str(setting.search) if setting.search is not None else "fixed"
