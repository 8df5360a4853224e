"""`farshore run`: one run, live progress, a result table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import FarshoreError
from .own_data import own_data
from .prepare import use_root

if TYPE_CHECKING:
    from rich.console import Console

    from ..protocol import Result


# How much of the target a system saw.
SEEN = {"continual": "unseen", "offline": "unseen", "adaptation": "inputs seen, labels not"}


def run(
    benchmark: Annotated[
        str,
        typer.Argument(
            help="name of a benchmark, or your own table (CSV, Parquet) or folder of images"
        ),
    ],
    method: Annotated[str, typer.Argument(help="name of a method; `farshore methods` lists them")],
    seed: Annotated[
        int, typer.Option(help="seed of the run: initial weights, order of rows, memory, method")
    ] = 0,
    scenario_seed: Annotated[
        int, typer.Option(help="seed of the data: which rows stand in which domain and split")
    ] = 0,
    target: Annotated[
        str | None, typer.Option(help="the unseen domain; the others are sources")
    ] = None,
    domain: Annotated[
        str | None,
        typer.Option(
            help="column that names the domain, or auto: domains are found without labels"
        ),
    ] = None,
    label: Annotated[str | None, typer.Option(help="column that holds the class")] = None,
    drop: Annotated[
        str | None, typer.Option(help="columns that are no inputs, for example id,name")
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(help="column of time: orders the domains, and splits never look ahead"),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(help="column whose groups (patients, lots) stay on one side of every split"),
    ] = None,
    preprocess: Annotated[
        str | None,
        typer.Option(help="learn scales on the first domain, or on all-sources (not continual)"),
    ] = None,
    shared_rows: Annotated[
        str | None, typer.Option(help="source rows that stand in the target too: keep or leave-out")
    ] = None,
    size: Annotated[
        int | None, typer.Option(help="pixels a side that images are resized to; default 32")
    ] = None,
    domain_by: Annotated[
        str | None,
        typer.Option(help="with --domain auto: drift (default), blocks, time or cluster"),
    ] = None,
    domains: Annotated[
        int | None,
        typer.Option(help="with --domain auto: how many domains; default: as many as are found"),
    ] = None,
    severity: Annotated[
        int | None, typer.Option(help="severity of the corruptions, 1 to 5; default 5")
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(help="what resnet18 starts from: imagenet (default), a file, or none"),
    ] = None,
    order: Annotated[
        str | None, typer.Option(help="order of the sources, for example 45,30,15,0")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="training steps per domain")] = None,
    memory: Annotated[
        int | None, typer.Option(help="rows kept of all past domains together")
    ] = None,
    set: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="a setting of the method or the run, name=value; may be repeated"
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:0")] = "cpu",
    deterministic: Annotated[
        bool,
        typer.Option("--deterministic", help="on a GPU: the same bits each time, somewhat slower"),
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="folder for result.json and the learner's state")
    ] = None,
    root: Annotated[
        Path | None, typer.Option(help="folder for data, as given to `farshore prepare`")
    ] = None,
) -> None:
    """Train METHOD on the sources of BENCHMARK in turn, then measure it once on the unseen target.

    BENCHMARK may be your own data: a table with a column for the domain and one for the class, or a
    folder domain/class/image.

    Example: farshore run rotated-digits er --seed 1 --set learning_rate=0.002

    Example: farshore run heart.csv er --domain hospital --label num --target va
    """

    from ..protocol import Run, execute
    from ..settings import parse_assignments
    from .progress import ProgressObserver
    from .tables import make_console

    use_root(root)
    settings: dict[str, object] = {
        **parse_assignments(set or []),
        **({"deterministic": True} if deterministic else {}),
    }
    own = {
        "domain": domain,
        "label": label,
        "drop": split_names(drop),
        "time": time,
        "group": group,
        "shared_rows": shared_rows,
        "size": size,
    }
    hidden = own_data(benchmark, own, domain_by)
    asked = Run.build(
        benchmark=benchmark,
        method=method,
        seed=seed,
        scenario_seed=scenario_seed,
        target=target,
        order=split_names(order),
        steps=steps,
        memory=memory,
        settings=settings,
        device=device,
        preprocess=preprocess,
        domains=domains,
        severity=severity,
        weights=weights,
        **hidden,
    )
    if out is not None:
        check_writable(out)
    console = make_console()
    with ProgressObserver(console) as observer:
        result = execute(
            asked, observer=observer, save_model=out / "learner" if out is not None else None
        )
    if out is not None:
        result.save(out / "result.json")
    show(result, console)
    if result.status == "diverged":
        raise typer.Exit(1)


def show(result: Result, console: Console) -> None:
    """The accuracy matrix and the headline."""
    from .tables import plain_table

    if result.status == "diverged":
        console.print(f"diverged: {result.message}", highlight=False)
        return
    matrix = zip(result.stages or result.sources, result.matrices["validation"], strict=True)
    rows = [[f"after {name}", *(percent(value) for value in row)] for name, row in matrix]
    console.print(
        plain_table(
            f"{result.metric} on each source's validation rows, %", ["", *result.sources], rows
        )
    )
    assert result.target is not None
    headline = [
        [
            f"target {result.target.name} ({SEEN[result.kind]}, {result.target.rows} rows)",
            percent(result.target_score),
        ],
        ["sources (training rows)", percent(result.source_score(2))],
        ["sources (validation rows)", percent(result.source_score(1))],
        ["BWT (validation rows)", percent(result.backward_transfer(), sign=True)],
    ]
    title = (
        f"{result.run.method}{' (offline)' if result.kind == 'offline' else ''} on "
        f"{result.run.benchmark}, seed {result.run.seed}"
    )
    console.print(plain_table(title, ["", f"{result.metric}, %"], headline))
    console.print(
        f"{result.steps} steps a domain, {' '.join(map(str, result.rows_per_step))} rows a step, "
        f"memory {result.memory_items} rows "
        f"({result.memory_bytes:,} bytes), {result.seconds['total']:.1f} s",
        highlight=False,
    )


def percent(value: float | None, *, sign: bool = False) -> str:
    """A share as percent with one decimal, or a dash."""
    return "-" if value is None else f"{100 * value:{'+' if sign else ''}.1f}"


def split_names(text: str | None) -> list[str] | None:
    """`a,b,c` as a list."""
    return [name.strip() for name in text.split(",") if name.strip()] if text is not None else None


def check_writable(folder: Path) -> None:
    """Refuse a folder that cannot be written, before work is done for it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".probe"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise FarshoreError(f"--out {str(folder)!r} cannot be written: {error.strerror}") from None
