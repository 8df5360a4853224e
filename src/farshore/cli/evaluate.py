"""`farshore evaluate`: score a model on labelled data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .data_options import DecimalFlag, EncodingFlag, OwnNetworkFlag, SeparatorFlag


def evaluate(
    model: Annotated[Path, typer.Argument(help="folder of the model")],
    data: Annotated[
        Path,
        typer.Argument(
            help="a labelled table (CSV, Parquet, ...), or a folder of images, class/file"
        ),
    ],
    label: Annotated[
        str | None, typer.Option(help="column with the class [default: the model's own]")
    ] = None,
    separator: SeparatorFlag = None,
    encoding: EncodingFlag = None,
    decimal: DecimalFlag = None,
    network: OwnNetworkFlag = None,
) -> None:
    """Score MODEL on labelled data, without learning from it.

    Example: farshore evaluate model/ new_site.csv
    """
    from ..data.tables.read_table import TextForm
    from ..deployment.model import Model
    from ..tasks.scores import all_scores, confusion_matrix
    from .run_output import percent
    from .tables import make_console, plain_table

    opened = Model.open(model, network=network)
    form = TextForm(separator=separator, encoding=encoding, decimal=decimal)
    site = opened.read(data, labelled=True, label=label, form=form)
    logits, labels = opened.outputs(site)
    console = make_console()
    for note in site.notes:
        console.print(note)
    shares = ("accuracy", "balanced_accuracy", "macro_f1", "auroc")
    rows = [
        [
            name.replace("_", " "),
            percent(value) + (" %" if value is not None else "")
            if name in shares
            else f"{value:.3f}",
        ]
        for name, value in all_scores(logits, labels).items()
    ]
    console.print(plain_table(f"{data.name}: {len(site)} rows", ["", "score"], rows))
    classes = [str(label) for label in opened.learner.classes or []]
    matrix = confusion_matrix(logits, labels).tolist()
    console.print(
        plain_table(
            "true class (down), predicted class (across)",
            ["", *classes],
            [[name, *map(str, row)] for name, row in zip(classes, matrix, strict=True)],
        )
    )
