"""Markdown, CSV and LaTeX: the same numbers and statuses, with and without the paper's."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from farshore.report.grid import make_grid, number
from farshore.report.overlay import NO_OVERLAY, Overlay
from farshore.report.paper import PAPER
from farshore.report.printed import FORMS
from farshore.report.table import Cell, Column, Over, Provenance, Report, Row, Status, Table
from hypothesis import given
from hypothesis import strategies as some
from papers_own import printed_table
from statuses import STATES

from farshore.report import latex_form, markdown_form
from farshore.report.csv_form import RANKS, as_csv
from farshore.report.latex_form import as_latex
from farshore.report.markdown_form import as_markdown
from farshore.report.page import page

ENGINE = next(
    (name for name in ("tectonic", "pdflatex", "xelatex", "lualatex") if shutil.which(name)), None
)
NASTY = r"50% of a_b & {c} #1 $x ^~ \ <i> | [z] `q` *s* ★ naïve χ² ±"


def partial_table(*, paper: bool = True) -> Table:
    cells = {
        "a": Cell(
            1 / 3,
            0.1 + 0.2,
            10.0 if paper else None,
            1.5 if paper else None,
            seeds=2,
            seeds_planned=3,
            trials=17,
            trials_planned=20,
            place=1,
            generated=True,
            values=(0.1, 1 / 7),
        ),
        "b": Cell(None, paper=5.0 if paper else None, seeds_planned=3, trials_planned=20),
    }
    rows = (
        Row(
            "cl-coral",
            NASTY,
            "tailored",
            "continual",
            cells,
            Cell(1 / 3, over=Over(1, 2)),
            variant="x",
        ),
        Row("mine", "other", "no group", "continual", {"a": Cell(2.0)}),
        Row("tent", "TENT", "adaptation", "adaptation", {"a": Cell(-0.04)}),
    )
    columns = (Column("a", "A_1 & more", generated=True), Column("b", "B", "macro_f1"))
    return Table(f"t_{NASTY}", f"{NASTY} (partial)", NASTY, columns, rows, (NASTY,), partial=True)


def report(overlay: Overlay = PAPER) -> Report:
    facts = Provenance(
        (("farshore", "0.1.0"), (NASTY, NASTY)), ("farshore sweep a_b.yaml --runs x", "# 100%")
    )
    return Report(
        NASTY,
        (
            printed_table("main", overlay),
            partial_table(paper=overlay is PAPER),
            printed_table("runtime", overlay),
        ),
        facts,
        (NASTY,),
    )


def test_every_form_is_found_by_its_suffix() -> None:
    assert set(FORMS) == {".md", ".csv", ".tex"}
    for form in FORMS.values():
        with_paper, without = form(report()), form(report(NO_OVERLAY))
        assert len(with_paper) > len(without)
        assert "2 of 3 seeds" in without
        assert "partial" in without


@pytest.mark.parametrize("ending", [".html", *FORMS])
@pytest.mark.parametrize(("cell", "status"), STATES)
def test_every_form_shows_the_state_of_a_cell(cell: Cell, status: Status, ending: str) -> None:
    row = Row("er", "ER", "replay", "continual", {"x": cell})
    shown = Report("title", (Table("t", "title", "", (Column("x", "X"),), (row,)),))
    text = page(shown) if ending == ".html" else FORMS[ending](shown)
    assert bool(cell.notes) == (status is not Status.DONE)
    for note in cell.notes:
        assert note in text
    if cell.mean is not None:
        assert "5.0" in text
    if ending == ".csv":
        assert next(csv.DictReader(io.StringIO(text)))["status"] == status.value


def test_numbers_as_they_are_shown() -> None:
    assert number(None) == "—"
    assert number(-0.04) == "0.0"
    assert number(-0.04, sign=True) == "+0.0"
    assert number(-1.25, sign=True) == "-1.2"
    assert number(0.0123, 3) == "0.012"


def test_times_get_the_decimals_they_need() -> None:
    def times(*values: float) -> Table:
        return Table(
            "t",
            "t",
            "t",
            (Column("a", "A"),),
            tuple(Row(str(v), "x", "g", "continual", {"a": Cell(v)}) for v in values),
            unit="ms",
        )

    assert times(53.7, 0.15).decimals == 1
    assert times(53.7, 0.05).decimals == 2
    assert times(0.002).decimals == 3
    assert times(0.0001).decimals == 4
    assert printed_table("main").decimals == 1


def test_csv_reads_back_to_the_same_numbers() -> None:
    original = report()
    lines = list(csv.DictReader(io.StringIO(as_csv(original))))
    by_key = {(line["table"], line["row"], line["column"]): line for line in lines}
    assert len(by_key) == len(lines)
    for table in original.tables:
        for row in table.rows:
            for key, cell in row.cells.items():
                line = by_key[table.name, row.key, key]
                for name in ("mean", "error", "paper", "paper_error", "difference"):
                    assert (float(line[name]) if line[name] else None) == getattr(cell, name)
                assert tuple(float(value) for value in line["values"].split()) == cell.values
                assert line["notes"] == "; ".join(cell.notes)
                assert line["status"] == cell.status.value
                assert line["generated"] == str(cell.generated)
                assert line["whole"] == str(table.whole)
            if row.average is not None and row.average.mean is not None:
                assert float(by_key[table.name, row.key, "average"]["mean"]) == row.average.mean
            for name in RANKS:
                if row.ranked:
                    assert float(by_key[table.name, row.key, name]["mean"]) == getattr(row, name)
    assert "paper" not in next(csv.reader(io.StringIO(as_csv(report(NO_OVERLAY)))))


def test_markdown_tables_are_rectangular_and_contain_every_row() -> None:
    text = as_markdown(report())
    blocks = [block for block in text.split("\n\n") if block.startswith("| Method")]
    assert len(blocks) == 3
    for block, table in zip(blocks, report().tables, strict=True):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(widths) == 1
        assert len(block.splitlines()) == 2 + len(table.rows) + len(table.sections()) - 1
    assert "| ★-CL-CORAL | **72.8 ± 2.6** (72.8 ± 2.6; +0.0) |" in text
    assert "*Trained on all sources at once (never ranked)*" in text
    assert r"\[missing\]" in text
    assert "(partial)" in text
    assert "farshore sweep a_b.yaml --runs x" in text
    assert "**Conclusions**" in text


def test_markdown_renders() -> None:
    from markdown_it import MarkdownIt

    tokens = MarkdownIt("commonmark").enable("table").parse(as_markdown(report()))
    kinds = [token.type for token in tokens]
    assert kinds.count("table_open") == 4  # three tables and the facts
    rows = sum(len(table.rows) + len(table.sections()) - 1 for table in report().tables) + len(
        report().provenance.facts
    )
    assert kinds.count("tr_open") == rows + 4
    assert [token.content for token in tokens if token.type == "fence"] == [
        "farshore sweep a_b.yaml --runs x\n# 100%\n"
    ]
    texts = [
        "".join(child.content for child in token.children or ())
        for token in tokens
        if token.type == "inline"
    ]
    assert texts[0] == NASTY
    assert NASTY in texts[1:]


def test_markdown_without_the_papers_numbers() -> None:
    text = markdown_form.markdown_table(printed_table("main", NO_OVERLAY))
    assert "| cl-coral | **72.8 ± 2.6** |" in text
    assert markdown_form.LEGEND in text
    assert markdown_form.LEGEND_PAPER not in text


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


@pytest.mark.parametrize("paper", [True, False])
def test_latex_is_well_formed(paper: bool) -> None:
    text = as_latex(report(PAPER if paper else NO_OVERLAY))
    assert text.isascii()
    assert braces(text) == 0
    begun, ended = re.findall(r"\\begin\{(\w+\*?)\}", text), re.findall(r"\\end\{(\w+\*?)\}", text)
    assert sorted(begun) == sorted(ended)
    body = re.sub(r"\\begin\{verbatim\}.*?\\end\{verbatim\}", "", text, flags=re.DOTALL)
    assert re.search(r"(?<!\\)#", body) is None
    for table in re.findall(
        r"\\begin\{tabular\}\{(l+c*)\}\n(.*?)\\end\{tabular\}", body, flags=re.DOTALL
    ):
        for line in table[1].splitlines():
            if line.endswith(r"\\") and "multicolumn" not in line:
                assert len(re.findall(r"(?<!\\)&", line)) == len(table[0]) - 1
    for line in body.splitlines():
        assert len(re.findall(r"(?<!\\)\$", line)) % 2 == 0
        assert re.search(r"(?<!\\)%.", line) is None  # nothing is commented away
    used = set(re.findall(r"\\rowcolor\{([\w-]+)\}", body))
    assert used <= set(re.findall(r"\\definecolor\{([\w-]+)\}", body))
    assert ("(72.8 $\\pm$ 2.6)" in body) == paper


def test_latex_marks_and_colours_as_the_paper() -> None:
    text = as_latex(Report("main", (printed_table("main"),)))
    assert r"\definecolor{farshore-tailored}{HTML}{BDD3B2}" in text
    assert r"\rowcolor{farshore-tailored} $\bigstar$-CL-CORAL & \textbf{72.8 $\pm$ 2.6}" in text
    assert r"\underline{71.4 $\pm$ 2.6}" in text
    assert r"\dotuline{70.7 $\pm$ 0.5}" in text
    assert r"\multicolumn{12}{l}{\emph{Trained on all sources at once (never ranked)}} \\" in text
    assert text.count(r"\toprule") == text.count(r"\bottomrule") == 1
    letters = as_latex(Report("p", (partial_table(),)))
    assert "$^{a}$$^{b}$$^{c}$" in letters
    assert "$^{a}$~2 of 3 seeds" in letters


@given(some.text())
def test_latex_escapes_anything(text: str) -> None:
    shown = latex_form.escape(text)
    assert shown.isascii()
    assert braces(shown) == 0
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
    assert make_grid(replace(partial_table(), rows=())).sections == []


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
