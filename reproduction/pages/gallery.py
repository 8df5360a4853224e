"""docs/gallery.md and its pictures: what the executed pages print, at a glance.

A picture shows a ranking that a page prints. Nothing runs here: the numbers are the page's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reproduction import DOCS
from reproduction.pages.figures import BLUE, FOLDER, GREY, ORANGE, QUIET, Drawing

PAGE = DOCS / "gallery.md"
RANKED = re.compile(
    r"^  (?P<method>\S+) +\d+ +(?P<mean>[\d.]+) ± (?P<error>[\d.]+) +(?P<worst>[\d.]+) "
    r"+(?P<best>[\d.]+)",
    re.MULTILINE,
)
HEADING = re.compile(r"^methods compared on .*: (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Example:
    """A page that is executed, or whose code a test runs.

    command: how the line to show begins.
    picture: a figure of docs/figures; None draws the ranking that the page prints.
    """

    page: str
    title: str
    about: str
    command: str
    picture: str | None = None

    @property
    def text(self) -> str:
        """The page."""
        return (DOCS / self.page).read_text()

    @property
    def figure(self) -> str:
        """The name of the picture."""
        return self.picture or f"gallery-{Path(self.page).stem}"


EXAMPLES = (
    Example(
        "own-data.md",
        "A table",
        "Patients of four hospitals; each hospital is left out in turn.",
        "$ farshore compare",
    ),
    Example(
        "images.md",
        "Images",
        "Photographs of four cameras, in folders, on features of a frozen network.",
        "$ farshore compare",
    ),
    Example(
        "text.md",
        "Text",
        "Reports of four workshops, beside a number, without a download.",
        "$ farshore compare",
    ),
    Example(
        "regression.md",
        "Numbers as labels",
        "Seven buildings and the energy of a day: the error to expect at the next one, in kWh.",
        "$ farshore audit",
        "target",
    ),
    Example(
        "arrive.md",
        "A site arrives",
        "What to expect at a new clinic, whether to trust the model there, and what to do next.",
        "$ farshore arrive",
        "arrive",
    ),
    Example(
        "join.md",
        "Join",
        "Three hospitals make one model, and no row leaves its place.",
        "$ farshore join",
        "join",
    ),
    Example(
        "deployment.md",
        "Deploy",
        "A model in a folder learns one site after another, and can forget one.",
        "$ farshore learn",
        "replay",
    ),
    Example(
        "../CONTRIBUTING.md",
        "A method of your own",
        "A notion of invariance is one class in one file; the checks come with the library.",
        "class ",
        "invariance",
    ),
)


def text() -> str:
    """The page."""
    parts = [
        "# Gallery",
        "Each example is a page whose code and commands a test executes. A picture with methods "
        "shows the ranking\nthat its page prints: the mean over the unseen targets with its "
        "standard error, and the line from the worst target\nto the best.",
        '<div class="gallery" markdown>',
    ]
    for each in EXAMPLES:
        line = next(line for line in each.text.splitlines() if line.startswith(each.command))
        kind = "sh" if line.startswith("$ ") else "python"
        parts += [
            f"<div markdown>\n\n## {each.title}",
            f"[![{each.about}](figures/{each.figure}.svg)]({each.page})",
            f"{each.about} [The whole example]({each.page})",
            f"```{kind}\n{line.removeprefix('$ ')}\n```\n\n</div>",
        ]
    return "\n\n".join([*parts, "</div>"]) + "\n"


def files() -> Iterator[tuple[Path, str]]:
    """The page and the pictures of rankings, and their contents."""
    yield PAGE, text()
    for each in EXAMPLES:
        if each.picture is None:
            yield FOLDER / f"{each.figure}.svg", ranking(each).svg()


def ranking(example: Example) -> Drawing:
    """The first ranking that a page prints: a line per method."""
    heading = HEADING.search(example.text)
    assert heading is not None, example.page
    after = example.text[heading.end() :]
    rows = list(RANKED.finditer(after[: after.index("\n...") if "\n..." in after else None]))
    assert rows, example.page
    low = 10 * (min(float(row["worst"]) for row in rows) // 10)
    high = min(100.0, 10 * (max(float(row["best"]) for row in rows) // 10 + 1))
    left, right, top, step = 90, 360, 56, 40
    bottom = top + step * len(rows)
    drawing = Drawing(440, bottom + 40, f"{example.title}: {heading[1]}")
    drawing.text(16, 26, heading[1], size=14, weight="600")

    def place(value: str | float) -> float:
        return left + (right - left) * (float(value) - low) / (high - low)

    for tick in (low, (low + high) / 2, high):
        drawing.line(place(tick), top - 12, place(tick), bottom, GREY)
        drawing.text(place(tick), bottom + 18, f"{tick:g}", size=12, colour=QUIET, anchor="middle")
    for number, row in enumerate(rows):
        y, mean, error = top + step * number + 10, float(row["mean"]), float(row["error"])
        colour = ORANGE if number else BLUE
        drawing.text(left - 12, y + 5, row["method"], anchor="end")
        drawing.line(place(row["worst"]), y, place(row["best"]), y, colour, stroke_opacity="0.6")
        ends = max(low, mean - error), min(high, mean + error)
        drawing.line(place(ends[0]), y, place(ends[1]), y, colour, stroke_width="6")
        drawing.circle(place(mean), y, 5, colour)
        drawing.text(430, y + 5, row["mean"], anchor="end", weight="600", colour=colour)
    return drawing
