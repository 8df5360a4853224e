"""Naive against tailored: each notion of invariance in both frameworks."""

import pandas as pd
import plotly.graph_objects as go

from ...results.summary import estimate, metric_of, paired, scores_of, unit_of
from ..cells import fill, line
from . import shape

PREFIX = "naive-"


def in_both_forms(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs whose other form ran at the same place in the same order with the same seed."""
    runs = shape.comparable(runs[runs["group"].isin(["naive", "tailored"])], "sources")
    runs = runs.assign(notion=[row.removeprefix(PREFIX) for row in runs["row"]])
    forms = runs.groupby([*shape.PLACE, "sources", "seed", "notion"])["group"]
    return runs[forms.transform("nunique") == 2]


def collect(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per tailored method: the means of both forms and their paired difference."""
    unit, metric, rows = unit_of(runs), metric_of(runs), []
    for method in runs["notion"].unique():
        forms = {"tailored": method, "naive": PREFIX + method}
        found = {form: estimate(scores_of(runs, row), unit, metric) for form, row in forms.items()}
        difference = paired(runs, *forms.values())
        if difference is None:
            continue
        row = {"metric": metric.name, "method": method}
        for form, each in found.items():
            assert each is not None
            row |= {f"target_score_{form}": each.mean, f"{form}_standard_error": each.error}
        row |= {"difference": difference.mean, "unit": str(unit), "units": difference.units}
        rows.append(row)
    return pd.DataFrame(rows)


def draw(frame: pd.DataFrame) -> go.Figure:
    """Two bars per method."""
    metric, frame = metric_of(frame), frame[::-1]
    figure = shape.canvas(x=shape.on_target(metric), y="", height=120 + 58 * len(frame))
    for form in ("naive", "tailored"):
        figure.add_bar(
            y=[shape.text(method) for method in frame["method"]],
            x=list(metric.scale * frame[f"target_score_{form}"]),
            orientation="h",
            name=form,
            error_x=shape.errors(frame[f"{form}_standard_error"], metric.scale),
            marker={"color": fill(form), "line": {"color": line(form), "width": 1}},
            hovertemplate=f"{form} %{{y}}: %{{x:.1f}}{metric.unit}<extra></extra>",
        )
    figure.update_layout(barmode="group", legend={"traceorder": "reversed"})
    return figure


def drawing(runs: pd.DataFrame) -> shape.Drawn | None:
    """The figure, if there is at least one pair; with several places, their mean is first."""
    runs = in_both_forms(runs)
    frames = [(name, collect(part), part) for name, part in shape.places(runs)]
    if not frames:
        return None
    shown = [_view(name, frame) for name, frame, _ in frames]
    complete = shape.everywhere(runs, ["notion"])
    if len(frames) > 1 and len(complete):
        shown.insert(0, _view(f"mean over {unit_of(runs)}s", collect(complete)))
    placed = [
        pairs.assign(**{name: part[name].iloc[0] for name in shape.PLACE})
        for _, pairs, part in frames
    ]
    frame = pd.concat(placed, ignore_index=True)
    gaps = [(metric_of(pairs), gap) for _, pairs, _ in frames for gap in pairs["difference"]]
    ahead = sum(metric.better(gap, 0) for metric, gap in gaps)
    says = (
        "The naive and the tailored form of each notion of invariance on the unseen target: means "
        "over all orders and seeds that both forms have. The tailored form is ahead in "
        f"{ahead} of {len(frame)} pairs."
    )
    columns = [*shape.PLACE, *(name for name in frame if name not in shape.PLACE)]
    return says, shown, frame[columns], runs


def _view(name: str, frame: pd.DataFrame) -> shape.View:
    bars = frame.rename(columns={"tailored_standard_error": "standard_error"})
    return shape.View(name, draw(frame), note=shape.error_bars(bars))
