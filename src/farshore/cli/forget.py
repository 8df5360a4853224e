"""`farshore forget`: delete what is kept of a site."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def forget(
    model: Annotated[Path, typer.Argument(help="folder of the model")],
    name: Annotated[str, typer.Argument(help="name of the site")],
) -> None:
    """Delete the kept rows of a site from MODEL and what its method remembers of that site alone,
    in the previous version too.

    The weights stay as they are: they were trained with these rows. This cannot be undone.

    Example: farshore forget model/ "site A"
    """
    from ..deployment.model import forget as carry_out

    names = [domain["name"] for domain in carry_out(model, name).learner.domains]
    print(
        f"deleted what was kept of {name}; {model} keeps: {', '.join(names) or 'nothing'}. The "
        "weights were trained with it and stay."
    )
