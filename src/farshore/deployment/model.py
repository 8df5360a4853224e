"""A model in a folder: the first site creates it, later sites extend it, the last can be undone.

The folder is a learner's folder (`farshore.load` reads it) plus a record of its sites: when each
was learned, from how many rows, with which versions, and which columns are not inputs. Only one
process at a time may change it. An interrupted training resumes from its last checkpoint when the
same command is given again. Every command that changes a model may be killed at any moment: the
folder then contains the old model or the new one, and the same command finishes the work.
"""

import hashlib
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from .. import __version__
from ..base.manifest import remove_obsolete
from ..base.state import load_parts, save_state
from ..data.domain import Domain, Rows
from ..data.preprocessing import Preprocessing
from ..data.splits import divide_rows, split_seed
from ..data.tables.columns import sort_classes
from ..data.tables.convert import as_weights
from ..data.tables.frames import learn_columns
from ..data.tables.table import TablePreprocessing
from ..errors import FarshoreError, StateError
from ..learner.learner import Learner
from ..learner.loading import Opening, from_state_dict
from ..networks.pretrained.own_module import is_own_module
from ..results.expectation import RowSets
from ..results.sequence import Picks
from ..tasks.calibration import Calibration, confidences, probabilities
from ..tasks.labels import first_site_task
from ..tasks.metrics import METRICS, in_unit
from ..training.checkpoints import Checkpoints
from .arrive import (
    ARRIVED,
    FIRST_LABELS,
    Action,
    Arrived,
    Labelled,
    Nothing,
    NumbersArrived,
    advise,
    advise_numbers,
    expected_accuracy,
    expected_error,
    sets_of_rows,
)
from .calibrate import Calibrated, CalibratedNumbers
from .familiarity import moments, past_rows
from .gate import (
    Agreement,
    Gate,
    agreement,
    agreement_of_numbers,
    is_unclear,
    quick_agreement,
)
from .held_out import MOST_ROWS, Outputs, Reliability, as_rows, choose
from .knowledge import Knowledge
from .log import LogEntry, log_state, read_log
from .record import KEYS, check_record
from .site import Columns, Sample, Site, read_chunks, read_site
from .summary import summary
from .verdict import SiteProfile, SiteVerdict, profile

CHECKPOINT = "checkpoint"
# Name of the record of sites. It has its own files, which `Learner.save` does not touch.
RECORD = "sites"
# The change log is a part of its own: it survives `undo`.
LOG = "log"
# Rows to label are drawn to show an accuracy that is this much below the mean confidence.
BELOW = 0.1
# Rows that are predicted at a time, and judged as a site: fewer if a row has many features.
CHUNK_ROWS, FEWEST_CHUNK_ROWS, CHUNK_VALUES = 1 << 16, 1000, 1 << 23


@dataclass
class Learned:
    """The outcome of learning one site.

    `scores` are those on its own rows; `before` and `after` are those on the kept rows of past
    sites.
    """

    name: str
    created: bool
    rows: int
    scores: dict[str, float]
    before: dict[str, float]
    after: dict[str, float]
    notes: list[str]
    # All sites of the model in the order in which they were learned, and the score's name.
    order: list[str]
    metric: str
    unit: str = ""


class Model:
    """A learner and its record of sites, as read from a folder."""

    def __init__(
        self,
        folder: Path,
        learner: Learner,
        record: Mapping[str, Any] | None,
        log: Mapping[str, Any] | None = None,
    ) -> None:
        record = record or {}
        check_record(record, learner)
        self.folder = folder
        self.learner = learner
        self.columns = Columns(**record.get("columns", {}))
        self.sites: dict[str, dict[str, Any]] = {
            name: dict(facts) for name, facts in record.get("sites", {}).items()
        }
        self.sides: dict[str, bool] = dict(record.get("sides", {}))
        self.moments: dict[str, Any] = dict(record.get("moments", {}))
        self.held_out: dict[str, dict[str, Tensor]] = dict(record.get("held_out", {}))
        # For methods that keep no rows: how confident the model was, and how often rightly.
        self.reliability: dict[str, dict[str, Tensor]] = dict(record.get("reliability", {}))
        # Fitted to a few rows of a new site; None if the outputs are the learner's own.
        self.calibration: dict[str, Any] | None = record.get("calibration")
        self.log: list[LogEntry] = read_log(log) if log else []
        # Checksums of the names of forgotten sites: the names themselves are forgotten too.
        self.forgotten: list[str] = [str(name) for name in record.get("forgotten", [])]

    @classmethod
    def open(cls, folder: str | Path, **opening: Unpack[Opening]) -> "Model":
        """Read the model in `folder`, with the options of `farshore.load`."""
        folder = Path(folder)
        parts = load_parts(folder, kind="learner")
        with suppress(StateError):  # a folder that cannot be written can still be read
            remove_obsolete(folder, kind="learner")
        try:
            learner = from_state_dict(parts["learner"], folder, **opening)
            return cls(folder, learner, parts.get(RECORD), parts.get(LOG))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            reason = " ".join(str(error).split())[:500]
            raise StateError(
                f"{folder} is damaged: its record of sites cannot be read ({reason})"
            ) from error

    def save(self, *, keep_previous: bool = True) -> None:
        """Write the model; the previous version is kept for `undo`."""
        record = {name: getattr(self, name) for name in KEYS}
        record["columns"] = self.columns.model_dump(mode="json")
        # For reading a model with an own backbone, its code has to be named.
        network = self.learner.backbone.network
        readable = isinstance(network, str) and not is_own_module(network)
        save_state(
            self.folder,
            self.learner.state_dict(),
            kind="learner",
            records={RECORD: record, LOG: log_state(self.log)},
            summary=summary(self) if readable else None,
            keep_previous=keep_previous,
        )

    def drop(self, name: str) -> None:
        """Delete the record of a site, and remember only that it is forgotten."""
        self.__dict__.pop("knowledge", None)
        for kept in (self.sites, self.moments, self.held_out, self.reliability):
            kept.pop(name, None)
        for facts in self.sites.values():
            for scores in ("before", "after"):
                facts[scores] = {**facts.get(scores, {})}
                facts[scores].pop(name, None)
        mark = checksum(name)
        self.log = [entry.without(name, mark) for entry in self.log]
        self.forgotten.append(mark)

    def empty_mixed_memory(self) -> bool:
        """Empty a memory that mixes sites, whose rows cannot be told apart; whether it was one."""
        if not self.started or not self.learner.system.mixes_domains:
            return False
        self.learner.system.empty_memory()
        return True

    @property
    def order(self) -> list[str]:
        """The sites in the order in which they were learned."""
        return [str(domain["name"]) for domain in self.learner.domains]

    def outcome(self, name: str, *, created: bool, notes: list[str]) -> Learned:
        """What is recorded about the learning of a site."""
        facts = self.sites[name]
        scores, before, after = (dict(facts[key]) for key in ("scores", "before", "after"))
        found = (name, created, int(facts["rows"]), scores, before, after, notes)
        unit = self.learner.known_task.score_unit
        return Learned(*found, self.order, self.learner.metric, unit)

    def note_learned(self, name: str, decided: Mapping[str, Any]) -> None:
        """Add to the log that a site was learned."""
        facts, config = self.sites[name], self.learner.config
        settings = {"method": config["method"], "memory": config["memory"], **config["settings"]}
        settings |= {"seed": config["seed"], **decided}
        shown = {key: str(value) for key, value in settings.items() if value is not None}
        same = ("rows", "scores", "before", "after", "when", "versions")
        told = {"settings": shown, **{key: facts[key] for key in same}}
        self.log.append(LogEntry("learned", name, metric=self.learner.metric, **told))

    def uses(self, done: Calibrated | CalibratedNumbers) -> bool:
        """Whether these outputs are what the model puts out already."""
        spread = (self.calibration or {}).get("spread", 1.0)
        return self.applied == done.calibration and spread == done.spread

    def note_calibrated(self, done: Calibrated | CalibratedNumbers) -> None:
        """Use a calibration from now on, and add it to the log."""
        when = datetime.now(UTC).isoformat(timespec="seconds")
        temperature, offsets = done.calibration.temperature, list(done.calibration.offsets)
        self.calibration = {
            "temperature": temperature,
            "offsets": offsets,
            "rows": done.rows,
            "labelled": True,
            "when": when,
            **({"spread": done.spread} if done.spread != 1 else {}),
        }
        shown = ", ".join(f"{value:.3g}" for value in offsets)
        self.log.append(
            LogEntry(
                action="calibrated",
                rows=done.rows,
                settings={"temperature": f"{temperature:.4g}", "offsets": shown},
                metric=self.learner.metric,
                note=done.kind,
                when=when,
            )
        )

    @property
    def started(self) -> bool:
        """Whether a site was ever learned; until then no setting is fixed."""
        return self.learner.shape is not None

    @property
    def empty(self) -> bool:
        """Whether nothing of a site is in the weights: of a template, or after `forget`."""
        return not self.started or (not self.order and self.learner.system.forgets_exactly)

    # ---- prediction ------------------------------------------------------------------------------

    def read(self, data: str | Path, *, label: str | None = None, **reading: Any) -> Site:
        """Read all of a site's data in the form that this model needs, see `site.read_chunks`."""
        return read_site(data, *self._form(label), **reading)

    def read_chunks(
        self, data: str | Path, *, label: str | None = None, **reading: Any
    ) -> tuple[Iterator[Site], Sample]:
        """A site's data in chunks that fit into little memory, and a sample to fill with them."""
        columns, preprocessing = self._form(label)
        width = len(getattr(preprocessing, "features", ()))
        rows = min(CHUNK_ROWS, max(FEWEST_CHUNK_ROWS, CHUNK_VALUES // max(1, width)))
        chunks = read_chunks(data, columns, preprocessing, rows=rows, **reading)
        return chunks, Sample(rows, self.learner.seed)

    def _form(self, label: str | None) -> tuple[Columns, Preprocessing | None]:
        if self.empty:
            raise FarshoreError(
                f"{self.folder} has not learned a site yet: type `farshore learn {self.folder} "
                "DATA --label COLUMN --name NAME`"
            )
        return Columns(label=label).or_else(self.columns), self.learner.preprocessing

    def inputs(self, site: Site) -> Tensor:
        """The inputs of the network for a site."""
        if isinstance(site.inputs, Tensor):
            return site.inputs
        if not isinstance(self.learner.preprocessing, TablePreprocessing):
            raise FarshoreError(
                f"{self.folder} was created with arrays, not with a table: use it in Python"
            )
        return self.learner.preprocessing.transform(site.inputs)

    @cached_property
    def knowledge(self) -> Knowledge:
        """What the model knows about its sites, until it learns or forgets one."""
        return Knowledge(self.learner, self.held_out, self.reliability, self.moments, self.sites)

    def logits(self, site: Site) -> np.ndarray:
        """The logits of a site's rows, calibrated if the model is."""
        return self._calibrated(self.learner.logits(self.inputs(site)))

    def _calibrated(self, logits: Tensor) -> np.ndarray:
        values: np.ndarray = logits.double().cpu().numpy()
        return self.applied.apply(values) if self.applied is not None else values

    @property
    def applied(self) -> Calibration | None:
        """The calibration of the outputs, if there is one."""
        if self.calibration is None:
            return None
        offsets = tuple(float(offset) for offset in self.calibration["offsets"])
        return Calibration(float(self.calibration["temperature"]), offsets)

    def predict(self, site: Site) -> pd.DataFrame:
        """One line per row: label, probabilities, strangeness, nearest site, unknown categories."""
        inputs = self.inputs(site)
        logits, features = self.learner.logits_and_features(inputs)
        said = self.learner.known_task.either(self._classes, self._numbers)
        table = said(site.names, self._calibrated(logits))
        strange = self.knowledge.strangeness(self.learner.backbone.inside(inputs), features)
        if strange is not None:
            table["strangeness"], table["nearest"] = strange
        if isinstance(self.learner.preprocessing, TablePreprocessing):
            assert isinstance(site.inputs, pd.DataFrame)
            table["unknown"] = self.learner.preprocessing.unknown(site.inputs)
        return table

    def _classes(self, names: list[str], logits: np.ndarray) -> pd.DataFrame:
        """The class of each row, and the probability of each class."""
        shares = probabilities(logits).astype(np.float32)
        classes = [str(label) for label in self.learner.classes or []]
        chosen = np.asarray(classes, dtype=object)[shares.argmax(axis=1)]
        table = pd.DataFrame({"row": names, "prediction": chosen})
        for index, label in enumerate(classes):
            table[f"p({label})"] = shares[:, index]
        return table

    def _numbers(self, names: list[str], outputs: np.ndarray) -> pd.DataFrame:
        """The value of each row, and its interval if enough sites were measured."""
        task, found = self.learner.known_task, torch.from_numpy(outputs)
        parts = {"prediction": task.predictions(found).reshape(len(found), -1)}
        sets = self.knowledge.row_intervals()
        if isinstance(sets, RowSets):
            most = sets.most * float((self.calibration or {}).get("spread", 1.0))
            parts |= zip(("low", "high"), task.between(found, most) or (), strict=True)
        several = [f" {label}" for label in task.labels] if task.outputs > 1 else [""]
        columns = {
            f"{part}{label}": values[:, number]
            for number, label in enumerate(several)
            for part, values in parts.items()
        }
        return pd.DataFrame({"row": names, **columns})

    def outputs(self, site: Site) -> tuple[Tensor, Tensor]:
        """Logits and labels of a labelled site, as the network sees them."""
        assert site.labels is not None
        first = int(site.names[0]) if isinstance(site.inputs, pd.DataFrame) else 0
        labels = self.learner.known_task.encoded(site.labels, domain="DATA", first=first)
        return torch.from_numpy(self.logits(site)), labels

    def judge(
        self,
        site: Site,
        data: str | Path = "DATA",
        *,
        needed: float | None = None,
        labelled: Labelled | None = None,
    ) -> Arrived | NumbersArrived:
        """Judge a site: the verdict, what to expect, and what to do.

        needed: the least accuracy, or of numbers the largest error, that is good enough; by default
        that of the last --min-score, if any.
        labelled: what the labels of some rows show.
        """
        inputs, knowledge = self.inputs(site), self.knowledge
        here = self.profile(site, inputs)
        inputs = self.learner.backbone.inside(inputs)
        verdict = knowledge.verdict(inputs, here)
        needed = self.promised if needed is None else needed
        judge: Any = self.learner.known_task.either(self._judge_classes, self._judge_numbers)
        arrived: Arrived | NumbersArrived
        arrived = judge(site, inputs, verdict, self._commands(data), needed, labelled)
        return arrived

    def _judge_classes(
        self,
        site: Site,
        inputs: Tensor,
        verdict: SiteVerdict,
        commands: Mapping[Action, str],
        needed: float | None,
        labelled: Labelled | None,
    ) -> Arrived:
        knowledge = self.knowledge
        seen, arrivals, alarm = knowledge.see(inputs), knowledge.arrivals, verdict.reasons
        expected = expected_accuracy(seen, arrivals, alarm)
        advice = advise(
            alarm=alarm,
            expected=expected,
            labelled=labelled,
            arrivals=arrivals,
            asked=needed,
            learned=self._gains,
            design=self.label_design(site),
            commands=commands,
        )
        sets = sets_of_rows(arrivals, alarm, calibrated=self.calibration is not None)
        return Arrived(verdict, seen, expected, sets, labelled, advice)

    def _judge_numbers(
        self,
        site: Site,
        inputs: Tensor,
        verdict: SiteVerdict,
        commands: Mapping[Action, str],
        needed: float | None,
        labelled: Labelled | None,
    ) -> NumbersArrived:
        metric = in_unit(METRICS["mae"], self.learner.known_task.score_unit)
        alarm, sites = verdict.reasons, self.knowledge.measured
        expected = expected_error(sites, metric, alarm)
        sets = self.knowledge.row_intervals()
        return NumbersArrived(
            verdict,
            expected,
            Nothing("the site is out of range") if alarm else sets,
            metric,
            advise_numbers(metric, alarm, expected, sites, needed, self._gains, commands),
        )

    def label_design(self, site: Site) -> Picks:
        """How rows to label are drawn; it does not depend on what is asked for by --at-least."""
        scale = self.knowledge.temperature if self.applied is None else 1.0
        confidence = confidences(self.logits(site) / scale)
        return Picks.of(confidence, max(0.05, float(confidence.mean()) - BELOW))

    @property
    def _gains(self) -> list[float]:
        """What learning each site has gained there: held-out rows after, all rows before."""
        if self.learner.metric not in ARRIVED:
            return []
        name = ARRIVED[self.learner.metric]
        return [
            facts["scores"]["validation"] - facts["arrival"][name]
            for facts in self.sites.values()
            if facts["arrival"] and "validation" in facts["scores"]
        ]

    def _commands(self, data: str | Path) -> dict[Action, str]:
        """What to type for each action at a site with these data."""
        model, rows = shlex.quote(str(self.folder)), shlex.quote(str(data))
        return {
            Action.DEPLOY: f"farshore predict {model} {rows} -o predictions.csv",
            Action.LABEL: f"farshore arrive {model} {rows} --label-budget {FIRST_LABELS}",
            Action.CALIBRATE: f"farshore calibrate {model} LABELLED_ROWS",
            Action.LEARN: f"farshore learn {model} LABELLED_SITE --name NAME",
            Action.NOT: "",
        }

    def profile(self, site: Site, inputs: Tensor) -> SiteProfile:
        """What can be seen of a site's rows, and of its inputs of the network, as a whole."""
        missing = unknown = 0.0
        if isinstance(site.inputs, pd.DataFrame) and len(site):
            missing = float(site.inputs.isna().to_numpy().mean())
        if isinstance(self.learner.preprocessing, TablePreprocessing):
            assert isinstance(site.inputs, pd.DataFrame)
            marked = self.learner.preprocessing.unknown(site.inputs)
            unknown = float(np.mean([text != "" for text in marked]))
            inputs = self.learner.preprocessing.summed(inputs)
        return profile(inputs, missing, unknown)

    @property
    def promised(self) -> float | None:
        """The accuracy, or the error, asked for by the last --min-score, if any was."""
        last = self.sites.get(self.order[-1], {}) if self.order else {}
        if last.get("promised") is None or self.learner.metric not in ARRIVED:
            return None
        return float(last["promised"])

    def measurable(self) -> dict[str, Rows]:
        """Rows to measure the model on, by site: held-out ones, or else those in the memory.

        Some memories do not tell sites apart; they count if there are no held-out rows at all.
        """
        rows = {name: as_rows(kept) for name, kept in self.held_out.items()}
        for name, (x, y) in past_rows(self.learner).items():
            if name not in rows and (name in self.order or not rows):
                rows[name] = Rows(x, y, torch.arange(len(y), device=y.device))
        return rows

    def standing(self, rows: Mapping[str, Rows] | None = None) -> dict[str, float]:
        """The score on these rows, or on those that are kept now."""
        rows = self.measurable() if rows is None else rows
        return {name: self.learner.score(of_site) for name, of_site in rows.items()}

    # ---- learning --------------------------------------------------------------------------------

    def learn(
        self,
        site: Site,
        name: str,
        columns: Columns,
        *,
        steps: int,
        validation: float,
        new_classes: bool = False,
        checkpoints: Checkpoints | None = None,
    ) -> tuple[Domain, dict[str, float]]:
        """Train on a site and return its rows, divided, and scores; writes only checkpoints."""
        learner = self.learner
        assert site.labels is not None
        if new_classes and learner.classes is not None:
            known = set(map(str, learner.classes))
            learner.grow(sort_classes([label for label in site.labels if label not in known]))
        train, held_out = self._split(site, name, validation)
        before = learner.task
        task = before or first_site_task(
            site.task, site.labels, train.numpy(), columns.label_options(site.label_names)
        )
        if before is None:
            site.notes += task.announced()
        labels = task.encoded(site.labels, domain=name)
        preprocessing: Preprocessing | None
        if isinstance(site.inputs, pd.DataFrame):
            preprocessing = learn_columns(site.inputs, train, site.preprocessing)
            inputs = preprocessing.transform(site.inputs)
        else:
            preprocessing, inputs = site.preprocessing, site.inputs
        weights = as_weights(site.weights, len(site), where="--weight")
        learner.suit(preprocessing)
        domain = learner.backbone.prepared(Domain(name, inputs, labels, train, held_out, weights))
        learner.learn_domain(domain, steps=steps, task=task, checkpoints=checkpoints)
        learner.preprocessing = preprocessing
        if before is not None:
            learner.task = task.after(domain.labels[domain.train])
        self.columns = columns.model_copy(update={"task": task.either(columns.task, task.name)})
        self._keep(domain)
        self.__dict__.pop("knowledge", None)
        self.calibration = None  # it was fitted to the outputs of other weights
        self.sites[name] = {
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "rows": len(site),
            "versions": {"farshore": __version__, "torch": str(torch.__version__)},
            "classes": dict(zip(map(str, task.classes), task.tally(labels).tolist(), strict=False)),
            "profile": self.profile(site, self.inputs(site)).plain(),
        }
        self.forgotten = [mark for mark in self.forgotten if mark != checksum(name)]
        splits = {part: domain.split(part) for part in ("train", "validation")}
        return domain, {part: learner.score(rows) for part, rows in splits.items() if len(rows)}

    def _keep(self, domain: Domain) -> None:
        """Keep held-out rows of a site, or summaries if the method keeps no rows."""
        learner, rows = self.learner, domain.split("validation")
        inputs = domain.inputs
        assert isinstance(inputs, Tensor)
        if learner.method_type.keeps_rows():
            if len(rows):
                seed = split_seed(learner.seed, domain.name)
                self.held_out[domain.name] = choose(inputs, domain.labels, domain.validation, seed)
            return
        if not past_rows(learner):  # this site's features are gone later
            features = [
                learner.system.features(inputs[part]) for part in (domain.train, domain.validation)
            ]
            self.moments[domain.name] = moments(features[0], features[1]).state_dict()
        if len(rows):
            logits, labels = (each.cpu().numpy()[:MOST_ROWS] for each in learner.outputs(rows))
            logits = logits.astype(float)
            if learner.known_task.confidences(logits) is not None:
                self.reliability[domain.name] = Reliability.of(logits, labels).state_dict()

    def agreement_with(self, domain: Domain) -> Agreement | None:
        """How far the predictions on a domain's validation rows agree with the labels."""
        rows = domain.split("validation")
        if not len(rows):
            return None
        logits, labels = (each.cpu().numpy() for each in self.learner.outputs(rows))
        return self.learner.known_task.either(agreement, agreement_of_numbers)(logits, labels)

    def why_refused(
        self,
        gate: Gate,
        domain: Domain,
        scores: Mapping[str, float],
        before: Mapping[str, Outputs],
    ) -> str | None:
        """Why a new model may not replace the old one, which said `before`; None if it may."""
        return (
            gate.check_past(
                self.learner.known_task, self.learner.metric, before, self.knowledge.outputs
            )
            or gate.check_score(
                self.learner.known_task, self.learner.metric, scores.get("validation")
            )
            or self.check_labels(gate, domain)
        )

    def check_labels(self, gate: Gate, domain: Domain) -> str | None:
        """Why the labels of a domain that was just learned are refused; None if they are not."""
        others = [facts["agreement"] for site, facts in self.sites.items() if site != domain.name]
        known = [area for area in others if area is not None]
        if gate.min_score is not None or not known or not len(domain.validation):
            return None
        own, usual = self.agreement_with(domain), float(np.mean(known))
        seed = split_seed(self.learner.seed, domain.name) % 2**32
        if is_unclear(own, usual) and isinstance(self.learner.preprocessing, TablePreprocessing):
            inputs, labels = np.asarray(domain.inputs), domain.labels.numpy()
            own = quick_agreement(self.learner.known_task, inputs, labels, seed)
        return gate.check_agreement(own, usual)

    def _split(self, site: Site, name: str, share: float) -> tuple[Tensor, Tensor]:
        """Divide rows at random, or by time and groups, which are stored as checksums."""
        seed = split_seed(self.learner.seed, name)
        if (site.times is None and site.groups is None) or share == 0:
            empty, labels = torch.empty(len(site), 0), torch.zeros(len(site), dtype=torch.long)
            divided = Domain.divided(name, empty, labels, validation=float(share), seed=seed)
            return divided.train, divided.validation
        groups = None
        if site.groups is not None:
            groups = np.array([checksum(str(group)) for group in site.groups])
        return divide_rows(
            name,
            len(site),
            seed=seed,
            times=site.times,
            groups=groups,
            sides=self.sides,
            share=share,
        )


def checksum(text: str) -> str:
    """A short name that does not tell the text itself."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
