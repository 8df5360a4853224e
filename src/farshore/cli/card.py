"""`farshore card`: a model card in the format of Hugging Face."""

from pathlib import Path

from ..base.files import print_output, write_output
from .data_options import MODEL, MODEL_NETWORK
from .flags import answers, argument, command, flag


@command
def card(
    model: Path = argument(MODEL),
    out: Path | None = flag("Markdown file to write [default: standard output]", short="-o"),
    license: str | None = flag("license of the model, for example apache-2.0"),
    network: str | None = flag(MODEL_NETWORK),
) -> None:
    """Write a model card for MODEL.

    It says what the model is, what it was trained on, how it scores, and what changed when.

    The file starts with YAML that Hugging Face can read.

    Example: farshore card model/ -o README.md
    """
    from ..deployment.card import model_card
    from ..deployment.model import Model

    text = model_card(Model.open(model, network=network), model.resolve().name, license)
    answers.update(card=text, out=out)
    if out is None:
        print_output(text)
    else:
        write_output(out, text.encode())
        print(f"wrote {out}")
