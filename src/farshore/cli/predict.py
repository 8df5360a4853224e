"""`farshore predict`: labels, probabilities and strangeness of each row."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..base.files import print_output, write_output
from ..errors import FarshoreError
from .data_options import DecimalFlag, EncodingFlag, OwnNetworkFlag, SeparatorFlag


def predict(
    model: Annotated[Path, typer.Argument(help="folder of the model")],
    data: Annotated[
        Path,
        typer.Argument(
            help="a table (CSV, Parquet, ...) or a folder of images; labels are not needed"
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="CSV file to write [default: standard output]"),
    ] = None,
    unknown: Annotated[
        str, typer.Option(help="what to do with unknown categories: mark or refuse")
    ] = "mark",
    separator: SeparatorFlag = None,
    encoding: EncodingFlag = None,
    decimal: DecimalFlag = None,
    network: OwnNetworkFlag = None,
) -> None:
    """Predict the class of every row of DATA with MODEL.

    The output has these columns: the prediction, the probability of each class, the strangeness
    (above 1: further from every learned site than 95% of that site's own rows), the nearest site,
    and the categories that the model does not know. The last lines judge the site as a whole: an
    alarm means that it lies outside what the model knows.

    Example: farshore predict model/ new_site.csv -o predictions.csv
    """
    from ..data.tables.read_table import TextForm
    from ..data.tables.spreadsheet import as_csv_text
    from ..deployment.model import Model
    from ..deployment.words import verdict_lines, warning
    from .tables import printable

    if unknown not in ("mark", "refuse"):
        raise FarshoreError(f"--unknown {unknown} is not allowed: use mark or refuse")
    opened = Model.open(model, network=network)
    form = TextForm(separator=separator, encoding=encoding, decimal=decimal)
    site = opened.read(data, labelled=False, form=form)
    table = opened.predict(site)
    marked = table["unknown"] != "" if "unknown" in table else None
    if marked is not None and marked.any() and unknown == "refuse":
        first = table[marked].iloc[0]
        raise FarshoreError(
            f"{int(marked.sum())} rows of {data} have unknown categories, the first is row "
            f"{first['row']}: {first['unknown']}"
        )
    text = as_csv_text(table, float_format="%.6g")
    if out is not None:
        write_output(out, text.encode())
    else:
        print_output(text)
    messages = sys.stdout if out is not None else sys.stderr
    for note in site.notes:
        print(printable(note), file=messages)
    counts = table["prediction"].value_counts().items()
    predicted = ", ".join(f"{label} {count}" for label, count in counts)
    print(printable(f"{len(table)} rows: {predicted}"), file=messages)
    if "strangeness" in table:
        strange = table["strangeness"] > 1
        nearest = ", ".join(
            f"{name} {count}" for name, count in table["nearest"].value_counts().items()
        )
        print(
            f"strange rows: {100 * strange.mean():.1f}% (at most about 10% at a site that was "
            f"learned); nearest: {printable(nearest)}",
            file=messages,
        )
    if marked is not None and marked.any():
        print(
            f"unknown categories in {int(marked.sum())} rows: treated as `other`, marked in column "
            "unknown",
            file=messages,
        )
    verdict, estimate = opened.judge(site)
    for line in verdict_lines(verdict):
        print(printable(line), file=messages)
    warned = warning(estimate, opened.promised)
    if warned is not None:
        print(warned, file=messages)
