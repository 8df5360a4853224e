"""`farshore evaluate`: score a model on labelled data."""

from pathlib import Path

from .data_options import MODEL, MODEL_LABEL, MODEL_NETWORK, TextOptions
from .flags import answers, argument, command, flag


@command
def evaluate(
    model: Path = argument(MODEL),
    data: Path = argument(
        "a labelled table (CSV, Parquet, ...), or a folder of images, class/file"
    ),
    *,
    label: str | None = flag(MODEL_LABEL),
    written: TextOptions,
    network: str | None = flag(MODEL_NETWORK),
) -> None:
    """Score MODEL on labelled data, without learning from it.

    Example: farshore evaluate model/ new_site.csv
    """
    import torch

    from ..deployment.model import Model
    from .tables import make_console, plain_table

    opened = Model.open(model, network=network)
    chunks, sample = opened.read_chunks(data, labelled=True, label=label, form=written.form())
    outputs = []
    for chunk in chunks:
        outputs.append(opened.outputs(chunk))
        sample.add(chunk)
    logits, labels = (torch.cat(parts) for parts in zip(*outputs, strict=True))
    console = make_console()
    for note in sample.site.notes:
        console.print(note)
    task = opened.learner.known_task
    scores, title = task.scores(logits, labels), f"{data.name}: {sample.rows} rows"
    console.print(plain_table(title, ["", "score"], task.score_rows(scores)))
    answers.update(rows=sample.rows, scores=scores, notes=sample.site.notes)
    classes = [str(label) for label in opened.learner.classes or []]
    matrix = task.confusion(logits, labels)
    answers.update(classes=classes, confusion=matrix)
    if not matrix:
        return
    title = "true class (down), predicted class (across)"
    counts = [[name, *map(str, row)] for name, row in zip(classes, matrix, strict=True)]
    console.print(plain_table(title, ["", *classes], counts))
