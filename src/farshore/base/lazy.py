"""Import the public names of a package on first use, so that importing the package stays fast.

The names are those that the package imports under `TYPE_CHECKING`, where type checkers see them.
"""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def lazy_exports(
    package: str, *own: str
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package; `own`: public names that it defines."""
    loader: Any = sys.modules[package].__loader__
    modules = {
        alias.name: "." * line.level + (line.module or "")
        for block in ast.parse(loader.get_source(package)).body
        if isinstance(block, ast.If)
        for line in block.body
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
        if alias.asname is not None
    }

    def get(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules[name], package), name)

    def names() -> list[str]:
        return sorted({*own, *modules})

    return get, names, [*own, *modules]
