"""Which figures there are, and their parts: runs to compare, views, and the numbers behind them.

In the module of a figure, `collect` turns runs into numbers, `draw` numbers into a picture, and
`drawing` does both and says what is shown, or returns None if the runs have no data for the figure.
"""

import html
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from ...errors import FarshoreError, unknown
from ...results.describe import conditions
from ...results.frame import results_in_metric
from ...results.select import observed
from ...results.summary import Place, Unit, estimate, metric_of
from ...runs import catalog
from ...runs.store.store import FEATURES
from ...tasks.metrics import Metric, several
from ..cells import line

WHISKER = "#80868c"
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")


@dataclass(frozen=True)
class View:
    """One picture. `of` is its heading in the list of views; `note` is a sentence about it."""

    label: str
    figure: go.Figure
    of: str = ""
    note: str = ""


@dataclass(frozen=True)
class Drawing:
    """A figure as the page shows it."""

    name: str
    title: str
    says: str
    views: Sequence[View]
    frame: pd.DataFrame
    # The conditions of the runs that it shows, in one line.
    shows: str = ""

    @property
    def choices(self) -> list[tuple[str, list[tuple[int, str]]]]:
        """Numbers and labels of the views, by their heading."""
        choices: dict[str, list[tuple[int, str]]] = {}
        for number, view in enumerate(self.views):
            choices.setdefault(view.of, []).append((number, view.label))
        return list(choices.items())


def text(value: object) -> str:
    """Escape a label for plotly, which reads labels as HTML; many names come from users."""
    return html.escape(str(value), quote=False)


def views(frame: pd.DataFrame, draw: Callable[[pd.DataFrame], go.Figure]) -> list[View]:
    """One picture per data set, or per target where a data set has several."""
    return [View(place, draw(part), note=error_bars(part)) for place, part in places(frame)]


def places(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """The lines of every data set, or of each of its targets if there are several."""
    targets = frame.groupby("benchmark")["target"].nunique()
    for (benchmark, target), part in frame.groupby(PLACE, sort=False):
        several = targets[str(benchmark)] > 1
        yield f"{benchmark}, target {target}" if several else str(benchmark), part


def on_target(metric: Metric) -> str:
    """The title of an axis with scores on the target."""
    return f"{metric.label} on the unseen target" + (f", {metric.unit}" if metric.unit else "")


def canvas(*, x: str, y: str, height: int = 380, legend: bool = True) -> go.Figure:
    """An empty figure without colours; the page sets light or dark ones."""
    figure = go.Figure()
    figure.update_layout(
        template="none",
        height=height,
        margin={"l": 56, "r": 12, "t": 12, "b": 48},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "system-ui, sans-serif", "size": 13},
        showlegend=legend,
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0},
        hoverlabel={"namelength": -1},
        xaxis={"title": {"text": x, "font": {"size": 13}}, "automargin": True},
        yaxis={"title": {"text": y, "font": {"size": 13}}, "automargin": True},
    )
    return figure


def errors(values: Iterable[float | None], scale: float = 100.0) -> dict[str, object]:
    """Error bars, hidden if no standard error is defined."""
    scaled = [math.nan if value is None else scale * value for value in values]
    if all(map(math.isnan, scaled)):
        return {"visible": False}
    return {"type": "data", "array": scaled, "thickness": 1.4, "width": 4, "color": WHISKER}


def line_style(group: str, member: int) -> dict[str, object]:
    """The line of one member of a group: members share the colour and differ in their dashes."""
    return {"color": line(group), "width": 2, "dash": DASHES[member % len(DASHES)]}


def calm(figure: go.Figure, least: float = 10.0) -> None:
    """Show at least ten points of the scale, so that small differences look small."""
    drawn = [value for trace in figure.data for value in trace.y if value is not None]
    values = [float(value) for value in drawn if math.isfinite(value)]
    if values and max(values) - min(values) < least:
        middle = (max(values) + min(values)) / 2
        figure.update_yaxes(range=[middle - least / 2, middle + least / 2])


def transparent(colour: str, share: float) -> str:
    """A hexadecimal colour with this opacity."""
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},{share})"


PLACE = ["benchmark", "target"]
# What must be equal at a place for runs to be comparable.
CONDITIONS = ["sources", "steps", "memory", "scenario_seed"]
# What every line of the numbers behind a figure names; `row` becomes the column `method`.
OF_ROW = [*PLACE, "metric", "group", "row"]


def finished(frame: pd.DataFrame, folder: Path) -> pd.DataFrame:
    """The finished runs in the order of the catalog, with what figures need of their results.

    folder: contains the runs, and thus the files of features that some of them saved.
    """
    scored = frame["score"].notna() | ~frame["selected"].astype(bool)
    row = [frame[name] for name in ("experiment", *PLACE, "row")]
    frame = frame.assign(complete=scored.groupby(row).transform("all"))
    runs = frame[(frame["status"] == "done") & (frame["held_out"] == "")]
    known = [entry.name for members in catalog.grouped().values() for entry in members]
    files = [folder / name / FEATURES for name in runs["run"]]
    results = results_in_metric(runs)
    validation = pd.Series([result.source_score(1) for result in results], runs.index, float)
    runs = runs.assign(
        number=runs["method"].map({name: index for index, name in enumerate(known)}),
        listed=[result.run.order is None for result in results],
        steps=[result.steps for result in results],
        memory=[result.memory for result in results],
        scenario_seed=[result.run.scenario_seed for result in results],
        target_score_unseen=runs["score"].astype(float),
        source_validation_score=validation,
        features=[str(file) if file.is_file() else "" for file in files],
    )
    by, ascending = ["number", "listed"], [True, False]
    return runs.sort_values(by, ascending=ascending, kind="stable", ignore_index=True)


def comparable(runs: pd.DataFrame, vary: str = "") -> pd.DataFrame:
    """The selected runs at each place under one set of conditions, but for the one that varies.

    The listed order of the sources is preferred, then the conditions with the most methods. Where
    experiments share conditions, the one with the most methods counts: an ablation repeats the
    conditions of a comparison with a fixed setting.
    """
    runs = observed(runs)
    fixed = [*PLACE, *(name for name in CONDITIONS if name != vary)]
    runs = runs.assign(
        wide=runs.groupby(fixed)["row"].transform("nunique"),
        widest=runs.groupby("experiment")["row"].transform("nunique"),
    )
    preferred = ["wide"] if vary == "sources" else ["listed", "wide"]
    chosen = runs.sort_values(preferred, ascending=False, kind="stable").drop_duplicates(PLACE)
    runs = runs.merge(chosen[fixed], on=fixed)
    runs = runs.sort_values("widest", ascending=False, kind="stable")
    first = runs.groupby([*PLACE, *CONDITIONS, "row"])["experiment"].transform("first")
    return runs[runs["experiment"] == first].drop_duplicates("run").sort_index()


def everywhere(runs: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The runs of those groups that ran at every place."""
    place = runs.groupby(PLACE).ngroup()
    reached = place.groupby([runs[name] for name in by]).transform("nunique")
    return runs[reached == place.nunique()]


def estimates(
    runs: pd.DataFrame, by: Sequence[str], column: str, unit: Unit = Unit.SEED
) -> pd.DataFrame:
    """Mean of a column and its standard error over units, one line per group of runs."""
    metric = metric_of(runs)
    levels = ["benchmark", "target", "last_source", "order", "seed", column]
    groups: dict[tuple[Any, ...], dict[Place, list[float]]] = {}
    lines = runs.dropna(subset=[column])[[*by, *levels]].itertuples(index=False, name=None)
    for each in lines:
        key, place = each[: len(by)], each[len(by) : -1]
        groups.setdefault(key, {}).setdefault(place, []).append(each[-1])
    rows = []
    for key, places in groups.items():
        scores = {place: sum(values) / len(values) for place, values in places.items()}
        found = estimate(scores, unit, metric)
        if found is not None:
            measured = {column: found.mean, "standard_error": found.error}
            counted = {"unit": str(unit), "units": found.units}
            rows.append({**dict(zip(by, key, strict=True)), **measured, **counted})
    return pd.DataFrame(rows).rename(columns={"row": "method"})


def error_bars(frame: pd.DataFrame) -> str:
    """What the error bars of a picture are; empty if it has none."""
    drawn = frame[frame["standard_error"].notna()]
    if drawn.empty:
        return ""
    least, most, unit = drawn["units"].min(), drawn["units"].max(), drawn["unit"].iloc[0]
    over = several(most, unit) if least == most else f"{least} to {most} {unit}s"
    return f"Error bars: the standard error of the mean over {over}."


# What a figure says, its views, the numbers behind them, and the runs that it shows.
Drawn = tuple[str, Sequence[View], pd.DataFrame, pd.DataFrame]
SCORES, DIAGRAM = "scores", "critical-difference"


@dataclass(frozen=True)
class Figure:
    """Its title, what it needs, in words, and a quick test that rules out most runs without it."""

    title: str
    needs: str
    possible: Callable[[pd.DataFrame], bool]


def _several(*columns: str) -> Callable[[pd.DataFrame], bool]:
    """Whether the runs differ in any of these columns."""
    return lambda runs: any(runs[name].nunique() > 1 for name in columns)


# In the order of the page, after the main figure. The module of a figure has its name.
FIGURES = {
    "in-domain": Figure(
        "Performance on the sources, by group", "methods of at least two groups", _several("group")
    ),
    "naive-tailored": Figure(
        "Naive against tailored",
        "a tailored method and its naive form under the same conditions",
        lambda runs: {"naive", "tailored"} <= set(runs["group"]),
    ),
    "memory": Figure(
        "Less memory", "runs of a method with more than one size of memory", _several("memory")
    ),
    "selection": Figure(
        "Does selection by the sources work?",
        "several trials per method, of which some were not selected",
        lambda runs: not runs["selected"].all(),
    ),
    "orders": Figure(
        "The order of the domains",
        "runs with more than one order of the sources",
        _several("sources"),
    ),
    "sensitivity": Figure(
        "Sensitivity to λ and β",
        "runs that vary penalty_weight or alignment_weight alone",
        _several("variant", "trial", "run"),
    ),
    "accuracy-matrix": Figure(
        "Scores after each domain", "runs over at least two domains", lambda runs: len(runs) > 0
    ),
    "features": Figure(
        "Features of sources and target",
        "runs that saved their features",
        lambda runs: bool((runs["features"] != "").any()),
    ),
    "step-time": Figure(
        "Time per step, domain after domain",
        "runs over at least two domains",
        lambda runs: len(runs) > 0,
    ),
}


def draw_all(frame: pd.DataFrame, folder: Path) -> list[Drawing]:
    """All figures that the runs of a folder have data for, but for the main one."""
    runs = finished(frame, folder)
    drawings = (_draw(name, runs) for name in FIGURES)
    return [drawing for drawing in drawings if drawing is not None]


def draw_one(name: str, frame: pd.DataFrame, folder: Path) -> Drawing:
    """One figure by name; the error for missing data says what the figure needs."""
    check_figure(name)
    drawing = _draw(name, finished(frame, folder))
    if drawing is None:
        raise no_data(name, FIGURES[name].needs)
    return drawing


def no_data(name: str, needs: str) -> FarshoreError:
    """The error for runs without the data for a figure."""
    return FarshoreError(f"these runs have no data for the figure {name}: it needs {needs}")


def _draw(name: str, runs: pd.DataFrame) -> Drawing | None:
    if not FIGURES[name].possible(runs):
        return None
    module = import_module(f".{name.replace('-', '_')}", __package__)
    drawn: Drawn | None = module.drawing(runs)
    if drawn is None:
        return None
    says, shown, numbers, used = drawn
    return Drawing(name, FIGURES[name].title, says, shown, numbers, shows=conditions(used))


def check_figure(name: str) -> None:
    """Raise an error if no figure has this name."""
    if name not in (*FIGURES, SCORES):
        raise unknown("figure", name, [*FIGURES, SCORES, DIAGRAM])
