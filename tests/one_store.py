"""Stores of made-up results of one comparison, and what commands print about them.

Nothing is trained: every planned run gets a result, diverges, fails or stays missing.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reporting import VERSIONS
from slow_ranking import Made

from farshore.results.frame import method_group
from farshore.runs.plan.comparison import make_comparison, plan_comparison
from farshore.runs.plan.plan import Planned
from farshore.runs.result import Result, TargetScores
from farshore.runs.store.store import Store

DOMAINS = "abcdef"
CLASSES = ["no", "yes"]
CSV = "t.csv"


def write_csv(folder: Path) -> None:
    """A small table: six domains with four rows each."""
    rows = [
        f"{domain},{number + 3 * place},{CLASSES[number % 2]}"
        for place, domain in enumerate(DOMAINS)
        for number in range(4)
    ]
    (folder / CSV).write_text("\n".join(["d,x,y", *rows]) + "\n")


@dataclass(frozen=True)
class Compared:
    """What is compared: the arguments of the command and of `farshore.compare`."""

    methods: tuple[str, ...]
    targets: tuple[str, ...]
    orders: tuple[str, ...]
    seeds: int
    metric: str

    @property
    def target(self) -> str:
        """One target by its name, several as a person types them."""
        several = len(self.targets) > 1
        return f"each:{'/'.join(self.targets)}" if several else self.targets[0]

    @property
    def command(self) -> str:
        """The command line, without the folder of runs."""
        return (
            f"compare {CSV} --domain d --label y --metric {self.metric} --methods "
            f"{','.join(self.methods)} --target {self.target} --orders {','.join(self.orders)} "
            f"--seeds {self.seeds} --device cpu"
        )

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of `farshore.compare`."""
        return {
            **{"data": CSV, "domain": "d", "label": "y", "metric": self.metric},
            **{"methods": self.methods, "target": self.target, "orders": self.orders},
            **{"seeds": self.seeds, "device": "cpu"},
        }


@dataclass(frozen=True)
class Outcome:
    """What becomes of a run: done, diverged, failed or missing; its scores if it is done."""

    status: str
    score: float
    balanced: float = 0.9


def fill(runs: Path, compared: Compared, outcome_of: Callable[[Planned], Outcome]) -> list[Made]:
    """Write the runs of a comparison into a store, with made-up outcomes."""
    options = {"path": CSV, "domain": "d", "label": "y", "metric": compared.metric}
    comparison = make_comparison(
        {"benchmark": "table", "options": options},
        compared.methods,
        seeds=range(compared.seeds),
        orders=compared.orders,
        target=compared.target,
    )
    store = Store(runs)
    plan = plan_comparison(comparison, store)
    made = []
    for planned in plan.unique().values():
        outcome = outcome_of(planned)
        made.append(_made(planned, outcome))
        folder = store.folder(planned.name)
        folder.path.mkdir()
        config = {"run": planned.run.model_dump(mode="json"), "planned": {"seed": planned.seed}}
        if outcome.status == "failed":
            folder.failure.write_text("it was killed")
        if outcome.status in ("done", "diverged"):
            folder.write_config(config)
            folder.write(_result(planned, made[-1], compared.metric))
    return made


def _made(planned: Planned, outcome: Outcome) -> Made:
    run = planned.run
    target = run.target or planned.condition.target
    listed = tuple(domain for domain in DOMAINS if domain != target)
    return Made(
        run.method,
        method_group(run.method)[1],
        CSV,
        target,
        tuple(run.order or listed),
        planned.seed,
        outcome.score if outcome.status == "done" else None,
        outcome.balanced,
    )


def _result(planned: Planned, made: Made, metric: str) -> Result:
    done = made.score is not None
    sources = list(made.sources)
    rows = [[0.5] * len(sources) for _ in sources]
    # Under any other metric, the order of the methods is the opposite one.
    other = None if made.score is None else 1 - made.score
    scores = {"accuracy": other, "macro_f1": other, "balanced_accuracy": made.balanced}
    scores[metric] = made.score
    target = TargetScores(
        name=made.target,
        rows=10,
        scores=scores,
        confusion=[[7, 0], [3, 0]],
        opened_at="2026-01-01T00:00:00+00:00",
        weights="ab",
    )
    return Result(
        run=planned.run,
        title=CSV,
        kind=made.kind,
        status="done" if done else "diverged",
        metric=metric,
        classes=CLASSES,
        sources=sources,
        settings={},
        run_settings={},
        network={"name": "mlp"},
        steps=2,
        memory=10,
        rows_per_step=[1] * len(sources),
        matrices={"train": rows, "validation": rows} if done else {"train": [], "validation": []},
        stages=sources,
        target=target if done else None,
        seconds={"total": 60.0, "training": 30.0},
        step_milliseconds=[2.0],
        memory_bytes=1,
        memory_items=1,
        method_bytes=1,
        notes=[],
        versions=VERSIONS,
    )


@dataclass(frozen=True)
class Line:
    """What a view shows of one method; numbers as they are printed, in percent."""

    rank: int | None
    mean: float
    error: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    won: str = ""
    guessing: bool = False


@dataclass(frozen=True)
class View:
    """What a view shows of a comparison."""

    lines: dict[str, Line]
    reference: str
    recommended: str


def number(text: str) -> float | None:
    """A printed number; None for a dash or nothing."""
    text = text.replace("\u2212", "-").strip()
    return float(text) if re.fullmatch(r"[-+]?\d+(\.\d+)?", text) else None


def read_terminal(text: str) -> View:
    """The ranking and the recommended method as the terminal shows them."""
    lines = text.splitlines()
    rows: dict[str, Line] = {}
    reference = ""
    start = next((n for n, line in enumerate(lines) if line.startswith("  method ")), None)
    if start is not None:
        header = re.split("  +", lines[start].strip())
        # The first column is aligned to the left, all others to the right.
        ends = [0, *(found.end() for found in re.finditer(r"\S+(?: \S+)*", lines[start]))][2:]
        starts = [0, *(end - len(name) for end, name in zip(ends, header[1:], strict=True))]
        reference = _reference(header)
        for line in lines[start + 2 :]:
            if line and not line.startswith("  "):
                break
            cells = _cells(line, starts, ends, header)
            if cells.get("unseen target"):
                rows |= dict([_line(cells, reference)])
    found = re.search(r"^- Recommended: (\S+?)[.;]?(?: |$)", text, re.MULTILINE)
    return View(rows, reference, found[1] if found else "")


def _cells(
    line: str, starts: Sequence[int], ends: Sequence[int], header: Sequence[str]
) -> dict[str, str]:
    """The cells of a row by heading: every cell ends where its heading ends."""
    words = [(found.end(), found[0]) for found in re.finditer(r"\S+(?: \S+)*", line)]
    cells = {header[1 + ends.index(end)]: word for end, word in words if end in ends}
    if words and words[0][0] not in ends:
        cells[header[0]] = words[0][1]
    return cells


def _line(cells: Mapping[str, str], reference: str) -> tuple[str, Line]:
    mean, _, error = cells["unseen target"].partition(" ± ")
    difference, *ends = re.findall(r"[-+\u2212]?\d+\.\d", cells.get(f"minus {reference}", "")) or [
        ""
    ]
    low, high = map(number, ends) if ends else (None, None)
    name = cells["method"]
    return name.removesuffix(" !"), Line(
        rank=int(cells["rank"]) if cells["rank"] != "-" else None,
        mean=number(mean) or 0.0,
        error=number(error),
        difference=number(difference),
        low=low,
        high=high,
        won=cells.get("better in", ""),
        guessing=name.endswith(" !"),
    )


def read_markdown(text: str) -> View:
    """The table and the recommended method as a report in Markdown shows them.

    A table of one ranked method has no column of ranks: its ranks are read as 0.
    """
    header: list[str] = []
    rows: dict[str, Line] = {}
    for line in text.splitlines():
        cells = [re.sub(r"</?ins>|[*\\]", "", cell).strip() for cell in line.split("|")[1:-1]]
        if cells and cells[0] == "Method" and not header:
            header = cells
        elif header and len(cells) == len(header) and number(cells[1].split(" ")[0]) is not None:
            mean, _, rest = re.sub(r" \[.*", "", cells[1]).partition(" ")
            by_heading = dict(zip(header, cells, strict=True))
            by_heading |= {
                "method": cells[0],
                "unseen target": f"{mean} {rest}" if rest.startswith("±") else mean,
                "rank": by_heading.get("rank", "0").replace("–", "-"),
            }
            rows |= dict([_line(by_heading, _reference(header))])
        elif header and rows and not cells:
            break
    found = re.search(r"^- Recommended: (\S+?)[.;]?(?: |$)", text, re.MULTILINE)
    return View(rows, _reference(header), found[1] if found else "")


def read_page(text: str) -> View:
    """The first ranking and the recommended method as a page shows them."""
    rows: dict[str, Line] = {}
    ranking = re.search(r"<table>.*?</table>", text.partition('<section class="ranking"')[2], re.S)
    table = ranking[0] if ranking else ""
    header = [_words(cell) for cell in re.findall(r'<th scope="col">(.*?)</th>', table)]
    names = [name.replace("Minus ", "minus ") for name in header]
    names[:3] = ["method", "rank", "unseen target"]
    for row in re.findall(r'<tr class="row.*?</tr>', table, re.S):
        cells = [_words(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S)]
        by_heading = dict(zip(names, cells, strict=True))
        if number(cells[2].split(" ")[0]) is None:
            continue
        by_heading["method"] = by_heading["method"].replace(" no better than guessing", " !")
        by_heading["rank"] = by_heading["rank"].replace("–", "-")
        rows |= dict([_line(by_heading, _reference(names))])
    found = re.search(r"Recommended: (\S+?)[.;]?(?: |$)", _words(text))
    return View(rows, _reference(names), found[1] if found else "")


def _reference(header: Sequence[str]) -> str:
    return next((name[6:] for name in header if name.startswith("minus ")), "")


def _words(text: str) -> str:
    """The words of a piece of HTML, with one space between them."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


def read_audit(values: Mapping[str, Any]) -> View:
    """The ranking and the recommended method of an audit in JSON."""

    def percent(each: Mapping[str, Any] | None, name: str) -> float | None:
        return 100 * each[name] if each is not None and each[name] is not None else None

    rows = {
        each["method"]: Line(
            rank=each["rank"],
            mean=100 * each["mean"],
            error=percent(each, "error"),
            difference=percent(each["difference"], "mean"),
            low=percent(each["difference"], "low"),
            high=percent(each["difference"], "high"),
            guessing=each["guessing"],
        )
        for each in values["methods"]
        if each["mean"] is not None
    }
    recommended = values["recommendation"]
    return View(rows, values["reference"], recommended["row"] if recommended else "")
