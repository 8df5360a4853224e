"""`farshore calibrate`: fit the probabilities of a model to a few rows of a new site."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .data_options import DecimalFlag, EncodingFlag, OwnNetworkFlag, SeparatorFlag


def calibrate(
    model: Annotated[Path, typer.Argument(help="folder of the model")],
    data: Annotated[
        Path, typer.Argument(help="a few rows of the new site (30 are enough), as for `predict`")
    ],
    label: Annotated[
        str | None, typer.Option(help="column with the class [default: the model's own]")
    ] = None,
    unlabelled: Annotated[
        bool,
        typer.Option(
            "--unlabelled", help="the rows have no labels: estimate the shares of the classes"
        ),
    ] = False,
    separator: SeparatorFlag = None,
    encoding: EncodingFlag = None,
    decimal: DecimalFlag = None,
    network: OwnNetworkFlag = None,
) -> None:
    """Calibrate MODEL to a few rows of a new site.

    With labels: a temperature and, if it helps, another threshold. With --unlabelled: the class
    priors of the site, by EM. No weight changes. `farshore undo` reverts it.

    Example: farshore calibrate model/ thirty_rows.csv
    """
    from ..data.tables.read_table import TextForm
    from ..deployment.changes import calibrate as calibrate_model
    from ..deployment.words import calibration_lines
    from .tables import printable

    form = TextForm(separator=separator, encoding=encoding, decimal=decimal)
    done, opened = calibrate_model(
        model, data, labelled=not unlabelled, label=label, form=form, network=network
    )
    classes = [str(each) for each in opened.learner.classes or []]
    for line in calibration_lines(done, classes):
        print(printable(line))
