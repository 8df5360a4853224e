"""The name of a run: a hash of all that decides its numbers."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from .. import catalog
from ..benchmarks import BENCHMARKS
from ..protocol import Run


def description(run: Run) -> dict[str, Any]:
    """What the name is made of: scenario, method, settings, seeds and the two versions. Not the
    device, nor the commit.

    Values that stand at their defaults are left out, so that a new field of a run renames no old
    one.
    """
    described = run.model_dump(mode="json", exclude_defaults=True, exclude={"device"})
    of_benchmark = 1 if run.data is not None else BENCHMARKS.get(run.benchmark).results_version
    return described | {
        "results_versions": {
            "method": catalog.find(run.method).results_version,
            "benchmark": of_benchmark,
        }
    }


def run_name(run: Run) -> str:
    """Sixteen hexadecimal digits."""
    return hashlib.sha256(json.dumps(description(run), sort_keys=True).encode()).hexdigest()[:16]
