"""The name of a run: a hash of all that decides its numbers."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from .. import catalog
from ..benchmarks.source import make_benchmark
from ..protocol import Run


def description(run: Run) -> dict[str, Any]:
    """What the name is made of: scenario, method, settings, seeds and the two versions. Not the
    device, nor the commit.

    Values that stand at their defaults are left out, so that a new field of a run renames no old
    one. Own data are described by what the files hold, not by where they lie.
    """
    run = run.normal()
    benchmark = make_benchmark(run.benchmark, run.options)
    described = run.model_dump(mode="json", exclude_defaults=True, exclude={"device", "options"})
    options = {
        name: value for name, value in run.options.items() if name not in benchmark.path_options
    }
    digest = benchmark.data_digest()
    return (
        described
        | ({"options": options} if options else {})
        | ({"data": digest} if digest else {})
        | {
            "results_versions": {
                "method": catalog.find(run.method).results_version,
                "benchmark": benchmark.results_version,
            }
        }
    )


def run_name(run: Run) -> str:
    """Sixteen hexadecimal digits."""
    return hashlib.sha256(json.dumps(description(run), sort_keys=True).encode()).hexdigest()[:16]
