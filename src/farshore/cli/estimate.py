"""`farshore estimate`: the accuracy to expect at a site without labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import FarshoreError
from .data_options import DecimalFlag, EncodingFlag, OwnNetworkFlag, SeparatorFlag


def estimate(
    model: Annotated[Path, typer.Argument(help="folder of the model")],
    data: Annotated[
        Path,
        typer.Argument(
            help="a table (CSV, Parquet, ...) or a folder of images; labels are not needed"
        ),
    ],
    separator: SeparatorFlag = None,
    encoding: EncodingFlag = None,
    decimal: DecimalFlag = None,
    network: OwnNetworkFlag = None,
) -> None:
    """Estimate the accuracy of MODEL on DATA without labels.

    The interval comes from the sites that MODEL was measured on before it learned them. If DATA is
    out of their range, or too few sites were learned, there is no estimate (exit code 2).

    Example: farshore estimate model/ new_site.csv
    """
    from ..data.tables.read_table import TextForm
    from ..deployment.estimate import NoEstimate
    from ..deployment.model import Model
    from ..deployment.words import estimate_lines, warning
    from .tables import printable

    opened = Model.open(model, network=network)
    form = TextForm(separator=separator, encoding=encoding, decimal=decimal)
    site = opened.read(data, labelled=False, form=form)
    for note in site.notes:
        print(printable(note))
    _, estimated = opened.judge(site)
    if isinstance(estimated, NoEstimate):
        raise FarshoreError(f"no estimate for {data}: {estimated.reason}")
    for line in estimate_lines(estimated):
        print(line)
    warned = warning(estimated, opened.promised)
    if warned is not None:
        print(warned)
