"""What is in reproduction/ uses farshore's commands and public names, and docs/ has pages only."""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from pathlib import Path

from reproduction import DOCS

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted((ROOT / "reproduction").rglob("*.py"))
LISTED = (DOCS / "versioning.md").read_text().partition("## What is public")[2]
LISTED = LISTED.partition("\n## ")[0]


def public_names() -> set[str]:
    """Every name that docs/versioning.md lists, and the command's own function, dotted."""
    names = set()
    for module, listed in re.findall(r"from `(farshore[\w.]*)`: ((?:`\w+`(?:, )?)+)", LISTED):
        names |= {f"{module}.{name}" for name in re.findall(r"`(\w+)`", listed)}
    packages = re.search(r"everything that (.*) export in `__all__`", LISTED)[1]
    for package in re.findall(r"`(farshore[\w.]*)`", packages):
        names |= {f"{package}.{name}" for name in importlib.import_module(package).__all__}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return names | {project["scripts"]["farshore"].replace(":", ".")}


def used_names(text: str) -> set[str]:
    """The names of farshore that a program imports, dotted; of a module, what it reads from it."""
    tree = ast.parse(text)
    used, modules = set(), {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            ours = [each for each in node.names if each.name.split(".")[0] == "farshore"]
            modules |= {each.asname or each.name: each.name for each in ours}
        elif isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "farshore":
            for each in node.names:
                dotted = f"{node.module}.{each.name}"
                if (ROOT / "src" / f"{dotted.replace('.', '/')}.py").is_file():
                    modules[each.asname or each.name] = dotted
                else:
                    used.add(dotted)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in modules:
            used.add(f"{modules[ast.unparse(node.value)]}.{node.attr}")
    return used


def test_programs_use_public_names_only() -> None:
    public = public_names()
    used = {path.name: used_names(path.read_text()) for path in PROGRAMS}
    assert {name: found - public for name, found in used.items() if found - public} == {}
    assert len(set().union(*used.values())) > 15
    private = "from farshore.runs import catalog\n"
    private += "catalog.find('er')\nfrom farshore.base.lock import LOCK\n"
    assert used_names(private) == {"farshore.runs.catalog.find", "farshore.base.lock.LOCK"}


def test_what_is_listed_as_public_is_there() -> None:
    for dotted in public_names():
        module, _, name = dotted.rpartition(".")
        assert hasattr(importlib.import_module(module), name), dotted


def test_docs_has_pages_pictures_and_the_look_of_the_site_only() -> None:
    kinds = {path.suffix for path in DOCS.rglob("*") if path.is_file()}
    assert kinds <= {".md", ".svg", ".png", ".ipynb", ".css", ".js"}
