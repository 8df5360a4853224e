"""Project the features that the runs of feature_space_covertype saved, for docs/reproduction/.

    farshore sweep reproduction/experiments/feature_space_covertype.yaml --runs runs/features
    python -m reproduction.feature_space runs/features

It writes feature_space.json, from which the page and its figure are made: UMAP gives other
coordinates with other versions of its libraries, so that `make docs` does not repeat it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from farshore.report.figures.features import accuracy, read_features
from farshore.runs.store.store import Store
from reproduction import HERE
from reproduction.collect import planned_runs

EXPERIMENT = "feature_space_covertype"
POINTS = HERE / "feature_space.json"
# Rows of a domain that are projected and drawn: more would only make the picture larger.
ROWS = 80


def projected(file: Path) -> dict[str, Any]:
    """What the saved features of a run tell about domains, and its rows on a plane."""
    from umap import UMAP

    saved = read_features(file)
    assert saved is not None, file
    names = sorted(set(saved.domains))
    numbers = np.array([names.index(name) for name in saved.domains])
    draws = np.random.default_rng(0)
    chosen = np.concatenate(
        [draws.permutation(np.flatnonzero(numbers == each))[:ROWS] for each in range(len(names))]
    )
    umap = UMAP(n_neighbors=15, min_dist=0.1, random_state=0, n_jobs=1)
    plane = umap.fit_transform(saved.features[chosen])
    return {
        "target": names[int(numbers[saved.target][0])],
        "rows": len(numbers),
        "domain_accuracy": accuracy(saved.features, numbers),
        "target_accuracy": accuracy(saved.features, saved.target.astype(np.int64)),
        "points": {
            name: np.round(plane[numbers[chosen] == each], 2).tolist()
            for each, name in enumerate(names)
        },
    }


def main(runs: Path) -> None:
    """Write the projections of all methods."""
    store, found = Store(runs), {}
    for planned in planned_runs(EXPERIMENT):
        result, folder = store.read(planned.name), store.folder(planned.name)
        assert result.target_score is not None
        found[planned.condition.method] = projected(folder.features) | {
            "run": planned.name,
            "score": round(100 * result.target_score, 1),
            "seconds": round(result.seconds["training"], 1),
            "device": result.run.device,
            "commit": (folder.read_config() or {}).get("commit", ""),
        }
    POINTS.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", type=Path, help="folder of runs, as given to --runs")
    main(parser.parse_args().runs)
