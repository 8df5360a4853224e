"""The page in a real browser: sorting, filtering, figures, themes, phones, no network requests."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from browsing import browser
from demonstrated import demo_score
from made_sites import Made, make_sites
from papers_own import printed_report
from pictured import SOURCES, result, shown, together
from reporting import filled
from safetensors.torch import save_file
from sweeping import EXPERIMENTS, experiment, swept

import farshore
from farshore.cli.demo import demo, plan_demo
from farshore.report.build import build_report, write_report
from farshore.report.figures.features import project
from farshore.report.figures.shape import FIGURES, draw_all
from farshore.report.page import page
from farshore.report.provenance import Provenance
from farshore.runs.plan.experiment import make_book, read_experiment
from farshore.runs.plan.select import select_methods
from farshore.runs.store.store import FEATURES, record_experiment

__all__ = ["browser"]
pytestmark = pytest.mark.soak

HOSTILE = "<script>window.broken = true</script>"
DRAWN = "html[data-drawn=yes]"
LARGEST = 1_500_000


def all_runs(folder: Path) -> pd.DataFrame:
    """Runs with data for every figure."""
    methods = ("finetune", "agem", "er", "cl-coral", "naive-cl-coral")
    plain = shown(
        *(
            result(method, target=0.5 + index / 10, order=(*SOURCES,))
            for index, method in enumerate(methods)
        ),
        experiment="main",
    )
    trials = shown(
        *(result("fdr", target=0.4 + trial / 50, source=0.5 + trial / 20) for trial in range(6)),
        experiment="search",
        trials=6,
    )
    smaller = shown(
        result(memory=50, target=0.5), result(memory=25, target=0.4), experiment="memory"
    )
    reordered = shown(
        result(order=SOURCES[::-1], target=0.3),
        result(order=(SOURCES[1], SOURCES[0], SOURCES[2]), target=0.5),
        experiment="orders",
    )
    varied = [
        result("cl-mmd", settings={"penalty_weight": 10.0**exponent, "alignment_weight": 1.0})
        for exponent in range(4)
    ]
    sensitive = shown(*varied, experiment="sensitivity").assign(seed=0)
    generator = torch.Generator().manual_seed(0)
    tensors = {}
    for name in ("source 1 a", f"source 2 {HOSTILE}", "target t"):
        tensors[f"{name} features"] = torch.randn(6, 3, generator=generator)
        tensors[f"{name} labels"] = torch.arange(6) % 2
    with_features = shown(result("cl-coral", order=(HOSTILE, "b")), experiment="features")
    (folder / with_features["run"].iloc[0]).mkdir()
    save_file(tensors, folder / with_features["run"].iloc[0] / FEATURES)
    return together(plain, trials, smaller, reordered, sensitive, with_features)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The paper's main table as if it were ours, with every figure."""
    folder = tmp_path_factory.mktemp("page")
    drawings = draw_all(all_runs(folder), folder)
    assert [drawing.name for drawing in drawings] == list(FIGURES)
    provenance = Provenance(
        (("version", "1"),),
        ("farshore sweep reproduction/experiments/main.yaml", "farshore report runs"),
    )
    report = printed_report("main", tmp_path_factory.mktemp("main"))
    report = replace(report, provenance=provenance, problems=(HOSTILE,), next_command="")
    path = folder / "report.html"
    path.write_text(page(report, drawings, source="runs"))
    assert path.stat().st_size < LARGEST
    return path


@pytest.fixture
def opened(browser, file: Path) -> Iterator:
    """Opens the page; any console message, error or network request fails the test."""
    complaints: list[str] = []
    contexts = []

    def open_page(path: Path = file, *, width: int = 1280, **options: object):
        context = browser.new_context(viewport={"width": width, "height": 800}, **options)
        contexts.append(context)
        tab = context.new_page()
        tab.on(
            "console", lambda message: complaints.append(f"console {message.type}: {message.text}")
        )
        tab.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        tab.on(
            "request",
            lambda request: (
                None
                if request.url.startswith(("file:", "data:", "blob:"))
                else complaints.append(request.url)
            ),
        )
        tab.goto(path.as_uri())
        tab.wait_for_selector(DRAWN, timeout=60_000)
        return tab

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> farshore.auditing.audit.Audit:
    """An audit of made sites with a hostile name."""
    table = make_sites(Made(sites=5, rows=60), seed=1).replace({"site": {"s3": HOSTILE}})
    runs = tmp_path_factory.mktemp("audited")
    return farshore.audit(
        table, domain="site", label="ill", methods=["slda"], orders=["listed"], steps=2, runs=runs
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1400])
def test_the_page_of_an_audit(opened, audited, tmp_path: Path, width: int, scheme: str) -> None:
    """The decision, then a figure on the first screen; all figures are drawn, nothing is cut."""
    page = audited.report(tmp_path / "audit.html")
    tab = opened(page, width=width, color_scheme=scheme)
    assert tab.locator("h2.headline").inner_text().strip() == audited.decision
    questions = tab.locator(".question h3").all_inner_texts()
    assert questions == list(audited.answers)
    figures = tab.locator("figure")
    names = [figures.nth(n).get_attribute("id") for n in range(figures.count())]
    assert names[0] == "figure-sites"
    assert {"figure-confusion", "figure-reliability", "figure-columns"} <= set(names)
    assert tab.locator("figure .plot svg.main-svg").count() >= len(names)
    box = figures.first.locator(".plot").bounding_box()
    assert width < 1000 or box["y"] < 800
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.evaluate("window.broken") is None
    shown = tab.locator("section table tbody tr").all_inner_texts()
    assert any(HOSTILE in row for row in shown)
    assert is_light(tab) == (scheme == "light")


def is_light(tab) -> bool:
    background = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(map(int, background.removeprefix("rgb(").rstrip(")").split(","))) > 3 * 128


def test_an_audit_on_paper_keeps_headings_with_their_text(opened, audited, tmp_path: Path) -> None:
    tab = opened(audited.report(tmp_path / "audit.html"), width=1400)
    tab.emulate_media(media="print")
    style = "(each, name) => getComputedStyle(each).getPropertyValue(name)"
    for selector, name in (
        ("h2", "break-after"),
        ("h3", "break-after"),
        (".question", "break-inside"),
        ("figure", "break-inside"),
        (".plain", "break-inside"),
    ):
        for found in tab.locator(selector).all():
            assert found.evaluate(style, name) == "avoid", selector
    assert tab.locator(".tools").is_hidden()
    assert tab.pdf(prefer_css_page_size=True).startswith(b"%PDF")


def check_opening(tab, runs: Path, width: int) -> None:
    """The verdict of the runs, its conditions, the figure, the ranking; nothing is cut off."""
    main = build_report(runs).main
    assert main is not None
    assert main.verdict is not None
    verdict = main.verdict
    assert tab.locator("h2.headline").inner_text().strip() == verdict.sentence
    assert tab.locator(".conditions").inner_text().strip() == main.conditions
    assert tab.locator("#next").inner_text().startswith("farshore ")
    ranked = verdict.ranking.ranked
    # Two traces per method: its mean with the interval, and a dot per order.
    marks = tab.locator("#figure-scores .plot .trace.scatter").count()
    assert marks == 2 * len(ranked)
    rows = "[data-metric]:not([hidden]) tbody:first-of-type tr.row th"
    labels = tab.locator(rows).all_inner_texts()
    assert [text.removesuffix("no better than guessing").strip() for text in labels] == [
        each.row for each in ranked
    ]
    assert tab.evaluate("document.documentElement.scrollWidth") <= width


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made-up runs of three methods on an own table with a hostile site, each site left out."""
    runs = tmp_path_factory.mktemp("compared")
    table = make_sites(Made(sites=4, rows=40), seed=1).replace({"site": {"s3": HOSTILE}})
    table.to_csv(runs / "sites.csv", index=False)
    options = {"path": str(runs / "sites.csv"), "domain": "site", "label": "ill"}
    part = {
        "benchmarks": [{"table": options}],
        "methods": ["finetune", "er", "cl-coral"],
        "target": "each",
    }
    made = {"finetune": 0.5, "er": 0.7, "cl-coral": 0.71}
    filled(
        runs,
        experiment(search={"trials": 1, "seeds": 2}, part=part),
        lambda entry: made[entry.run.method] + len(entry.condition.target) / 900 + entry.seed / 200,
    )
    return runs


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1400])
def test_the_first_screen_is_the_verdict_of_the_runs(
    opened, compared: Path, tmp_path: Path, width: int, scheme: str
) -> None:
    write_report(compared, tmp_path / "report.html")
    phone = {"has_touch": width < 500, "is_mobile": width < 500}
    tab = opened(tmp_path / "report.html", width=width, color_scheme=scheme, **phone)
    assert is_light(tab) == (scheme == "light")
    check_opening(tab, compared, width)
    box = tab.locator("h2.headline").bounding_box()
    assert box is not None
    assert box["y"] < 300, "the verdict is below the first screen"


def test_the_metric_of_the_ranking_can_be_switched(opened, compared: Path, tmp_path: Path) -> None:
    write_report(compared, tmp_path / "report.html")
    tab = opened(tmp_path / "report.html")
    assert tab.locator("[data-metric]:visible").count() == 1
    tab.select_option("#metric", "macro_f1")
    assert tab.locator("[data-metric]:visible").get_attribute("data-metric") == "macro_f1"


@pytest.fixture(scope="module")
def demonstrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo after its runs, whose results are made up."""
    runs = tmp_path_factory.mktemp("demo")
    filled(runs, plan_demo(), demo_score)
    demo(runs=runs)
    return runs


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1400])
def test_the_page_of_the_demo(opened, demonstrated: Path, width: int, scheme: str) -> None:
    phone = {"has_touch": width < 500, "is_mobile": width < 500}
    tab = opened(demonstrated / "demo.html", width=width, color_scheme=scheme, **phone)
    assert is_light(tab) == (scheme == "light")
    check_opening(tab, demonstrated, width)
    assert (demonstrated / "demo.html").stat().st_size < LARGEST


def until(condition: Callable[[], bool], seconds: float = 10) -> bool:
    """Whether the condition becomes true within this time.

    The browser cannot wait itself: the page's security policy forbids scripts passed to it.
    """
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def column(tab, index: int) -> list[str]:
    """The texts of a column in the visible ranked rows, top to bottom; for numbers, the mean."""
    cells = f"rows => rows.filter(row => !row.hidden).map(row => row.cells[{index}])"
    script = (
        f"rows => ({cells})(rows).map(cell => (cell.querySelector('.mean') ?? "
        "cell).textContent.trim())"
    )
    return tab.eval_on_selector_all("section.table tbody:first-of-type tr.row", script)


def heads(tab):
    return tab.locator("section.table thead th")


def test_tables_sort_by_click_and_unranked_rows_stay_separate(opened) -> None:
    tab = opened()
    before = column(tab, 0)
    heads(tab).nth(1).locator("button").click()
    assert heads(tab).nth(1).get_attribute("aria-sort") == "descending"
    numbers = [float(text) for text in column(tab, 1)]
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[0] == 72.8
    heads(tab).nth(1).locator("button").click()
    assert [float(text) for text in column(tab, 1)] == sorted(numbers)
    heads(tab).nth(1).locator("button").click()
    assert column(tab, 0) == before
    assert tab.locator("section.table tbody:nth-of-type(2) tr.row th").all_inner_texts() == ["urm"]
    heads(tab).nth(8).locator("button").click()
    assert heads(tab).nth(8).get_attribute("aria-sort") == "ascending"
    assert column(tab, 0)[0] == "cl-coral"


def test_tables_sort_by_keyboard(opened) -> None:
    tab = opened()
    heads(tab).nth(7).locator("button").focus()
    tab.keyboard.press("Enter")
    assert heads(tab).nth(7).get_attribute("aria-sort") == "descending"
    assert column(tab, 0)[0] == "cl-coral"
    outline = tab.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"


def test_tables_filter_by_words_and_by_groups(opened) -> None:
    tab = opened()
    tab.fill("section.table input[type=search]", "coral")
    assert column(tab, 0) == ["cl-coral"]
    assert tab.inner_text("section.table .count") == "1 of 19 rows"
    assert tab.locator("section.table tr.section").is_hidden()
    tab.fill("section.table input[type=search]", "")
    tab.click(".chip[data-group=tailored]")
    assert len(column(tab, 0)) == 13
    tab.click(".chip[data-group=tailored]")
    assert len(column(tab, 0)) == 18


def test_published_numbers_can_be_hidden(opened) -> None:
    tab = opened()
    assert tab.locator("td .paper").first.is_visible()
    tab.click("#paper")
    assert tab.locator("td .paper").first.is_hidden()
    assert tab.get_attribute("#paper", "aria-pressed") == "false"
    tab.click("#paper")
    assert tab.locator("td .paper").first.is_visible()


def test_every_figure_draws_every_view(opened) -> None:
    tab = opened()
    for name in FIGURES:
        figure = tab.locator(f"#figure-{name}")
        views = figure.locator("option").count() or 1
        for view in range(views):
            if views > 1:
                figure.locator("select").select_option(str(view))
            figure.locator(".plot svg.main-svg").first.wait_for()
            marks = figure.locator(
                ".plot .trace path, .plot .point path, .plot .hm image, .plot .trace text"
            ).count()
            assert marks > 0, name
    assert "linear classifier" in tab.inner_text(
        "#figure-features .note"
    ) or "Too few rows" in tab.inner_text("#figure-features .note")
    assert tab.evaluate("window.broken") is None


def test_light_and_dark_follow_the_system_and_the_button(opened) -> None:
    def colours(tab) -> tuple[str, str]:
        return (
            tab.evaluate("getComputedStyle(document.body).backgroundColor"),
            tab.evaluate("getComputedStyle(document.querySelector('.plot .xtick text')).fill"),
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
    tab = opened(width=width, has_touch=width < 500, is_mobile=width < 500)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    wide = tab.locator("section.table .scroll").first
    assert wide.evaluate("box => box.scrollWidth >= box.clientWidth")
    wide.evaluate("box => { box.scrollLeft = 300; }")
    left = tab.locator("tr.row th").first.bounding_box()["x"]
    assert 0 <= left < 40


def test_every_control_has_a_name(opened) -> None:
    tab = opened()
    named = "it.ariaLabel || it.textContent.trim() || it.labels?.length"
    unnamed = tab.evaluate(
        f"[...document.querySelectorAll('button, select, input')].filter(it => !({named})).length"
    )
    assert unnamed == 0
    assert tab.locator("h1").count() == 1


def test_the_commands_can_be_copied(opened) -> None:
    tab = opened(permissions=["clipboard-read", "clipboard-write"])
    tab.click(".copy")
    assert until(lambda: tab.inner_text(".copy") == "Copied")
    assert (
        tab.evaluate("navigator.clipboard.readText()")
        == "farshore sweep reproduction/experiments/main.yaml\nfarshore report runs"
    )


def test_printing_is_light_and_without_controls(opened, tmp_path: Path) -> None:
    tab = opened(color_scheme="dark")
    tab.pdf(path=tmp_path / "page.pdf", prefer_css_page_size=True)
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
    tab.emulate_media(media="print")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert tab.locator(".tools").is_hidden()


def test_umap_projects_the_same_features_the_same_way() -> None:
    """This is a slow test because UMAP is compiled when it is first called."""
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(size=(40, 5)), rng.normal(size=(40, 5)) + 30]).astype(
        np.float32
    )
    threads = torch.get_num_threads()
    (first, way), (second, _) = project(rows), project(rows)
    assert torch.get_num_threads() == threads, (
        "later runs in this process would be slower and round differently"
    )
    assert way == "UMAP"
    assert first.equals(second)
    centres = first[:40].median(), first[40:].median()
    assert (centres[0] - centres[1]).abs().max() > first[:40].std().max()


def test_the_page_of_the_small_experiment_draws(opened, tmp_path: Path) -> None:
    """Every method of the experiment `small` with one step: the page has the same size."""
    small = read_experiment(EXPERIMENTS / "small.yaml")
    shorter = small.model_copy(update={"parts": [small.parts[0].model_copy(update={"steps": 1})]})
    swept(shorter, tmp_path / "runs")
    record_experiment(shorter, tmp_path / "runs", make_book(EXPERIMENTS / "small.yaml"))
    write_report(tmp_path / "runs", tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size < LARGEST
    for width in (390, 1400):
        phone = width < 500
        tab = opened(tmp_path / "report.html", width=width, has_touch=phone, is_mobile=phone)
        assert tab.locator("section.table tr.row").count() == len(select_methods(["all"]))
        assert tab.locator(".plot svg.main-svg").count() >= 5
        check_opening(tab, tmp_path / "runs", width)
