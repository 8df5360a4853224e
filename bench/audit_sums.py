"""How much faster every site is left out from sums than by refitting: `python bench/audit_sums.py`.

A made table with 100 sites. Refitting is timed on a few left-out sites, in both ways that are
possible: as the runs of an audit do it, site after site with a head after each, and with all rows
summed again and one head. Both are scaled up to all sites. CPU time, measured side by side.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from farshore.auditing.from_sums import SiteSums
from farshore.benchmarks import make_benchmark


def table(path: Path, sites: int, rows: int) -> None:
    draws = np.random.default_rng(0)
    parts = []
    for number in range(sites):
        x = draws.normal(size=(rows, 8)) + draws.normal(0, 0.3, 8)
        ill = x[:, 0] - x[:, 1] + draws.normal(size=rows) > 0
        part = pd.DataFrame(x, columns=[f"x{column}" for column in range(8)])
        parts.append(part.assign(site=f"site {number}", ill=np.where(ill, "yes", "no")))
    pd.concat(parts).to_csv(path, index=False)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--sites", type=int, default=100)
    arguments.add_argument("--rows", type=int, default=100)
    arguments.add_argument(
        "--tried", type=int, default=1, help="sites that are left out by refitting"
    )
    chosen = arguments.parse_args()
    torch.set_num_threads(1)
    print("| method | from sums, s per site | rows again, one head | as the runs do | faster |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        table(path, chosen.sites, chosen.rows)
        given = make_benchmark("table", {"path": str(path), "domain": "site", "label": "ill"})
        names = list(given.domain_names())
        scenario = given.scenario(target=names[-1], seed=0)
        for method in ("ridge", "slda", "ncm"):
            sites = SiteSums(scenario, method, {})
            learned = [domain.name for domain in scenario.sources]
            began = time.process_time()
            for left_out in learned[: chosen.tried]:
                head = sites.head(name for name in learned if name != left_out)
            own = (time.process_time() - began) / chosen.tried
            began = time.process_time()
            for left_out in learned[: chosen.tried]:
                again = SiteSums(scenario, method, {})
                again.head(name for name in learned if name != left_out)
            once = (time.process_time() - began) / chosen.tried
            began = time.process_time()
            for left_out in learned[: chosen.tried]:
                system = SiteSums(scenario, method, {}).system
                for domain in scenario.sources:
                    if domain.name != left_out:
                        system.learn(domain, steps=1)
            runs = (time.process_time() - began) / chosen.tried
            assert torch.allclose(head[0].weight.float(), system.model.weight, rtol=1e-9)
            print(
                f"| {method} | {own:.3f} | {once:.3f} ({once / own:.1f}x) | {runs:.3f} | "
                f"{runs / own:.0f}x |",
                flush=True,
            )


if __name__ == "__main__":
    main()
