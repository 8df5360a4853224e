"""`farshore benchmarks`: list the benchmarks, or describe one."""

from __future__ import annotations

from typing import Annotated

import typer


def benchmarks(
    name: Annotated[
        str | None, typer.Argument(help="show this benchmark's domains, defaults and licence")
    ] = None,
) -> None:
    """List the benchmarks, or describe one of them.

    Example: farshore benchmarks rotated-digits
    """
    from ..benchmarks import BENCHMARKS
    from ..benchmarks.options import BenchmarkOptions
    from .tables import make_console, plain_table

    console = make_console()
    if name is None:
        kinds = [BENCHMARKS.get(known) for known in BENCHMARKS.names()]
        for title, own_data in (("benchmarks", False), ("your own data", True)):
            rows = [[kind.name, kind.summary] for kind in kinds if kind.own_data == own_data]
            console.print(plain_table(title, ["name", "what"], rows, text=True))
        return
    kind = BENCHMARKS.get(name)
    facts = [[fact, value] for fact, value in kind.facts()]
    console.print(plain_table(kind.name, ["", ""], facts, text=True))
    shared = BenchmarkOptions.model_fields
    fields = sorted(kind.Options.model_fields.items(), key=lambda item: item[0] in shared)
    options = [
        [
            option,
            "required" if info.is_required() else str(info.default),
            info.description or "",
        ]
        for option, info in fields
    ]
    console.print(plain_table("\noptions", ["name", "default", "meaning"], options, text=True))
