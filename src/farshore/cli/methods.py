"""`farshore methods`: list the methods, or explain one."""

import inspect
from typing import TYPE_CHECKING

from .flags import answers, argument, command

if TYPE_CHECKING:
    from rich.console import Console

    from ..settings import Searched


@command
def methods(
    name: str | None = argument("show this method's equation, paper and settings", None),
) -> None:
    """List the methods, or explain one of them.

    Example: farshore methods er
    """
    from .tables import make_console, plain_table

    console = make_console()
    if name is None:
        _list(console)
        return
    from ..runs import catalog
    from ..training.profiles import PROFILES

    kind = catalog.find(name)
    base, about = kind.Settings.searched(), inspect.getdoc(kind)
    told = {each: getattr(kind, each) for each in ("name", "group", "reference")}
    defaults = {key: str(setting.default) for key, setting in base.items()}
    answers.update(told, about=about, settings=defaults)
    console.print(f"{kind.name} ({kind.group}; {kind.reference})\n")
    console.print(about or "")
    rows = [
        [key, *_default_and_search(setting), kind.Settings.model_fields[key].description or ""]
        for key, setting in base.items()
    ]
    header = ["name", "default", "search", "meaning"]
    console.print(plain_table("\nsettings", header, rows, text=True))
    for profile in map(PROFILES.get, PROFILES.names()):
        own = kind.Settings.searched(profile, kind.name).items()
        differing = [[key, *_default_and_search(of)] for key, of in own if of != base[key]]
        if differing:
            title = f"\nprofile {profile.name} ({profile.about})"
            console.print(plain_table(title, ["name", "default", "search"], differing, text=True))


def _list(console: "Console") -> None:
    """Print every method with what it does, without importing torch for those of farshore."""
    from ..adaptation import ADAPTATIONS
    from ..methods import GROUPS, METHODS
    from .tables import plain_table

    told = answers.setdefault("methods", [])
    for registry in (METHODS, ADAPTATIONS):
        for name in registry.names():
            if name in registry.listed:
                _, what, group, _ = registry.listed[name]
            else:  # from another package
                kind = registry.get(name)
                group, what = kind.group, (inspect.getdoc(kind) or "").split("\n")[0]
            told.append({"name": name, "group": group, "about": what})
    rows = []
    for group in dict.fromkeys([*GROUPS, *(each["group"] for each in told)]):
        rows.append([f"{group}:", ""])
        rows += [[f"  {of['name']}", of["about"]] for of in told if of["group"] == group]
    console.print(plain_table("methods", ["name", "what it does"], rows, text=True))
    console.print("next, see what one of them minimises, its paper and its settings:")
    console.print("  farshore methods NAME")


def _default_and_search(setting: "Searched") -> tuple[str, str]:
    return str(setting.default), str(setting.search) if setting.search is not None else "fixed"
