"""A model card in the format of Hugging Face: YAML front matter, then Markdown.

The front matter has the keys of https://huggingface.co/docs/hub/model-cards: `model-index` lists
the score on the held-out rows of every site.
"""

from typing import Any

import yaml

from ..data.images.image_folder import ImagePreprocessing
from ..data.preprocessing import Preprocessing
from ..data.tables.table import TablePreprocessing
from ..tasks.metrics import METRICS
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
    kind_of = "regression" if model.numbers else "classification"
    task = f"{'image' if images else 'tabular'}-{kind_of}"
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
    classes = ", ".join(escaped(str(label)) for label in model.learner.classes or [])
    classifier = f"A classifier (classes: {classes or 'none yet'})"
    settings = ", ".join(f"{key} {value}" for key, value in config["settings"].items())
    return (
        f"{_what(model) or classifier} that learned {len(model.order)} sites "
        f"one after another with the method `{config['method']}` and the network "
        f"`{config['network'] or 'own'}`. Settings: {escaped(settings) or 'defaults'}; seed "
        f"{config['seed']}.{_texts(model.learner.preprocessing)}"
    )


def _what(model: Model) -> str:
    """What a model of numbers predicts; empty for a classifier."""
    if not model.numbers:
        return ""
    columns = model.columns
    unit = f", in {escaped(columns.unit)}" if columns.unit else ""
    return f"A regression model of a number ({escaped(columns.label or 'label')}{unit})"


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
    metric = model.learner.metric
    shares, scale = not model.numbers, METRICS[metric].scale
    percent, arrived = (", %", "accuracy") if shares else ("", "mae")
    lines = [
        f"| site | {metric} now, held-out rows{percent} "
        f"| {arrived} before it was learned{percent} |",
        "|---|---|---|",
    ]
    now = model.standing()
    for site in model.order:
        arrival = model.sites.get(site, {}).get("arrival") or {}
        values = (now.get(site), arrival.get("accuracy" if shares else "error"))
        form = ".1f" if shares else ".4g"
        cells = [f"{scale * value:{form}}" if value is not None else "-" for value in values]
        lines.append(f"| {escaped(site)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _limits(model: Model) -> str:
    arrivals = [arrival.accuracy for arrival in model.knowledge.arrivals]
    text = (
        "Scores on learned sites do not show what to expect at a site that was not learned. "
        "`farshore predict` judges a new site as a whole, and `farshore arrive` says what "
        "accuracy to expect there and what to do."
    )
    if arrivals:
        text += (
            f" Before the model learned them, its accuracy at {len(arrivals)} sites was "
            f"{100 * min(arrivals):.1f} to {100 * max(arrivals):.1f}%."
        )
    if model.calibration is not None:
        text += f" The probabilities were calibrated with {model.calibration['rows']} rows."
    return text
