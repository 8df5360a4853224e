"""Figures of single objects for notebooks and scripts, in the colours of a white page."""

from typing import TYPE_CHECKING

import pandas as pd

from ..errors import FarshoreError, needs
from ..results.summary import Ranking
from ..runs.result import SPLITS, Result
from ..tasks.metrics import METRICS

if TYPE_CHECKING:
    import plotly.graph_objects as go

GRID = "#e3e6e8"


def plot_scores(frame: pd.DataFrame, ranking: Ranking) -> "go.Figure":
    """Every method's scores on the unseen targets, as the report draws them."""
    check_plotly()
    from .figures import scores

    return on_white(scores.drawing(frame, ranking, "").views[0].figure)


def plot_result(result: Result) -> "go.Figure":
    """The final scores of one run: a bar for each source and split, and one for the target."""
    check_plotly()
    from .figures.shape import canvas, text

    metric = result.main_metric or METRICS["accuracy"]
    if result.target_score is None:
        raise FarshoreError(f"the run has no score to plot: it is {result.status}")
    unit = f", {metric.unit}" if metric.unit else ""
    figure = canvas(x="", y=f"{metric.label}{unit}")
    names = [text(name) for name in result.sources]
    for split in SPLITS:
        finals = [metric.scale * (value or 0.0) for value in result.matrices[split][-1]]
        figure.add_bar(x=names, y=finals, name=f"sources, {split} rows")
    assert result.target is not None
    target = f"{text(result.target.name)} (never seen)"
    figure.add_bar(x=[target], y=[metric.scale * result.target_score], name="target")
    return on_white(figure)


def on_white(figure: "go.Figure") -> "go.Figure":
    """The report's page gives its figures colours; one that stands alone has its own."""
    figure.update_layout(paper_bgcolor="white", plot_bgcolor="white", font_color="#1f2428")
    figure.update_xaxes(gridcolor=GRID, linecolor=GRID)
    figure.update_yaxes(gridcolor=GRID, linecolor=GRID)
    return figure


def check_plotly() -> None:
    """Say what to install if plotly is absent."""
    try:
        import plotly  # noqa: F401
    except ImportError:
        raise needs("report", "a plot needs plotly") from None
