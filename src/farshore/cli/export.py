"""`farshore export`: write a model as one file for other programs."""

from __future__ import annotations

from pathlib import Path

from .data_options import MODEL, MODEL_NETWORK
from .flags import argument, command, flag


@command
def export(
    model: Path = argument(MODEL),
    file: Path = argument("file to write: .onnx, or .pt2 for torch.export"),
    network: str | None = flag(MODEL_NETWORK),
) -> None:
    """Write MODEL with its preprocessing to one file.

    The file takes raw columns or images and returns probabilities, calibrated if MODEL is.

    Example: farshore export model/ model.onnx
    """
    from ..deployment.export import export_model
    from ..deployment.model import Model
    from .tables import printable

    opened = Model.open(model, network=network)
    facts = export_model(opened.learner, file, opened.applied)
    print(f"wrote {file} ({file.stat().st_size:,} bytes)")
    print(
        printable(
            f"inputs {', '.join(facts['inputs'])}; output: the probabilities of "
            f"{', '.join(facts['classes'])}"
        )
    )
