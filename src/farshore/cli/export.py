"""`farshore export`: write a model as one file for other programs."""

from pathlib import Path

from .data_options import MODEL, MODEL_NETWORK
from .flags import answers, argument, command, flag


@command
def export(
    model: Path = argument(MODEL),
    file: Path = argument("file to write: .onnx, or .pt2 for torch.export"),
    network: str | None = flag(MODEL_NETWORK),
) -> None:
    """Write MODEL with its preprocessing to one file.

    The file takes raw columns or images and returns probabilities, or the values of numbers,
    calibrated if MODEL is.

    Example: farshore export model/ model.onnx
    """
    from ..deployment.export import export_model
    from ..deployment.model import Model
    from .tables import printable

    opened = Model.open(model, network=network)
    facts = export_model(opened.learner, file, opened.applied)
    answers.update(file=file, bytes=file.stat().st_size, **facts)
    print(f"wrote {file} ({file.stat().st_size:,} bytes)")
    inputs, output = ", ".join(facts["inputs"]), opened.learner.known_task.output
    print(printable(f"inputs {inputs}; output: {output}"))
