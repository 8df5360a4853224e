"""A model card in the format of Hugging Face: YAML front matter, then Markdown.

The front matter has the keys of https://huggingface.co/docs/hub/model-cards: `model-index` lists
the score on the held-out rows of every site.
"""

from typing import Any

import yaml

from ..data.images.image_folder import ImagePreprocessing
from ..data.preprocessing import Preprocessing
from ..data.tables.table import TablePreprocessing
from ..tasks.classification import CLASSIFICATION
from ..tasks.metrics import METRICS, Metric, in_unit
from .log import as_markdown, escaped
from .model import Model
from .remains import what_is_stored


def model_card(model: Model, name: str, licence: str | None = None) -> str:
    """The card as text; sections that need a person's words say so."""
    head = yaml.safe_dump(
        front_matter(model, name, licence), sort_keys=False, allow_unicode=True, width=100
    )
    stored = [f"- {escaped(line)}" for line in what_is_stored(model)]
    sections = {
        f"# {escaped(name)}": _summary(model),
        "## Intended use": "To be written: what the model is for, and what it is not for.",
        "## Training data": _sites(model),
        "## Scores": _scores(model),
        "## Limits": _limits(model),
        "## What is stored of the training data": "\n".join(stored),
        "## Change log": as_markdown(model.log) if model.log else "There is none.",
    }
    body = "\n\n".join(f"{title}\n\n{text.rstrip()}" for title, text in sections.items())
    return f"---\n{head}---\n\n{body}\n"


def front_matter(model: Model, name: str, licence: str | None) -> dict[str, Any]:
    """What the hub reads from a card."""
    learner = model.learner
    images = isinstance(learner.preprocessing, ImagePreprocessing)
    task = f"{'image' if images else 'tabular'}-{(learner.task or CLASSIFICATION).name}"
    kind = "f1" if learner.metric == "macro_f1" else learner.metric
    results = []
    for site, score in model.standing().items():
        data = {"name": f"{site} (held-out rows)", "type": "private"}
        found = {"type": kind, "value": round(score, 4), "name": learner.metric}
        results.append({"task": {"type": task}, "dataset": data, "metrics": [found]})
    return {
        "library_name": "farshore",
        **({"license": licence} if licence is not None else {}),
        "pipeline_tag": task,
        "tags": ["continual-learning", "domain-generalization", learner.method_type.name],
        "metrics": [kind],
        "model-index": [{"name": name, "results": results}],
    }


def _summary(model: Model) -> str:
    config = model.learner.config
    title = escaped((model.learner.task or CLASSIFICATION).title)
    settings = ", ".join(f"{key} {value}" for key, value in config["settings"].items())
    return (
        f"A {title} that learned {len(model.order)} sites "
        f"one after another with the method `{config['method']}` and the network "
        f"`{config['network'] or 'own'}`. Settings: {escaped(settings) or 'defaults'}; seed "
        f"{config['seed']}.{_texts(model.learner.preprocessing)}"
    )


def _texts(table: Preprocessing | None) -> str:
    """What computes the features of texts, if there are any."""
    if not isinstance(table, TablePreprocessing) or table.texts is None:
        return ""
    names, features = ", ".join(map(escaped, table.texts.columns)), table.texts.features
    return f" Texts ({names}) are read as {features.computes}: {features.width} features."


def _sites(model: Model) -> str:
    if not model.sites:
        return "No site has a record."
    lines = ["| site | learned | rows | classes |", "|---|---|---|---|"]
    for site, facts in model.sites.items():
        counts = ", ".join(f"{label} {count}" for label, count in facts["classes"].items())
        cells = [site, facts["when"][:10], str(facts["rows"]), counts]
        lines.append(f"| {' | '.join(map(escaped, cells))} |")
    return "\n".join(lines)


def _scores(model: Model) -> str:
    metrics, now = (_metric(model, model.learner.metric), _metric(model)), model.standing()
    when, headings = ("now, held-out rows", "before it was learned"), ["site"]
    for metric, moment in zip(metrics, when, strict=True):
        unit = f", {metric.unit.strip()}" if metric.unit else ""
        headings.append(f"{metric.name} {moment}{unit}")
    lines = [f"| {' | '.join(headings)} |", "|---|---|---|"]
    for site in model.order:
        values = (now.get(site), _arrived(model).get(site))
        cells = [
            metric.text(value) if value is not None else "-"
            for metric, value in zip(metrics, values, strict=True)
        ]
        lines.append(f"| {escaped(site)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _metric(model: Model, name: str = "") -> Metric:
    """A metric in the label's unit, by default the one that sites are measured in."""
    task = model.learner.task or CLASSIFICATION
    return in_unit(METRICS[name or task.metrics[0]], task.score_unit)


def _arrived(model: Model) -> dict[str, float]:
    """The score at each site before it was learned, where it was measured."""
    measured = {site: facts["arrival"] for site, facts in model.sites.items() if facts["arrival"]}
    return {site: of.get("accuracy", of.get("error")) for site, of in measured.items()}


def _limits(model: Model) -> str:
    metric, arrivals = _metric(model), _arrived(model).values()
    text = (
        "Scores on learned sites do not show what to expect at a site that was not learned. "
        "`farshore predict` judges a new site as a whole, and `farshore arrive` says what "
        f"{metric.label} to expect there and what to do."
    )
    if arrivals:
        text += (
            f" Before the model learned them, its {metric.label} at {len(arrivals)} sites was "
            f"{metric.text(min(arrivals))} to {metric.text(max(arrivals))}{metric.unit}."
        )
    if model.calibration is not None:
        text += f" The predictions were calibrated with {model.calibration['rows']} rows."
    return text
