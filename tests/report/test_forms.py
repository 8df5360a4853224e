"""Markdown, CSV and LaTeX: the same numbers and statuses, with and without published ones."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from framed import made_frame, over_data_sets
from hypothesis import given
from hypothesis import strategies as some
from markdown_it import MarkdownIt
from sections import PUBLISHED, RESULT, SCORES, main_section, section
from statuses import STATES

from farshore.report import latex_form, markdown_form
from farshore.report.build import TEXT_FORMS, Report, Section
from farshore.report.cells import head, legend, number
from farshore.report.csv_form import as_csv
from farshore.report.latex_form import as_latex
from farshore.report.markdown_form import as_markdown
from farshore.report.page import page
from farshore.report.provenance import Provenance
from farshore.results.tables import (
    Cell,
    CellStatus,
    Column,
    Counts,
    Row,
    Table,
)

ENGINE = next(
    (name for name in ("tectonic", "pdflatex", "xelatex", "lualatex") if shutil.which(name)), None
)
NASTY = r"[50% of a_b & {c} #1 $x ^~ \ <i> | z] `q` *s* ★ naïve χ² ±"


def partial_table(published: bool = True) -> Table:
    """A table with cells of every kind, in which every text is nasty."""
    cells = {
        "a": Cell(
            1 / 3,
            0.1 + 0.2,
            counts=Counts(planned=3, done=2, trials=17, trials_planned=20),
            place=1,
            generated=True,
            values={NASTY: 0.1, "b": 1 / 7},
            published=10.0 if published else None,
            published_error=1.5 if published else None,
        ),
        "b": Cell(
            None,
            counts=Counts(planned=3, trials_planned=20),
            published=5.0 if published else None,
        ),
        "worst": Cell(-2.5, at=NASTY),
        "difference": Cell(1.25, low=-0.5, high=3.0, unit="target"),
    }
    rows = (
        Row(f"cl-coral ({NASTY})", "cl-coral", NASTY, "tailored", "continual", cells),
        Row(NASTY, "mine", "", "no group", "continual", {"a": Cell(2.0)}),
        Row("tent", "tent", "", "adaptation", "adaptation", {"a": Cell(-0.04)}),
    )
    columns = (
        Column("a", "A_1 & more", generated=True),
        Column("b", "B", metric="macro_f1"),
        Column("worst", f"worst {NASTY}", "worst"),
        Column("difference", "minus er", "difference"),
    )
    title = f"{NASTY} (partial)"
    return Table(f"t_{NASTY}", title, NASTY, columns, rows, remarks=(NASTY,), whole=False)


def report(published: bool = True) -> Report:
    facts = Provenance(
        (("farshore", "0.1.0"), (NASTY, NASTY)), ("farshore sweep a_b.yaml --runs x", "# 100%")
    )
    times = Table(
        "times",
        "Times",
        "Minutes.",
        (Column("a", "a"),),
        (Row("er", "er", "", "replay", "continual", {"a": Cell(0.0123)}),),
        unit="minutes",
        higher_is_better=False,
    )
    nasty = Section(partial_table(published), made_frame({"er": {"a>b": [60]}}))
    sections = (main_section(PUBLISHED if published else None), nasty, Section(times, nasty.frame))
    return Report(NASTY, sections, facts, (NASTY,), "farshore methods er", "to learn more")


def test_every_form_is_found_by_its_suffix() -> None:
    assert set(TEXT_FORMS) == {".md", ".csv", ".tex"}
    for form in TEXT_FORMS.values():
        with_published, without = form(report()), form(report(published=False))
        assert len(with_published) > len(without)
        assert "2 of 3 runs" in without
        assert "17 of 20 trials" in without
        assert "partial" in without


@pytest.mark.parametrize("ending", [".html", *TEXT_FORMS])
@pytest.mark.parametrize(("cell", "status", "notes"), STATES)
def test_every_form_shows_the_state_of_a_cell(
    cell: Cell, status: CellStatus, notes: tuple[str, ...], ending: str
) -> None:
    row = Row("er", "er", "", "replay", "continual", {"x": cell})
    table = Table("t", "title", "", (Column("x", "X"),), (row,))
    shown = Report("title", (Section(table, made_frame({"er": {"a>b": [60]}})),))
    text = page(shown) if ending == ".html" else TEXT_FORMS[ending](shown)
    for note in notes:
        assert note in text
    if cell.mean is not None:
        assert "5.0" in text
    if ending == ".csv":
        assert next(csv.DictReader(io.StringIO(text)))["status"] == status.value


@pytest.mark.parametrize(
    ("value", "sign", "expected"),
    [
        (1.25, False, "1.2"),
        (-0.04, True, "0.0"),
        (-0.04, False, "0.0"),
        (-3.0, True, "−3.0"),
        (2.0, True, "+2.0"),
        (None, False, "–"),
        (float("nan"), True, "–"),
    ],
)
def test_numbers_are_written_as_readers_expect(
    value: float | None, sign: bool, expected: str
) -> None:
    assert number(value, sign=sign) == expected
    assert number(0.0123, 3) == "0.012"


def test_the_head_of_a_column_names_what_is_not_usual() -> None:
    assert head(Column("a", "A", metric="accuracy")) == "A"
    assert head(Column("a", "A", metric="macro_f1")) == "A (macro F1)"
    assert head(Column("a", "A", metric="of a plugin")) == "A (of a plugin)"
    assert head(Column("a", "A", metric="log_loss", generated=True)) == (
        "A (log loss, generated data)"
    )


def test_the_legend_says_what_is_there() -> None:
    text = legend(main_section().table)
    assert text.startswith("In %; higher is better.")
    assert text.endswith("Differences are paired; in brackets, their 95% interval.")
    two = section(over_data_sets({name: values[:2] for name, values in SCORES.items()}))
    assert legend(two.table).endswith("Differences are paired; too few units for an interval.")
    assert legend(report().tables[2]) == "In minutes; lower is better."


def test_csv_reads_back_to_the_same_numbers() -> None:
    original = report()
    lines = list(csv.DictReader(io.StringIO(as_csv(original))))
    by_key = {(line["table"], line["row"], line["column"]): line for line in lines}
    assert len(by_key) == len(lines)
    cells = 0
    for table in original.tables:
        for row in table.rows:
            for key, cell in row.cells.items():
                line = by_key[table.name, row.row, key]
                names = ("mean", "error", "low", "high", "published", "published_error")
                for name in (*names, "difference"):
                    assert (float(line[name]) if line[name] else None) == getattr(cell, name)
                assert json.loads(line["values"] or "{}") == cell.values
                assert (line["over"], line["at"]) == (cell.unit, cell.at)
                assert line["notes"] == "; ".join(cell.notes)
                assert line["status"] == cell.status.value
                assert (line["method"], line["variant"]) == (row.method, row.variant)
                for name in ("planned", "diverged", "pruned", "undefined", "trials_planned"):
                    assert int(line[name] or 0) == getattr(cell.counts, name)
                assert line["generated"] == str(cell.generated)
                assert line["whole"] == str(table.whole)
                cells += 1
    assert cells == len(lines)
    assert "published" not in next(csv.reader(io.StringIO(as_csv(report(published=False)))))


def test_markdown_tables_are_rectangular_and_contain_every_row() -> None:
    text = as_markdown(report())
    blocks = [block for block in text.split("\n\n") if block.startswith("| Method")]
    assert len(blocks) == 3
    for block, table in zip(blocks, report().tables, strict=True):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(widths) == 1
        headings = sum(bool(heading) for heading in table.sections())
        assert len(block.splitlines()) == 2 + len(table.rows) + headings
    assert "| cl-coral | **70.0 ± 0.0** (72.8 ± 2.6; −2.8) |" in text
    assert "*Trained on all sources at once (never ranked)*" in text
    assert r"| missing (5.0) |" in text
    assert "(partial)" in text
    assert "farshore sweep a_b.yaml --runs x" in text
    assert "Their table" in text


def test_the_verdict_and_what_backs_it_stand_first_in_markdown_and_latex() -> None:
    main = main_section()
    assert main.verdict is not None
    markdown, latex = as_markdown(report()), as_latex(report())
    for text, escape in ((markdown, markdown_form.escape), (latex, latex_form.escape)):
        places = [
            text.index(escape(each))
            for each in (main.verdict.sentence, main.conditions, *main.verdict.details)
        ]
        assert places == sorted(places)
        assert places[-1] < text.index(escape("The main table"))
        # What the tests say stands once, with the verdict.
        assert all(text.count(escape(each)) == 1 for each in main.verdict.details)
    assert "Next, to learn more:\n\n```sh\nfarshore methods er\n```" in markdown


def test_another_table_of_several_data_sets_has_its_own_conclusions() -> None:
    scores = {name: values[:2] for name, values in SCORES.items()}
    second = section(over_data_sets(scores), name="second", title="A second table")
    both = Report("both", (main_section(), second))
    assert second.verdict is not None
    assert second.verdict.significance is not None
    for text in (as_markdown(both), as_latex(both)):
        after = text[text.rindex("A second table") - 200 :]
        assert text.count("Conclusions") == 1
        assert "over the 2 data sets" in after


def test_markdown_renders() -> None:
    tokens = MarkdownIt("commonmark").enable("table").parse(as_markdown(report()))
    kinds = [token.type for token in tokens]
    assert kinds.count("table_open") == 4  # three tables and the facts
    rows = len(report().provenance.facts)
    for table in report().tables:
        rows += len(table.rows) + sum(bool(heading) for heading in table.sections())
    assert kinds.count("tr_open") == rows + 4
    assert [token.content for token in tokens if token.type == "fence"] == [
        "farshore methods er\n",
        "farshore sweep a_b.yaml --runs x\n# 100%\n",
    ]
    texts = [
        "".join(child.content for child in token.children or ())
        for token in tokens
        if token.type == "inline"
    ]
    assert texts[0] == NASTY
    assert NASTY in texts[1:]


def test_without_published_numbers_nothing_is_said_about_them() -> None:
    for form in (as_markdown, as_latex):
        assert "published" in form(report())
        assert "published" not in form(report(published=False))


def test_marks_are_explained_only_where_there_are_any() -> None:
    frame = made_frame({"er": {"a>b": [60]}}, result=RESULT)
    alone = Report("alone", (section(frame),))
    for form, word in ((as_markdown, "**Best**"), (as_latex, r"\dotuline{third}")):
        assert word in form(report())
        assert word not in form(alone)


@given(some.text())
def test_markdown_escapes_characters_with_a_meaning_in_tables(text: str) -> None:
    shown = markdown_form.escape(text)
    assert "\n" not in shown
    assert re.search(r"(?<!\\)(\\\\)*\|", shown) is None


def braces(text: str) -> int:
    """The depth at the end; never below zero on the way."""
    depth = 0
    for sign in re.sub(r"\\[\\{}]", "", text):
        depth += {"{": 1, "}": -1}.get(sign, 0)
        assert depth >= 0
    return depth


@pytest.mark.parametrize("published", [True, False])
def test_latex_is_well_formed(published: bool) -> None:
    text = as_latex(report(published))
    assert text.isascii()
    assert braces(text) == 0
    begun, ended = re.findall(r"\\begin\{(\w+\*?)\}", text), re.findall(r"\\end\{(\w+\*?)\}", text)
    assert sorted(begun) == sorted(ended)
    body = re.sub(r"\\begin\{verbatim\}.*?\\end\{verbatim\}", "", text, flags=re.DOTALL)
    assert re.search(r"(?<!\\)#", body) is None
    tables = re.findall(
        r"\\begin\{tabular\}\{(l+c*)\}\n(.*?)\\end\{tabular\}", body, flags=re.DOTALL
    )
    assert len(tables) == 3
    for columns, lines in tables:
        for line in lines.splitlines():
            assert not line.startswith(("[", "*"))
            if line.endswith(r"\\") and "multicolumn" not in line:
                assert len(re.findall(r"(?<!\\)&", line)) == len(columns) - 1
    assert re.search(r"\\item\s*\[", body) is None
    for line in body.splitlines():
        assert len(re.findall(r"(?<!\\)\$", line)) % 2 == 0
        assert re.search(r"(?<!\\)%.", line) is None  # nothing is commented away
    used = set(re.findall(r"\\rowcolor\{([\w-]+)\}", body))
    assert used <= set(re.findall(r"\\definecolor\{([\w-]+)\}", body))
    assert ("(72.8 $\\pm$ 2.6)" in body) == published


def test_latex_marks_the_best_three_and_colours_the_groups() -> None:
    text = as_latex(Report("main", (main_section(),)))
    assert r"\definecolor{farshore-tailored}{HTML}{" in text
    assert r"\rowcolor{farshore-tailored} cl-coral & \textbf{70.0 $\pm$ 0.0}" in text
    assert r"\underline{60.0 $\pm$ 0.0}" in text
    assert r"\dotuline{50.0 $\pm$ 0.0}" in text
    assert r"\emph{Trained on all sources at once (never ranked)}} \\" in text
    assert text.count(r"\toprule") == text.count(r"\bottomrule") == 1
    table = partial_table()
    letters = as_latex(Report("p", (Section(table, made_frame({"er": {"a>b": [60]}})),)))
    assert "$^{a}$$^{b}$$^{c}$" in letters
    assert "$^{a}$~2 of 3 runs" in letters


@given(some.text())
def test_latex_escapes_anything(text: str) -> None:
    shown = latex_form.escape(text)
    assert shown.isascii()
    assert braces(shown) == 0
    assert not shown.startswith(("[", "*"))
    plain = re.sub(r"\$[^$]*\$", "", shown)  # symbols such as Greek letters
    assert re.search(r"(?<!\\)[%&#_$^~]", plain) is None


def test_commands_that_latex_cannot_typeset_are_left_out() -> None:
    shown = replace(report(), provenance=Provenance((), ("echo naïve",)))
    assert "verbatim" not in as_latex(shown)
    assert "echo naïve" in as_markdown(shown)


def test_a_report_without_tables_works() -> None:
    empty = Report("nothing", problems=("all is damaged",))
    assert "all is damaged" in as_markdown(empty)
    assert "all is damaged" in as_latex(empty)
    assert len(as_csv(empty).splitlines()) == 1


@pytest.mark.skipif(
    ENGINE is None, reason="no TeX engine is installed: the checks of form stand for it"
)
def test_latex_compiles(tmp_path: Path) -> None:
    (tmp_path / "report.tex").write_text(as_latex(report()))
    call = (
        [str(ENGINE), "report.tex"]
        if ENGINE == "tectonic"
        else [str(ENGINE), "-interaction=nonstopmode", "-halt-on-error", "report.tex"]
    )
    done = subprocess.run(
        call, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "report.pdf").is_file()
