"""docs/figures/*.svg, the figures of the documentation, made from the tables of finished runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise
from pathlib import Path

import numpy as np

from reproduction import DOCS
from reproduction.arithmetic import Scores, Unit, enough, mean, scores, summary_of
from reproduction.compared import BENCHMARKS, REPLAY, TAILORED
from reproduction.finished_runs import rows_of
from reproduction.pages.recommended import measured
from reproduction.paper.scores import papers_scores
from reproduction.sections import doses as dose_study
from reproduction.sections.features import feature_spaces
from reproduction.sections.invariance import measured as measured_there

FOLDER = DOCS / "figures"
INK, QUIET, PAPER = "#1f2933", "#7b8794", "#ffffff"
BLUE, ORANGE, GREEN, GREY = "#2166ac", "#d6604d", "#1b7837", "#e4e7eb"


class Drawing:
    """Shapes on a white sheet, collected as SVG elements."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.size = width, height
        self.title = title
        self.elements: list[str] = []

    def rect(
        self, x: float, y: float, width: float, height: float, fill: str, **style: str
    ) -> None:
        """A rectangle with rounded corners."""
        self._add(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4" '
            f'fill="{fill}"{_style(style)}/>'
        )

    def line(self, x: float, y: float, to_x: float, to_y: float, colour: str, **style: str) -> None:
        """A straight line."""
        self._add(
            f'<line x1="{x:g}" y1="{y:g}" x2="{to_x:g}" y2="{to_y:g}" stroke="{colour}"'
            f"{_style(style)}/>"
        )

    def arrow(self, x: float, y: float, to_x: float, to_y: float, colour: str = INK) -> None:
        """A line with a head at its end."""
        self.line(x, y, to_x, to_y, colour, stroke_width="1.5", marker_end="url(#head)")

    def circle(self, x: float, y: float, radius: float, fill: str, **style: str) -> None:
        """A disc."""
        self._add(f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="{fill}"{_style(style)}/>')

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        size: int = 13,
        colour: str = INK,
        anchor: str = "start",
        weight: str = "normal",
    ) -> None:
        """A line of text."""
        self._add(
            f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{colour}" text-anchor="{anchor}" '
            f'font-weight="{weight}">{escape(words)}</text>'
        )

    def svg(self) -> str:
        """The whole file."""
        width, height = self.size
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img" '
            f'font-family="system-ui, sans-serif">\n<title>{escape(self.title)}</title>\n'
            '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
            'markerHeight="7" orient="auto"><path d="M0 0L10 5L0 10z" fill="#1f2933"/></marker>'
            f'</defs>\n<rect width="{width}" height="{height}" fill="{PAPER}"/>\n'
        )
        return head + "\n".join(self.elements) + "\n</svg>\n"

    def _add(self, element: str) -> None:
        self.elements.append(element)


def _style(style: Mapping[str, str]) -> str:
    return "".join(f' {name.replace("_", "-")}="{value}"' for name, value in style.items())


def box(
    drawing: Drawing, x: float, y: float, words: str, fill: str = GREY, width: float = 96
) -> None:
    """A labelled box of 36 pixels height."""
    drawing.rect(x, y, width, 36, fill, stroke=QUIET)
    drawing.text(x + width / 2, y + 23, words, anchor="middle")


# ---- results ---------------------------------------------------------------------------------


def strips(
    title: str, by_method: Mapping[str, Scores], methods: Sequence[str], unit: str
) -> Drawing:
    """One line per method: its mean with an interval, and one dot per order or target."""
    dots = {
        name: summary.values
        if (summary := summary_of(by_method[name])).unit is Unit.TARGET
        else summary_of(by_method[name], Unit.ORDER).values
        for name in methods
        if name in by_method
    }
    rows = [(name, summary_of(by_method[name])) for name in methods if name in by_method]
    rows.sort(key=lambda row: -row[1].mean)
    left, right, top, step = 130, 690, 56, 34
    values = [value for of_method in dots.values() for value in of_method.values()]
    low, high = 10 * (min(values) // 10), min(100.0, 10 * (max(values) // 10 + 1))
    drawing = Drawing(760, top + step * len(rows) + 46, title)
    drawing.text(16, 26, title, size=15, weight="600")

    def place(value: float) -> float:
        return left + (right - left) * (value - low) / (high - low)

    bottom = top + step * len(rows)
    tick = low
    while tick <= high:
        drawing.line(place(tick), top - 12, place(tick), bottom, GREY)
        drawing.text(place(tick), bottom + 18, f"{tick:g}", size=12, colour=QUIET, anchor="middle")
        tick += 10
    for number, (name, summary) in enumerate(rows):
        y = top + step * number + 8
        colour = {"auto": BLUE, "joint": QUIET, "majority": QUIET}.get(name, ORANGE)
        drawing.text(
            left - 14, y + 5, name, anchor="end", weight="600" if name == "auto" else "normal"
        )
        for value in dots[name].values():
            drawing.circle(place(value), y, 3.2, colour, fill_opacity="0.35")
        assert summary.low is not None
        assert summary.high is not None
        ends = (max(low, summary.low), min(high, summary.high))
        drawing.line(
            place(ends[0]), y, place(ends[1]), y, colour, stroke_width="5", stroke_opacity="0.6"
        )
        drawing.line(
            place(summary.mean), y - 9, place(summary.mean), y + 9, colour, stroke_width="3"
        )
        drawing.text(
            right + 54, y + 5, f"{summary.mean:.1f}", anchor="end", weight="600", colour=colour
        )
    words = (
        f"score at the target; one dot per {unit}; bar: mean, 95% interval over {rows[0][1].unit}s"
    )
    drawing.text(left, bottom + 38, words, size=12, colour=QUIET)
    return drawing


# ---- concepts --------------------------------------------------------------------------------


def domain() -> Drawing:
    """The same classes look different at every site."""
    drawing = Drawing(640, 190, "A domain: one site, whose data look different from other sites")
    for number, (name, shift) in enumerate(
        (("hospital A", 0), ("hospital B", 26), ("hospital C", 52))
    ):
        x = 20 + 210 * number
        drawing.rect(x, 16, 180, 140, PAPER, stroke=QUIET)
        for dot in range(14):
            drawing.circle(x + 26 + (dot * 37) % 60 + shift, 44 + (dot * 23) % 84, 4, BLUE)
            drawing.circle(x + 66 + (dot * 31) % 60 + shift, 50 + (dot * 29) % 84, 4, ORANGE)
        drawing.text(x + 90, 178, name, anchor="middle")
    return drawing


def order() -> Drawing:
    """The order of the sources decides what fine-tuning forgets."""
    by_method = measured_there("rotated-mnist")
    return strips(
        "The order of the sources: rotated-mnist, target 75 degrees",
        by_method,
        ("finetune", "er", "cl-mix", "joint"),
        "order of the sources",
    )


def target() -> Drawing:
    """Train, freeze, then open the target."""
    drawing = Drawing(640, 120, "The target is opened once, after the model is frozen")
    for number, name in enumerate(("source 1", "source 2", "source 3")):
        box(drawing, 16 + 118 * number, 40, name)
        drawing.arrow(112 + 118 * number, 58, 132 + 118 * number, 58)
    box(drawing, 370, 40, "freeze", "#cfe3f5", 80)
    drawing.arrow(450, 58, 484, 58)
    box(drawing, 486, 40, "unseen target", "#f9d9d0", 130)
    drawing.text(551, 100, "scored once", size=12, colour=QUIET, anchor="middle")
    drawing.text(
        180, 100, "training and selection see only these", size=12, colour=QUIET, anchor="middle"
    )
    return drawing


def leak() -> Drawing:
    """Three ways in which a target leaks, all closed."""
    drawing = Drawing(640, 170, "Leaks: the target must not reach scaling, selection or stopping")
    box(drawing, 470, 66, "target", "#f9d9d0", 120)
    for number, name in enumerate(("scaling of columns", "choice of settings", "early stopping")):
        y = 14 + 52 * number
        box(drawing, 60, y, name, GREY, 170)
        drawing.line(470, 84, 236, y + 18, ORANGE, stroke_width="1.5", stroke_dasharray="5 4")
        drawing.text(
            352, (84 + y + 18) / 2 + 6, "x", size=20, colour=ORANGE, anchor="middle", weight="700"
        )
    return drawing


def replay() -> Drawing:
    """A step sees the newest domain and a few kept rows of the past ones."""
    drawing = Drawing(640, 170, "Replay: kept rows of past domains join every step")
    box(drawing, 20, 20, "newest domain", "#cfe3f5", 150)
    drawing.rect(20, 90, 150, 60, GREY, stroke=QUIET)
    drawing.text(95, 114, "memory", anchor="middle")
    drawing.text(95, 134, "a few rows per past domain", size=11, colour=QUIET, anchor="middle")
    box(drawing, 290, 52, "one batch", GREY, 120)
    drawing.arrow(170, 38, 288, 66)
    drawing.arrow(170, 120, 288, 78)
    box(drawing, 480, 52, "one step", "#d9efdf", 120)
    drawing.arrow(410, 70, 478, 70)
    return drawing


def invariance() -> Drawing:
    """A penalty on the spread of a statistic over domains."""
    drawing = Drawing(640, 190, "Invariance: a statistic should be the same in every domain")
    for column, (title, spread) in enumerate((("without a penalty", 30), ("with a penalty", 7))):
        x = 30 + 310 * column
        drawing.text(x, 26, title, weight="600")
        for number, name in enumerate(("A", "B", "C")):
            y = 60 + 40 * number
            drawing.line(x + 30, y, x + 250, y, GREY, stroke_width="2")
            drawing.text(x + 6, y + 5, name)
            drawing.circle(x + 140 + spread * (number - 1) * 2, y, 7, (BLUE, ORANGE, GREEN)[number])
        drawing.line(x + 140, 44, x + 140, 156, QUIET, stroke_dasharray="3 4")
    drawing.text(
        30,
        182,
        "e.g. risk (V-REx), gradient variance (Fishr), feature moments (CORAL)",
        size=12,
        colour=QUIET,
    )
    return drawing


def priors() -> Drawing:
    """What a domain looked like when it was learned, kept as an anchor."""
    drawing = Drawing(
        640, 150, "Priors: the statistic of a domain is stored once it has been learned"
    )
    box(drawing, 20, 20, "domain A learned", "#cfe3f5", 150)
    box(drawing, 20, 92, "stored prior of A", GREY, 150)
    drawing.arrow(95, 56, 95, 90)
    box(drawing, 420, 20, "replayed rows of A", "#d9efdf", 170)
    drawing.text(295, 32, "later domains move the network", size=12, colour=QUIET, anchor="middle")
    drawing.arrow(172, 40, 418, 40)
    drawing.line(172, 110, 505, 110, INK, stroke_width="1.5")
    drawing.arrow(505, 110, 505, 58)
    drawing.text(
        330, 130, "alignment pulls the statistic back", size=12, colour=QUIET, anchor="middle"
    )
    return drawing


def join() -> Drawing:
    """Rows become sums at each place; only the sums leave it."""
    drawing = Drawing(640, 200, "Join: the sums of each place go into one model, the rows stay")
    for number, name in enumerate(("north", "south", "west")):
        y = 16 + 54 * number
        box(drawing, 20, y, f"rows, {name}", "#cfe3f5", 120)
        drawing.arrow(140, y + 18, 196, y + 18)
        box(drawing, 198, y, "sums", GREY, 80)
        drawing.arrow(278, y + 18, 388, 88)
    drawing.line(168, 8, 168, 168, ORANGE, stroke_width="1.5", stroke_dasharray="5 4")
    drawing.text(168, 190, "no row leaves its place", size=12, colour=ORANGE, anchor="middle")
    box(drawing, 390, 70, "sums per site", GREY, 110)
    drawing.arrow(500, 88, 534, 88)
    box(drawing, 536, 70, "weights", "#d9efdf", 84)
    drawing.text(505, 130, "as if learned in one place", size=12, colour=QUIET, anchor="middle")
    return drawing


def arrive() -> Drawing:
    """What the advice about a new site rests on."""
    drawing = Drawing(640, 190, "A site arrives: one advice from measured sites, or from labels")
    box(drawing, 20, 20, "sites, each measured before it was learned", "#cfe3f5", 280)
    box(drawing, 20, 76, "rows of the new site, no labels", "#cfe3f5", 280)
    box(drawing, 20, 132, "labels of a few doubtful rows", "#f6e0c8", 280)
    box(drawing, 360, 44, "interval, or alarm", GREY, 130)
    box(drawing, 360, 132, "at least ... %", GREY, 130)
    for start, end in ((38, 58), (94, 68), (150, 150)):
        drawing.arrow(300, start, 358, end)
    for start, end in ((62, 92), (150, 112)):
        drawing.arrow(490, start, 536, end)
    box(drawing, 538, 84, "advice", "#d9efdf", 84)
    drawing.text(425, 184, "valid whenever you stop", size=12, colour=QUIET, anchor="middle")
    return drawing


def hero() -> Drawing:
    """The figure of the README."""
    return strips(
        "rotated-mnist: four angles learned in turn, tested at one never seen",
        measured_there("rotated-mnist"),
        ("cl-mix", "cl-fishr", "cl-vrex", "er", "finetune", "joint"),
        "order of the sources",
    )


def heart() -> Drawing:
    """Every hospital left out in turn."""
    return strips(
        "heart-hospitals: each hospital left out in turn",
        measured("heart-hospitals"),
        ("auto", "slda", "ridge", "er", "trees", "joint", "joint-forest", "majority"),
        "hospital",
    )


# ---- reproduction ----------------------------------------------------------------------------


def against_the_paper() -> Drawing:
    """Each method of the paper's main table: its score there, and ours over all orders."""
    drawing = Drawing(760, 400, "Each dot is a method: the paper's score and ours")
    drawing.text(16, 26, drawing.title, size=15, weight="600")
    for left, benchmark in ((60, BENCHMARKS[0]), (430, BENCHMARKS[1])):
        paper = papers_scores(benchmark, "main")
        ours = enough(scores(rows_of("all_orders", benchmark)))
        found = {name: (paper[name][0], mean(ours[name])) for name in paper if name in ours}
        values = [value for pair in found.values() for value in pair]
        low, high = 10 * (min(values) // 10), 10 * (max(values) // 10 + 1)

        def place(value: float, low: float = low, high: float = high) -> float:
            return 280 * (value - low) / (high - low)

        drawing.text(left, 54, benchmark, weight="600")
        for tick in np.arange(low, high + 1, 10):
            x, y = left + place(tick), 350 - place(tick)
            drawing.line(x, 70, x, 350, GREY)
            drawing.line(left, y, left + 280, y, GREY)
            drawing.text(x, 368, f"{tick:g}", size=12, colour=QUIET, anchor="middle")
            drawing.text(left - 8, y + 4, f"{tick:g}", size=12, colour=QUIET, anchor="end")
        drawing.line(left, 350, left + 280, 70, QUIET, stroke_dasharray="4 4")
        for name, (theirs, score) in found.items():
            colour = BLUE if name in TAILORED else GREEN if name in REPLAY else ORANGE
            drawing.circle(
                left + place(theirs), 350 - place(score), 4.5, colour, fill_opacity="0.8"
            )
    words = "x: the paper, y: ours. Blue: tailored, green: replay, red: the others"
    drawing.text(60, 390, words, size=12, colour=QUIET)
    return drawing


def last_sources() -> Drawing:
    """Scores by the last source: a dot is the mean over the orders that end with it, per seed."""
    methods = ("finetune", "er", "der++", "er-kd", *TAILORED)
    drawing = Drawing(760, 106 + 28 * len(methods), "Scores by the last source")
    drawing.text(16, 26, drawing.title, size=15, weight="600")
    words = "a dot: one seed, mean over the orders that end with the source of its colour"
    drawing.text(100, 98 + 28 * len(methods), words, size=12, colour=QUIET)
    colours = (ORANGE, BLUE, GREEN, INK)
    for left, benchmark in ((100, BENCHMARKS[0]), (460, BENCHMARKS[1])):
        by_method = measured_there(benchmark)
        dots = {
            name: {
                (last, seed): mean(
                    {place: runs[place] for place in runs if place[2::2] == (last, seed)}
                )
                for last, seed in sorted({place[2::2] for place in runs})
            }
            for name in methods
            if (runs := by_method.get(name))
        }
        lasts = sorted({last for of_method in dots.values() for last, _ in of_method})
        values = [value for of_method in dots.values() for value in of_method.values()]
        low, high = 10 * (min(values) // 10), 10 * (max(values) // 10 + 1)
        bottom = 68 + 28 * len(methods)
        for tick in np.arange(low, high + 1, 10):
            x = left + 260 * (tick - low) / (high - low)
            drawing.line(x, 62, x, bottom - 8, GREY)
            drawing.text(x, bottom + 8, f"{tick:g}", size=12, colour=QUIET, anchor="middle")
        drawing.text(left - 84, 50, benchmark, weight="600")
        for number, last in enumerate(lasts):
            drawing.text(left + 75 * number + 32, 50, last, size=12, colour=colours[number])
        for row, name in enumerate(methods):
            drawing.text(left - 10, 84 + 28 * row, name, size=12, anchor="end")
            for (last, _), value in dots.get(name, {}).items():
                x = left + 260 * (value - low) / (high - low)
                colour = colours[lasts.index(last)]
                drawing.circle(x, 80 + 28 * row, 4, colour, fill_opacity="0.7")
    return drawing


def doses() -> Drawing:
    """The paper's method by dose of its penalty: the target's score minus that without it."""
    data = [name for name, design in dose_study.DESIGN.items() if "none" in design.doses]
    colours = dict(zip(data, (ORANGE, BLUE, GREEN, INK), strict=True))
    curves = {
        (notion, name): response
        for notion in TAILORED
        for name in data
        if (response := dose_study.response(name, notion))
    }
    values = [value for curve in curves.values() for value in curve.values()] or [0.0]
    low, high = 5 * (min(values) // 5), 5 * (max(values) // 5 + 1)
    title = "Dose and response: the target's score minus that without the penalty or mask"
    drawing = Drawing(760, 480, title)
    drawing.text(16, 26, title, size=15, weight="600")
    step = 190 / len(dose_study.DOSES)
    for number, notion in enumerate(TAILORED):
        left, top = 50 + 245 * (number % 3), 70 + 215 * (number // 3)

        def height(value: float, top: float = top) -> float:
            return top + 150 * (high - value) / (high - low)

        drawing.text(left, top - 10, notion, weight="600")
        for tick in sorted({low, 0.0, high}):
            drawing.line(left, height(tick), left + 190, height(tick), GREY)
            drawing.text(
                left - 6, height(tick) + 4, f"{tick:g}", size=11, colour=QUIET, anchor="end"
            )
        places = {dose: left + step * (each + 0.5) for each, dose in enumerate(dose_study.DOSES)}
        for dose, x in places.items():
            drawing.text(x, top + 168, dose, size=10, colour=QUIET, anchor="middle")
        for name in data:
            dots = [(places[d], height(v)) for d, v in curves.get((notion, name), {}).items()]
            for dot in dots:
                drawing.circle(*dot, 3.5, colours[name])
            for first, second in pairwise(dots):
                drawing.line(*first, *second, colours[name], stroke_width="1.5")
    for number, name in enumerate(data):
        drawing.circle(560, 310 + 24 * number, 5, colours[name])
        drawing.text(574, 314 + 24 * number, name)
    drawing.text(554, 414, "paper's method, mean over units", size=12, colour=QUIET)
    return drawing


def feature_space() -> Drawing:
    """Every second row on a plane by UMAP, one panel per method; the target has crosses."""
    found = feature_spaces()
    drawing = Drawing(760, 330, "Features on covertype, projected by UMAP")
    drawing.text(16, 26, drawing.title, size=15, weight="600")
    colours = (ORANGE, BLUE, GREEN, QUIET)
    for panel, (name, of_method) in enumerate(found.items()):
        left, top, side = 16 + 250 * panel, 62, 226
        drawing.text(left, 50, name, weight="600")
        low = np.min([np.min(rows, axis=0) for rows in of_method["points"].values()], axis=0)
        high = np.max([np.max(rows, axis=0) for rows in of_method["points"].values()], axis=0)
        sources = [each for each in of_method["points"] if each != of_method["target"]]
        for domain, rows in of_method["points"].items():
            places = side * (np.array(rows[::2]) - low) / (high - low) + [left, top]
            for x, y in np.round(places, 1):
                if domain == of_method["target"]:
                    drawing.line(x - 2, y - 2, x + 2, y + 2, INK)
                    drawing.line(x - 2, y + 2, x + 2, y - 2, INK)
                else:
                    drawing.circle(x, y, 2, colours[sources.index(domain)])
        for number, domain in enumerate(sources if panel == 0 else []):
            drawing.circle(24 + 110 * number, 312, 4, colours[number])
            drawing.text(34 + 110 * number, 316, domain, size=12)
        if panel == 0:
            drawing.text(354, 316, f"× target: {of_method['target']}", size=12)
    return drawing


FIGURES = {
    "doses": doses,
    "feature-space": feature_space,
    "against-the-paper": against_the_paper,
    "last-sources": last_sources,
    "hero": hero,
    "heart": heart,
    "domain": domain,
    "order": order,
    "target": target,
    "leak": leak,
    "replay": replay,
    "invariance": invariance,
    "priors": priors,
    "arrive": arrive,
    "join": join,
}


def drawn() -> Iterator[tuple[Path, str]]:
    """The files and their contents."""
    for name, draw in FIGURES.items():
        yield FOLDER / f"{name}.svg", draw().svg()
