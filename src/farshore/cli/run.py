"""`farshore run`: one run, live progress, a result table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import FarshoreError
from .data_options import (
    BenchmarkArgument,
    DomainByFlag,
    DomainFlag,
    DomainsFlag,
    DropFlag,
    GroupFlag,
    LabelFlag,
    NetworkFlag,
    NetworkSetFlag,
    OptionFlag,
    PreprocessFlag,
    SeverityFlag,
    SharedRowsFlag,
    SizeFlag,
    TimeFlag,
    WeightsFlag,
    data_fields,
)
from .prepare import use_root

if TYPE_CHECKING:
    from rich.console import Console

    from ..protocol import Result


# How much of the target a system saw.
SEEN = {"continual": "unseen", "offline": "unseen", "adaptation": "inputs seen, labels not"}


def run(
    benchmark: BenchmarkArgument,
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
    domain: DomainFlag = None,
    label: LabelFlag = None,
    drop: DropFlag = None,
    time: TimeFlag = None,
    group: GroupFlag = None,
    preprocess: PreprocessFlag = None,
    shared_rows: SharedRowsFlag = None,
    size: SizeFlag = None,
    domain_by: DomainByFlag = None,
    domains: DomainsFlag = None,
    severity: SeverityFlag = None,
    weights: WeightsFlag = None,
    option: OptionFlag = None,
    network: NetworkFlag = None,
    network_set: NetworkSetFlag = None,
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
    data = data_fields(
        benchmark,
        {
            "domain": domain,
            "label": label,
            "drop": drop,
            "time": time,
            "group": group,
            "preprocess": preprocess,
            "shared_rows": shared_rows,
            "size": size,
            "domain_by": domain_by,
            "domains": domains,
            "severity": severity,
            "weights": weights,
        },
        option=option,
        network=network,
        network_set=network_set,
    )
    asked = Run.build(
        method=method,
        seed=seed,
        scenario_seed=scenario_seed,
        target=target,
        order=split_names(order),
        steps=steps,
        memory=memory,
        settings=settings,
        device=device,
        **data,
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
        f"{result.title}, seed {result.run.seed}"
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
