"""How often an audit says "ready" about tables whose labels say nothing.

    python bench/permuted_labels.py [--tables 100] [--workers 2] [--save permuted-labels]

A table has 4 sites of 30 to 60 rows, two or three classes of uneven frequency, and inputs that
tell the classes apart. Permuting the labels of the whole table leaves nothing to learn. Each table
is audited with slda and ncm, whose answers are closed forms: no steps, and no influence of the
order of the sites, so one order is enough. An audit takes two or three seconds on one thread. The
first tenth of the tables is audited with its own labels, too. docs/audit.md shows the counts.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
import record

import farshore
from farshore.auditing.decision import Readiness

SITES = 4
LABELS = ("permuted", "their own")
MEASURED = (
    "What audits decide about small tables, 4 sites of 30 to 60 rows with 2 or 3 classes; methods "
    "slda and ncm, and the references"
)
COLUMNS = ("labels", "tables", *map(str, Readiness), "highest excess over guessing, points")


def make_table(number: int, *, permuted: bool) -> pd.DataFrame:
    """The table of this number."""
    draws = np.random.default_rng([7, number])
    rows, classes = (int(draws.integers(*ends)) for ends in ((30, 61), (2, 4)))
    shares = draws.dirichlet(np.full(classes, 4.0))
    centres = 1.2 * draws.normal(size=(classes, 4))
    frames = []
    for site in range(SITES):
        label = draws.choice(classes, rows, p=shares)
        inputs = centres[label] + draws.normal(size=(rows, 4)) + 0.5 * draws.normal(size=4)
        frame = pd.DataFrame(inputs.round(3), columns=[f"x{column}" for column in range(4)])
        frames.append(frame.assign(site=f"site {site}", label=[f"class {each}" for each in label]))
    table = pd.concat(frames, ignore_index=True)
    if permuted:
        table["label"] = draws.permutation(table["label"])
    return table


def audited(asked: tuple[int, bool]) -> tuple[str, float]:
    """What the audit of a table decides, and how far its method is above guessing."""
    table = make_table(asked[0], permuted=asked[1])
    with tempfile.TemporaryDirectory() as runs:
        done = farshore.audit(
            table,
            domain="site",
            label="label",
            methods=["slda", "ncm"],
            orders=["listed"],
            steps=1,
            design="full",
            runs=Path(runs),
        )
    found = done.findings.plain()
    return str(found["decision"]["outcome"]), 100 * found["evidence"]["excess"]["mean"]


def rows(tables: int, workers: int) -> Iterator[list[object]]:
    """A row of counts for each kind of labels."""
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for labels, count in zip(LABELS, (tables, max(1, tables // 10)), strict=True):
            asked = [(number, labels == "permuted") for number in range(count)]
            found = []
            for (number, _), answer in zip(asked, pool.map(audited, asked), strict=True):
                print(f"{labels}, table {number}: {answer[0]}", file=sys.stderr)
                found.append(answer)
            decided = [decision for decision, _ in found]
            counts = [decided.count(str(outcome)) for outcome in Readiness]
            yield [labels, count, *counts, f"{max(excess for _, excess in found):.1f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--workers", type=int, default=2)
    record.add_save(parser)
    args = parser.parse_args()
    record.show(args, MEASURED, COLUMNS, rows(args.tables, args.workers), ["scikit-learn"])


if __name__ == "__main__":
    main()
