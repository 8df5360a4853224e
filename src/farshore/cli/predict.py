"""`farshore predict`: labels, probabilities and strangeness of each row."""

import math
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.files import output
from ..errors import FarshoreError
from .data_options import MODEL, MODEL_NETWORK, UNLABELLED, TextOptions
from .flags import answers, argument, command, flag

if TYPE_CHECKING:
    import pandas as pd


@dataclass
class Seen:
    """What the predictions of all chunks have in common."""

    predicted: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    # Of numbers: the sum, the smallest and the largest prediction, by column.
    spans: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    nearest: Counter[str] = field(default_factory=Counter)
    strange: int = 0
    marked: int = 0
    first_marked: str = ""

    def add(self, table: "pd.DataFrame") -> None:
        """Count the rows of the next chunk."""
        import pandas as pd

        self.rows += len(table)
        for name in (each for each in map(str, table) if each.split(" ")[0] == "prediction"):
            found = table[name]
            if pd.api.types.is_numeric_dtype(found):
                total, least, most = self.spans.get(name, (0.0, math.inf, -math.inf))
                total, least = total + float(found.sum()), min(least, float(found.min()))
                self.spans[name] = total, least, max(most, float(found.max()))
            else:
                self.predicted.update(_counted(found))
        if "strangeness" in table:
            self.strange += int((table["strangeness"] > 1).sum())
            self.nearest.update(_counted(table["nearest"]))
        if "unknown" in table:
            marked = table[table["unknown"] != ""]
            if len(marked) and not self.marked:
                self.first_marked = f"{marked['row'].iloc[0]}: {marked['unknown'].iloc[0]}"
            self.marked += len(marked)

    def lines(self) -> list[str]:
        """One line each on the predictions, on strange rows and on unknown categories."""
        rows = self.rows
        said = _counts(self.predicted) or "; ".join(
            f"{name.replace('prediction', 'predictions', 1)} {least:.4g} to {most:.4g}, mean "
            f"{total / rows:.4g}"
            for name, (total, least, most) in self.spans.items()
        )
        lines = [f"{rows} rows: {said}"]
        if self.nearest:
            lines.append(
                f"strange rows: {100 * self.strange / rows:.1f}% (at most about 10% at a site that "
                f"was learned); nearest: {_counts(self.nearest)}"
            )
        if self.marked:
            what = "treated as `other`, marked in column unknown"
            lines.append(f"unknown categories in {self.marked} rows: {what}")
        return lines


def _counted(cells: "pd.Series") -> dict[str, int]:
    return {str(cell): int(count) for cell, count in cells.value_counts(sort=False).items()}


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counter.most_common())


@command
def predict(
    model: Path = argument(MODEL),
    data: Path = argument(UNLABELLED),
    *,
    out: Path | None = flag("CSV file to write [default: standard output]", short="-o"),
    unknown: str = flag("what to do with unknown categories: mark or refuse", "mark"),
    written: TextOptions,
    network: str | None = flag(MODEL_NETWORK),
) -> None:
    """Predict the class of every row of DATA with MODEL, or the number.

    The output has these columns: the prediction, the probability of each class, the strangeness
    (above 1: further from every learned site than 95% of that site's own rows), the nearest site,
    and the categories that the model does not know. Of numbers, instead of probabilities: the ends
    of the 90% interval, from errors at sites before they were learned, with at least 3 of them. The
    last lines judge the site as a whole, as `farshore arrive` does: an alarm means that it lies
    outside what the model knows.

    Example: farshore predict model/ new_site.csv -o predictions.csv
    """
    from ..data.tables.spreadsheet import as_csv_rows
    from ..deployment.model import Model
    from ..deployment.words import arrival_lines
    from .tables import printable

    if unknown not in ("mark", "refuse"):
        raise FarshoreError(f"--unknown {unknown} is not allowed: use mark or refuse")
    opened = Model.open(model, network=network)
    chunks, sample = opened.read_chunks(data, labelled=False, form=written.form())
    seen = Seen()
    with output(out) as file:
        for chunk in chunks:
            table = opened.predict(chunk)
            file.write(as_csv_rows(table, header=not sample.rows).encode())
            seen.add(table)
            sample.add(chunk)
        if seen.marked and unknown == "refuse":
            raise FarshoreError(
                f"{seen.marked} rows of {data} have unknown categories, the first is row "
                f"{seen.first_marked}"
            )
    site = sample.site
    messages = sys.stdout if out is not None else sys.stderr
    for line in [*site.notes, *seen.lines()]:
        print(printable(line), file=messages)
    arrived = opened.judge(site, data)
    answers.update(
        rows=seen.rows,
        predicted=seen.predicted,
        strange=seen.strange,
        unknown=seen.marked,
        notes=site.notes,
        verdict=arrived.verdict,
        arrived=arrived.plain(),
        out=out,
    )
    for line in arrival_lines(arrived):
        print(printable(line), file=messages)
