"""`farshore evaluate`: score a model on labelled data."""

from __future__ import annotations

from pathlib import Path

from .data_options import MODEL, MODEL_LABEL, MODEL_NETWORK, TextOptions
from .flags import argument, command, flag


@command
def evaluate(
    model: Path = argument(MODEL),
    data: Path = argument(
        "a labelled table (CSV, Parquet, ...), or a folder of images, class/file"
    ),
    *,
    label: str | None = flag(MODEL_LABEL),
    text: TextOptions,
    network: str | None = flag(MODEL_NETWORK),
) -> None:
    """Score MODEL on labelled data, without learning from it.

    Example: farshore evaluate model/ new_site.csv
    """
    import torch

    from ..deployment.model import Model
    from ..tasks.scores import all_scores, confusion_matrix
    from .run_output import percent
    from .tables import make_console, plain_table

    opened = Model.open(model, network=network)
    chunks, sample = opened.read_chunks(data, labelled=True, label=label, form=text.form())
    outputs = []
    for chunk in chunks:
        outputs.append(opened.outputs(chunk))
        sample.add(chunk)
    logits, labels = (torch.cat(parts) for parts in zip(*outputs, strict=True))
    console = make_console()
    for note in sample.site.notes:
        console.print(note)
    shares = ("accuracy", "balanced_accuracy", "macro_f1", "auroc")
    rows = [
        [
            name.replace("_", " "),
            percent(value) + (" %" if value is not None else "")
            if name in shares
            else f"{value:.3f}",
        ]
        for name, value in all_scores(logits, labels).items()
    ]
    console.print(plain_table(f"{data.name}: {sample.rows} rows", ["", "score"], rows))
    classes = [str(label) for label in opened.learner.classes or []]
    matrix = confusion_matrix(logits, labels).tolist()
    console.print(
        plain_table(
            "true class (down), predicted class (across)",
            ["", *classes],
            [[name, *map(str, row)] for name, row in zip(classes, matrix, strict=True)],
        )
    )
