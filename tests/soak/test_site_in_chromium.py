"""The documentation site, built strictly and opened in a real browser, light and dark."""

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
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "name",
    ["index", "concepts", "tutorial", "reference/Learner", "methods/cl-coral", "commands/audit"],
)
def test_pages_fit_and_load_everything(
    site: Path, browser: Any, name: str, scheme: str, width: int
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    problems: list[str] = []
    page.on(
        "console",
        lambda said: (
            said.type == "error" and problems.append(f"{said.text} {said.location.get('url')}")
        ),
    )
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
    page.wait_for_timeout(200)
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    light = sum(map(int, background.removeprefix("rgb(").rstrip(")").split(","))) > 3 * 128
    assert light == (scheme == "light")
    page.close()


def test_the_button_of_a_console_block_copies_commands_only(site: Path, browser: Any) -> None:
    page = browser.new_page()
    page.goto((site / "deployment.html").as_uri(), wait_until="load")
    copied = page.evaluate(
        """async () => {
            let text = "";
            Object.defineProperty(navigator, "clipboard",
                {value: {writeText: async (given) => { text = given; }}});
            const code = [...document.querySelectorAll("code")].find(
                (each) => each.innerText.includes("$ farshore learn"));
            code.id = "chosen";
            const button = document.createElement("button");
            button.dataset.clipboardTarget = "#chosen";
            document.body.append(button);
            button.click();
            return [code.innerText, text];
        }"""
    )
    shown, text = copied
    commands = [line for line in shown.split("\n") if line.startswith("$ ")]
    assert text.split("\n")[0] == commands[0].removeprefix("$ ")
    assert "$ " not in text
    assert len(text) < len(shown)
    page.close()
