"""`farshore card`: a model card in the format of Hugging Face."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..base.files import print_output, write_output
from .data_options import OwnNetworkFlag


def card(
    model: Annotated[Path, typer.Argument(help="folder of the model")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Markdown file to write [default: standard output]"),
    ] = None,
    licence: Annotated[
        str | None, typer.Option("--license", help="license of the model, for example apache-2.0")
    ] = None,
    network: OwnNetworkFlag = None,
) -> None:
    """Write a model card for MODEL.

    It says what the model is, what it was trained on, how it scores, and what changed when.

    The file starts with YAML that Hugging Face can read.

    Example: farshore card model/ -o README.md
    """
    from ..deployment.card import model_card
    from ..deployment.model import Model

    text = model_card(Model.open(model, network=network), model.resolve().name, licence)
    if out is None:
        print_output(text)
    else:
        write_output(out, text.encode())
        print(f"wrote {out}")
