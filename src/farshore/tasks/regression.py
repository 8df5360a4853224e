"""Regression: a label is a number, or several."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from torch import Tensor, nn

from ..base.forms import FormError, Like, ListOf, check_form
from ..errors import FarshoreError
from ..settings import RunSettings
from .metrics import METRICS, in_unit, listed
from .task import Label, MetricName, Scores, T, Task, TaskName

Loss = Literal["squared", "huber", "quantile"]
# A memory balances this many groups: quantiles of the first site's labels.
GROUPS = 5
# So many rows of a site are kept for figures, evenly spread over the sorted labels.
SHOWN_ROWS = 200
# A logarithm beyond this has no power in floating point.
LARGEST_LOG = 700.0
FORM: dict[str, Any] = {
    **{"name": "", "labels": ListOf("", distinct=True), "unit": "", "log": True, "rows": 0},
    **dict.fromkeys(("centre", "scale", "mean", "edges"), ListOf(0.0)),
}


@dataclass(frozen=True)
class Regression(Task):
    """A label is a number y per name; an output is z = (y - centre) / scale, or that of log y.

    Centre and scale are the mean and the standard deviation of the first site's training rows, and
    stay so. Scores and predictions are in the label's own unit; those of several labels, which may
    have different units, are means over the labels in units of the first site's deviation.

    mean: the sources' mean label as an output, which is what guessing says, over so many `rows`.
    edges: of the groups of the first label among which a memory is balanced, as outputs.
    """

    names: tuple[str, ...] = ("label",)
    centre: tuple[float, ...] = (0.0,)
    scale: tuple[float, ...] = (1.0,)
    log: bool = False
    unit: str = ""
    mean: tuple[float, ...] = (0.0,)
    rows: int = 0
    edges: tuple[float, ...] = ()
    loss: Loss = "squared"
    quantile: float = 0.5
    bandwidth: float = 0.5

    name: ClassVar[TaskName] = "regression"
    metrics: ClassVar[tuple[MetricName, ...]] = ("mae", "rmse", "r2", "skill")

    @classmethod
    def fitted(
        cls, values: np.ndarray, names: Sequence[str], *, log: bool = False, unit: str = ""
    ) -> "Regression":
        """Standardised by these labels [n, K], the first site's training rows."""
        made = cls(tuple(names), log=log, unit=unit)
        known = made._as_logs(values)
        scale = known.std(axis=0)
        constant = np.flatnonzero(~(scale > 1e-12 * np.abs(known).max(axis=0)))
        if len(constant):
            raise FarshoreError(
                f"label {names[constant[0]]!r} is {values[0, constant[0]]:g} in all training rows "
                "of the first site: nothing can be learned from that; begin with another site"
            )
        z = (known - known.mean(axis=0)) / scale
        inner = np.linspace(0, 1, GROUPS + 1)[1:-1]
        return replace(
            made,
            centre=tuple(known.mean(axis=0).tolist()),
            scale=tuple(scale.tolist()),
            mean=(0.0,) * len(scale),
            rows=len(values),
            edges=tuple(np.unique(np.quantile(z[:, 0], inner)).tolist()),
        )

    # ---- shape -----------------------------------------------------------------------------------

    @property
    def outputs(self) -> int:
        """One per label."""
        return len(self.names)

    def blank(self, *rows: int, device: torch.device | str = "cpu") -> Tensor:
        """Zeros, the mean of the first site."""
        return torch.zeros(*rows, self.outputs, device=device)

    def label_form(self, rows: int | None) -> Like:
        """Standardised numbers."""
        return Like((rows, self.outputs), torch.float32, finite=True)

    def either(self, classes: T, numbers: T) -> T:
        """The second."""
        return numbers

    @property
    def labels(self) -> tuple[str, ...]:
        """Those of the columns."""
        return self.names

    @property
    def score_unit(self) -> str:
        """The label's unit."""
        return self.unit

    @property
    def fact(self) -> tuple[str, str]:
        """That they are numbers, and their unit."""
        return "labels", "numbers" + (f" in {self.unit}" if self.unit else "")

    @property
    def title(self) -> str:
        """A regression model."""
        unit = f", in {self.unit}" if self.unit else ""
        return f"regression model of {listed(self.names)}{unit}"

    @property
    def output(self) -> str:
        """Values."""
        unit = f" in {self.unit}" if self.unit else ""
        return f"the value of {listed(self.names)}{unit}"

    @property
    def stored(self) -> list[str]:
        """The scales."""
        return [
            "the mean, the standard deviation and the quintiles of the label at the first site, "
            "and its mean over all sites that were ever learned"
        ]

    def announced(self) -> list[str]:
        """That labels are numbers."""
        return [announcement(self.names)]

    def fits(self, needs_classes: bool) -> bool:
        """Only without classes."""
        return not needs_classes

    def check_method(self, method: str, needs_classes: bool, fitting: Callable[[], str]) -> None:
        """Refuse a method that needs classes."""
        if not self.fits(needs_classes):
            raise FarshoreError(
                f"method {method!r} needs classes, and the label is a number (--task regression): "
                f"use one of {fitting()}"
            )

    # ---- training --------------------------------------------------------------------------------

    def under(self, run: RunSettings) -> Self:
        """With the loss of these settings; class weights are refused."""
        if run.class_weight != "none":
            raise FarshoreError(
                f"class_weight = {run.class_weight!r} is for classes, and the label is a number: "
                "leave it out"
            )
        loss: Loss = "squared" if run.loss == "auto" else run.loss
        return replace(self, loss=loss, quantile=run.quantile, bandwidth=run.label_bandwidth)

    def balanced(self, labels: Tensor) -> Tensor:
        """There are no classes; `under` has refused it."""
        raise FarshoreError("class_weight = 'balanced' is for classes: leave it out")

    def losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """The loss of e = z - y, mean over the labels.

        squared: e²; huber: e² up to one deviation, 2 |e| - 1 beyond; quantile q: q |e| where z is
        too low, (1 - q) |e| where it is too high.
        """
        if self.loss == "huber":
            each = 2 * nn.functional.huber_loss(outputs, labels, reduction="none")
        elif self.loss == "quantile":
            short = labels - outputs
            each = torch.maximum(self.quantile * short, (self.quantile - 1) * short)
        else:
            each = (outputs - labels).square()
        return each.mean(dim=-1)

    def risk(
        self,
        outputs: Tensor,
        labels: Tensor,
        class_weight: Tensor | None = None,
        weights: Tensor | None = None,
    ) -> Tensor:
        """The mean loss."""
        losses = self.losses(outputs, labels)
        if weights is None:
            return losses.mean()
        return (losses * weights).sum() / weights.sum().clamp(min=1e-12)

    def slopes(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """2 (z - y), clipped at ±2 for huber; -q or 1 - q for the quantile; over the labels."""
        error = outputs - labels
        if self.loss == "quantile":
            each = torch.where(error < 0, -self.quantile, 1 - self.quantile).to(outputs.dtype)
        else:
            each = 2 * (error.clamp(-1, 1) if self.loss == "huber" else error)
        return each / self.outputs

    def fisher_parts(
        self, outputs: Tensor, labels: Tensor, *, weighted: bool
    ) -> list[tuple[Tensor, Tensor]]:
        """Of y ~ N(z, 1): Σ_k (∇ z_k)², which needs no label; `weighted` makes no difference."""
        return [(each, torch.ones_like(each.detach())) for each in outputs.unbind(dim=-1)]

    def nearness(self, labels: Tensor) -> Tensor:
        """exp(-(y - a)² / 2h²), for each label on its own, at a = 2hk between -2 and 2 deviations.

        A bandwidth h of more than 2 leaves one label, 0, to which all are near.
        """
        most = round(1 / self.bandwidth)
        places = torch.arange(-most, most + 1, device=labels.device) * (2 * self.bandwidth)
        away = (labels[..., None] - places) / self.bandwidth
        return (-away.square() / 2).exp().flatten(-2)

    # ---- sums, for heads in closed form ----------------------------------------------------------

    def targets(self, labels: Tensor) -> Tensor:
        """y and 1 - Σ y."""
        return torch.cat([labels, 1 - labels.sum(dim=-1, keepdim=True)], dim=-1)

    def guess(self, shares: Tensor) -> Tensor:
        """The mean."""
        return shares[: self.outputs]

    def seen(self, sums: Tensor) -> Tensor:
        """All outputs."""
        return torch.ones(self.outputs, dtype=torch.bool, device=sums.device)

    def tempered(self, fit: Callable[[], float]) -> float:
        """1: outputs are values."""
        return 1.0

    def tally(self, labels: Tensor) -> Tensor:
        """The number of rows."""
        return torch.tensor([len(labels)])

    def boosting(self, library: Literal["sklearn", "lightgbm"]) -> dict[str, Any]:
        """The same loss; scikit-learn has no huber, and takes the absolute error for it."""
        if library == "lightgbm":
            name = {"squared": "regression"}.get(self.loss, self.loss)
            return {"objective": name, "alpha": self.quantile if name == "quantile" else 1.0}
        names = {"squared": "squared_error", "huber": "absolute_error", "quantile": "quantile"}
        quantile = {"quantile": self.quantile} if self.loss == "quantile" else {}
        return {"loss": names[self.loss], **quantile}

    def strata(self, labels: Tensor) -> Tensor:
        """The quantile of the first label among those of the first site."""
        edges = torch.tensor(self.edges, dtype=labels.dtype, device=labels.device)
        return torch.bucketize(labels[..., 0].contiguous(), edges)

    # ---- scores and predictions ------------------------------------------------------------------

    def values(self, outputs: Tensor) -> np.ndarray:
        """Outputs or encoded labels [n, K] in the labels' own units."""
        found: np.ndarray = outputs.detach().cpu().double().numpy() * self.scale + self.centre
        return np.asarray(np.exp(np.clip(found, -LARGEST_LOG, LARGEST_LOG))) if self.log else found

    def scores(self, outputs: Tensor, labels: Tensor) -> Scores:
        """MAE, RMSE, R², skill with its standard error, and what the sources' mean scores.

        R² = 1 - Σ e² / Σ (y - ȳ)², with the mean ȳ of these rows; skill = 1 - MAE / that of the
        sources' mean. Both are None where all labels are the same.
        """
        y, found = self._compared(labels), self._compared(outputs)
        mean = self._compared(torch.tensor([self.mean], dtype=torch.float64))
        error, guessed = np.abs(found - y), np.abs(mean - y)
        spread = np.square(y - y.mean(axis=0)).sum(axis=0)
        varies = bool((spread > 0).all())
        return {
            "mae": float(error.mean()),
            "rmse": float(np.sqrt(np.square(error).mean(axis=0)).mean()),
            "r2": float(1 - (np.square(error).sum(axis=0) / spread).mean()) if varies else None,
            "skill": float(1 - error.mean() / guessed.mean()) if guessed.mean() > 0 else None,
            "skill_error": _skill_error(error, guessed),
            "guess_mae": float(guessed.mean()),
            "guess_rmse": float(np.sqrt(np.square(guessed).mean(axis=0)).mean()),
            "guess_r2": (
                float(1 - (np.square(guessed).sum(axis=0) / spread).mean()) if varies else None
            ),
            "guess_skill": 0.0,
        }

    def score(self, metric: str, outputs: Tensor, labels: Tensor) -> float:
        """One of them; NaN where it is not defined."""
        found = self.scores(outputs, labels)[metric]
        return math.nan if found is None else found

    @property
    def magnitude(self) -> np.ndarray:
        """How large each label usually is: its mean, or the first site's deviation if larger."""
        mean = np.abs(self.values(torch.tensor([self.mean], dtype=torch.float64)))[0]
        return np.asarray(mean if self.log else np.maximum(mean, self.scale))

    @property
    def usual_drop(self) -> float:
        """A tenth of the first site's deviation, in the unit of the scores."""
        if self.outputs > 1:
            return 0.1
        return 0.1 * self.scale[0] * (math.exp(self.centre[0]) if self.log else 1.0)

    def delivered(self, outputs: Tensor) -> Tensor:
        """The values in the labels' own units."""
        scale, centre = (outputs.new_tensor(each) for each in (self.scale, self.centre))
        found = outputs * scale + centre
        return found.exp() if self.log else found

    def row_scores(self, outputs: Tensor, labels: Tensor) -> np.ndarray:
        """The largest |y - z| of a row, in deviations of the first site."""
        return np.asarray((outputs - labels).abs().amax(dim=1).double().cpu().numpy())

    def between(self, outputs: Tensor, most: float) -> tuple[np.ndarray, np.ndarray]:
        """The ends [n, K] of the labels whose row score is at most this."""
        return self.values(outputs - most), self.values(outputs + most)

    def examples(self, outputs: Tensor, labels: Tensor) -> list[tuple[float, float]]:
        """Those of the first label."""
        y, found = (self.values(each)[:, 0] for each in (labels, outputs))
        places = np.linspace(0, len(y) - 1, min(len(y), SHOWN_ROWS)).round().astype(int)
        rows = np.argsort(y, kind="stable")[places]
        return [(float(a), float(b)) for a, b in zip(y[rows], found[rows], strict=True)]

    def score_rows(self, scores: Scores) -> list[list[str]]:
        """The metrics in their units."""
        shown = [in_unit(METRICS[name], self.unit) for name in self.metrics]
        return [[each.label, each.text(scores[each.name]) + each.unit] for each in shown]

    def predictions(self, outputs: Tensor) -> np.ndarray:
        """The value [n], or those of several labels [n, K]."""
        found = self.values(outputs)
        return found[:, 0] if self.outputs == 1 else found

    def _compared(self, outputs: Tensor) -> np.ndarray:
        """In the unit of the scores."""
        if self.outputs == 1:
            return self.values(outputs)
        return outputs.detach().cpu().double().numpy()

    # ---- what a user gave, and what is saved -----------------------------------------------------

    def read(self, labels: Any, where: str) -> Sequence[Any]:
        """Numbers, [n, K]."""
        return as_values(labels, where=where)  # type: ignore[return-value]

    def encoded(self, labels: Sequence[Label], *, domain: str, first: int = 0) -> Tensor:
        """Standardised numbers; what is no finite number is refused."""
        values = as_values(labels, where=f"domain {domain!r}", first=first)
        if values.shape[1] != self.outputs:
            raise FarshoreError(
                f"domain {domain!r} has {values.shape[1]} labels per row, and this learner has "
                f"{self.outputs} ({', '.join(self.names)})"
            )
        return self.standardised(values)

    def standardised(self, values: np.ndarray) -> Tensor:
        """Labels [n, K] in their own units as outputs."""
        z = (self._as_logs(values) - self.centre) / self.scale
        return torch.from_numpy(z.astype(np.float32))

    def _as_logs(self, values: np.ndarray) -> np.ndarray:
        if not self.log:
            return values
        if (values <= 0).any():
            least = values.min()
            why = f"--log-label needs labels above 0, and the smallest is {least:g}: leave it out"
            raise FarshoreError(why)
        return np.asarray(np.log(values))

    def after(self, labels: Tensor) -> Self:
        """With the mean over these labels, too."""
        rows = self.rows + len(labels)
        sums = np.asarray(self.mean) * self.rows + labels.double().sum(dim=0).cpu().numpy()
        return replace(self, mean=tuple((sums / rows).tolist()), rows=rows)

    def over(self, labels: Tensor) -> Self:
        """With the mean of these labels, those of all sources."""
        return replace(self, rows=0, mean=(0.0,) * self.outputs).after(labels)

    def state_dict(self) -> dict[str, Any]:
        """All but the loss, which is a setting of the run."""
        return {
            "name": self.name,
            "labels": list(self.names),
            **{key: list(getattr(self, key)) for key in ("centre", "scale", "mean", "edges")},
            **{key: getattr(self, key) for key in ("log", "unit", "rows")},
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "Regression":
        """Restore the task; a FormError if it cannot be one."""
        check_form(state, FORM, "task")
        names = tuple(state["labels"])
        lengths = {len(state[key]) for key in ("centre", "scale", "mean")}
        if lengths != {len(names)} or not names or not all(x > 0 for x in state["scale"]):
            raise FormError("task has not one centre, mean and positive scale per label")
        plain: dict[str, Any] = {key: state[key] for key in ("log", "unit", "rows")}
        for key in ("centre", "scale", "mean", "edges"):
            plain[key] = tuple(map(float, state[key]))
        return cls(names, **plain)


def _skill_error(error: np.ndarray, guessed: np.ndarray) -> float | None:
    """The standard error of the skill over the rows: of the mean of |y - mean| - |e|."""
    gain = (guessed - error).mean(axis=1)
    if len(gain) < 2 or not guessed.mean() > 0:
        return None
    return float(gain.std(ddof=1) / math.sqrt(len(gain)) / guessed.mean())


def announcement(names: Sequence[str]) -> str:
    """The first line about labels that are numbers."""
    return (
        f"{', '.join(names)}: a number, so this is regression; scores are in its own unit (--task "
        "classification for classes)"
    )


def as_values(labels: Any, *, where: str, first: int = 0) -> np.ndarray:
    """Labels as numbers [n, K]; the first row that is none is named."""
    try:
        values = np.asarray(labels, dtype=np.float64)
    except (TypeError, ValueError):
        for row, label in enumerate(labels, first):
            try:
                np.asarray(label, dtype=np.float64)
            except (TypeError, ValueError):
                raise FarshoreError(
                    f"{where}, row {row}: the label {str(label)[:40]!r} is not a number; labels "
                    "are numbers here"
                ) from None
        raise FarshoreError(f"{where}: rows have different numbers of labels") from None
    values = values.reshape(len(values), -1)
    wrong = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(wrong):
        raise FarshoreError(
            f"{where}, row {first + int(wrong[0])}: the label is {values[wrong[0]].tolist()}, not "
            "a finite number: fix or drop the row"
        )
    return values
