"""`farshore benchmarks`: what there is to learn."""

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
    from ..benchmarks.prepared import PreparedBenchmark
    from .tables import make_console, plain_table

    console = make_console()
    if name is None:
        rows = [
            [kind.name, kind.summary]
            for kind in (BENCHMARKS.get(each) for each in BENCHMARKS.names())
        ]
        console.print(plain_table("benchmarks", ["name", "what"], rows, text=True))
        return
    kind = BENCHMARKS.get(name)
    settings = ", ".join(
        f"{key} {value}" for key, value in {**kind.network_settings, **kind.settings}.items()
    )
    rows = [
        ["what", kind.summary],
        ["domains", ", ".join(kind.domains)],
        ["default target", kind.default_target],
        ["classes", ", ".join(kind.classes)],
        ["metric", kind.metric],
        ["network", f"{kind.network} ({settings})" if settings else kind.network],
        ["steps a domain", str(kind.steps)],
        ["memory", f"{kind.memory} rows"],
        [
            "data",
            f"farshore prepare {kind.set_name}"
            if issubclass(kind, PreparedBenchmark)
            else "shipped with farshore",
        ],
        ["source", kind.reference],
        ["licence", kind.licence],
    ]
    console.print(plain_table(kind.name, ["", ""], rows, text=True))
