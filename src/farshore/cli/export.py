"""`farshore export`: write a model as one file for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .data_options import OwnNetworkFlag


def export(
    model: Annotated[Path, typer.Argument(help="folder of the model")],
    file: Annotated[Path, typer.Argument(help="file to write: .onnx, or .pt2 for torch.export")],
    network: OwnNetworkFlag = None,
) -> None:
    """Write MODEL with its preprocessing to one file.

    The file takes raw columns or images and returns probabilities.

    Example: farshore export model/ model.onnx
    """
    from ..export import export_model
    from ..learner import load
    from .tables import printable

    facts = export_model(load(model, network=network), file)
    print(f"wrote {file} ({file.stat().st_size:,} bytes)")
    print(
        printable(
            f"inputs {', '.join(facts['inputs'])}; output: the probabilities of "
            f"{', '.join(facts['classes'])}"
        )
    )
