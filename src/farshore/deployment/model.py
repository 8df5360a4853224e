"""A model in a folder: the first site creates it, later sites extend it, the last can be undone.

The folder is a learner's folder (`farshore.load` reads it) plus a record of its sites: when each
was learned, from how many rows, with which versions, and which columns are not inputs. Only one
process at a time may change it. An interrupted training resumes from its last checkpoint when the
same command is given again. Every command that changes a model may be killed at any moment: the
folder then contains the old model or the new one, and the same command finishes the work.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from .. import __version__
from ..checkpoints import EVERY, Checkpoints
from ..data.columns import sort_classes
from ..data.convert import as_weights, encode_labels
from ..data.domain import Domain, Rows
from ..data.frames import learn_columns
from ..data.image_folder import ImagePreprocessing
from ..data.preprocessing import Preprocessing
from ..data.progress import following
from ..data.public_files import known_checksum
from ..data.read_table import TextForm
from ..data.splits import divide_rows, split_seed
from ..data.steps import usual_steps
from ..data.table import TablePreprocessing
from ..data.weights import usual_image_network
from ..errors import DivergedError, FarshoreError, StateError
from ..forms import NAMES, Like, MapOf, check_form, check_keys
from ..learner import USUAL_RUN, Learner, follow, from_state_dict
from ..lock import exclusive
from ..names import check_name
from ..networks.build import settle_network
from ..observer import Observer
from ..settings import MethodSettings, RunSettings, divide
from ..state import (
    MANIFEST,
    check_undo,
    current_tag,
    is_unfinished,
    load_parts,
    remove_obsolete,
    remove_orphans,
    save_state,
    undo,
)
from .familiarity import known_sites, moments, past_rows, strangeness
from .site import Columns, Site, read_site, usual_metric

CHECKPOINT = "checkpoint"
# Name of the record of sites. It has its own files, which `Learner.save` does not touch.
RECORD = "sites"
LARGEST_SIDE = 4096


@dataclass(frozen=True)
class NewModel:
    """How the first site creates a model. None means the default; later sites may leave it out."""

    method: str | None = None
    network: str | None = None
    memory: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    network_settings: Mapping[str, Any] = field(default_factory=dict)
    classes: Sequence[str] | None = None
    seed: int | None = None
    metric: str | None = None

    def make(self, site: Site, *, device: str, observer: Observer | None) -> Learner:
        """Create an untrained learner for a site like this one."""
        return Learner(
            network=self.chosen_network(images=isinstance(site.inputs, Tensor)),
            method=self.method or "er",
            memory=self.memory if self.memory is not None else 1000,
            settings=self.settings,
            network_settings=self.network_settings,
            classes=self.classes,
            seed=self.seed if self.seed is not None else 0,
            metric=self.metric or usual_metric(site),
            # Later sites may have other weights, even if those of the first one are all equal.
            weighted=True if site.weights is not None else None,
            device=device,
            observer=observer,
        )

    def chosen_network(self, *, images: bool) -> str:
        """The network: the named one, or the usual one for a table or for images."""
        if self.network is not None or not images:
            return self.network or "mlp"
        return "resnet18" if "weights" in self.network_settings else usual_image_network()

    def image_form(self, size: int | None) -> ImagePreprocessing:
        """The form of images that the network expects; the first site decides on colour."""
        form = settle_network(self.chosen_network(images=True), self.network_settings).form
        return ImagePreprocessing(size or form.size, 0, form.interpolation)

    def check(self, learner: Learner, folder: Path) -> None:
        """Raise an error for options that contradict an existing model."""
        config = learner.config
        for name in ("method", "network", "memory", "classes", "seed", "metric"):
            value = getattr(self, name)
            if value is not None and value != config[name]:
                raise FarshoreError(
                    f"--{name} {value}: {folder} was created with {config[name]}; leave the "
                    "option out, or create another model"
                )
        for name, value in self.network_settings.items():
            if config["network_settings"].get(name) != value:
                raise FarshoreError(
                    f"--network-set {name} is only allowed for the first site: the network of "
                    f"{folder} is fixed; leave the option out"
                )
        usual = RunSettings.build(USUAL_RUN).model_dump()
        kind = learner.method_type.Settings
        stored = usual | typed_settings(kind, config["settings"])
        for name, value in typed_settings(kind, self.settings).items():
            if value != stored.get(name):
                raise FarshoreError(
                    f"--set {name} is only allowed for the first site: the settings of {folder} "
                    "are fixed; leave the option out"
                )


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


class Model:
    """A learner and its record of sites, as read from a folder."""

    def __init__(self, folder: Path, learner: Learner, record: Mapping[str, Any] | None) -> None:
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
        # Checksums of the names of forgotten sites: the names themselves are forgotten too.
        self.forgotten: list[str] = [str(name) for name in record.get("forgotten", [])]

    @classmethod
    def open(
        cls,
        folder: str | Path,
        *,
        network: str | None = None,
        device: str = "cpu",
        observer: Observer | None = None,
    ) -> Model:
        """Read the model in `folder`.

        network: the file and function of the user's own backbone, if the model was made with one.
        """
        folder = Path(folder)
        parts = load_parts(folder, kind="learner")
        with suppress(StateError):  # a folder that cannot be written can still be read
            remove_obsolete(folder, kind="learner")
        try:
            learner = from_state_dict(
                parts["learner"], folder, network=network, device=device, observer=observer
            )
            return cls(folder, learner, parts.get(RECORD))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            reason = " ".join(str(error).split())[:500]
            raise StateError(
                f"{folder} is damaged: its record of sites cannot be read ({reason})"
            ) from error

    def save(self, *, keep_previous: bool = True) -> None:
        """Write the model; the previous version is kept for `undo`."""
        record = {
            "columns": self.columns.model_dump(mode="json"),
            "sites": self.sites,
            "sides": self.sides,
            "moments": self.moments,
            "forgotten": self.forgotten,
        }
        save_state(
            self.folder,
            self.learner.state_dict(),
            kind="learner",
            records={RECORD: record},
            keep_previous=keep_previous,
        )

    def drop(self, name: str) -> None:
        """Delete the record of a site, and remember only that it is forgotten."""
        self.sites.pop(name, None)
        self.moments.pop(name, None)
        for facts in self.sites.values():
            for scores in ("before", "after"):
                facts[scores] = {
                    site: score for site, score in facts.get(scores, {}).items() if site != name
                }
        self.forgotten.append(_checksum(name))

    @property
    def order(self) -> list[str]:
        """The sites in the order in which they were learned."""
        return [str(domain["name"]) for domain in self.learner.domains]

    @property
    def started(self) -> bool:
        """Whether a site was ever learned; until then no setting is fixed."""
        return self.learner.shape is not None

    # ---- prediction ------------------------------------------------------------------------------

    def read(
        self,
        data: str | Path,
        *,
        labelled: bool,
        label: str | None = None,
        form: TextForm | None = None,
    ) -> Site:
        """Read a site's data in the form that this model needs."""
        if not self.started:
            raise FarshoreError(
                f"{self.folder} has not learned a site yet: type `farshore learn {self.folder} "
                "DATA --label COLUMN --name NAME`"
            )
        return read_site(
            data,
            Columns(label=label).or_else(self.columns),
            self.learner.preprocessing,
            labelled=labelled,
            form=form,
        )

    def inputs(self, site: Site) -> Tensor:
        """The inputs of the network for a site."""
        if isinstance(site.inputs, Tensor):
            return site.inputs
        if not isinstance(self.learner.preprocessing, TablePreprocessing):
            raise FarshoreError(
                f"{self.folder} was created with arrays, not with a table: use it in Python"
            )
        return self.learner.preprocessing.transform(site.inputs)

    def predict(self, site: Site) -> pd.DataFrame:
        """One line per row: label, probabilities, strangeness, nearest site, unknown categories."""
        inputs = self.inputs(site)
        probabilities = self.learner.logits(inputs).softmax(dim=1).cpu().numpy()
        classes = [str(label) for label in self.learner.classes or []]
        table = pd.DataFrame(
            {
                "row": site.names,
                "prediction": np.asarray(classes, dtype=object)[probabilities.argmax(axis=1)],
            }
        )
        for index, label in enumerate(classes):
            table[f"p({label})"] = probabilities[:, index]
        sites = known_sites(self.learner, self.moments)
        if sites:
            table["strangeness"], table["nearest"] = strangeness(self.learner, sites, inputs)
        if isinstance(self.learner.preprocessing, TablePreprocessing):
            assert isinstance(site.inputs, pd.DataFrame)
            table["unknown"] = self.learner.preprocessing.unknown(site.inputs)
        return table

    def outputs(self, site: Site) -> tuple[Tensor, Tensor]:
        """Logits and class indices of a labelled site."""
        assert site.labels is not None
        labels = encode_labels(site.labels, self.learner.classes or [], domain="DATA")
        return self.learner.logits(self.inputs(site)), labels.to(self.learner.device)

    def standing(self, past: Mapping[str, tuple[Tensor, Tensor]] | None = None) -> dict[str, float]:
        """The score on each past domain's rows: those in `past`, or the kept rows."""
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
        new_classes: bool = False,
        checkpoints: Checkpoints | None = None,
    ) -> dict[str, float]:
        """Train on a site's rows. Writes nothing but checkpoints."""
        learner = self.learner
        assert site.labels is not None
        if new_classes and learner.classes is not None:
            known = set(map(str, learner.classes))
            learner.grow(sort_classes([label for label in site.labels if label not in known]))
        classes = list(learner.classes or sort_classes(site.labels))
        labels = encode_labels(site.labels, classes, domain=name)
        train, held_out = self._split(site, name, labels, validation)
        preprocessing: Preprocessing | None
        if isinstance(site.inputs, pd.DataFrame):
            preprocessing = learn_columns(site.inputs, train, site.preprocessing)
            inputs = preprocessing.transform(site.inputs)
        else:
            preprocessing, inputs = site.preprocessing, site.inputs
        weights = as_weights(site.weights, len(site), where="--weight")
        domain = learner.prepared(Domain(name, inputs, labels, train, held_out, weights))
        learner.learn_domain(domain, steps=steps, classes=classes, checkpoints=checkpoints)
        learner.preprocessing = preprocessing
        self.columns = columns
        if not past_rows(learner):  # without kept rows, this site's features are gone later
            features = [
                learner.system.features(domain.split(part).take(torch.arange(len(rows)))[0])
                for part, rows in (("train", domain.train), ("validation", domain.validation))
            ]
            self.moments[name] = moments(features[0], features[1]).state_dict()
        versions = {"farshore": __version__, "torch": str(torch.__version__)}
        self.sites[name] = {
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "rows": len(site),
            "versions": versions,
        }
        self.forgotten = [mark for mark in self.forgotten if mark != _checksum(name)]
        splits = {part: domain.split(part) for part in ("train", "validation")}
        return {part: learner.score(rows) for part, rows in splits.items() if len(rows)}

    def _split(self, site: Site, name: str, labels: Tensor, share: float) -> tuple[Tensor, Tensor]:
        """Split into training and validation rows, at random or by time and groups.

        Groups are stored as checksums, not by name.
        """
        if not 0 <= share < 1:
            raise FarshoreError(
                f"--validation {share} is not allowed: give a share of the rows from 0 to below 1"
            )
        seed = split_seed(self.learner.seed, name)
        if (site.times is None and site.groups is None) or share == 0:
            divided = Domain.divided(
                name, torch.empty(len(site), 0), labels, validation=float(share), seed=seed
            )
            return divided.train, divided.validation
        groups = None
        if site.groups is not None:
            groups = np.array([_checksum(str(group)) for group in site.groups])
        return divide_rows(
            name,
            len(site),
            seed=seed,
            times=site.times,
            groups=groups,
            sides=self.sides,
            share=share,
        )


def typed_settings(kind: type[MethodSettings], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a method and the run with the types of their fields; others are refused."""
    for_method, for_run = divide(settings, kind)
    return kind.plain(for_method) | RunSettings.plain(for_run)


def check_record(record: Mapping[str, Any], learner: Learner) -> None:
    """Raise a FormError unless a record of sites is one of this learner's."""
    if not record:
        return
    keys = ("columns", "sites", "sides", "moments", "forgotten")
    check_keys(record, dict.fromkeys(keys), "the record")
    check_form(record["forgotten"], NAMES, "forgotten")
    check_form(record["columns"], MapOf(None), "columns")
    check_form(record["sites"], MapOf(MapOf(None)), "sites")
    for name, facts in record["sites"].items():
        check_form(facts.get("when", ""), "", f"sites.{name}.when")
        if "command" in facts:  # what a repeated command shows instead of learning again
            shown = {key: facts.get(key) for key in ("scores", "before", "after")}
            check_form(shown, dict.fromkeys(shown, MapOf(0.0)), f"sites.{name}")
    check_form(record["sides"], MapOf(True), "sides")
    check_form(record["moments"], MapOf(None), "moments")
    if record["moments"] and learner.shape is not None:
        row = torch.zeros(1, *learner.shape, dtype=learner.dtype)
        width = learner.features(row).shape[1]
        number = partial(Like, dtype=torch.float32, finite=True)
        form = {
            "mean": number((width,)),
            "precision": number((width, width)),
            "limit": number(()),
        }
        check_form(record["moments"], MapOf(form), "moments")


def learn(
    folder: str | Path,
    data: str | Path,
    *,
    name: str,
    columns: Columns,
    new: NewModel,
    steps: int | None = None,
    validation: float = 0.2,
    max_drop: float | None = None,
    every: int = EVERY,
    size: int | None = None,
    skip_broken: bool = False,
    form: TextForm | None = None,
    new_classes: bool = False,
    device: str = "cpu",
    observer: Observer | None = None,
) -> Learned:
    """Learn one more site into the model in `folder`, which is created if it does not exist.

    If the score on a past site drops by more than `max_drop`, the folder stays as it was. A site
    that was learned from the same data by the same command is not learned again. Without `steps`,
    they follow from the rows: 20 passes over the training rows, 100 to 1000 steps.
    """
    folder = Path(folder)
    check_name(name, "--name")
    if max_drop is not None and not 0 <= max_drop <= 1:
        raise FarshoreError(
            f"--max-drop {max_drop} is not allowed: give a share from 0 to 1, for example 0.02"
        )
    if size is not None and not 1 <= size <= LARGEST_SIDE:
        raise FarshoreError(
            f"--size {size} is not allowed: give a number of pixels from 1 to {LARGEST_SIDE}"
        )
    if not _is_ours(folder):
        raise FarshoreError(f"{folder} exists and is not a model: name another folder")
    with exclusive(folder):
        model = None
        if (folder / MANIFEST).is_file():
            remove_orphans(folder, kind="learner")
            model = Model.open(folder, network=new.network, device=device, observer=observer)
            if model.started:
                new.check(model.learner, folder)
            columns = columns.or_else(model.columns)
        known = model.learner.preprocessing if model is not None else None
        tell = (observer or Observer()).note
        new_form = new.image_form(size) if known is None and Path(data).is_dir() else None
        with following(follow(observer or Observer())):
            site = read_site(
                data,
                columns,
                known,
                labelled=True,
                new_form=new_form,
                size=size,
                skip_broken=skip_broken,
                form=form,
            )
        for note in site.notes:
            tell(note)  # ahead of training: a wrong file can be stopped
        created = model is None or not model.started
        if model is None or created:
            model = Model(folder, new.make(site, device=device, observer=observer), None)
            if model.learner.metric == "macro_f1" and new.metric is None:
                tell(
                    "note: the rarest class has fewer than 5% of the rows: scores are macro F1, in "
                    "which every class counts the same (--metric accuracy for accuracy)"
                )
            model.save(keep_previous=False)
        if steps is None:
            steps = usual_steps((1 - validation) * len(site))
        command = _describe_command(data, site, columns, form, steps=steps, validation=validation)
        checkpoints = _checkpoints(model, every)
        learned = model.sites.get(name, {})
        if learned.get("command") == command:
            checkpoints.clear()  # the process that learned it may have been killed before it could
            note = f"{name} was learned already, from the same data: nothing was trained"
            tell(note)
            scores, before, after = (dict(learned[key]) for key in ("scores", "before", "after"))
            notes = [*site.notes, note]
            facts = (model.order, model.learner.metric)
            return Learned(name, False, len(site), scores, before, after, notes, *facts)
        if max_drop is not None and not model.learner.method_type.keeps_rows():
            raise FarshoreError(
                f"--max-drop: method {model.learner.method_type.name!r} keeps no rows of past "
                "sites to measure a drop on; leave the option out"
            )
        past = dict(past_rows(model.learner))
        before = model.standing(past)
        try:
            scores = model.learn(
                site,
                name,
                columns,
                steps=steps,
                validation=validation,
                new_classes=new_classes,
                checkpoints=checkpoints,
            )
        except DivergedError as error:
            checkpoints.clear()  # it leads to the same end
            raise error if created else _with_fixed_settings(error, folder) from None
        after = model.standing(past)
        worst = max(before, key=lambda past: before[past] - after[past], default=None)
        if max_drop is not None and worst is not None and before[worst] - after[worst] > max_drop:
            checkpoints.clear()
            raise FarshoreError(
                f"{name!r} was not kept: on {worst!r} the {model.learner.metric} fell from "
                f"{before[worst]:.3f} to {after[worst]:.3f}, by more than --max-drop {max_drop}; "
                f"{folder} is unchanged (more --memory, fewer --steps or another method may help)"
            )
        measured = {"scores": scores, "before": before, "after": after}
        model.sites[name] |= {"command": command, **measured}
        model.save()
        checkpoints.clear()
    facts = (model.order, model.learner.metric)
    return Learned(name, created, len(site), scores, before, after, site.notes, *facts)


def take_back(folder: str | Path, *, network: str | None = None) -> Model:
    """Return to the version before the last change, and open it."""
    with exclusive(_existing(folder)):
        try:
            check_undo(folder, kind="learner")
        except StateError:
            remove_orphans(Path(folder), kind="learner")
            raise
        # Before the version changes: what is deleted last tells a repeated command to finish.
        Checkpoints(Path(folder) / CHECKPOINT, base="").clear()
        undo(folder, kind="learner")
        return Model.open(folder, network=network)


def forget(folder: str | Path, name: str, *, network: str | None = None) -> Model:
    """Delete everything that is kept of a domain, also from the previous version.

    This cannot be undone. A domain that is forgotten already only loses what a killed process left
    of it.
    """
    with exclusive(_existing(folder)):
        remove_orphans(Path(folder), kind="learner")
        model = Model.open(folder, network=network)
        names = [domain["name"] for domain in model.learner.domains]
        if name in names or _checksum(name) not in model.forgotten:
            model.learner.forget(name)
        # Before the model is saved: a checkpoint contains rows, and a repeated command finds it.
        Checkpoints(Path(folder) / CHECKPOINT, base="").clear()
        if name in names:
            model.drop(name)
            model.save(keep_previous=False)
        return model


def _is_ours(folder: Path) -> bool:
    """Whether a model may be made or extended here: nothing of anybody else's lies in it."""
    if not folder.is_dir():
        return not folder.exists() and not folder.is_symlink()
    return (folder / MANIFEST).is_file() or is_unfinished(folder)


def _existing(folder: str | Path) -> Path:
    """The path of a model's folder; an error for any other folder, before it gets a lock file."""
    current_tag(folder, kind="learner")
    return Path(folder)


def _checkpoints(model: Model, every: int) -> Checkpoints:
    """The checkpoint of the site that is learned next.

    A new model is known by its settings, because it is saved again whenever the command is
    repeated. A checkpoint of other settings is discarded.
    """
    if model.started:
        base = current_tag(model.folder, kind="learner")
    else:
        base = "new " + _checksum(json.dumps(model.learner.config, sort_keys=True, default=str))
    checkpoints = Checkpoints(model.folder / CHECKPOINT, base=base, every=every)
    if checkpoints.exists() and checkpoints.read() is None and not model.started:
        model.learner.observer.note(
            "the checkpoint of an earlier attempt with other settings is discarded"
        )
    return checkpoints


def _describe_command(
    data: str | Path,
    site: Site,
    columns: Columns,
    form: TextForm | None,
    *,
    steps: int,
    validation: float,
) -> str:
    """A checksum of what a command learns: the data, the columns, the steps and the split."""
    digest = hashlib.sha256()
    if isinstance(site.inputs, Tensor):
        digest.update(json.dumps([site.names, site.labels]).encode())
        digest.update(site.inputs.numpy().tobytes())
    else:
        digest.update(known_checksum(Path(data).expanduser()).encode())
    written = (form or TextForm()).model_dump(mode="json")
    fields = [columns.model_dump(mode="json"), written, steps, validation]
    digest.update(json.dumps(fields, sort_keys=True).encode())
    return digest.hexdigest()


def _with_fixed_settings(error: DivergedError, folder: Path) -> DivergedError:
    """What helps after the first site: its settings cannot be changed any more."""
    return DivergedError(
        f"{error}; the settings of {folder} are fixed, so this needs a new model: here, fewer "
        f"--steps may help; {folder} is unchanged"
    )


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
