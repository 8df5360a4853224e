"""What changes a model in a folder: learn, calibrate, undo and forget.

Each may be killed at any moment: the folder then contains the old model or the new one, and the
same command finishes the work.
"""

import hashlib
import json
import math
from pathlib import Path
from typing import Any

from torch import Tensor

from ..base import manifest, state
from ..base.forms import FormError
from ..base.lock import exclusive
from ..base.names import check_name
from ..data.downloads.public_files import known_checksum
from ..data.progress import following
from ..data.steps import usual_steps
from ..data.tables.read_table import TextForm
from ..errors import DivergedError, FarshoreError, StateError
from ..observer import Observer, follow
from ..tasks.labels import check_site
from ..tasks.metrics import METRICS
from ..training.checkpoints import EVERY, Checkpoints
from .calibrate import Calibrated, CalibratedNumbers, fit_labelled, fit_numbers
from .gate import Gate
from .log import FORGOTTEN, LogEntry, log_state, read_log
from .model import CHECKPOINT, LOG, Learned, Model, checksum
from .new_model import NewModel
from .site import Columns, Site, read_site
from .template import check_template, from_template

LARGEST_SIDE = 4096


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
    min_score: float | None = None,
    every: int = EVERY,
    size: int | None = None,
    skip_broken: bool = False,
    form: TextForm | None = None,
    new_classes: bool = False,
    device: str = "cpu",
    observer: Observer | None = None,
) -> Learned:
    """Learn one more site into the model in `folder`, which is created if it does not exist.

    The folder stays as it was if the score on the held-out rows of a past site drops by more than
    `max_drop` (by default 0.1) beyond what chance explains, if the score on the new site's own
    validation rows is below `min_score`, or, without `min_score`, if its labels seem to have
    nothing to do with its inputs. A site that was learned from the same data by the same command is
    not learned again. Without `steps`, they follow from the rows: 20 passes over the training rows,
    100 to 1000 steps.
    """
    folder, observer = Path(folder), observer or Observer()
    check_name(name, "--name")
    _check_options(min_score, validation, size)
    if not ((folder / manifest.MANIFEST).is_file() or manifest.is_free(folder)):
        raise FarshoreError(f"{folder} exists and is not a model: name another folder")
    with exclusive(folder):
        existed = (folder / manifest.MANIFEST).is_file()
        model = _opened(folder, new, device=device, observer=observer)
        created = not existed or model is None or not model.started
        columns = columns if model is None else columns.or_else(model.columns)
        if new.classes is not None and columns.task is None:
            columns = columns.model_copy(update={"task": "classification"})
        known = model.learner.preprocessing if model is not None else None
        with following(follow(observer)):
            site = read_site(
                data,
                columns,
                known,
                labelled=True,
                new_form=new.image_form(size) if known is None and Path(data).is_dir() else None,
                size=size,
                skip_broken=skip_broken,
                form=form,
            )
        task = model.learner.task if model is not None else None
        site.notes += check_site(site.task, site.labels or [], site.label_names, name, task)
        for note in site.notes:
            observer.note(note)  # ahead of training: a wrong file can be stopped
        fresh = model is None or not model.started
        metric = new.metric_for(site) if model is None or fresh else model.learner.metric
        _check_limits(metric, max_drop, min_score)
        if model is None or fresh:
            model = _created(folder, site, new, device=device, observer=observer)
        steps = usual_steps((1 - validation) * len(site)) if steps is None else steps
        how: dict[str, Any] = {"steps": steps, "validation": validation}
        command = _describe_command(data, site, columns, form, **how)
        checkpoints, gate = _checkpoints(model, every), Gate(max_drop, min_score)
        if model.sites.get(name, {}).get("command") == command:
            checkpoints.clear()  # the process that learned it may have been killed before it could
            note = f"{name} was learned already, from the same data: nothing was trained"
            observer.note(note)
            return model.outcome(name, created=False, notes=[*site.notes, note])
        _check_measurable(model, max_drop)
        try:
            how |= {"new_classes": new_classes, "checkpoints": checkpoints}
            found, refusal = _judged(model, site, name, gate, columns=columns, **how)
        except DivergedError as error:
            checkpoints.clear()  # it leads to the same end
            if created:
                raise
            raise DivergedError(
                f"{error}; the settings of {folder} are fixed, so this needs a new model: here, "
                f"fewer --steps may help; {folder} is unchanged"
            ) from None
        if refusal is not None:
            checkpoints.clear()
            if not existed:
                state.remove_state(folder, kind="learner")
            raise FarshoreError(f"{name!r} was not kept: {refusal}; {folder} is unchanged")
        model.sites[name] |= {"command": command, **found, "promised": min_score}
        allowed = gate.allowed(model.learner.known_task)
        decided = {"steps": steps, "validation": validation, "max_drop": allowed}
        model.note_learned(name, decided | {"min_score": min_score})
        model.save()
        checkpoints.clear()
    return model.outcome(name, created=created, notes=site.notes)


def _opened(folder: Path, new: NewModel, *, device: str, observer: Observer) -> Model | None:
    """The model in a folder, if there is one; its settings are fixed once it has a site."""
    model = None
    if (folder / manifest.MANIFEST).is_file():
        manifest.remove_orphans(folder, kind="learner")
        model = Model.open(folder, network=new.network, device=device, observer=observer)
        if model.started:
            new.check(model.learner, folder)
    if new.template is None:
        return model
    if model is None or not model.started:
        return from_template(folder, new, device=device, observer=observer)
    check_template(model, new.template, network=new.network)
    return model


def _check_measurable(model: Model, max_drop: float | None) -> None:
    """Refuse a limit on what past sites may lose where no rows of them are kept."""
    method = model.learner.method_type
    if max_drop is not None and not method.keeps_rows():
        raise FarshoreError(
            f"--max-drop: method {method.name!r} keeps no rows of past sites to measure a drop on; "
            "leave the option out"
        )


def _judged(
    model: Model, site: Site, name: str, gate: Gate, *, columns: Columns, **options: Any
) -> tuple[dict[str, Any], str | None]:
    """Learn a site: what is recorded of it, and why the model may not be kept, if so."""
    old, past = model.knowledge, model.measurable()
    before, outputs = model.standing(past), old.outputs
    arrival = {}
    if not model.empty:
        arrival = old.arrival(model.learner.backbone.inside(model.inputs(site)), site.labels or [])
    domain, scores = model.learn(site, name, columns, **options)
    refusal = model.why_refused(gate, domain, scores, outputs)
    if refusal is not None:
        return {}, refusal

    own, after = model.agreement_with(domain), model.standing(past)
    found = {"scores": scores, "before": before, "after": after, "arrival": arrival}
    return found | {"agreement": own.area if own is not None else None}, None


def _check_options(min_score: float | None, validation: float, size: int | None) -> None:
    if not 0 <= validation < 1:
        raise FarshoreError(
            f"--validation {validation} is not allowed: give a share of the rows from 0 to below 1"
        )
    if min_score is not None and validation == 0:
        raise FarshoreError(
            "--min-score is not allowed with --validation 0: there are no rows to measure it on"
        )
    if size is not None and not 1 <= size <= LARGEST_SIDE:
        raise FarshoreError(
            f"--size {size} is not allowed: give a number of pixels from 1 to {LARGEST_SIDE}"
        )


def _check_limits(metric: str, max_drop: float | None, min_score: float | None) -> None:
    """Refuse limits that are no share; for errors, those that are no distance."""
    highest = METRICS[metric].high
    allowed = (
        "give a distance in the label's unit, 0 or more"
        if math.isinf(highest)
        else "give a share from 0 to 1, for example 0.02"
    )
    for flag, value in (("--max-drop", max_drop), ("--min-score", min_score)):
        if value is not None and not 0 <= value <= highest:
            raise FarshoreError(f"{flag} {value} is not allowed: {allowed}")


def _created(
    folder: Path, site: Site, new: NewModel, *, device: str, observer: Observer | None
) -> Model:
    """A new, untrained model for a site like this one, saved so that its settings are known."""
    model = Model(folder, new.make(site, device=device, observer=observer), None)
    if model.learner.metric == "macro_f1" and new.metric is None:
        (observer or Observer()).note(
            "note: the rarest class has fewer than 5% of the rows: scores are macro F1, in "
            "which every class counts the same (--metric accuracy for accuracy)"
        )
    model.save(keep_previous=False)
    return model


def calibrate(
    folder: str | Path,
    data: str | Path,
    *,
    label: str | None = None,
    form: TextForm | None = None,
    network: str | None = None,
) -> tuple[Calibrated | CalibratedNumbers, Model]:
    """Calibrate the outputs of the model in `folder` to a few labelled rows of a new site.

    Nothing is trained. The previous version is kept for `undo`; a later `learn` drops the
    calibration. Nothing is written if the rows give no reason to change anything. A change that
    would lower the model's metric is refused.
    """
    with exclusive(_existing(folder)):
        manifest.remove_orphans(Path(folder), kind="learner")
        model = Model.open(folder, network=network)
        site = model.read(data, labelled=True, label=label, form=form)
        for note in site.notes:
            model.learner.observer.note(note)
        task = model.learner.known_task
        logits = model.learner.logits(model.inputs(site)).double().cpu().numpy()
        labels = task.encoded(site.labels or [], domain="DATA").numpy()
        fit: Any = task.either(fit_labelled, fit_numbers)
        metric, usual = model.learner.metric, model.knowledge.usual
        done = fit(logits, labels, task=task, metric=metric, usual=usual, current=model.applied)
        # The same rows again, perhaps after a kill: what `undo` returns to must stay.
        if done.changes and not model.uses(done):
            model.note_calibrated(done)
            model.save()
        return done, model


def take_back(folder: str | Path, *, network: str | None = None) -> Model:
    """Return to the version before the last change, and open it."""
    with exclusive(_existing(folder)):
        try:
            state.check_undo(folder, kind="learner")
        except StateError:
            manifest.remove_orphans(Path(folder), kind="learner")
            raise
        # Before the version changes: what is deleted last tells a repeated command to finish.
        Checkpoints(Path(folder) / CHECKPOINT, base="").clear()
        # Not by opening the model, which would delete what tells that an undo is unfinished.
        parts = state.load_parts(folder, kind="learner")
        try:
            log = read_log(parts[LOG]) if LOG in parts else []
        except FormError as error:
            raise StateError(f"{folder} is damaged: its log cannot be read ({error})") from None
        note = f"{log[-1].action} {log[-1].site or ''}".strip() if log else ""
        undone = LogEntry(action="undone", note=note)
        state.undo(folder, kind="learner", records={LOG: log_state([*log, undone])})
        return Model.open(folder, network=network)


def forget(folder: str | Path, name: str, *, network: str | None = None) -> Model:
    """Delete everything that is kept of a domain, also from the previous version.

    This cannot be undone. A domain that is forgotten already only loses what a killed process left
    of it.
    """
    with exclusive(_existing(folder)):
        manifest.remove_orphans(Path(folder), kind="learner")
        model = Model.open(folder, network=network)
        names = [domain["name"] for domain in model.learner.domains]
        emptied = name in names and model.empty_mixed_memory()
        if name in names or checksum(name) not in model.forgotten:
            model.learner.forget(name)
        # Before the model is saved: a checkpoint contains rows, and a repeated command finds it.
        Checkpoints(Path(folder) / CHECKPOINT, base="").clear()
        if name in names:
            model.drop(name)
            kept = "the rows of all sites in the memory" if emptied else "its rows"
            note = f"{kept}; the weights stay"
            if model.learner.system.forgets_exactly:
                note = "weights recomputed without it"
            site, metric = f"{FORGOTTEN} {checksum(name)}", model.learner.metric
            model.log.append(LogEntry(action="forgot", site=site, metric=metric, note=note))
            model.save(keep_previous=False)
        return model


def _existing(folder: str | Path) -> Path:
    """The path of a model's folder; an error for any other folder, before it gets a lock file."""
    state.current_tag(folder, kind="learner")
    return Path(folder)


def _checkpoints(model: Model, every: int) -> Checkpoints:
    """The checkpoint of the site that is learned next.

    A new model is known by its settings, because it is saved again whenever the command is
    repeated. A checkpoint of other settings is discarded.
    """
    if model.started:
        base = state.current_tag(model.folder, kind="learner")
    else:
        base = "new " + checksum(json.dumps(model.learner.config, sort_keys=True, default=str))
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
    # The task follows from the labels; what older models did not know counts only if it is given.
    unset = {name for name in ("log_label", "unit") if not getattr(columns, name)}
    fields = [columns.model_dump(mode="json", exclude={"task"} | unset), written, steps, validation]
    digest.update(json.dumps(fields, sort_keys=True).encode())
    return digest.hexdigest()
