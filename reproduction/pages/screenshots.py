"""Takes the pictures of pages in docs/images: `python -m reproduction.pages.screenshots`.

They show the demo and a small sweep, whose runs are carried out first unless RUNS has them already.
Each picture keeps the first sentence of its page, the verdict, as a text inside the file: a test
compares that of the demo with docs/demo.md. It needs Chromium and playwright.
"""

from __future__ import annotations

import argparse
import io
import shutil
import subprocess
import sys
from pathlib import Path

from PIL import Image
from PIL.PngImagePlugin import PngInfo

from reproduction import DOCS

IMAGES = DOCS / "images"
SWEEP = """name: two_tables
about: five methods on two embedded data sets
search: {trials: 1, seeds: 3}
parts:
  - benchmarks: [rotated-digits, heart-hospitals]
    methods: [finetune, er, cl-vrex, slda, best, joint]
    steps: 60
"""
WIDTH, HEIGHT = 1400, 860
LARGEST = 200_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    runs: Path = parser.parse_args().runs
    demo, sweep = runs / "demo", runs / "sweep"
    type_in("demo", "--runs", demo)
    sweep.mkdir(parents=True, exist_ok=True)
    (runs / "two_tables.yaml").write_text(SWEEP)
    type_in("sweep", runs / "two_tables.yaml", "--runs", sweep)
    IMAGES.mkdir(exist_ok=True)
    for name, folder in (("demo", demo), ("sweep", sweep)):
        page = runs / f"{name}.html"
        type_in("report", folder, "-o", page)
        save(*take(page), IMAGES / f"{name}.png")


def type_in(*words: object) -> None:
    """Carry out a command."""
    subprocess.run([sys.executable, "-m", "farshore", *map(str, words)], check=True)


def take(page: Path) -> tuple[bytes, str]:
    """The first screen of a page, in the light theme, and the verdict that it shows."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        tab.goto(page.resolve().as_uri())
        tab.wait_for_selector("html[data-drawn=yes]", timeout=60_000)
        picture, verdict = tab.screenshot(), tab.inner_text("#verdict")
        browser.close()
    return picture, verdict


def save(picture: bytes, verdict: str, path: Path) -> None:
    """Write a picture as small as PNG allows without a loss, and the verdict into it."""
    text = PngInfo()
    text.add_text("verdict", verdict)
    Image.open(io.BytesIO(picture)).convert("RGB").save(path, optimize=True, pnginfo=text)
    size = path.stat().st_size
    assert size < LARGEST, f"{path} has {size:,} bytes"
    print(f"{path}: {size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
