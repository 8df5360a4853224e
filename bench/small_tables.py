"""Which defaults keep networks from overfitting small tables, chosen on other data sets.

    python bench/small_tables.py [--folder small-tables] [--print-only]

The design was written before the runs.

Data: `heart` (four hospitals), `heart degrees` (the same with five classes), `zones` (covertype's
seven climatic zones, 300 rows each), `areas` (covertype-natural's four areas, 500 rows each),
`elec2` (the last six fortnights) and `stays` (diabetes130, 500 rows of each of the five largest
sources of admission). Each is a table, as a user would bring it; those that are not prepared are
left out. Every domain is the target in turn (of elec2 the last three, after those before them), in
the listed order, with two seeds.

Settings, one at a time against the usual ones of own tables (Adam, a width of 256, steps by rows):
decoupled weight decay of 0.1 and 1, a width of 64, label smoothing of 0.1, dropout of 0.3 in hidden
layers, 10% and 30% of the inputs set to zero in each step, averaged weights (swad), a third of the
steps, and an early stop: 15% of a source's training rows are held out, and of ten points of its
training the weights with the least log loss on them are kept. Then `together`: of weight decay,
width, smoothing, dropout and dropped inputs, the better form of each that is ahead in the mean
over data sets, all at once.

Decision: by the mean over data sets of the paired difference of `er` at the target (each target
counts once in its data set), in accuracy. The best setting is chosen with every data set left out
in turn and measured on the one left out; its mean over the data sets left out is what a new table
can expect. It becomes the default for own tables if that mean is above 0 with its 95% interval over
data sets, and `joint` and `er-kd` (teacher=ema) do not lose by it in the mean.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import torch
from own_defaults import _as_table
from scipy import stats
from torch import Tensor, nn

from farshore import Run, execute
from farshore.benchmarks.covertype import CovertypeNatural, CovertypeZones
from farshore.benchmarks.diabetes130 import Diabetes130
from farshore.benchmarks.elec2 import Elec2
from farshore.data.steps import EPOCHS
from farshore.tasks import classification
from farshore.training.execution.extractor import StepChanges
from farshore.training.trainer import Trainer

METHODS: Mapping[str, Mapping[str, Any]] = {"er": {}, "er-kd": {"teacher": "ema"}, "joint": {}}
SEEDS = (0, 1)
CHECKS, HELD_OUT = 10, 0.15


@dataclass(frozen=True)
class Candidate:
    """Settings that are compared with the usual ones; patches replace what no setting has."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    network: Mapping[str, Any] = field(default_factory=dict)
    passes: float = 1.0
    smoothing: float = 0.0
    dropped: float = 0.0
    early: bool = False


USUAL = Candidate("usual")
SINGLE = (
    Candidate("weight decay 0.1", {"optimizer": "adamw", "weight_decay": 0.1}),
    Candidate("weight decay 1", {"optimizer": "adamw", "weight_decay": 1.0}),
    Candidate("width 64", network={"width": 64}),
    Candidate("dropout 0.3", network={"dropout": 0.3}),
    Candidate("smoothing 0.1", smoothing=0.1),
    Candidate("inputs dropped 0.1", dropped=0.1),
    Candidate("inputs dropped 0.3", dropped=0.3),
    Candidate("averaged weights", {"average": "swad"}),
    Candidate("a third of the steps", passes=1 / 3),
    Candidate("early stop", early=True),
)


def write_tables(folder: Path) -> Iterator[tuple[str, Path, dict[str, Any], list[str | None]]]:
    """Write the data sets; yield name, path, options and targets (None: every domain)."""
    folder.mkdir(parents=True, exist_ok=True)
    from importlib.resources import files

    heart = pd.read_csv(str(files("farshore.benchmarks") / "files" / "heart.csv"))
    hospital = {"domain": "hospital", "label": "num"}
    yield _written("heart degrees", heart, folder, hospital)
    heart["num"] = np.where(heart["num"] > 0, "ill", "well")
    yield _written("heart", heart, folder, hospital)
    for name, kind, rows, last in (
        ("zones", CovertypeZones, 300, 0),
        ("areas", CovertypeNatural, 500, 0),
        ("elec2", Elec2, 10_000, 6),
        ("stays", Diabetes130, 500, 0),
    ):
        if kind().missing() is not None:
            continue
        frame = _as_table(kind())
        names = list(dict.fromkeys(frame["domain"]))
        if last:
            frame = frame[frame["domain"].isin(names[-last:])]
        elif name == "stays":
            frame = frame[frame["domain"].isin(frame["domain"].value_counts().index[:5])]
        frame = frame.groupby("domain", sort=False).sample(frac=1, random_state=0)
        frame = frame.groupby("domain", sort=False).head(rows)
        yield _written(name, frame, folder, {}, names[-3:] if last else None)


def _written(
    name: str,
    frame: pd.DataFrame,
    folder: Path,
    roles: Mapping[str, str],
    targets: list[str] | None = None,
) -> tuple[str, Path, dict[str, Any], list[str | None]]:
    path = folder / f"{name.replace(' ', '-')}.csv"
    frame.to_csv(path, index=False)
    options = {"path": str(path), "domain": "domain", "label": "label", **roles}
    every = list(dict.fromkeys(frame[options["domain"]].astype(str)))
    return name, path, options, [*(targets or every)]


# ---- what no setting has -------------------------------------------------------------------------


@contextmanager
def changed(candidate: Candidate) -> Iterator[None]:
    """Inside, training smooths labels, drops inputs or stops early, as the candidate says."""
    with ExitStack() as stack:
        if candidate.smoothing:
            stack.enter_context(
                patch.object(classification, "empirical_risk", _smoothed(candidate.smoothing))
            )
        if candidate.dropped:
            stack.enter_context(patch.object(Trainer, "_changes", _dropping(candidate.dropped)))
        if candidate.early:
            stack.enter_context(patch.object(Trainer, "_train", _stopping_early(Trainer._train)))
        yield


def _smoothed(amount: float) -> Any:
    def risk(logits: Tensor, labels: Tensor, *weights: Any) -> Tensor:
        assert all(each is None for each in weights)
        return nn.functional.cross_entropy(logits, labels, label_smoothing=amount)

    return risk


def _dropping(share: float) -> Any:
    def changes(trainer: Trainer) -> StepChanges:
        draws = trainer.generators.data

        def drop(inputs: Tensor) -> Tensor:
            kept = torch.rand(inputs.shape, generator=draws) >= share
            return inputs * kept / (1 - share)

        return StepChanges(drop, None)

    return changes


def _stopping_early(train: Any) -> Any:
    def train_and_choose(
        trainer: Trainer,
        batches: Any,
        steps: int,
        resume: Any = None,
        close: Any = lambda: None,
    ) -> None:
        network = trainer.method.network
        draws = np.random.default_rng(0)
        held: list[tuple[Tensor, Tensor]] = []
        for rows in batches.parts:
            places = torch.from_numpy(draws.permutation(len(rows)))
            count = max(1, int(HELD_OUT * len(rows)))
            held.append(rows.take(places[:count])[:2])
            rows.index = rows.index[places[count:].sort().values]
        inputs, labels = (torch.cat(parts) for parts in zip(*held, strict=True))
        best: list[Any] = [float("inf"), {}]
        report = trainer.observer.step

        def step(name: str, number: int, terms: Any) -> None:
            report(name, number, terms)
            if (number + 1) % max(1, steps // CHECKS) == 0:
                network.eval()
                with torch.no_grad():
                    loss = float(nn.functional.cross_entropy(network(inputs), labels))
                network.train()
                if loss < best[0]:
                    state = network.state_dict().items()
                    best[:] = [loss, {key: value.clone() for key, value in state}]

        def restored() -> None:
            network.load_state_dict(best[1])
            close()

        with patch.object(trainer.observer, "step", step):
            train(trainer, batches, steps, resume, restored)

    return train_and_choose


# ---- runs and their table ------------------------------------------------------------------------


def measure(
    candidate: Candidate, name: str, options: Mapping[str, Any], targets: list[Any]
) -> list:
    """A row of every method, target and seed."""
    rows = []
    names = list(dict.fromkeys(pd.read_csv(options["path"])[options["domain"]].astype(str)))
    with changed(candidate):
        for method, settings in METHODS.items():
            for target in targets:
                # A fortnight is predicted from those before it.
                later = names[names.index(target) + 1 :] if name == "elec2" else []
                order = [each for each in names if each not in (target, *later)]
                for seed in SEEDS:
                    run = Run(
                        benchmark="table",
                        options=dict(options) | {"epochs": round(EPOCHS * candidate.passes)},
                        method=method,
                        settings={**settings, **candidate.settings},
                        network_settings=dict(candidate.network),
                        target=target,
                        order=tuple(order),
                        left_out=tuple(later),
                        seed=seed,
                    )
                    result = execute(run)
                    train = [row["accuracy"] for row in result.source_scores["train"]]
                    rows.append(
                        {
                            "setting": candidate.name,
                            "data set": name,
                            "method": method,
                            "target": target,
                            "seed": seed,
                            "training": 100 * float(np.mean(train)),
                            "accuracy": 100 * float(result.target.scores["accuracy"]),
                        }
                    )
    return rows


def combined(frame: pd.DataFrame) -> Candidate:
    """The better form of each kind that is ahead in the mean over data sets."""
    means = gains(frame, "er").mean(axis=1)
    settings: dict[str, Any] = {}
    network: dict[str, Any] = {}
    changes = {"smoothing": 0.0, "dropped": 0.0}
    for names in (
        ("weight decay 0.1", "weight decay 1"),
        ("width 64",),
        ("smoothing 0.1",),
        ("dropout 0.3",),
        ("inputs dropped 0.1", "inputs dropped 0.3"),
    ):
        best = max(names, key=lambda each: means[each])
        if means[best] > 0:
            one = next(each for each in SINGLE if each.name == best)
            settings |= one.settings
            network |= one.network
            changes["smoothing"] += one.smoothing
            changes["dropped"] += one.dropped
    return Candidate("together", settings, network, **changes)


def gains(frame: pd.DataFrame, method: str) -> pd.DataFrame:
    """Settings x data sets: the mean over targets of the difference to the usual settings."""
    own = frame[frame["method"] == method]
    by_target = own.groupby(["setting", "data set", "target"])["accuracy"].mean()
    usual = by_target.xs(USUAL.name)
    differences = by_target - usual.reindex(by_target.index.droplevel("setting")).to_numpy()
    table = differences.groupby(["setting", "data set"]).mean().unstack("data set")
    return table.drop(index=USUAL.name)


def report(frame: pd.DataFrame) -> None:
    """Print the table of differences, and the choice with every data set left out."""
    table = gains(frame, "er")
    print("| setting | " + " | ".join(table.columns) + " | mean | er-kd | joint |")
    print("|---|" + "---|" * (len(table.columns) + 3))
    others = {method: gains(frame, method).mean(axis=1) for method in ("er-kd", "joint")}
    usual = frame[(frame["setting"] == USUAL.name) & (frame["method"] == "er")]
    by = usual.groupby("data set")
    levels = [
        f"{by['accuracy'].mean()[name]:.1f} (training {by['training'].mean()[name]:.1f})"
        for name in table.columns
    ]
    print("| usual, er | " + " | ".join(levels) + " | | | |")
    for setting in table.index:
        cells = [f"{value:+.1f}" for value in table.loc[setting]]
        further = [f"{others[method].get(setting, np.nan):+.1f}" for method in others]
        print(
            f"| {setting} | {' | '.join([*cells, f'{table.loc[setting].mean():+.1f}', *further])} |"
        )
    left = {}
    for name in table.columns:
        rest = table.drop(columns=name).mean(axis=1)
        left[name] = (rest.idxmax(), table.loc[rest.idxmax(), name])
        print(f"without {name}: {left[name][0]}, there {left[name][1]:+.1f}")
    values = np.array([value for _, value in left.values()])
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5
    print(
        f"expected on a new table: {values.mean():+.1f} "
        f"[{values.mean() - half:+.1f}, {values.mean() + half:+.1f}] (n = {len(values)} data sets)"
    )


def main() -> None:
    """Carry out what the folder does not have yet, then print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("small-tables"))
    parser.add_argument("--print-only", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    path = args.folder / "runs.csv"
    rows = pd.read_csv(path, dtype={"target": str}).to_dict("records") if path.exists() else []
    tables = [] if args.print_only else list(write_tables(args.folder / "data"))

    def carry_out(candidate: Candidate) -> None:
        for name, _, options, targets in tables:
            if any((row["setting"], row["data set"]) == (candidate.name, name) for row in rows):
                continue
            rows.extend(measure(candidate, name, options, targets))
            pd.DataFrame(rows).to_csv(path, index=False)

    for candidate in (USUAL, *SINGLE):
        carry_out(candidate)
    carry_out(combined(pd.DataFrame(rows)))
    report(pd.DataFrame(rows))


if __name__ == "__main__":
    main()
