"""The documentation site, built strictly and opened in a real browser at two widths."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from browsing import browser

__all__ = ["browser"]
pytestmark = pytest.mark.soak

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    subprocess.run(
        [*command, "--quiet"], cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=True
    )
    return folder


@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize("name", ["index", "concepts", "tutorial", "reference"])
def test_pages_fit_and_load_everything(site: Path, browser: Any, name: str, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    problems: list[str] = []
    page.on("console", lambda message: message.type == "error" and problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "request", lambda request: request.url.startswith("http") and problems.append(request.url)
    )
    page.goto((site / f"{name}.html").as_uri(), wait_until="load")
    assert page.locator("h1").first.inner_text()
    wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert wide <= 0
    pictures = page.locator("article img")
    drawn = [
        pictures.nth(number).evaluate("image => image.naturalWidth")
        for number in range(pictures.count())
    ]
    assert all(drawn)
    assert len(drawn) == {"index": 1, "concepts": 7}.get(name, 0)
    # Files of this folder cannot be fetched by a script; a server would allow the search index.
    assert [text for text in problems if "search_index" not in text and "CORS" not in text] == []
    page.close()
