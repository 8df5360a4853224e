"""Experiments beside the runs they planned: RUNS/experiments/NAME.yaml, so that a folder of runs
tells by itself what was planned.

A run may belong to several experiments and is named by a hash; a report plans the recorded
experiments again and finds their runs.
"""

from __future__ import annotations

from pathlib import Path

import yaml

from ..errors import FarshoreError
from ..state import write_atomic
from .experiment import Book, Experiment, read_experiment

FOLDER = "experiments"
# Endings of the file's name: an experiment at tiny scale, or searched otherwise than it says
# itself, stands beside the plain one and never in its place.
TINY = ".tiny"
OPTUNA = ".optuna"


def record_experiment(experiment: Experiment, runs: Path, book: Book, *, ending: str = "") -> None:
    """Write the experiment, and those it depends on where they are not recorded yet.

    It is the whole experiment even where a sweep was narrowed to a part of it: a report then shows
    what is missing.
    """
    for name in _needs(experiment):
        if not _file(runs, name, ending).is_file():
            record_experiment(book(name), runs, book, ending=ending)
    path = _file(runs, experiment.name, ending)
    text = yaml.safe_dump(
        experiment.model_dump(mode="json", exclude_defaults=True),
        sort_keys=False,
        allow_unicode=True,
        width=120,
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, text.encode())
    except OSError as error:
        raise FarshoreError(f"{path} cannot be written: {error.strerror or error}") from None


def recorded_experiments(
    runs: Path, damaged: list[str] | None = None
) -> dict[str, tuple[Experiment, Book]]:
    """The recorded experiments by the name of their file, each with its book; unreadable ones
    are named in `damaged`.
    """
    found: dict[str, tuple[Experiment, Book]] = {}
    for path in sorted((runs / FOLDER).glob("*.yaml")):
        try:
            experiment = read_experiment(path)
            found[path.stem] = (
                experiment,
                recorded_book(runs, path.stem.removeprefix(experiment.name)),
            )
        except FarshoreError as error:
            if damaged is None:
                raise
            damaged.append(str(error))
    return found


def recorded_book(runs: Path, ending: str = "") -> Book:
    """Finds the recorded experiments of a folder by name."""

    def find(name: str) -> Experiment:
        path = _file(runs, name, ending)
        if not path.is_file():
            raise FarshoreError(
                f"{runs} does not record the experiment {name!r}: sweep it into this folder first"
            )
        return read_experiment(path)

    return find


def _needs(experiment: Experiment) -> list[str]:
    named = [
        *experiment.reads,
        *(part.settings_from for part in experiment.parts if part.settings_from is not None),
    ]
    return list(dict.fromkeys(named))


def _file(runs: Path, name: str, ending: str) -> Path:
    return runs / FOLDER / f"{name}{ending}.yaml"
