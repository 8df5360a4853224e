"""The pages whose code and commands are executed: what they show is what is printed today.

    python -m reproduction.pages.executed            # all of them; `make docs` does this too
    python -m reproduction.pages.executed report     # only docs/report.md

Every ```python block of such a page runs, and so does every line of a ```console block that begins
with `$ `; the lines below it are its output. A line `...` stands wherever lines are left out.

A page records what printed it: versions and the instructions of the processor. Where these are the
same, nothing but the parts in VOLATILE may differ; elsewhere, scores may, a little (TOLERANCE).
README.md shows parts of these pages.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from unittest import mock

import torch

from farshore.cli.app import main as farshore
from reproduction import DOCS, ROOT

README = ROOT / "README.md"
PAGES = (
    *("demo", "own-data", "text", "regression", "images", "report", "audit", "deployment"),
    *("arrive", "join"),
)
LEFT_OUT = "..."
# The columns of the terminal. A wider table has a column of seconds, which differ each time.
WIDTH = 100
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RECORD = re.compile(r"^<!-- executed with (.*) -->\n", re.MULTILINE)
# What differs between two executions on one machine: moments, seconds, sizes of files.
VOLATILE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d|\b\d+\.\d s\b|\b[\d.]+ [kM]B\b")
# What may differ elsewhere: checksums, bytes, and scores by so many points. The small networks for
# images in the demo are sensitive to the last bit: from AVX512 to AVX2, scores move by up to 1.3.
CHECKSUM = re.compile(r"sha256 \w+|[\d,]+ bytes")
TOLERANCE = {page: 1.5 if page == "demo" else 0.3 for page in PAGES}
SCORE = re.compile(r"([+-]?\d+\.\d+)")


def machine() -> str:
    """What decides the last bits of a number, beside the code."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("torch", "numpy", "scikit-learn"))
    return f"{versions}, {torch.backends.cpu.get_cpu_capability()}"


def path_of(page: str) -> Path:
    """The file of a page."""
    return DOCS / f"{page}.md"


def rewritten(text: str, outputs: Iterator[list[str]]) -> tuple[str, list[str]]:
    """The text with these outputs in place of what it shows, and the commands that need a hand."""
    by_hand: list[str] = []

    def console(block: re.Match[str]) -> str:
        kind, content = block.groups()
        if kind != "console":
            return block[0]
        return f"```console\n{''.join(parts(content))}```"

    def parts(content: str) -> Iterator[str]:
        for command, shown in commands(content):
            printed = next(outputs)
            try:
                shown = choice(shown, printed)
            except LookupError as error:
                by_hand.append("\n".join([f"$ {command}", *printed, f"does not print: {error}"]))
            yield "\n".join([f"$ {command}", *shown]) + "\n"

    return BLOCK.sub(console, text), by_hand


def commands(content: str) -> Iterator[tuple[str, list[str]]]:
    """The commands of a console block, each with the lines below it."""
    for part in re.split(r"^\$ ", content, flags=re.MULTILINE)[1:]:
        command, *shown = part.rstrip().splitlines()
        yield command, shown


def choice(shown: list[str], printed: list[str]) -> list[str]:
    """The printed lines that correspond to those shown.

    Lines without `...` between them stay together: only the first and the last need a counterpart.
    """
    groups = [(left_out, list(lines)) for left_out, lines in groupby(shown, LEFT_OUT.__eq__)]
    chosen: list[str] = []
    place = 0
    for number, (left_out, lines) in enumerate(groups, start=1):
        if left_out:
            chosen.append(LEFT_OUT)
            continue
        start = place + (counterpart(lines[0], printed[place:]) if number > 1 else 0)
        if number == len(groups):
            place = len(printed)
        else:
            rest = start + (len(lines) > 1)
            place = rest + counterpart(lines[-1], printed[rest:]) + 1
        chosen += printed[start:place]
    return chosen


def counterpart(line: str, printed: list[str]) -> int:
    """The place of the same line, else of one with other numbers, else of a similar one."""
    patterns: tuple[Callable[[str], str], ...] = (
        lambda text: VOLATILE.sub("", text),
        lambda text: re.sub(r"\s+", " ", SCORE.sub("", CHECKSUM.sub("", text))),
        lambda text: re.sub(r"[\s\d]+", " ", SCORE.sub("", text)),
    )
    for pattern in patterns:
        known = [pattern(each) for each in printed]
        if pattern(line) in known:
            return known.index(pattern(line))
    similar = difflib.get_close_matches(line, printed, n=1)
    if not similar:
        raise LookupError(line)
    return printed.index(similar[0])


def agree(text: str, today: str, tolerance: float) -> bool:
    """Whether a page agrees with its text of today, as far as it must on this machine."""
    recorded = RECORD.search(text)
    if recorded is None or recorded[1] == machine():
        return VOLATILE.sub("", text) == VOLATILE.sub("", today)
    lines, others = (RECORD.sub("", page).splitlines() for page in (text, today))
    return len(lines) == len(others) and all(
        alike(line, other, tolerance) for line, other in zip(lines, others, strict=True)
    )


def alike(line: str, other: str, tolerance: float) -> bool:
    """Whether two lines differ in spaces and checksums at most, and a little in scores."""
    ones, others = (
        SCORE.split(re.sub(r"\s+", " ", CHECKSUM.sub("", VOLATILE.sub("", each.replace("−", "-")))))
        for each in (line, other)
    )
    return ones[::2] == others[::2] and all(
        abs(float(one) - float(two)) <= tolerance + 1e-9
        for one, two in zip(ones[1::2], others[1::2], strict=True)
    )


def execute(text: str) -> Iterator[list[str]]:
    """The lines that each command of a page prints, in an empty folder, with one thread."""
    torch.set_num_threads(1)
    names: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        environment = {
            "LOGNAME": "anna",
            "OMP_NUM_THREADS": "1",
            "FARSHORE_DATA": f"{folder}/data",
            "FARSHORE_FEATURES": f"{folder}/features",
        }
        with (
            mock.patch.dict(os.environ, environment),
            mock.patch("farshore.cli.tables.LOG_WIDTH", WIDTH),
        ):
            for kind, content in BLOCK.findall(text):
                if kind == "python":
                    with contextlib.redirect_stdout(io.StringIO()):
                        exec(compile(content, "page", "exec"), names)
                else:
                    for command, _ in commands(content):
                        yield printed_by(command)


def printed_by(command: str) -> list[str]:
    """What a command prints. `farshore` runs in this process, to import PyTorch only once."""
    words = shlex.split(command)
    printed = io.StringIO()
    if words[0] != "farshore":
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        printed.write(done.stdout)
    else:
        with (
            mock.patch.object(sys, "argv", words),
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
            contextlib.suppress(SystemExit),
        ):
            farshore()
    return [line.rstrip() for line in printed.getvalue().rstrip().splitlines()]


def of_today(page: str) -> tuple[str, list[str]]:
    """A page as it reads today, and its commands that need a hand."""
    text = path_of(page).read_text()
    today, by_hand = rewritten(text, execute(text))
    return RECORD.sub("", today) + f"<!-- executed with {machine()} -->\n", by_hand


def readme() -> tuple[str, list[str]]:
    """README.md with what the pages show below the same commands."""
    shown: dict[str, list[str]] = {}
    for page in PAGES:
        for kind, content in BLOCK.findall(path_of(page).read_text()):
            if kind == "console":
                for command, lines in commands(content):
                    shown.setdefault(command, lines)
    text = README.read_text()
    asked = [
        command
        for kind, content in BLOCK.findall(text)
        if kind == "console"
        for command, _ in commands(content)
    ]
    return rewritten(text, iter([shown[command] for command in asked]))


def main() -> None:
    """Execute pages, and write those that do not agree with what is printed today."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pages", nargs="*", help=f"of {', '.join(PAGES)}")
    unclear: list[str] = []
    for page in parser.parse_args().pages or PAGES:
        today, by_hand = of_today(page)
        if not agree(path_of(page).read_text(), today, TOLERANCE[page]):
            path_of(page).write_text(today)
        unclear += by_hand
    text, by_hand = readme()
    README.write_text(text)
    unclear += by_hand
    if unclear:
        sys.exit("Choose by hand which of these lines a page shows:\n" + "\n\n".join(unclear))


if __name__ == "__main__":
    main()
