"""`farshore learn`: train a model on the data of one more site."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import FarshoreError
from ..methods import DEFAULT_METHOD
from .data_options import (
    DecimalFlag,
    EncodingFlag,
    SeparatorFlag,
    SkipBrokenFlag,
    TrainFlag,
    WeightFlag,
    WeightsFlag,
)
from .engine_options import print_line
from .run import split_names
from .run_output import percent


def learn(
    model: Annotated[
        Path, typer.Argument(help="folder of the model; created if it does not exist")
    ],
    data: Annotated[
        Path,
        typer.Argument(
            help="the site's table (CSV, Parquet, ...), or its folder of images, class/file"
        ),
    ],
    name: Annotated[str, typer.Option(help="name of the site")],
    label: Annotated[
        str | None, typer.Option(help="column with the class; the model remembers it")
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            help=f"new model: method; `farshore methods` lists them [default: {DEFAULT_METHOD}]"
        ),
    ] = None,
    network: Annotated[
        str | None,
        typer.Option(
            help="new model: network [default: mlp for tables; for images resnet18 if its "
            "ImageNet weights are available, otherwise histogram]; hf:NAME, timm:NAME, "
            "torchvision:NAME, or module.py:factory, which later commands must name again"
        ),
    ] = None,
    weights: WeightsFlag = None,
    train: TrainFlag = None,
    network_set: Annotated[
        list[str] | None,
        typer.Option(
            "--network-set", help="new model: a setting of the network, name=value, repeatable"
        ),
    ] = None,
    memory: Annotated[
        int | None,
        typer.Option(help="new model: rows kept from all past sites together [default: 1000]"),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(
            help="new model: all classes that may occur, comma-separated [default: the first "
            "site's]; or a file that lists them: a text file with one per line, or a table with "
            "the column of --label"
        ),
    ] = None,
    new_classes: Annotated[
        bool,
        typer.Option("--new-classes", help="add classes that no earlier site had"),
    ] = False,
    metric: Annotated[
        str | None,
        typer.Option(
            help="new model: accuracy or macro_f1 [default: macro_f1 if a class is rarer than 5% "
            "at the first site, otherwise accuracy]"
        ),
    ] = None,
    set: Annotated[
        list[str] | None,
        typer.Option("--set", help="new model: a setting, name=value, repeatable"),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="new model: seed of initial weights, order of rows and memory [default: 0]"
        ),
    ] = None,
    size: Annotated[
        int | None,
        typer.Option(
            help="new model: resize images to this many pixels per side [default: as the network "
            "expects]"
        ),
    ] = None,
    skip_broken: SkipBrokenFlag = False,
    steps: Annotated[
        int | None,
        typer.Option(
            help="training steps [default: 20 passes over the training rows, 100 to 1000 steps]"
        ),
    ] = None,
    validation: Annotated[
        float, typer.Option(help="share of the rows held out to score the model")
    ] = 0.2,
    max_drop: Annotated[
        float | None,
        typer.Option(
            help="refuse the new model if it loses more than this on the held-out rows of a past "
            "site, beyond chance [default: 0.1, on sites with at least 20 such rows]"
        ),
    ] = None,
    min_score: Annotated[
        float | None,
        typer.Option(
            help="refuse the new model if its score on the new site's validation rows is lower "
            "[default: refuse labels that have nothing to do with the inputs]"
        ),
    ] = None,
    drop: Annotated[
        str | None,
        typer.Option(help="columns to ignore, for example id,name; the model remembers them"),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(help="column with groups (patients, lots) that the split may not divide"),
    ] = None,
    time: Annotated[
        str | None, typer.Option(help="column with the time: the latest rows are held out")
    ] = None,
    time_format: Annotated[
        str | None,
        typer.Option(help="how times are written, for example %d/%m/%Y [default: number or ISO]"),
    ] = None,
    categories: Annotated[
        str | None,
        typer.Option(help="new model: columns to read as text even if they are numbers"),
    ] = None,
    weight: WeightFlag = None,
    separator: SeparatorFlag = None,
    encoding: EncodingFlag = None,
    decimal: DecimalFlag = None,
    checkpoint: Annotated[
        int,
        typer.Option(help="steps between checkpoints; interrupted training resumes from the last"),
    ] = 100,
    device: Annotated[
        str, typer.Option(help="cpu, cuda, cuda:0, or auto: cuda if there is a GPU, otherwise cpu")
    ] = "auto",
) -> None:
    """Train MODEL on the data of one more site.

    Shows the accuracy on held-out rows of the past sites before and after training. A model that
    loses too much there is refused, and MODEL stays as it was. If training is interrupted, the same
    command resumes it from the last checkpoint.

    Example: farshore learn model/ site_a.csv --label disease --name "site A"

    Example: farshore learn model/ site_b.csv --name "site B" --max-drop 0.02
    """
    from ..data.tables.columns import named_classes
    from ..data.tables.read_table import TextForm
    from ..deployment.changes import learn as learn_site
    from ..deployment.new_model import NewModel
    from ..deployment.site import Columns
    from ..settings import parse_assignments
    from .progress import ProgressObserver
    from .tables import make_console, plain_table

    if not name.strip():
        raise FarshoreError("--name is empty: give the site a name")
    new = NewModel(
        method=method,
        network=network,
        memory=memory,
        settings={
            **parse_assignments(set or []),
            **({"train": train} if train is not None else {}),
        },
        network_settings={
            **parse_assignments(network_set or [], flag="--network-set", example="width=64"),
            **({"weights": weights} if weights is not None else {}),
        },
        classes=named_classes(classes, label, "--classes") if classes is not None else None,
        seed=seed,
        metric=metric,
    )
    columns = Columns(
        label=label,
        time=time,
        time_format=time_format,
        group=group,
        weight=weight,
        drop=tuple(split_names(drop) or ()),
        categories=tuple(split_names(categories) or ()),
    )
    console = make_console()
    with ProgressObserver(console) as observer:
        done = learn_site(
            model,
            data,
            name=name,
            columns=columns,
            new=new,
            steps=steps,
            validation=validation,
            max_drop=max_drop,
            min_score=min_score,
            every=checkpoint,
            size=size,
            skip_broken=skip_broken,
            new_classes=new_classes,
            form=TextForm(separator=separator, encoding=encoding, decimal=decimal),
            device=device,
            observer=observer,
        )
    scores = ", ".join(f"{part} {percent(value)}" for part, value in done.scores.items())
    created = f"created {model}: " if done.created else ""
    console.print(
        f"{created}learned {name} ({done.rows} rows): {scores}", highlight=False, markup=False
    )
    if len(done.order) > 1:
        print_line(console, f"learned in this order: {' -> '.join(done.order)}")
    if done.before:
        rows = [
            [site, percent(done.before[site]), percent(done.after[site])] for site in done.before
        ]
        console.print(
            plain_table(
                f"{done.metric} on the held-out rows of past sites, %",
                ["", "before", "after"],
                rows,
            )
        )
