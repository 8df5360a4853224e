"""What a model knows about its sites, and what that says about the next one."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..data.domain import Rows
from ..data.separation import as_numbers
from ..learner.learner import Learner
from ..results.expectation import FEWEST_SITES, RowSets, quantiles, row_sets
from . import verdict as verdicts
from .arrive import SCORES, Arrival, Nothing, row_scores, see, too_few
from .familiarity import Moments, Neighbours, known_sites, past_rows, strangeness
from .held_out import Outputs, Reliability, common_temperature, outputs_of

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
        return self.learner.known_task.tempered(lambda: common_temperature(self.outputs))

    @cached_property
    def sites(self) -> dict[str, Moments]:
        """Mean and covariance of each site's features."""
        return known_sites(self.learner, self.moments) if self.learner.shape is not None else {}

    @property
    def arrivals(self) -> list[Arrival]:
        """Every site that was measured before it was learned."""
        found = [Arrival.recorded(facts) for facts in self.facts.values()]
        return [arrival for arrival in found if arrival is not None]

    @property
    def measured(self) -> list[Mapping[str, float]]:
        """The same where labels are numbers: those of a model of several sites, if enough."""
        found = [each["arrival"] for each in self.facts.values() if "error" in each["arrival"]]
        later = [each for each in found if each["known"] > 1]
        return later if len(later) >= FEWEST_SITES else found

    @property
    def usual(self) -> float | None:
        """What a calibration is compared with: a temperature, or a median error if it is known."""
        return self.learner.known_task.either(lambda: self.temperature, self._usual_error)()

    def _usual_error(self) -> float | None:
        errors = [each[SCORES[0]] for each in self.measured]
        return float(np.median(errors)) if len(errors) >= FEWEST_SITES else None

    def row_intervals(self) -> RowSets | Nothing:
        """How far labels may be from predictions, or why nothing is known."""
        sites = self.measured
        scores = [[each[name] for name in SCORES] for each in sites]
        found = row_sets(scores, [int(each["rows"]) for each in sites], "regression")
        return found if found is not None else Nothing(too_few(len(sites)))

    def logits(self, inputs: Tensor) -> np.ndarray:
        """The learner's own logits, without a calibration."""
        outputs = self.learner.system.logits(Rows.unlabelled(inputs))
        return outputs.double().cpu().numpy()

    def see(self, inputs: Tensor) -> Arrival:
        """What is seen of a site without labels."""
        return see(self.logits(inputs), self.outputs, self.temperature)

    def arrival(self, inputs: Tensor, labels: list[Any]) -> dict[str, float]:
        """Measure a labelled site before it is learned. Its labels may be new to the learner."""
        measure = self.learner.known_task.either(self._of_classes, self._of_numbers)
        return measure(self.logits(inputs), labels)

    def _of_numbers(self, logits: np.ndarray, labels: list[Any]) -> dict[str, float]:
        task, outputs = self.learner.known_task, torch.from_numpy(logits)
        true = task.encoded(labels, domain="DATA")
        scores = task.scores(outputs, true)
        return {
            "rows": float(len(labels)),
            "known": float(len(self.learner.domains)),
            "error": scores["mae"] or 0.0,
            "guess": scores["guess_mae"] or 0.0,
            **dict(zip(SCORES, quantiles(task.row_scores(outputs, true)), strict=True)),
        }

    def _of_classes(self, logits: np.ndarray, labels: list[Any]) -> dict[str, float]:
        numbers = {str(label): n for n, label in enumerate(self.learner.classes or [])}
        true = np.array([numbers.get(label, -1) for label in labels])
        found = replace(
            see(logits, self.outputs, self.temperature),
            accuracy=float((logits.argmax(axis=1) == true).mean()),
            known=len(self.learner.domains),
            row_scores=row_scores(logits, true),
        )
        return found.plain()

    def strangeness(self, inputs: Tensor, features: Tensor) -> tuple[np.ndarray, list[str]] | None:
        """The strangeness of each row, and its nearest site; None if nothing is known.

        The larger of the distance of its features from the nearest site's and of its inputs from
        their nearest neighbour.
        """
        if not self.sites:
            return None
        values, nearest = strangeness(self.sites, features)
        if self.neighbours is not None:
            values = np.maximum(values, self.neighbours.strangeness(np.asarray(inputs)))
        return values, nearest

    def verdict(self, inputs: Tensor, here: verdicts.SiteProfile) -> verdicts.SiteVerdict:
        """The verdict on a site as a whole."""
        stored = [facts["profile"] for facts in self.facts.values()]
        profiles = [verdicts.SiteProfile(**{**each, "rows": int(each["rows"])}) for each in stored]
        missing, unknown, reasons = verdicts.judge_profile(here, profiles)
        if here.rows < verdicts.FEWEST_ROWS:
            note = f"fewer than {verdicts.FEWEST_ROWS} rows: the site cannot be judged as a whole"
            return verdicts.SiteVerdict(here.rows, missing, unknown, tuple(reasons), (note,))
        confidence = None
        stated = self.learner.known_task.confidences(self.logits(inputs) / self.temperature)
        if stated is not None:
            confidence = verdicts.judge_confidence(
                stated,
                {name: each.confidences(self.temperature) for name, each in self.outputs.items()},
                [arrival.confidence for arrival in self.arrivals],
            )
        rows = np.asarray(inputs)
        known = (self.kept, self.relevant, self.areas)
        p_value, area = verdicts.judge_separation(rows, *known, self.learner.seed)
        distance = neighbours = None
        # Only then the sites' features are those of the current weights.
        if self.learner.method_type.keeps_rows() or self.learner.system.forgets_exactly:
            features = self.learner.system.features(inputs)
            distance = verdicts.judge_distance(features, self.sites)
            p_value = verdicts.means_p_value(features, self.sites) if p_value is None else p_value
        if self.neighbours is not None:
            values = self.neighbours.strangeness(rows)
            neighbours = verdicts.judge_strangeness(values, self.neighbours.between())
        note = "only one site is known, so it is unclear how much sites may differ without harm"
        notes = (note,) if len(self.learner.domains) < 2 else ()
        reasons += verdicts.weigh(confidence, (area, neighbours, distance))
        signs = (area, confidence, distance, neighbours)
        ranges = (sign.range if sign is not None else None for sign in signs)
        return verdicts.SiteVerdict(
            here.rows, missing, unknown, tuple(reasons), notes, p_value, *ranges
        )

    @cached_property
    def relevant(self) -> np.ndarray:
        """Which inputs count for the predictions; of images, all parts do."""
        rows = [each[:INFLUENCE_ROWS] for each in self.kept.values()]
        if not rows or rows[0].ndim != 2 or rows[0].shape[1] > MOST_COLUMNS:
            width = as_numbers(rows[0][:1]).shape[1] if rows else 1
            return np.ones(width, dtype=bool)

        def said(inputs: np.ndarray) -> np.ndarray:
            logits = torch.from_numpy(self.logits(torch.from_numpy(inputs)))
            return np.asarray(self.learner.known_task.shown(logits))

        return verdicts.influences(said, np.concatenate(rows), self.learner.seed)

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

    @cached_property
    def kept(self) -> dict[str, np.ndarray]:
        """Rows of each site, held out or in the memory: the test looks at inputs alone."""
        kept = {name: [rows["inputs"].cpu().numpy()] for name, rows in self.held_out.items()}
        for name, (inputs, _) in past_rows(self.learner).items():
            kept.setdefault(name, []).append(inputs.cpu().numpy())
        return {name: np.concatenate(parts) for name, parts in kept.items()}
