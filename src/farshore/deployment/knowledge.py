"""What a model knows about its sites, and what that says about the next one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..data.domain import Rows
from ..learner.learner import Learner
from ..tasks.calibration import confidences, probabilities
from . import verdict as verdicts
from .estimate import AccuracyEstimate, Arrival, NoEstimate, Signals, estimate, read_signals
from .familiarity import Moments, Neighbours, known_sites, nearest_distance, past_rows, strangeness
from .held_out import Outputs, Reliability, common_temperature, outputs_of
from .unlike import as_numbers

# Rows per site, and columns, at which the influence of inputs on the predictions is measured.
INFLUENCE_ROWS = 50
MOST_COLUMNS = 500


@dataclass(frozen=True)
class Knowledge:
    """A learner with the held-out rows, stored summaries and facts of its sites."""

    learner: Learner
    held_out: Mapping[str, Mapping[str, Tensor]]
    reliability: Mapping[str, Mapping[str, Tensor]]
    moments: Mapping[str, Mapping[str, Tensor]]
    facts: Mapping[str, Mapping[str, Any]]

    @cached_property
    def outputs(self) -> dict[str, Outputs]:
        """What the learner says about held-out rows; for methods without rows, what it said."""
        if self.held_out:
            return {name: outputs_of(self.learner, rows) for name, rows in self.held_out.items()}
        return {name: Reliability(**table).outputs() for name, table in self.reliability.items()}

    @cached_property
    def temperature(self) -> float:
        """The temperature that fits the held-out rows; 1 without rows."""
        return common_temperature(self.outputs)

    @cached_property
    def sites(self) -> dict[str, Moments]:
        """Mean and covariance of each site's features."""
        return known_sites(self.learner, self.moments) if self.learner.shape is not None else {}

    @property
    def arrivals(self) -> list[Arrival]:
        """Every site that was measured before it was learned."""
        found = []
        for facts in self.facts.values():
            numbers = facts["arrival"]
            if numbers:
                shown = {name: numbers[name] for name in ("confidence", "atc", "distance")}
                signals = Signals(int(numbers["rows"]), **shown)
                found.append(Arrival(signals, numbers["accuracy"], int(numbers["known"])))
        return found

    @property
    def accuracy(self) -> float | None:
        """The mean accuracy over the sites' held-out rows."""
        means = [float(each.correct.mean()) for each in self.outputs.values() if len(each)]
        return float(np.mean(means)) if means else None

    def logits(self, inputs: Tensor) -> np.ndarray:
        """The learner's own logits, without a calibration."""
        index = torch.arange(len(inputs))
        outputs = self.learner.system.logits(Rows(inputs, torch.zeros_like(index), index))
        return outputs.double().cpu().numpy()

    def signals(self, inputs: Tensor, logits: np.ndarray) -> Signals:
        """What can be seen of a site without labels."""
        distance = 0.0
        if self.sites:
            features = self.learner.system.features(inputs).double()
            distance = nearest_distance(features.mean(dim=0), self.sites)
        return read_signals(logits, distance, self.outputs, self.temperature)

    def arrival(self, inputs: Tensor, labels: list[str]) -> dict[str, float]:
        """Measure a labelled site before it is learned. Its labels may be new to the learner."""
        logits = self.logits(inputs)
        signals = self.signals(inputs, logits)
        classes = np.array([str(label) for label in self.learner.classes or []], dtype=object)
        predicted = classes[logits.argmax(axis=1)]
        accuracy = float((predicted == np.array(labels, dtype=object)).mean())
        return {
            "rows": float(signals.rows),
            "known": float(len(self.learner.domains)),
            "accuracy": accuracy,
            **signals.plain(),
        }

    def strangeness(self, inputs: Tensor) -> tuple[np.ndarray, list[str]] | None:
        """The strangeness of each row, and its nearest site; None if nothing is known.

        The larger of the distance of its features from the nearest site's and of its inputs from
        their nearest neighbour.
        """
        if not self.sites:
            return None
        values, nearest = strangeness(self.learner, self.sites, inputs)
        if self.neighbours is not None:
            values = np.maximum(values, self.neighbours.strangeness(np.asarray(inputs)))
        return values, nearest

    def verdict(self, inputs: Tensor, here: verdicts.SiteProfile) -> verdicts.SiteVerdict:
        """The verdict on a site as a whole."""
        profiles = [
            verdicts.SiteProfile(**{**facts["profile"], "rows": int(facts["profile"]["rows"])})
            for facts in self.facts.values()
        ]
        missing, unknown, reasons = verdicts.judge_profile(here, profiles)
        if here.rows < verdicts.FEWEST_ROWS:
            note = f"fewer than {verdicts.FEWEST_ROWS} rows: the site cannot be judged as a whole"
            return verdicts.SiteVerdict(here.rows, missing, unknown, tuple(reasons), (note,))
        confidence = verdicts.judge_confidence(
            confidences(self.logits(inputs) / self.temperature),
            {name: each.confidences(self.temperature) for name, each in self.outputs.items()},
            [arrival.signals.confidence for arrival in self.arrivals],
        )
        rows = np.asarray(inputs)
        p_value, area = verdicts.judge_separation(
            rows, self.kept, self.relevant, self.areas, self.learner.seed
        )
        distance = neighbours = None
        if self._features_last():
            features = self.learner.system.features(inputs)
            distance = verdicts.judge_distance(features, self.sites)
            p_value = verdicts.means_p_value(features, self.sites) if p_value is None else p_value
        if self.neighbours is not None:
            values = self.neighbours.strangeness(rows)
            neighbours = verdicts.judge_strangeness(values, self.neighbours.between())
        notes: tuple[str, ...] = ()
        if len(self.learner.domains) < 2:
            notes = (
                "only one site is known, so it is unclear how much sites may differ without harm",
            )
        reasons += verdicts.weigh(confidence, (area, neighbours, distance))
        return verdicts.SiteVerdict(
            rows=here.rows,
            missing=missing,
            unknown=unknown,
            reasons=tuple(reasons),
            notes=notes,
            p_value=p_value,
            area=area.range if area is not None else None,
            confidence=confidence.range if confidence is not None else None,
            distance=distance.range if distance is not None else None,
            neighbours=neighbours.range if neighbours is not None else None,
        )

    @cached_property
    def relevant(self) -> np.ndarray:
        """Which inputs count for the predictions; of images, all parts do."""
        rows = [each[:INFLUENCE_ROWS] for each in self.kept.values()]
        if not rows or rows[0].ndim != 2 or rows[0].shape[1] > MOST_COLUMNS:
            width = as_numbers(rows[0][:1]).shape[1] if rows else 1
            return np.ones(width, dtype=bool)
        return verdicts.influences(
            lambda inputs: probabilities(self.logits(torch.from_numpy(inputs))),
            np.concatenate(rows),
            self.learner.seed,
        )

    @cached_property
    def areas(self) -> list[float]:
        """How well each known site is told from the others."""
        return verdicts.areas_between(self.kept, self.relevant, self.learner.seed)

    @cached_property
    def neighbours(self) -> Neighbours | None:
        """The kept rows of a table, to look for near neighbours."""
        if not self.kept or next(iter(self.kept.values())).ndim != 2:
            return None
        return Neighbours.of(self.kept, self.relevant)

    def estimate(
        self, inputs: Tensor, verdict: verdicts.SiteVerdict
    ) -> AccuracyEstimate | NoEstimate:
        """The accuracy to expect at the site that was judged."""
        signals = self.signals(inputs, self.logits(inputs))
        return estimate(signals, self.arrivals, verdict.reasons)

    def _features_last(self) -> bool:
        """Whether the sites' features are those of the current weights."""
        return self.learner.method_type.keeps_rows() or self.learner.system.forgets_exactly

    @cached_property
    def kept(self) -> dict[str, np.ndarray]:
        """Rows of each site, held out or in the memory: the test looks at inputs alone."""
        kept = {name: [rows["inputs"].cpu().numpy()] for name, rows in self.held_out.items()}
        for name, (inputs, _) in past_rows(self.learner).items():
            kept.setdefault(name, []).append(inputs.cpu().numpy())
        return {name: np.concatenate(parts) for name, parts in kept.items()}
