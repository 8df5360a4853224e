"""`farshore join`: one model from those of several places."""

from pathlib import Path

from .data_options import MODEL_NETWORK
from .flags import answers, argument, command, flag


@command
def join(
    models: list[Path] = argument("folders of the models, at least two"),
    *,
    out: Path = flag("folder of the new model", ..., short="-o"),
    allow_small: bool = flag(
        "also join sites with so few rows that their sums would give rows away", False
    ),
    network: str | None = flag(MODEL_NETWORK),
) -> None:
    """Make one model from those of several places.

    No row leaves its place. For methods that keep sums per site (ridge, slda, ncm), on the same
    columns, scales, classes and settings: the new model is the one that had learned all sites in
    one place, in any order, and `farshore forget` takes a site out again. Models agree in all this
    if they began with the same template (`farshore learn --template`); every difference is refused.
    MODELS stay as they are.

    Whoever has the sums of few rows can work out these rows. A site with fewer training rows than
    its sums have features, or with fewer than 5 of a class, is refused without --allow-small.

    Example: farshore join hospital-a/ hospital-b/ -o model/
    """
    from ..deployment.join import join as join_models
    from .tables import printable

    done = join_models(models, out, allow_small=allow_small, network=network)
    for folder, names in done.sites.items():
        print(printable(f"{folder}: {', '.join(names)}"))
    for note in done.notes:
        print(printable(note))
    method = done.model.learner.method_type.name
    answers.update(model=out, method=method, sites=done.sites, notes=done.notes)
    count = len(done.model.order)
    print(printable(f"joined into {out}: {count} sites, method {method}"))
