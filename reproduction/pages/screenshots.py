"""Takes the pictures of pages in docs/images: `python -m reproduction.pages.screenshots`.

They show the demo, a small sweep and the audit of docs/audit.md, or those that are named. The runs
are carried out first unless RUNS has them already. Each picture keeps the first sentence of its
page as a text inside the file: tests compare those of the demo and the audit with their pages. It
needs Chromium and playwright.
"""

from __future__ import annotations

import argparse
import io
import shutil
import subprocess
import sys
from collections.abc import Callable
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
    methods: [finetune, er, cl-vrex, slda, auto, joint]
    steps: 60
"""
WIDTH, HEIGHT = 1400, 860
LARGEST = 200_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(PAGES)}")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    given = parser.parse_args()
    given.runs.mkdir(parents=True, exist_ok=True)
    IMAGES.mkdir(exist_ok=True)
    for name in given.names or PAGES:
        save(*take(PAGES[name](given.runs)), IMAGES / f"{name}.png")


def demo(runs: Path) -> Path:
    type_in("demo", "--runs", runs / "demo")
    return runs / "demo" / "demo.html"


def sweep(runs: Path) -> Path:
    (runs / "two_tables.yaml").write_text(SWEEP)
    type_in("sweep", runs / "two_tables.yaml", "--runs", runs / "sweep")
    type_in("report", runs / "sweep", "-o", runs / "sweep.html")
    return runs / "sweep.html"


def audit(runs: Path) -> Path:
    table = runs / "patients.csv"
    type_in("demo", "--data", table)
    columns = ("--domain", "hospital", "--label", "disease")
    type_in("audit", table, *columns, "--design", "full", "--runs", runs / "audit")
    return runs / "audit" / "audit-patients.csv.html"


# What carries out the runs of each picture and writes its page.
PAGES: dict[str, Callable[[Path], Path]] = {"demo": demo, "sweep": sweep, "audit": audit}


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
        picture, verdict = tab.screenshot(), tab.inner_text(".headline")
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
