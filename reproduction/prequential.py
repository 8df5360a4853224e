"""elec2 as a stream: the no-change classifier and online learners of river, fortnight by fortnight.

    python -m reproduction.prequential --write

Every row is predicted before its label is learned (prequentially), in chronological order from the
first fortnight on. `frozen` is the same learner with what it knew when the fortnight began, so
that it has seen as much as a continual method that predicts this fortnight. The no-change
classifier predicts the label of the row before; frozen, the last label before the fortnight.
River is not a dependency of farshore: install it (`pip install river`) to have its learners.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Callable, Iterator
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pandas as pd

from farshore.benchmarks import BENCHMARKS
from reproduction import ANCHORS

TABLE = ANCHORS / "prequential.csv"
TARGETS = tuple(str(number) for number in range(33, 41))
SEED = 0


class NoChange:
    """Predicts the label that it has seen last."""

    last = 0

    def predict_one(self, row: dict[str, float]) -> int:
        """The last label."""
        return self.last

    def learn_one(self, row: dict[str, float], label: int) -> None:
        """Keep the label."""
        self.last = label


def learners() -> dict[str, Callable[[], Any]]:
    """What is compared, by name; those of river if it is installed."""
    found: dict[str, Callable[[], Any]] = {"no change": NoChange}
    try:
        from river import forest, linear_model, preprocessing, tree
    except ImportError:
        return found
    return found | {
        "river: logistic regression": lambda: (
            preprocessing.StandardScaler() | linear_model.LogisticRegression()
        ),
        "river: Hoeffding adaptive tree": lambda: tree.HoeffdingAdaptiveTreeClassifier(seed=SEED),
        "river: adaptive random forest": lambda: forest.ARFClassifier(n_models=10, seed=SEED),
    }


def errors(
    make: Callable[[], Any], inputs: np.ndarray, labels: np.ndarray, starts: list[int]
) -> Iterator[tuple[int, float, float]]:
    """For each chunk from the second on: its number, and the shares of wrong predictions,
    prequentially and frozen.
    """
    learner = make()
    names = [str(column) for column in range(inputs.shape[1])]
    for chunk, (start, end) in enumerate(pairwise(starts)):
        rows = [dict(zip(names, map(float, row), strict=True)) for row in inputs[start:end]]
        known = labels[start:end].tolist()
        wrong = {"frozen": 0, "prequential": 0}
        wanted = str(chunk) in TARGETS
        still = copy.deepcopy(learner) if wanted else learner
        for row, label in zip(rows, known, strict=True):
            if wanted:
                wrong["frozen"] += (still.predict_one(row) or 0) != label
                wrong["prequential"] += (learner.predict_one(row) or 0) != label
            learner.learn_one(row, label)
        if wanted:
            yield chunk, wrong["prequential"] / len(known), wrong["frozen"] / len(known)


def measured() -> pd.DataFrame:
    """One row per learner and target fortnight."""
    benchmark: Any = BENCHMARKS.get("elec2")({})
    prepared = benchmark.open(0)
    parts = [prepared.read(name) for name in prepared.domains]
    inputs = np.concatenate([np.asarray(rows) for rows, _ in parts])
    labels = np.concatenate([each.numpy() for _, each in parts])
    starts = [0, *accumulate(prepared.domains.values())]
    return pd.DataFrame(
        [
            {"learner": name, "target": chunk, "prequential": online, "frozen": frozen}
            for name, make in learners().items()
            for chunk, online, frozen in errors(make, inputs, labels, starts)
        ]
    )


def main() -> None:
    """Print the errors, and write them with `--write`."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the table of docs/referee.md")
    given = parser.parse_args()
    frame = measured()
    print(frame.groupby("learner", sort=False)[["prequential", "frozen"]].mean().round(4))
    if given.write:
        frame.to_csv(TABLE, index=False, float_format="%.6g")


if __name__ == "__main__":
    main()
