"""Write every generated page and figure: `make docs`, or `python -m reproduction.pages.write`.

A test compares all of them with what is committed. The notebook (`tutorial`) and the pictures of
pages (`screenshots`) have programs of their own: they train models.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from reproduction.pages import figures, layers, methods, recommended, reproduction

PAGES = (methods, reproduction, recommended, layers)


def generated() -> Iterator[tuple[Path, str]]:
    """The files and their contents."""
    for page in PAGES:
        yield page.PAGE, page.text()
    yield from figures.drawn()


def main() -> None:
    """Write all of them."""
    figures.FOLDER.mkdir(exist_ok=True)
    for path, text in generated():
        path.write_text(text)


if __name__ == "__main__":
    main()
