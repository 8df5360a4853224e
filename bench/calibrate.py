"""What 30 labelled rows of a new site are worth: `farshore calibrate` on the table benchmarks.

    python bench/calibrate.py [--rows 30] [--draws 10] [--seeds 2] [--steps 100] [--only NAMES]

Every domain is left out in turn. A model is trained on the others, then calibrated with a few
labelled rows of the left-out domain, drawn several times, and measured on the rest. The table shows
the mean log loss before and after, in how many draws it improved, the accuracy before and after,
in how many draws the accuracy fell below the interval that `calibrate` had given, and in how many a
change was refused. covertype and covertype-zones need `farshore prepare`; they are left out
otherwise.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import farshore
from farshore.base.randomness import derive
from farshore.benchmarks import make_benchmark
from farshore.data.domain import Domain
from farshore.data.scenario import Scenario
from farshore.deployment.calibrate import fit_labelled
from farshore.learner.learner import Learner
from farshore.runs.protocol import execute
from farshore.runs.run import Run
from farshore.tasks.calibration import fit_temperature, log_losses

BENCHMARKS = ("heart-hospitals", "covertype", "covertype-zones")
METHODS = ("er", "ridge", "best")


@dataclass(frozen=True)
class Draw:
    """One calibration, measured on the rows that it did not see."""

    target: str
    before: float
    after: float
    accuracy_before: float
    accuracy_after: float
    low: float
    refused: bool


def calibrated(
    learner: Learner, target: Domain, metric: str, temperature: float, rows: int, draws: int
) -> list[Draw]:
    """Calibrations with several draws of a few rows."""
    logits, labels = learner.outputs(target.split("all"))
    z, y = logits.double().cpu().numpy(), labels.cpu().numpy()
    measured = []
    for number in range(draws):
        chance = np.random.default_rng(derive(0, "bench", target.name, number))
        order = chance.permutation(len(y))
        few, rest = order[:rows], order[rows:]
        done = fit_labelled(z[few], y[few], metric=metric, usual=temperature)
        after = done.calibration.apply(z[rest])
        measured.append(
            Draw(
                target.name,
                float(log_losses(z[rest], y[rest]).mean()),
                float(log_losses(after, y[rest]).mean()),
                float((z[rest].argmax(axis=1) == y[rest]).mean()),
                float((after.argmax(axis=1) == y[rest]).mean()),
                done.low,
                done.refused is not None,
            )
        )
    return measured


def held_out_temperature(learner: Learner, sources: Sequence[Domain]) -> float:
    """The temperature of the sources' validation rows, as a deployed model has it."""
    outputs = [learner.outputs(source.split("validation")) for source in sources]
    logits = np.concatenate([each.double().cpu().numpy() for each, _ in outputs])
    labels = np.concatenate([each.cpu().numpy() for _, each in outputs])
    return fit_temperature(logits, labels, trust=1.0)


def bench(name: str, method: str, rows: int, draws: int, seeds: int, steps: int) -> list[Draw]:
    """All draws of a method on a benchmark, with every domain left out in turn."""
    benchmark = make_benchmark(name, {})
    results: list[Draw] = []

    def measure(learner: Learner, scenario: Scenario, opened: Domain) -> None:
        temperature = held_out_temperature(learner, scenario.sources)
        results.extend(calibrated(learner, opened, scenario.metric, temperature, rows, draws))

    for target in benchmark.each_target():
        for seed in range(seeds):
            run = Run(benchmark=name, method=method, target=target, seed=seed, steps=steps)
            execute(run, opened=measure)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=30)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--only", default=",".join(BENCHMARKS))
    given = parser.parse_args()
    print(f"farshore {farshore.__version__}, {given.rows} labelled rows")
    print(
        "| benchmark | method | log loss before | after | improved | accuracy before, % | ", end=""
    )
    print("after, % | below its interval | refused |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in given.only.split(","):
        absent = make_benchmark(name, {}).missing()
        if absent is not None:
            print(f"{name} is left out: {absent}")
            continue
        for method in METHODS:
            done = bench(name, method, given.rows, given.draws, given.seeds, given.steps)
            columns = [
                np.mean([draw.before for draw in done]),
                np.mean([draw.after for draw in done]),
            ]
            improved = sum(draw.after < draw.before for draw in done)
            scores = [
                100 * np.mean([draw.accuracy_before for draw in done]),
                100 * np.mean([draw.accuracy_after for draw in done]),
            ]
            below = sum(draw.accuracy_after - draw.accuracy_before < draw.low for draw in done)
            print(
                f"| {name} | {method} | {columns[0]:.3f} | {columns[1]:.3f} | {improved} of "
                f"{len(done)} | {scores[0]:.1f} | {scores[1]:.1f} | {below} of {len(done)} | "
                f"{sum(draw.refused for draw in done)} of {len(done)} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
