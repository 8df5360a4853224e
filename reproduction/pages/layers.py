"""The table of layers in CONTRIBUTING.md, from the import contract and the modules' docstrings."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

from reproduction import ROOT
from reproduction.formatting import markdown

PAGE = ROOT / "CONTRIBUTING.md"
PACKAGE = ROOT / "src" / "farshore"
BEGIN, END = "<!-- `make docs` writes this table -->\n", "<!-- end of the table -->\n"


def layers() -> list[list[str]]:
    """The modules of each layer of the import contract, from high to low."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = project["tool"]["importlinter"]["contracts"]
    [contract] = [each for each in contracts if each["type"] == "layers"]
    return [re.split(r"\s*[|:]\s*", layer) for layer in contract["layers"]]


def source(module: str) -> Path:
    """The folder of a package, or the file of a module."""
    folder = PACKAGE / module
    return folder if folder.is_dir() else folder.with_suffix(".py")


def first_sentence(path: Path) -> str:
    """The first sentence of the docstring of a package or module."""
    file = path / "__init__.py" if path.is_dir() else path
    docstring = ast.get_docstring(ast.parse(file.read_text())) or ""
    return re.split(r"(?<=\.)\s", " ".join(docstring.split()))[0]


def table() -> str:
    """One row per module."""
    rows = []
    for number, modules in enumerate(layers(), start=1):
        for path in map(source, modules):
            name = path.name + ("/" if path.is_dir() else "")
            rows.append([str(number), f"`{name}`", first_sentence(path)])
    return markdown(["layer", "module", "what is in it"], rows)


def text() -> str:
    """The whole page, with the table of today."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    assert after, f"{PAGE.name} lacks {BEGIN.strip()} and {END.strip()}"
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"
