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
    from ..results.text import score_text
    from ..tasks.metrics import METRICS, in_unit
    from .run_output import percent
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
    shares = ("accuracy", "balanced_accuracy", "macro_f1", "auroc")
    task = opened.learner.known_task
    scores, unit = task.scores(logits, labels), opened.columns.unit or ""
    rows = []
    for name, value in scores.items() if task.classes else ():
        share = percent(value) + (" %" if value is not None else "")
        rows.append([name.replace("_", " "), share if name in shares else f"{value:.3f}"])
    for name in task.metrics if not task.classes else ():
        rows.append([METRICS[name].label, score_text(in_unit(METRICS[name], unit), scores[name])])
    console.print(plain_table(f"{data.name}: {sample.rows} rows", ["", "score"], rows))
    answers.update(rows=sample.rows, scores=scores, notes=sample.site.notes)
    classes = [str(label) for label in opened.learner.classes or []]
    matrix = task.confusion(logits, labels)
    answers.update(classes=classes, confusion=matrix)
    if not matrix:
        return
    title = "true class (down), predicted class (across)"
    counts = [[name, *map(str, row)] for name, row in zip(classes, matrix, strict=True)]
    console.print(plain_table(title, ["", *classes], counts))
