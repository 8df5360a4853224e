"""`farshore forget`: delete the rows that a model keeps of a site."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .data_options import OwnNetworkFlag


def forget(
    model: Annotated[Path, typer.Argument(help="folder of the model")],
    name: Annotated[str, typer.Argument(help="name of the site")],
    network: OwnNetworkFlag = None,
) -> None:
    """Delete the rows that MODEL keeps of a site.

    This also deletes what the method stores about that site alone, in the previous version of the
    model too. Weights that were trained on these rows do not change; closed-form methods (ridge,
    ncm, slda) compute theirs again without the site. This cannot be undone.

    Example: farshore forget model/ "site A"
    """
    from ..deployment.model import forget as forget_site
    from .tables import printable

    learner = forget_site(model, name, network=network).learner
    names = [domain["name"] for domain in learner.domains]
    weights = (
        "The weights were computed again without it."
        if learner.system.forgets_exactly
        else "The weights were trained on it and do not change."
    )
    print(
        printable(
            f"deleted the stored data of {name}; other sites: {', '.join(names) or 'none'}. "
            f"{weights}"
        )
    )
