"""Write every generated file: `make docs`, or `python -m reproduction.pages.write`.

They are the pages and figures of docs/ and the paper's numbers in reproduction/paper. A test
compares all of them with what is committed. `make docs` also executes the pages that show what
commands print (`executed`) and the notebook (`tutorial`). The pictures (`screenshots`) have a
program of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from reproduction.pages import (
    executed,
    figures,
    layers,
    methods,
    performance,
    recommended,
    reproduction,
    tutorial,
)
from reproduction.paper import published

PAGES = (methods, reproduction, recommended, layers, performance)


def generated() -> Iterator[tuple[Path, str]]:
    """The files and their contents."""
    yield published.PUBLISHED, published.text()
    for page in PAGES:
        yield page.PAGE, page.text()
    yield from reproduction.details()
    yield from figures.drawn()


def main() -> None:
    """Write all of them."""
    for path, text in generated():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main()
    executed.main()
    tutorial.main()
