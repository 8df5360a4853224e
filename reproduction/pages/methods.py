"""docs/methods.md, made from the methods' docstrings and settings."""

from __future__ import annotations

import inspect
from pathlib import Path

from farshore.methods import Entry, Method
from farshore.runs import catalog
from farshore.settings import MethodSettings, RunSettings, Searched, Settings
from farshore.training.profiles import PROFILES
from reproduction import DOCS

HEAD = (Path(__file__).parent / "methods-head.md").read_text()
PAGE = DOCS / "methods.md"


def text() -> str:
    """The whole page."""
    parts = [
        HEAD,
        "## Settings of every method\n",
        table(MethodSettings),
        "\n## Settings of a run\n",
        table(RunSettings),
    ]
    for group, members in catalog.grouped().items():
        parts.append(f"\n## {group[0].upper()}{group[1:]}\n")
        parts += [section(kind) for kind in members]
    return "\n".join(parts)


def section(kind: type[Entry]) -> str:
    """The section of one system: its docstring, the origin of its defaults, its own settings."""
    own = [name for name in kind.Settings.model_fields if name not in MethodSettings.model_fields]
    origin = inspect.getdoc(kind.Settings) if own else "only those of every method."
    lines = [f"### `{kind.name}`\n", f"{inspect.getdoc(kind)}\n", f"Settings: {origin}\n"]
    if own:
        lines += [table(kind.Settings, own, kind.name)]
    if issubclass(kind, Method) and kind.reduces_to is not None:
        simpler, zeros = kind.reduces_to
        lines.append(
            f"With {', '.join(f'`{name}={value}`' for name, value in zeros.items())} it is "
            f"`{simpler}`, bit for bit.\n"
        )
    return "\n".join(lines)


def table(settings: type[Settings], names: list[str] | None = None, method: str = "") -> str:
    """Name, default, search distribution and meaning of each setting.

    Defaults and distributions that differ in a profile are listed with its name.
    """
    rows = ["| setting | default | search | meaning |", "|---|---|---|---|"]
    profiles = [PROFILES.get(name) for name in PROFILES.names()]
    for name, base in settings.searched().items():
        if names is not None and name not in names:
            continue
        others: dict[Searched, list[str]] = {}
        for profile in profiles:
            override = settings.searched(profile, method)[name]
            if override != base:
                others.setdefault(override, []).append(f"`{profile.name}`")
        default, search = str(base.default), searched(base)
        for other, where in others.items():
            if other.default != base.default:
                default += f"; {other.default} in {', '.join(where)}"
            if other.search != base.search:
                search += f"; {searched(other)} in {', '.join(where)}"
        meaning = settings.model_fields[name].description
        rows.append(f"| `{name}` | {default} | {search} | {meaning} |")
    return "\n".join(rows) + "\n"


def searched(setting: Searched) -> str:
    """Format a search distribution."""
    return str(setting.search) if setting.search is not None else "fixed"
