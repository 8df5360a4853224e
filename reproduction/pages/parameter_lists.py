"""Docstrings on the site: lines such as `steps: training steps ...` become a list of parameters."""

from __future__ import annotations

import re
from typing import Any

import griffe

PARAMETER = re.compile(r"^((?:\w+)(?:, \w+)*): (.+)$")


class ParameterLists(griffe.Extension):
    """Changes the docstring of every object that is shown."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for each object that was read."""
        if obj.docstring is not None:
            obj.docstring.value = as_list(obj.docstring.value)


def as_list(text: str) -> str:
    """The docstring with a list entry for each parameter; other paragraphs stay as they are."""
    lines: list[str] = []
    inside = False
    for line in text.split("\n"):
        found = PARAMETER.match(line)
        if found:
            names = ", ".join(f"**`{name}`**" for name in found[1].split(", "))
            lines += ([] if inside else [""]) + [f"- {names}: {found[2]}"]
            inside = True
        else:
            lines.append(f"    {line.strip()}" if inside and line.strip() else line)
            inside = inside and bool(line.strip())
    return "\n".join(lines)
