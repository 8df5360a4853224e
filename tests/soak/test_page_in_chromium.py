"""The page in a real browser: it sorts, filters, draws, follows light and dark, fits a phone,
and asks the network for nothing.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from papers_own import printed_table
from pictured import SOURCES, result, shown
from safetensors.torch import save_file
from sweeping import EXPERIMENTS, swept

from farshore.plan.experiment import make_book, read_experiment
from farshore.plan.record import record_experiment
from farshore.report.figures import FIGURES, draw_all
from farshore.report.figures.runs import Shown, mark_selected
from farshore.report.overlap import project
from farshore.report.page import page
from farshore.report.paper import PAPER
from farshore.report.table import Provenance, Report
from farshore.report.write import write_report

pytestmark = pytest.mark.soak

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
# The browser itself must not call home either, or the test could not tell its requests from the
# page's.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
HOSTILE = "<script>window.broken = true</script>"
DRAWN = "html[data-drawn=yes]"


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("no Chromium here: install chromium to test the page in a browser")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


def all_runs(folder: Path) -> list[Shown]:
    """Runs that hold something for every figure."""
    methods = ("finetune", "agem", "er", "cl-coral", "naive-cl-coral")
    plain = shown(
        *(
            result(method, target=0.5 + place / 10, order=(*SOURCES,))
            for place, method in enumerate(methods)
        ),
        experiment="main",
    )
    trials = shown(
        *(result("fdr", target=0.4 + place / 50, source=0.5 + place / 20) for place in range(6)),
        experiment="main",
        trials=6,
    )
    smaller = shown(
        result(memory=50, target=0.5), result(memory=25, target=0.4), experiment="memory"
    )
    turned = shown(
        result(order=SOURCES[::-1], target=0.3),
        result(order=(SOURCES[1], SOURCES[0], SOURCES[2]), target=0.5),
        experiment="orders",
    )
    varied = [
        result("cl-mmd", settings={"penalty_weight": 10.0**place, "alignment_weight": 1.0})
        for place in range(4)
    ]
    sensitive = mark_selected(
        [Shown(f"s {place}", each, "sensitivity", 0, 0) for place, each in enumerate(varied)]
    )
    draws = torch.Generator().manual_seed(0)
    tensors = {}
    for name in ("source 1 a", f"source 2 {HOSTILE}", "target t"):
        tensors[f"{name} features"] = torch.randn(6, 3, generator=draws)
        tensors[f"{name} labels"] = torch.arange(6) % 2
    save_file(tensors, folder / "features.safetensors")
    seen = [
        Shown(
            "f",
            result("cl-coral", order=(HOSTILE, "b")),
            "features",
            features=folder / "features.safetensors",
        )
    ]
    return [*plain, *trials, *smaller, *turned, *sensitive, *seen]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The paper's main table as if it were ours, with every figure."""
    folder = tmp_path_factory.mktemp("page")
    drawings = draw_all(all_runs(folder), PAPER)
    assert [drawing.name for drawing in drawings] == list(FIGURES)
    provenance = Provenance(
        (("version", "1"),), ("farshore sweep experiments/main.yaml", "farshore report runs")
    )
    report = Report("The main table", (printed_table("main"),), provenance, (HOSTILE,))
    path = folder / "report.html"
    path.write_text(page(report, drawings, source="runs"))
    assert path.stat().st_size < 8_000_000
    return path


@pytest.fixture
def opened(browser, file: Path) -> Iterator:
    """Opens the page; whatever it complains of or asks for fails the test."""
    complaints: list[str] = []
    contexts = []

    def open_page(path: Path = file, *, width: int = 1280, **options: object):
        context = browser.new_context(viewport={"width": width, "height": 800}, **options)
        contexts.append(context)
        found = context.new_page()
        found.on(
            "console", lambda message: complaints.append(f"console {message.type}: {message.text}")
        )
        found.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        found.on(
            "request",
            lambda asked: (
                None
                if asked.url.startswith(("file:", "data:", "blob:"))
                else complaints.append(asked.url)
            ),
        )
        found.goto(path.as_uri())
        found.wait_for_selector(DRAWN, timeout=60_000)
        return found

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def until(holds: Callable[[], bool], seconds: float = 10) -> bool:
    """Whether it holds within this time; the page's own rules forbid the browser to wait for a
    script that it is handed.
    """
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def column(found, place: int) -> list[str]:
    """What stands in a column of the ranked rows that are shown, from top to bottom; in a
    number's cell, the mean.
    """
    cells = f"rows => rows.filter(row => !row.hidden).map(row => row.cells[{place}])"
    script = (
        f"rows => ({cells})(rows).map(cell => (cell.querySelector('.mean') ?? "
        "cell).textContent.trim())"
    )
    return found.eval_on_selector_all("section.table tbody:first-of-type tr.row", script)


def heads(found):
    return found.locator("section.table thead th")


def test_tables_sort_by_click_and_rows_that_never_rank_stay_apart(opened) -> None:
    found = opened()
    before = column(found, 0)
    heads(found).nth(1).locator("button").click()
    assert heads(found).nth(1).get_attribute("aria-sort") == "descending"
    numbers = [float(text) for text in column(found, 1)]
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[0] == 72.8
    heads(found).nth(1).locator("button").click()
    assert [float(text) for text in column(found, 1)] == sorted(numbers)
    heads(found).nth(1).locator("button").click()
    assert column(found, 0) == before
    assert found.locator("section.table tbody:nth-of-type(2) tr.row th").all_inner_texts() == [
        "URM (upper bound)"
    ]
    heads(found).nth(8).locator("button").click()
    assert heads(found).nth(8).get_attribute("aria-sort") == "ascending"
    assert column(found, 0)[0] == "★-CL-CORAL"


def test_tables_sort_by_keyboard(opened) -> None:
    found = opened()
    heads(found).nth(7).locator("button").focus()
    found.keyboard.press("Enter")
    assert heads(found).nth(7).get_attribute("aria-sort") == "descending"
    assert column(found, 0)[0] == "★-CL-CORAL"
    outline = found.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"


def test_tables_filter_by_words_and_by_groups(opened) -> None:
    found = opened()
    found.fill("section.table input[type=search]", "coral")
    assert column(found, 0) == ["★-CL-CORAL"]
    assert found.inner_text("section.table .count") == "1 of 19 rows"
    assert found.locator("tr.section").is_hidden()
    found.fill("section.table input[type=search]", "")
    found.click(".chip[data-group=tailored]")
    assert len(column(found, 0)) == 13
    found.click(".chip[data-group=tailored]")
    assert len(column(found, 0)) == 18


def test_the_papers_numbers_can_be_hidden(opened) -> None:
    found = opened()
    assert found.locator("td .paper").first.is_visible()
    found.click("#paper")
    assert found.locator("td .paper").first.is_hidden()
    assert found.get_attribute("#paper", "aria-pressed") == "false"
    found.click("#paper")
    assert found.locator("td .paper").first.is_visible()


def test_every_figure_draws_every_view(opened) -> None:
    found = opened()
    for name in FIGURES:
        figure = found.locator(f"#figure-{name}")
        places = figure.locator("option").count() or 1
        for place in range(places):
            if places > 1:
                figure.locator("select").select_option(str(place))
            figure.locator(".plot svg.main-svg").first.wait_for()
            marks = figure.locator(
                ".plot .trace path, .plot .point path, .plot .hm image, .plot .trace text"
            ).count()
            assert marks > 0, name
    assert "linear classifier" in found.inner_text(
        "#figure-features .note"
    ) or "Too few rows" in found.inner_text("#figure-features .note")
    assert found.evaluate("window.broken") is None


def test_light_and_dark_follow_the_system_and_the_button(opened) -> None:
    def colours(found) -> tuple[str, str]:
        return (
            found.evaluate("getComputedStyle(document.body).backgroundColor"),
            found.evaluate("getComputedStyle(document.querySelector('.plot .xtick text')).fill"),
        )

    light, dark = opened(color_scheme="light"), opened(color_scheme="dark")
    assert colours(light)[0] == "rgb(255, 255, 255)"
    assert colours(dark)[0] == "rgb(20, 23, 26)"
    assert colours(light)[1] != colours(dark)[1]
    light.click("#theme")
    light.click("#theme")
    assert light.inner_text("#theme") == "Theme: dark"
    assert until(lambda: colours(light) == colours(dark))


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_never_scrolls_sideways(opened, width: int) -> None:
    found = opened(width=width, has_touch=width < 500, is_mobile=width < 500)
    assert found.evaluate("document.documentElement.scrollWidth") <= width
    wide = found.locator("section.table .scroll").first
    assert wide.evaluate("box => box.scrollWidth >= box.clientWidth")
    wide.evaluate("box => { box.scrollLeft = 300; }")
    left = found.locator("tr.row th").first.bounding_box()["x"]
    assert 0 <= left < 40


def test_everything_to_press_has_a_name(opened) -> None:
    found = opened()
    named = "it.ariaLabel || it.textContent.trim() || it.labels?.length"
    unnamed = found.evaluate(
        f"[...document.querySelectorAll('button, select, input')].filter(it => !({named})).length"
    )
    assert unnamed == 0
    assert found.locator("h1").count() == 1


def test_the_block_to_paste_is_copied(opened) -> None:
    found = opened(permissions=["clipboard-read", "clipboard-write"])
    found.click(".copy")
    assert until(lambda: found.inner_text(".copy") == "Copied")
    assert (
        found.evaluate("navigator.clipboard.readText()")
        == "farshore sweep experiments/main.yaml\nfarshore report runs"
    )


def test_printing_is_light_and_without_what_is_pressed(opened, tmp_path: Path) -> None:
    found = opened(color_scheme="dark")
    found.pdf(path=tmp_path / "page.pdf", prefer_css_page_size=True)
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
    found.emulate_media(media="print")
    assert found.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert found.locator(".tools").is_hidden()


def test_umap_lays_the_same_features_into_the_same_plane() -> None:
    """It stands here because UMAP is compiled when it is first called."""
    draws = np.random.default_rng(0)
    rows = np.concatenate([draws.normal(size=(40, 5)), draws.normal(size=(40, 5)) + 30]).astype(
        np.float32
    )
    threads = torch.get_num_threads()
    (first, way), (second, _) = project(rows), project(rows)
    assert torch.get_num_threads() == threads, (
        "later runs in this process would be slower, and round otherwise"
    )
    assert way == "UMAP"
    assert first.equals(second)
    centres = first[:40].median(), first[40:].median()
    assert (centres[0] - centres[1]).abs().max() > first[:40].std().max()


def test_the_page_of_the_small_experiment_is_built_in_time_and_draws(
    opened, tmp_path: Path
) -> None:
    """Every method of experiments/small.yaml, with fewer steps: the page is as large, and made
    as quickly, as that of the whole.
    """
    found = read_experiment(EXPERIMENTS / "small.yaml")
    shorter = found.model_copy(update={"parts": [found.parts[0].model_copy(update={"steps": 1})]})
    swept(shorter, tmp_path / "runs")
    record_experiment(shorter, tmp_path / "runs", make_book(EXPERIMENTS / "small.yaml"))
    began = time.perf_counter()
    write_report(tmp_path / "runs", tmp_path / "report.html")
    spent = time.perf_counter() - began
    assert spent < 20
    assert (tmp_path / "report.html").stat().st_size < 8_000_000
    shown_page = opened(tmp_path / "report.html")
    assert shown_page.locator("section.table tr.row").count() == 29
    assert shown_page.locator(".plot svg.main-svg").count() >= 5
