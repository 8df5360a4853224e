"""`farshore predict`: labels, probabilities and strangeness of each row."""

from __future__ import annotations

import sys
from pathlib import Path

from ..base.files import print_output, write_output
from ..errors import FarshoreError
from .data_options import MODEL, MODEL_NETWORK, UNLABELLED, TextOptions
from .flags import argument, command, flag


@command
def predict(
    model: Path = argument(MODEL),
    data: Path = argument(UNLABELLED),
    *,
    out: Path | None = flag("CSV file to write [default: standard output]", short="-o"),
    unknown: str = flag("what to do with unknown categories: mark or refuse", "mark"),
    text: TextOptions,
    network: str | None = flag(MODEL_NETWORK),
) -> None:
    """Predict the class of every row of DATA with MODEL.

    The output has these columns: the prediction, the probability of each class, the strangeness
    (above 1: further from every learned site than 95% of that site's own rows), the nearest site,
    and the categories that the model does not know. The last lines judge the site as a whole: an
    alarm means that it lies outside what the model knows.

    Example: farshore predict model/ new_site.csv -o predictions.csv
    """
    from ..data.tables.spreadsheet import as_csv_text
    from ..deployment.model import Model
    from ..deployment.words import verdict_lines, warning
    from .tables import printable

    if unknown not in ("mark", "refuse"):
        raise FarshoreError(f"--unknown {unknown} is not allowed: use mark or refuse")
    opened = Model.open(model, network=network)
    site = opened.read(data, labelled=False, form=text.form())
    table = opened.predict(site)
    marked = table["unknown"] != "" if "unknown" in table else None
    if marked is not None and marked.any() and unknown == "refuse":
        first = table[marked].iloc[0]
        raise FarshoreError(
            f"{int(marked.sum())} rows of {data} have unknown categories, the first is row "
            f"{first['row']}: {first['unknown']}"
        )
    lines = as_csv_text(table, float_format="%.6g")
    if out is not None:
        write_output(out, lines.encode())
    else:
        print_output(lines)
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
