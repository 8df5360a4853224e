"""Join models of several places into one, without a row: their sums per site are put together.

The folders that are joined stay as they are. The new folder is written as any other: after a kill
it is not there yet, or it is whole, and the same command finishes the work.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from ..base import manifest
from ..base.lock import exclusive
from ..base.trees import same
from ..errors import FarshoreError
from ..learner.joining import check_joinable
from .log import LogEntry
from .model import Model, checksum


@dataclass(frozen=True)
class Joined:
    """The new model, the sites of each folder by its path, and notes."""

    model: Model
    sites: dict[str, list[str]]
    notes: list[str]


def join(
    folders: Sequence[str | Path],
    out: str | Path,
    *,
    allow_small: bool = False,
    network: str | None = None,
) -> Joined:
    """Write the model of all sites of these folders into the new folder `out`.

    It is the one that had learned all sites in one place, whatever the order.
    """
    out = Path(out)
    models = _opened(folders, out, network)
    learners = {name: model.learner for name, model in models.items()}
    check_joinable(learners, allow_small=allow_small)
    for (one, first), (other, second) in combinations(models.items(), 2):
        _check_records(one, first, other, second)
    first, *others = models.values()
    sites = {name: model.order for name, model in models.items()}
    notes = [
        f"note: the sums of {site!r} are of so few rows that they nearly are these rows: keep the "
        "folder as safe as the rows"
        for each in learners.values()
        for site in each.system.too_few_rows()
    ]
    if any(model.calibration is not None for model in models.values()):
        notes.append("note: the calibration is dropped: it was fitted to the outputs before")
    with exclusive(out):
        first.learner.join(*(model.learner for model in others), allow_small=True)
        _merge(first, others, sites)
        first.folder = out
        if (out / manifest.MANIFEST).is_file():
            _check_finished(first, network)
        else:
            first.save(keep_previous=False)
    return Joined(Model.open(out, network=network), sites, notes)


def _opened(folders: Sequence[str | Path], out: Path, network: str | None) -> dict[str, Model]:
    """The models by the path that was given, after a check of the folders."""
    if len(folders) < 2:
        raise FarshoreError("there is nothing to join: name at least two folders")
    places: dict[Path, str] = {}
    for folder in folders:
        place = Path(folder).resolve()
        if place in places:
            raise FarshoreError(f"{folder} is named twice: name every folder once")
        places[place] = str(folder)
    if out.resolve() in places:
        raise FarshoreError(
            f"--out {out} is one of the folders to join, which stay as they are: name a new folder"
        )
    if not ((out / manifest.MANIFEST).is_file() or manifest.is_free(out)):
        raise FarshoreError(f"{out} exists and is not a model: name a new folder")
    return {str(folder): Model.open(folder, network=network) for folder in folders}


def _check_records(one: str, first: Model, other: str, second: Model) -> None:
    """Refuse records of sites that contradict each other."""
    mine, theirs = (model.columns.model_dump(exclude={"drop"}) for model in (first, second))
    for name, value in mine.items():
        if theirs[name] != value:
            raise FarshoreError(
                f"{other} cannot be joined with {one}: --{name.replace('_', '-')} is "
                f"{theirs[name] or 'not given'} there, {value or 'not given'} here; learn one of "
                "them again as the other"
            )
    commands = {facts["command"]: site for site, facts in first.sites.items()}
    for site, facts in second.sites.items():
        if facts["command"] in commands:
            raise FarshoreError(
                f"{commands[facts['command']]!r} in {one} and {site!r} in {other} were learned "
                "from the same data, which would count twice: forget one of them (`farshore forget "
                f"{other} {site!r}`)"
            )
    for (a, left), (b, right) in (((one, first), (other, second)), ((other, second), (one, first))):
        for site in right.order:
            if checksum(site) in left.forgotten:
                raise FarshoreError(
                    f"{site!r} was forgotten in {a} and is in {b}: forget it there too (`farshore "
                    f"forget {b} {site!r}`), or learn it in {a} again"
                )
    both = first.sides.keys() & second.sides.keys()
    torn = [group for group in both if first.sides[group] != second.sides[group]]
    if torn:
        raise FarshoreError(
            f"{len(torn)} groups (--group) have rows in {one} and in {other}, held out in one and "
            "trained on in the other: learn one of them again without these rows"
        )


def _merge(first: Model, others: Sequence[Model], sites: Mapping[str, Sequence[str]]) -> None:
    """Put the records of the others into the first one."""
    drop = dict.fromkeys(name for model in (first, *others) for name in model.columns.drop)
    first.columns = first.columns.model_copy(update={"drop": tuple(drop)})
    first.calibration = None
    first.__dict__.pop("knowledge", None)
    for model in others:
        first.sites |= model.sites
        first.sides |= model.sides
        first.moments |= model.moments
        first.held_out |= model.held_out
        first.reliability |= model.reliability
        first.forgotten += [mark for mark in model.forgotten if mark not in first.forgotten]
        first.log += [entry for entry in model.log if entry not in first.log]
    first.log.sort(key=lambda entry: entry.when)
    counts = ", ".join(str(len(names)) for names in sites.values())
    note = f"{len(sites)} folders with {counts} sites"
    rows = sum(int(domain["rows"]) for domain in first.learner.domains)
    metric = first.learner.metric
    first.log.append(LogEntry(action="joined", rows=rows, metric=metric, note=note))


def _check_finished(joined: Model, network: str | None) -> None:
    """Accept a folder that this command has written already, and no other."""
    known = Model.open(joined.folder, network=network).learner
    if known.domains != joined.learner.domains or not same(
        known.system.state_dict(), joined.learner.system.state_dict()
    ):
        raise FarshoreError(
            f"{joined.folder} exists and is another model: name a new folder, or delete it first"
        )
