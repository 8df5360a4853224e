"""What `farshore show` says of a model: what it is, what it stores, and its accuracy now.

It is saved with the model in plain values, so that showing it loads neither PyTorch nor the model.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from pydantic import BaseModel, StrictFloat, ValidationError

from ..base.manifest import read_summary, remove_obsolete

if TYPE_CHECKING:
    from .model import Model


class Summary(TypedDict):
    """facts: name and text. sites: a row per site. metric: the name of the score."""

    facts: list[list[str]]
    sites: list[list[Any]]
    metric: str


class SavedSummary(BaseModel):
    """The form of a saved one, whose folder may be a stranger's.

    A site has texts on its name, when it was learned, its rows, steps, kept and held-out rows, and
    last the score.
    """

    facts: list[tuple[str, str]]
    sites: list[tuple[str, str, str, str, str, str, StrictFloat | None]]
    metric: str


def saved_summary(folder: Path) -> Summary | None:
    """The summary that was saved with the model in the folder; None if there is none to use."""
    saved: Summary = read_summary(folder, kind="learner")
    remove_obsolete(folder, kind="learner")
    try:
        SavedSummary.model_validate(saved)
    except ValidationError:
        return None
    return saved


def summary(model: "Model") -> Summary:
    """The summary of a model as it is now."""
    return {"facts": _facts(model), "sites": _sites(model), "metric": model.learner.metric}


def _facts(opened: "Model") -> list[list[str]]:
    """What the model is, and what it stores."""
    from ..tasks.classification import CLASSIFICATION
    from .remains import what_is_stored

    learner = opened.learner
    config = learner.config
    settings = config["settings"].items()
    facts = [
        ["method", config["method"]],
        ["network", str(config["network"] or "your own")],
        list((learner.task or CLASSIFICATION).fact),
        ["settings", ", ".join(f"{name} {value}" for name, value in settings) or "defaults"],
        ["label column", opened.columns.label or "-"],
        ["steps done", str(sum(domain["steps"] for domain in learner.domains))],
    ]
    if learner.shape is not None:
        usage = learner.system.usage()
        memory = f"{usage.memory_items} of {learner.capacity} rows ({usage.memory_bytes:,} bytes)"
        keeps = learner.method_type.keeps_rows()
        facts.append(["memory", memory if keeps else "this method keeps no rows"])
    if opened.calibration is not None:
        facts.append(["calibrated", f"with {opened.calibration['rows']} rows"])
    for number, line in enumerate(what_is_stored(opened)):
        facts.append(["stored of sites" if number == 0 else "", line])
    return facts


def _sites(opened: "Model") -> list[list[Any]]:
    """A row per site, and per site of which only kept rows are known."""
    from .familiarity import past_rows

    past, now = past_rows(opened.learner), opened.standing()
    rows = []
    for domain in opened.learner.domains:
        name, site = domain["name"], opened.sites.get(domain["name"], {})
        rows.append(
            [
                name,
                site.get("when", "-"),
                str(domain["rows"]),
                str(domain["steps"]),
                str(len(past[name][1])) if name in past else "-",
                str(len(opened.held_out[name]["labels"])) if name in opened.held_out else "-",
                now.get(name),
            ]
        )
    return rows + [
        [name, "", "", "", str(len(labels)), "-", now.get(name)]
        for name, (_, labels) in past.items()
        if name not in opened.sites
    ]
