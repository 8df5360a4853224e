"""`farshore benchmarks`: list the benchmarks, or describe one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .flags import argument, command

if TYPE_CHECKING:
    from rich.console import Console


@command
def benchmarks(
    name: str | None = argument("show this benchmark's domains, defaults and licence", None),
) -> None:
    """List the benchmarks, or describe one of them.

    Example: farshore benchmarks rotated-digits
    """
    from ..benchmarks import BENCHMARKS
    from .tables import make_console, plain_table

    console = make_console()
    if name is None:
        _list(console)
        return
    from ..benchmarks.options import BenchmarkOptions

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


def _list(console: Console) -> None:
    """Print every benchmark and whether its data are here, without importing torch."""
    from ..benchmarks import BENCHMARKS
    from ..benchmarks.lines import LINES, Line, is_prepared
    from ..data.downloads.public_files import data_root
    from .tables import plain_table

    lines = dict(LINES)
    for name in BENCHMARKS.names():
        if name not in lines:  # from another package
            kind = BENCHMARKS.get(name)
            lines[name] = Line(kind.summary, kind.needs_preparation(), kind.own_data)
    root = data_root()
    rows, own = [], []
    for name, line in lines.items():
        if line.own_data:
            own.append([name, line.what])
            continue
        where = "included"
        if line.files is not None:
            where = "prepared" if is_prepared(line.files, root) else "not prepared"
        rows.append([name, where, line.what])
    console.print(plain_table("benchmarks", ["name", "data", "what it is"], rows, text=True))
    console.print(plain_table("your own data", ["name", "what it is"], own, text=True))
    console.print(f"prepared data are in {root}", soft_wrap=True)
    console.print("next, prepare a benchmark (download and build it), or see what it is:")
    console.print("  farshore prepare NAME")
    console.print("  farshore benchmarks NAME")
