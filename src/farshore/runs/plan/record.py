"""Record experiments next to their runs, as RUNS/experiments/NAME.yaml.

A folder of runs thus documents what was planned. A run may belong to several experiments and is
named by a hash; a report plans the recorded experiments again and finds their runs.
"""

from __future__ import annotations

from pathlib import Path

from ...base.files import write_output
from ...errors import FarshoreError
from .bounded_yaml import write_yaml
from .experiment import Book, Experiment, check_dependencies, needs, read_experiment

FOLDER = "experiments"
# File name endings: an experiment at tiny scale, or searched differently from its file, is recorded
# next to the original and never replaces it.
TINY = ".tiny"
OPTUNA = ".optuna"


def record_experiment(experiment: Experiment, runs: Path, book: Book, *, ending: str = "") -> None:
    """Write the experiment, and those it depends on unless they are recorded already.

    The whole experiment is written even if a sweep was narrowed to a part of it: a report then
    shows what is missing.
    """
    check_dependencies(experiment, book)
    for name in needs(experiment):
        if not _file(runs, name, ending).is_file():
            record_experiment(book(name), runs, book, ending=ending)
    path = _file(runs, experiment.name, ending)
    text = write_yaml(experiment.model_dump(mode="json", exclude_defaults=True))
    write_output(path, text.encode())


def recorded_experiments(
    runs: Path, damaged: list[str] | None = None
) -> dict[str, tuple[Experiment, Book]]:
    """The recorded experiments by file name, each with its book.

    Unreadable ones are reported in `damaged`; without it, they raise.
    """
    recorded: dict[str, tuple[Experiment, Book]] = {}
    for path in sorted((runs / FOLDER).glob("*.yaml")):
        try:
            experiment = read_experiment(path, None)
            recorded[path.stem] = (
                experiment,
                recorded_book(runs, path.stem.removeprefix(experiment.name)),
            )
        except FarshoreError as error:
            if damaged is None:
                raise
            damaged.append(str(error))
    return recorded


def recorded_book(runs: Path, ending: str = "") -> Book:
    """A book of the experiments recorded in a folder of runs."""

    def find(name: str) -> Experiment:
        path = _file(runs, name, ending)
        if not path.is_file():
            raise FarshoreError(
                f"{runs} does not record the experiment {name!r}: sweep it into this folder first"
            )
        return read_experiment(path, None)

    return find


def _file(runs: Path, name: str, ending: str) -> Path:
    return runs / FOLDER / f"{name}{ending}.yaml"
