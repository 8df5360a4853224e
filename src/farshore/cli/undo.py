"""`farshore undo`: return to the version before the last change."""

from pathlib import Path

from .data_options import MODEL, MODEL_NETWORK
from .flags import answers, argument, command, flag


@command
def undo(model: Path = argument(MODEL), network: str | None = flag(MODEL_NETWORK)) -> None:
    """Undo the last `learn` or `calibrate` of MODEL. Only one version is kept, so this works once.

    Example: farshore undo model/
    """
    from ..deployment.changes import take_back
    from .tables import printable

    names = [domain["name"] for domain in take_back(model, network=network).learner.domains]
    answers.update(model=model, sites=names)
    learned = ", ".join(names) or "nothing"
    print(printable(f"{model} is back to its previous version; it has learned: {learned}"))
