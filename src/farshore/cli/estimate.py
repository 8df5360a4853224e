"""`farshore estimate`: the accuracy to expect at a site without labels."""

from __future__ import annotations

from pathlib import Path

from ..errors import FarshoreError
from .data_options import MODEL, MODEL_NETWORK, UNLABELLED, TextOptions
from .flags import argument, command, flag


@command
def estimate(
    model: Path = argument(MODEL),
    data: Path = argument(UNLABELLED),
    *,
    text: TextOptions,
    network: str | None = flag(MODEL_NETWORK),
) -> None:
    """Estimate the accuracy of MODEL on DATA without labels.

    The interval comes from the sites that MODEL was measured on before it learned them. If DATA is
    out of their range, or too few sites were learned, there is no estimate (exit code 2).

    Example: farshore estimate model/ new_site.csv
    """
    from ..deployment.estimate import NoEstimate
    from ..deployment.model import Model
    from ..deployment.words import estimate_lines, warning
    from .tables import printable

    opened = Model.open(model, network=network)
    chunks, sample = opened.read_chunks(data, labelled=False, form=text.form())
    for chunk in chunks:
        sample.add(chunk)
    site = sample.site
    for note in site.notes:
        print(printable(note))
    _, estimated = opened.judge(site)
    if isinstance(estimated, NoEstimate):
        raise FarshoreError(f"no estimate for {data}: {estimated.reason}")
    for line in estimate_lines(estimated):
        print(line)
    warned = warning(estimated, opened.promised)
    if warned is not None:
        print(warned)
