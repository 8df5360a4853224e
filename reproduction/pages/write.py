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
    gallery,
    layers,
    methods,
    performance,
    recommended,
    referee,
    reproduction,
    tutorial,
)
from reproduction.paper import published

PAGES = (methods, reproduction, recommended, referee, layers, performance)


def generated() -> Iterator[tuple[Path, str]]:
    """The files and their contents."""
    yield published.PUBLISHED, published.text()
    for page in PAGES:
        yield page.PAGE, page.text()
    for page in performance.PAGES[1:]:
        yield page, performance.text(page)
    yield from reproduction.details()
    yield from figures.drawn()
    yield from gallery.files()


def main() -> None:
    """Write all of them."""
    for path, text in generated():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main()
    executed.main()
    for path, text in gallery.files():  # which shows what the executed pages print now
        path.write_text(text)
    tutorial.main()
