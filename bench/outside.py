"""CatBoost and AutoGluon on all sources at once, on the data and targets of the experiment auto.

    python bench/outside.py rows --folder outside
    python bench/outside.py fit --folder outside --write reproduction/anchors/outside.csv

`rows` needs farshore and writes the rows; `fit` needs catboost and, where it installs,
autogluon.tabular, in an environment of their own: neither is a dependency. Both models see the
training rows of all sources at once, as `joint-trees` does, and the target is what they predict in
the end. CatBoost has its defaults (three seeds). AutoGluon has 60 seconds per target and validates
by leaving sources out (`groups`); it runs once per target. Images of coloured-digits and
rotated-digits are no tables and are left out, as for the references of the experiment.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

TARGETS = {
    "heart-hospitals": (),
    "covertype": (),
    "covertype-natural": (),
    "covertype-zones": ("lower-montane", "montane", "subalpine", "alpine"),
    "elec2": ("37", "38", "39", "40"),
    "diabetes130": ("7",),
}
SEEDS = (0, 1, 2)
SECONDS = 60


def write_rows(folder: Path) -> None:
    """Training rows of the sources and all rows of the target, for every benchmark and target."""
    import torch

    from farshore.benchmarks import make_benchmark
    from farshore.data.seal import FrozenModel

    folder.mkdir(parents=True, exist_ok=True)
    for name, targets in TARGETS.items():
        benchmark = make_benchmark(name)
        if benchmark.missing() is not None:
            print(f"{name} is not prepared")
            continue
        known = benchmark.domain_names()
        for target in targets or known:
            # In time, a target is predicted from the domains before it.
            later = known[known.index(target) + 1 :] if benchmark.ordered_by_time else ()
            scenario = benchmark.scenario(target=target, left_out=later)
            opened = scenario.target.open(FrozenModel(torch.nn.Linear(1, 1)))
            parts = {}
            for domain in scenario.sources:
                rows = domain.split("train")
                chosen = rows.index.numpy()
                parts[domain.name] = (
                    np.asarray(rows.inputs)[chosen].reshape(len(rows), -1),
                    np.asarray(rows.labels)[chosen],
                )
            np.savez_compressed(
                folder / f"{name}@{target}.npz",
                inputs=np.concatenate([part for part, _ in parts.values()]),
                labels=np.concatenate([labels for _, labels in parts.values()]),
                groups=np.repeat(np.arange(len(parts)), [len(part) for part, _ in parts.values()]),
                target_inputs=np.asarray(opened.inputs).reshape(len(opened.labels), -1),
                target_labels=np.asarray(opened.labels),
            )


def accuracies(path: Path) -> Iterator[dict[str, Any]]:
    """A row of every model and seed."""
    with np.load(path) as rows:
        inputs, labels, groups = rows["inputs"], rows["labels"], rows["groups"]
        unseen, truth = rows["target_inputs"], rows["target_labels"]
    benchmark, _, target = path.stem.partition("@")
    row = {"benchmark": benchmark, "target": target}
    from catboost import CatBoostClassifier

    for seed in SEEDS:
        began = time.perf_counter()
        model = CatBoostClassifier(
            random_seed=seed, verbose=False, allow_writing_files=False, thread_count=1
        )
        model.fit(inputs, labels)
        right = np.ravel(model.predict(unseen)).astype(int) == truth
        yield row | _result("CatBoost", seed, right, time.perf_counter() - began)
    if find_spec("autogluon") is None:
        return
    from autogluon.tabular import TabularPredictor

    began = time.perf_counter()
    frame = pd.DataFrame(inputs).add_prefix("x").assign(label=labels, site=groups)
    predictor = TabularPredictor(
        "label", path=str(path.with_suffix("")), groups="site", verbosity=0
    ).fit(frame, time_limit=SECONDS, num_cpus=1)
    right = predictor.predict(pd.DataFrame(unseen).add_prefix("x")).to_numpy() == truth
    yield row | _result("AutoGluon", 0, right, time.perf_counter() - began)


def _result(model: str, seed: int, right: np.ndarray, seconds: float) -> dict[str, Any]:
    score = round(100 * float(right.mean()), 2)
    return {"model": model, "seed": seed, "accuracy": score, "seconds": round(seconds, 1)}


def main() -> None:
    """Carry out one of the two parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["rows", "fit"])
    parser.add_argument("--folder", type=Path, default=Path("outside"))
    parser.add_argument("--write", type=Path, help="the table, kept from call to call")
    args = parser.parse_args()
    if args.part == "rows":
        write_rows(args.folder)
        return
    table = args.write if args.write is not None else args.folder / "outside.csv"
    done = pd.read_csv(table, dtype={"target": str}) if table.exists() else pd.DataFrame()
    for path in sorted(args.folder.glob("*.npz")):
        benchmark, _, target = path.stem.partition("@")
        if len(done) and ((done["benchmark"] == benchmark) & (done["target"] == target)).any():
            continue
        new = pd.DataFrame(accuracies(path))
        print(new.to_string(index=False, header=False), flush=True)
        done = pd.concat([done, new], ignore_index=True)
        done.to_csv(table, index=False)


if __name__ == "__main__":
    main()
