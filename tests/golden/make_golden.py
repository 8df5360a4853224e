"""Write the golden files: what the commands show for four finished folders of runs.

`python tests/golden/make_golden.py` writes the folder expected/ again, from the runs in stores/. Do
it after a change of what is shown, and read the difference before you commit it.

`python tests/golden/make_golden.py --stores own` carries out all runs of the store own/ again
first, which changes all its numbers; without a name, those of all stores. It is needed only if runs
get other names (a raised `results_version`) or another form; if test_golden.py says that files of a
store have changed, this is the reason.

Every path is relative: a copy of stores/ is the working folder. Only the public surface is used, so
that modules may move: the command line, and `farshore.Result`.

- each: five methods, each hospital as the target in turn, two orders
- own: the same table as a user's own file, one target, two orders and seeds, one run diverged
- swept: an experiment with a search of two trials and seeds on two benchmarks
- audited: an audit of the hospitals with three candidates
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import chdir
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
from typer.testing import CliRunner

import farshore
from farshore.cli.app import app

HERE = Path(__file__).parent
STORES, EXPECTED = HERE / "stores", HERE / "expected"
# The command that carries out all runs of a store; on a finished store it only shows them.
COMMANDS = {
    "each": "compare heart-hospitals --methods finetune,er,cl-coral,ridge,joint --target each "
    "--orders listed,reversed --seeds 1 --steps 40 --memory 60 --runs each",
    "own": "compare heart.csv --domain hospital --label num --methods finetune,er,cl-coral,joint "
    "--target va --orders listed,reversed --seeds 2 --steps 20 --memory 60 --runs own",
    "swept": "sweep swept.yaml --runs swept",
    "audited": "audit heart-hospitals --methods finetune,er,ridge --orders listed,reversed "
    "--steps 20 --memory 60 --design full --runs audited",
}
# The narrowest terminal that tables are made for, a wider one, and none: a pipe or a log.
WIDTHS = (80, 100, None)


def invoke(line: str, columns: int | None = None) -> str:
    """What a command prints on a terminal of this width, without colours; None is no terminal."""
    terminal = {"COLUMNS": str(columns), "LINES": "40", "FORCE_COLOR": "1", "TERM": "dumb"}
    none = dict.fromkeys(("COLUMNS", "LINES", "FORCE_COLOR", "TTY_COMPATIBLE", "NO_COLOR"))
    env = {**none, **(terminal if columns is not None else {})}
    ended = CliRunner().invoke(app, shlex.split(line), env=env, catch_exceptions=False)
    assert ended.exit_code == 0, ended.output
    return ended.stdout


def outputs(name: str) -> Iterator[tuple[str, str]]:
    """Names of the golden files of a store and their texts; the working folder holds the store."""
    for columns in WIDTHS:
        ending = f"-{columns}" if columns is not None else ""
        yield f"command{ending}.txt", invoke(f"{COMMANDS[name]} --device cpu", columns)
        yield f"results{ending}.txt", invoke(f"results {name} -o {name}.csv", columns)
    yield "runs.csv", Path(f"{name}.csv").read_text()
    for path in sorted(Path(name, "tables").glob("*.csv")):
        yield f"table-{path.name}", path.read_text()
    for form in ("md", "csv", "tex", "html"):
        invoke(f"report {name} -o {name}-report.{form}")
        text = Path(f"{name}-report.{form}").read_text()
        yield (f"report.{form}", text) if form != "html" else ("page.txt", visible_text(text))
    # The last form is the page, which names its figures. The diagram of ranks has no such line.
    diagram = ["critical-difference"] if name == "swept" else []
    for figure in [*dict.fromkeys(re.findall(r"--figure ([\w-]+)", text)), *diagram]:
        invoke(f"report {name} --figure {figure} -o {figure}.csv")
        yield f"figure-{figure}.csv", Path(f"{figure}.csv").read_text()


def audited(name: str) -> Iterator[tuple[str, str]]:
    """The answers of an audit, its page and its numbers."""
    for columns in (80, None):
        ending = f"-{columns}" if columns is not None else ""
        yield f"command{ending}.txt", invoke(f"{COMMANDS[name]} --device cpu", columns)
    page = Path(name, "audit-heart-hospitals.html")
    yield "page.txt", visible_text(page.read_text())
    yield "findings.json", page.with_suffix(".json").read_text()


def comparison() -> Iterator[tuple[str, str]]:
    """The tables that `farshore.compare` returns for the finished store `each`."""
    made = farshore.compare(
        "heart-hospitals",
        methods=["finetune", "er", "cl-coral", "ridge", "joint"],
        target="each",
        orders=["listed", "reversed"],
        seeds=1,
        steps=40,
        memory=60,
        runs="each",
    )
    for part in ("table", "targets"):
        frame: pd.DataFrame = getattr(made, part)
        yield f"python-{part}.csv", frame.to_csv()


def normal(text: str) -> str:
    """The text without what may differ between machines and releases.

    Results contain durations, dates, versions and hardware of the day when the stores were made,
    and these stay. What is left: the running version, last digits of numbers, which depend on the
    versions of NumPy and pandas, and spaces at the end of a line.
    """
    text = re.sub(r"(Made by farshore) [\w.+]*\w", r"\1 VERSION", text)
    text = re.sub(r"\d+\.\d{10,}(e-?\d+)?", lambda found: f"{float(found[0]):.9g}", text)
    return "\n".join(line.rstrip() for line in text.splitlines()).rstrip("\n") + "\n"


class _Visible(HTMLParser):
    """Collects the text of a page outside of scripts and styles."""

    HIDDEN = ("script", "style")

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._hidden += tag in self.HIDDEN

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in self.HIDDEN

    def handle_data(self, data: str) -> None:
        if not self._hidden and data.strip():
            self.texts.append(" ".join(data.split()))


def visible_text(page: str) -> str:
    """The texts of a page, one line each."""
    parser = _Visible()
    parser.feed(page)
    parser.close()
    return "\n".join(parser.texts)


def digests(store: Path) -> dict[str, str]:
    """A checksum of every file in a store, except for pages and tables, which commands rewrite."""
    return {
        path.relative_to(store).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(store.rglob("*"))
        if path.is_file()
        and path.suffix not in (".html", ".csv")
        and path.name != ".lock"
        and path.parent != store  # the numbers of an audit
    }


def copy_stores(work: Path) -> None:
    """A copy of stores/ that commands may write to."""
    shutil.copytree(STORES, work, dirs_exist_ok=True)


def diverge(store: Path) -> None:
    """Turn one run of a store, plain replay with seed 1 in the listed order, into a diverged one.

    Small experiments do not diverge on their own.
    """
    for path in sorted(store.glob("*/result.json")):
        result = farshore.Result.read(path)
        if (result.run.method, result.run.seed, result.run.order) == ("er", 1, None):
            empty = {"train": [], "validation": []}
            changed = {
                **result.model_dump(),
                **{"status": "diverged", "target": None, "matrices": empty, "stages": []},
                **{"source_scores": {}, "message": "the loss is not finite at step 7 of hungarian"},
            }
            farshore.Result.model_validate(changed).save(path)
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            path.with_suffix(".sha256").write_text(digest)
            return
    raise AssertionError(f"{store} contains no run of er with seed 1 in the listed order")


def make_stores(names: list[str]) -> None:
    """Carry out all runs, and delete what the commands write on top of them."""
    for name in names:
        store, command = STORES / name, COMMANDS[name]
        shutil.rmtree(store, ignore_errors=True)
        with chdir(STORES):
            invoke(f"{command} --device cpu --workers 1")
        for path in (*store.glob("*.html"), *store.glob("*.json"), store / "experiments" / ".lock"):
            path.unlink(missing_ok=True)
        shutil.rmtree(store / "tables", ignore_errors=True)
        if name == "own":
            diverge(store)


def texts(name: str) -> dict[str, str]:
    """All golden texts of a store, in their normal form, computed in the working folder."""
    if COMMANDS[name].startswith("audit"):
        made = list(audited(name))
    else:
        made = [*outputs(name), *(comparison() if name == "each" else ())]
    return {file: normal(text) for file, text in made}


def write_expected() -> None:
    """Write all golden files."""
    shutil.rmtree(EXPECTED, ignore_errors=True)
    with tempfile.TemporaryDirectory() as work:
        copy_stores(Path(work))
        for name in COMMANDS:
            (EXPECTED / name).mkdir(parents=True)
            with chdir(work):
                made = texts(name)
            for file, text in made.items():
                (EXPECTED / name / file).write_text(text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--stores", nargs="*", choices=COMMANDS, help="carry out all runs of these again first"
    )
    os.environ["OMP_NUM_THREADS"] = "1"
    named = parser.parse_args().stores
    if named is not None:
        make_stores(named or list(COMMANDS))
    write_expected()
