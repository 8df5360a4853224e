"""`farshore benchmarks`: list the benchmarks, or describe one."""

from typing import TYPE_CHECKING

from .flags import answers, argument, command

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
    answers.update(
        name=kind.name, facts=dict(kind.facts()), options=list(kind.Options.model_fields)
    )
    console.print(plain_table(kind.name, ["", ""], facts, text=True))
    shared = BenchmarkOptions.model_fields
    fields = sorted(kind.Options.model_fields.items(), key=lambda item: item[0] in shared)
    options = [
        [option, "required" if info.is_required() else str(info.default), info.description or ""]
        for option, info in fields
    ]
    console.print(plain_table("\noptions", ["name", "default", "meaning"], options, text=True))


def _list(console: "Console") -> None:
    """Print every benchmark and whether its data are here, without importing torch."""
    from ..benchmarks import BENCHMARKS, OWN_DATA
    from ..data.downloads.public_files import data_root, is_prepared
    from .tables import plain_table

    root, told = data_root(), answers.setdefault("benchmarks", [])
    for name in BENCHMARKS.names():
        if name in BENCHMARKS.listed:
            _, what, group, files = BENCHMARKS.listed[name]
        else:  # from another package
            kind = BENCHMARKS.get(name)
            group, what = OWN_DATA if kind.own_data else "", kind.summary
            files = kind.set_name or ""
        where = "own" if group == OWN_DATA else "included"
        if where == "included" and files:
            where = "prepared" if is_prepared(files, root) else "not prepared"
        told.append({"name": name, "data": where, "about": what})
    own = [[each["name"], each["about"]] for each in told if each["data"] == "own"]
    rows = [[*each.values()] for each in told if each["data"] != "own"]
    console.print(plain_table("benchmarks", ["name", "data", "what it is"], rows, text=True))
    console.print(plain_table("your own data", ["name", "what it is"], own, text=True))
    console.print(f"prepared data are in {root}", soft_wrap=True)
    console.print("next, prepare a benchmark (download and build it), or see what it is:")
    console.print("  farshore prepare NAME")
    console.print("  farshore benchmarks NAME")
