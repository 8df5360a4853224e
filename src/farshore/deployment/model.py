"""A model that lives in a folder: it is created by its first site, learns the next ones as they
come, and can take the last one back.

The folder is a learner's folder (`farshore.load` reads it) with a record of its sites beside: when
each was learned, from how many rows and by which versions, and which columns are no inputs. One
process at a time may change it. A training that was interrupted goes on from its last checkpoint
when the same command is given again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from .. import __version__
from ..checkpoints import EVERY, Checkpoints
from ..data.convert import encode_labels
from ..data.domain import Domain, Rows
from ..data.frames import learn_columns
from ..data.splits import divide_rows
from ..data.table import TablePreprocessing
from ..errors import FarshoreError, StateError
from ..learner import Learner, from_state_dict
from ..lock import exclusive
from ..observer import Observer
from ..randomness import derive
from ..state import MANIFEST, current_tag, load_parts, save_state, undo
from .familiarity import known_sites, moments, past_rows, strangeness
from .site import Columns, Site, order_classes, read_site

CHECKPOINT = "checkpoint"
# The name of the record of sites, in files of its own that `Learner.save` leaves alone.
RECORD = "sites"


@dataclass(frozen=True)
class NewModel:
    """How a model is made at its first site. What is None has its default, and may be left out
    later.
    """

    method: str | None = None
    network: str | None = None
    memory: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    network_settings: Mapping[str, Any] = field(default_factory=dict)
    classes: Sequence[str] | None = None
    seed: int | None = None
    metric: str | None = None

    def make(self, *, images: bool, device: str, observer: Observer | None) -> Learner:
        """A learner that has learned nothing yet."""
        return Learner(
            network=self.network or ("cnn" if images else "mlp"),
            method=self.method or "er",
            memory=self.memory or 1000,
            settings=self.settings,
            network_settings=self.network_settings,
            classes=self.classes,
            seed=self.seed or 0,
            metric=self.metric or "accuracy",
            device=device,
            observer=observer,
        )

    def check(self, learner: Learner, folder: Path) -> None:
        """Refuse options that contradict what the model is."""
        config = learner.config
        for name in ("method", "network", "memory", "classes", "seed", "metric"):
            asked = getattr(self, name)
            if asked is not None and asked != config[name]:
                raise FarshoreError(
                    f"--{name} {asked}: {folder} was created with {config[name]}; leave the "
                    "option out, or create another model"
                )
        same = Learner(method=config["method"], settings=self.settings).state_dict()["config"][
            "settings"
        ]
        for name in self.settings:
            if same.get(name) != config["settings"].get(name):
                raise FarshoreError(
                    f"--set {name} is for the first site: the settings of {folder} are fixed; "
                    "leave the option out"
                )


@dataclass
class Learned:
    """What came of learning one site: scores of its rows, and the model's accuracy on the kept
    rows of the past, before and after.
    """

    name: str
    created: bool
    rows: int
    scores: dict[str, float]
    before: dict[str, float]
    after: dict[str, float]
    notes: list[str]


class Model:
    """A learner with its record, as read from a folder."""

    def __init__(self, folder: Path, learner: Learner, record: Mapping[str, Any] | None) -> None:
        record = record or {}
        self.folder = folder
        self.learner = learner
        self.columns = Columns(**record.get("columns", {}))
        self.sites: dict[str, dict[str, Any]] = {
            name: dict(facts) for name, facts in record.get("sites", {}).items()
        }
        self.sides: dict[str, bool] = dict(record.get("sides", {}))
        self.moments: dict[str, Any] = dict(record.get("moments", {}))

    @classmethod
    def open(
        cls, folder: str | Path, *, device: str = "cpu", observer: Observer | None = None
    ) -> Model:
        """The model in `folder`."""
        folder = Path(folder)
        parts = load_parts(folder, kind="learner")
        try:
            learner = from_state_dict(parts["learner"], folder, device=device, observer=observer)
            return cls(folder, learner, parts.get(RECORD))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StateError(
                f"{folder} is damaged: its record of sites cannot be read ({error})"
            ) from error

    def save(self, *, keep_previous: bool = True) -> None:
        """Write everything; the version before stays for `undo`."""
        record = {
            "columns": self.columns.model_dump(mode="json"),
            "sites": self.sites,
            "sides": self.sides,
            "moments": self.moments,
        }
        save_state(
            self.folder,
            self.learner.state_dict(),
            kind="learner",
            records={RECORD: record},
            keep_previous=keep_previous,
        )

    # ---- prediction ------------------------------------------------------------------------------

    def read(self, data: str | Path, *, labelled: bool, label: str | None = None) -> Site:
        """A site's data in the form of this model."""
        if self.learner.shape is None:
            raise FarshoreError(
                f"{self.folder} has not learned a site yet: type `farshore learn {self.folder} "
                "DATA --label COLUMN --name NAME`"
            )
        return read_site(
            data,
            Columns(label=label).or_else(self.columns),
            self.learner.preprocessing,
            labelled=labelled,
        )

    def inputs(self, site: Site) -> Tensor:
        """Inputs for the network."""
        if isinstance(site.inputs, Tensor):
            return site.inputs
        if not isinstance(self.learner.preprocessing, TablePreprocessing):
            raise FarshoreError(
                f"{self.folder} was begun with arrays, not with a table: use it in Python"
            )
        return self.learner.preprocessing.transform(site.inputs)

    def predict(self, site: Site) -> pd.DataFrame:
        """One row for each: the label, the probabilities, how strange it is and to which site it
        is nearest, unknown categories.
        """
        inputs = self.inputs(site)
        probabilities = self.learner.logits(inputs).softmax(dim=1).cpu().numpy()
        classes = [str(label) for label in self.learner.classes or []]
        table = pd.DataFrame(
            {
                "row": site.names,
                "prediction": np.asarray(classes, dtype=object)[probabilities.argmax(axis=1)],
            }
        )
        for place, label in enumerate(classes):
            table[f"p({label})"] = probabilities[:, place]
        sites = known_sites(self.learner, self.moments)
        if sites:
            table["strangeness"], table["nearest"] = strangeness(self.learner, sites, inputs)
        if isinstance(self.learner.preprocessing, TablePreprocessing):
            assert isinstance(site.inputs, pd.DataFrame)
            table["unknown"] = self.learner.preprocessing.unknown(site.inputs)
        return table

    def outputs(self, site: Site) -> tuple[Tensor, Tensor]:
        """Logits and class numbers of a labelled site."""
        assert site.labels is not None
        labels = encode_labels(site.labels, self.learner.classes or [], domain="DATA")
        return self.learner.logits(self.inputs(site)), labels.to(self.learner.device)

    def standing(self, past: Mapping[str, tuple[Tensor, Tensor]] | None = None) -> dict[str, float]:
        """The score on the kept rows of each past domain, or on these rows."""
        past = past_rows(self.learner) if past is None else past
        return {
            name: self.learner.score(Rows(x, y, torch.arange(len(y), device=y.device)))
            for name, (x, y) in past.items()
        }

    # ---- learning --------------------------------------------------------------------------------

    def learn(
        self,
        site: Site,
        name: str,
        columns: Columns,
        *,
        steps: int,
        validation: float,
        checkpoints: Checkpoints | None = None,
    ) -> dict[str, float]:
        """Train on a site's rows. Nothing is written but checkpoints."""
        learner = self.learner
        assert site.labels is not None
        known = list(learner.classes or order_classes(site.labels))
        labels = encode_labels(site.labels, known, domain=name)
        train, held = self._split(site, name, labels, validation)
        preprocessing = learner.preprocessing
        if isinstance(site.inputs, pd.DataFrame):
            preprocessing = learn_columns(site.inputs, train, preprocessing)
            inputs = preprocessing.transform(site.inputs)
        else:
            preprocessing, inputs = site.preprocessing, site.inputs
        domain = Domain(name, inputs, labels, train, held)
        learner.learn_domain(domain, steps=steps, classes=known, checkpoints=checkpoints)
        learner.preprocessing = preprocessing
        self.columns = columns
        if not past_rows(learner):  # nothing is kept that could say later what this site was like
            features = [learner.system.features(inputs[rows]) for rows in (train, held)]
            self.moments[name] = moments(features[0], features[1]).state_dict()
        versions = {"farshore": __version__, "torch": str(torch.__version__)}
        self.sites[name] = {
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "rows": len(domain),
            "versions": versions,
        }
        splits = {part: domain.split(part) for part in ("train", "validation")}
        return {part: learner.score(rows) for part, rows in splits.items() if len(rows)}

    def _split(self, site: Site, name: str, labels: Tensor, share: float) -> tuple[Tensor, Tensor]:
        """Training and validation rows: at random, or by time and groups. Groups are remembered
        as checksums, not by name.
        """
        if not 0 <= share < 1:
            raise FarshoreError(
                f"--validation {share} is not allowed: give a share of the rows from 0 to below 1"
            )
        seed = derive(self.learner.seed, "split", len(self.learner.domains))
        if (site.times is None and site.groups is None) or share == 0:
            whole = Domain.divided(
                name, torch.empty(len(site), 0), labels, validation=float(share), seed=seed
            )
            return whole.train, whole.validation
        groups = None
        if site.groups is not None:
            groups = np.array(
                [hashlib.sha256(str(group).encode()).hexdigest()[:16] for group in site.groups]
            )
        return divide_rows(
            name,
            len(site),
            seed=seed,
            times=site.times,
            groups=groups,
            sides=self.sides,
            share=share,
        )


def learn(
    folder: str | Path,
    data: str | Path,
    *,
    name: str,
    columns: Columns,
    new: NewModel,
    steps: int = 500,
    validation: float = 0.2,
    max_drop: float | None = None,
    every: int = EVERY,
    size: int | None = None,
    device: str = "cpu",
    observer: Observer | None = None,
) -> Learned:
    """Learn one further site into `folder`, which is made if it is not there. A worse model than
    `max_drop` allows is not kept.
    """
    folder = Path(folder)
    strangers = (
        [path for path in folder.glob("*") if not path.name.startswith(".")]
        if folder.is_dir()
        else []
    )
    if (folder.exists() and not folder.is_dir()) or (
        strangers and not (folder / MANIFEST).is_file()
    ):
        raise FarshoreError(f"{folder} is there and is no model: name another folder")
    with exclusive(folder):
        model = (
            Model.open(folder, device=device, observer=observer)
            if (folder / MANIFEST).is_file()
            else None
        )
        begun = model is not None and (
            bool(model.learner.domains) or (folder / CHECKPOINT).is_dir()
        )
        if model is not None and begun:
            new.check(model.learner, folder)
        said = columns.or_else(model.columns) if model is not None else columns
        site = read_site(
            data,
            said,
            model.learner.preprocessing if model is not None else None,
            labelled=True,
            size=size,
        )
        if model is None or not begun:
            model = Model(
                folder,
                new.make(images=isinstance(site.inputs, Tensor), device=device, observer=observer),
                None,
            )
            model.save(keep_previous=False)
        if max_drop is not None and not model.learner.method_type.keeps_rows():
            raise FarshoreError(
                f"--max-drop: method {model.learner.method_type.name!r} keeps no rows of the "
                "past to measure a drop on"
            )
        past = dict(past_rows(model.learner))
        before = model.standing(past)
        checkpoints = Checkpoints(
            folder / CHECKPOINT, base=current_tag(folder, kind="learner"), every=every
        )
        scores = model.learn(
            site, name, said, steps=steps, validation=validation, checkpoints=checkpoints
        )
        after = model.standing(past)
        worst = max(before, key=lambda each: before[each] - after[each]) if before else None
        if max_drop is not None and worst is not None and before[worst] - after[worst] > max_drop:
            checkpoints.clear()
            raise FarshoreError(
                f"{name!r} was not kept: on {worst!r} the {model.learner.metric} fell from "
                f"{before[worst]:.3f} to {after[worst]:.3f}, by "
                f"more than --max-drop {max_drop}; {folder} is as it was (more --memory, fewer "
                "--steps or another method may help)"
            )
        model.save()
        checkpoints.clear()
    return Learned(name, not begun, len(site), scores, before, after, site.notes)


def take_back(folder: str | Path) -> Model:
    """Return to the version before the last change. Returns what is there now."""
    with exclusive(_existing(folder)):
        undo(folder, kind="learner")
        Checkpoints(Path(folder) / CHECKPOINT, base="").clear()
        return Model.open(folder)


def forget(folder: str | Path, name: str) -> Model:
    """Delete what is kept of a domain, in the version before too: it has to be gone, so this
    cannot be undone.
    """
    with exclusive(_existing(folder)):
        model = Model.open(folder)
        model.learner.forget(name)
        model.sites.pop(name, None)
        model.moments.pop(name, None)
        model.save(keep_previous=False)
        Checkpoints(Path(folder) / CHECKPOINT, base="").clear()
        return model


def _existing(folder: str | Path) -> Path:
    """A folder that holds a model; another one is refused before a lock is put into it."""
    current_tag(folder, kind="learner")
    return Path(folder)
