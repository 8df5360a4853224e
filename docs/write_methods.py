"""Write docs/methods.md from the methods themselves: their docstrings and settings. `make docs`
runs it; a test keeps it true.
"""

from __future__ import annotations

import inspect
from pathlib import Path

from farshore import catalog
from farshore.adaptation.adaptation import Adaptation
from farshore.methods.method import Method
from farshore.settings import MethodSettings, RunSettings, Settings

HEAD = (Path(__file__).parent / "methods-head.md").read_text()
PLACE = Path(__file__).parent / "methods.md"


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


def section(kind: type[Method] | type[Adaptation]) -> str:
    """One system: its docstring, the origin of its defaults, its own settings."""
    own = [name for name in kind.Settings.model_fields if name not in MethodSettings.model_fields]
    origin = inspect.getdoc(kind.Settings) if own else "Only the settings of every method."
    lines = [f"### `{kind.name}`\n", f"{inspect.getdoc(kind)}\n", f"Settings: {origin}\n"]
    if own:
        lines += [table(kind.Settings, own)]
    if issubclass(kind, Method) and kind.reduces_to is not None:
        simpler, zeros = kind.reduces_to
        lines.append(
            f"With {', '.join(f'`{name}={value}`' for name, value in zeros.items())} it is "
            f"`{simpler}`, bit for bit.\n"
        )
    return "\n".join(lines)


def table(settings: type[Settings], names: list[str] | None = None) -> str:
    """Name, default, search distribution and meaning of each setting."""
    rows = ["| setting | default | search | meaning |", "|---|---|---|---|"]
    for name, plan in settings.plans().items():
        if names is not None and name not in names:
            continue
        default = f"{plan.default}" + (
            f" ({plan.other_default} unless {plan.flag})" if plan.flag else ""
        )
        searches = [plan.search, plan.other_search] if plan.flag else [plan.search]
        search = " / ".join(str(each) if each is not None else "fixed" for each in searches)
        rows.append(
            f"| `{name}` | {default} | {search} | {settings.model_fields[name].description} |"
        )
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    PLACE.write_text(text())
