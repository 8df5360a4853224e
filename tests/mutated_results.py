"""Mutated folders of runs whose checksums fit again: results, descriptions and experiments."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import random
import shutil
from pathlib import Path

import yaml
from damaging import edited
from reporting import filled
from sweeping import experiment
from typer.main import get_command

from farshore.cli.app import app
from farshore.errors import FarshoreError

COMMAND = get_command(app)


def make_runs(folder: Path) -> None:
    """A small recorded experiment with all its results."""
    part = {"benchmarks": ["rotated-digits"], "methods": ["er", "finetune"]}
    whole = experiment(parts=[part], search={"trials": 1, "seeds": 2})
    filled(folder / "runs", whole, lambda planned: 0.5 + planned.seed / 10)


def warm_up(folder: str) -> None:
    """Read the runs once, so that libraries have reserved their address space."""
    use(Path(folder) / "runs")


def mutate(runs: Path, chance: random.Random) -> str:
    """Edit one to three entries of one file."""
    files = [path for path in sorted(runs.rglob("*")) if path.suffix in (".json", ".yaml")]
    victim = chance.choice(files)
    text = victim.read_text()
    data = yaml.safe_load(text) if victim.suffix == ".yaml" else json.loads(text)
    for _ in range(chance.randint(1, 3)):
        data = edited(data, chance) if data else data
    victim.write_text(json.dumps(data))
    if victim.name == "result.json":
        digest = hashlib.sha256(victim.read_bytes()).hexdigest()
        (victim.parent / "result.sha256").write_text(digest)
    return str(victim.relative_to(runs))


def use(runs: Path) -> None:
    """Everything that reads results works, or refuses in one line."""
    for arguments in (
        ["results", str(runs)],
        ["report", str(runs), "-o", str(runs / "out.csv")],
        ["report", str(runs), "-o", str(runs / "out.html")],
    ):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            try:
                COMMAND.main(arguments, standalone_mode=False)
            except FarshoreError as error:
                if "\n" in str(error) or len(str(error)) > 3000:
                    raise AssertionError(f"{arguments[0]}: not one line") from error


def read_mutated(chance: random.Random, folder: str) -> None:
    """A folder of runs with one mutated file is read, or refused in one line."""
    scratch = Path(folder) / f".case{os.getpid()}"
    shutil.rmtree(scratch, ignore_errors=True)
    shutil.copytree(Path(folder) / "runs", scratch)
    what = mutate(scratch, chance)
    try:
        use(scratch)
    except BaseException as error:
        error.add_note(what)
        raise
