"""`farshore forget`: delete the rows that a model keeps of a site."""

from pathlib import Path

from .data_options import MODEL, MODEL_NETWORK
from .flags import answers, argument, command, flag


@command
def forget(
    model: Path = argument(MODEL),
    name: str = argument("name of the site"),
    network: str | None = flag(MODEL_NETWORK),
) -> None:
    """Delete what MODEL keeps of a site.

    This deletes its rows in the memory, its held-out rows, summaries and scores, and everything
    that the method stores about this site alone, also in the previous version of the model and in
    the change log. Weights that were trained on these rows do not change; closed-form methods
    (ridge, ncm, slda) recompute theirs without the site. A memory that does not tell sites apart
    (der++, sarl, ...) is emptied. This cannot be undone.

    Example: farshore forget model/ "site A"
    """
    from ..deployment.changes import forget as forget_site
    from ..deployment.remains import what_remains
    from .tables import printable

    forgotten = forget_site(model, name, network=network)
    names = forgotten.order
    answers.update(forgotten=name, sites=names, remains=what_remains(forgotten))
    what = f"the stored data of {name}: kept and held-out rows, summaries, facts and scores"
    print(printable(f"deleted {what}; other sites: {', '.join(names) or 'none'}"))
    if forgotten.learner.system.mixes_domains:
        print(
            "The memory of this method does not tell sites apart: it was emptied, and the next "
            "site fills it again."
        )
    if forgotten.learner.system.forgets_exactly:
        print("The weights were recomputed without it.")
    print("What remains of it:")
    for line in what_remains(forgotten):
        print(printable(f"- {line}"))
