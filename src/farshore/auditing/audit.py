"""`farshore.audit`: what to expect at a site that nobody has seen, and which method to use.

It plans, carries out and records the same runs as `farshore audit`, which are those of a comparison
with every domain as the target in turn: each of the three can resume the runs of the others.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pandas as pd

from ..base.files import write_inside
from ..base.notebook import html_table
from ..benchmarks import make_benchmark
from ..benchmarks.own.own import OwnBenchmark
from ..comparing import carry_out_quietly, find_data
from ..deployment.unlike import read_sites
from ..errors import FarshoreError
from ..methods.optimization import choose_device
from ..report.plots import check_plotly, on_white
from ..report.provenance import provenance
from ..results.describe import conditions as conditions_of
from ..results.frame import frame_of_plan
from ..results.next_step import deploy
from ..results.select import select
from ..results.summary import rank
from ..runs.plan.commands import assignments, data_words, setting_words
from ..runs.plan.comparison import plan_comparison, record_comparison
from ..runs.plan.plan import Plan
from ..runs.plan.select import select_methods
from ..runs.store.store import Store
from ..tasks.labels import FROM_FILE
from ..tasks.metrics import listed, several
from .answers import answers, too_few, verdict
from .climb import SHARE, Climb
from .decision import Readiness
from .designs import check_design, plan_designs, to_climb, what_is_left_out
from .findings import Findings, TooFew, check_enough, find_all
from .from_sums import METHODS as SUMMED
from .from_sums import FromSums, answer_from_sums, from_sums

if TYPE_CHECKING:
    import plotly.graph_objects as go

FORMS = (".html", ".json")
FEW = f"{Readiness.FEW[0].upper()}{Readiness.FEW[1:]}."


@dataclass(frozen=True, repr=False)
class Audit:
    """A finished audit.

    findings: the numbers, or why there is too little data for any.
    frame: a row per run, see `farshore.results.frame`.
    decision: whether to deploy, and why, in one sentence.
    verdict: what to expect at a new site, in one sentence.
    conditions: what was measured, in one line.
    design: the name of the design, and what it leaves out, in one line.
    answers: the answers by question.
    next_step: the command to type next, and what for.
    sums: what the sums of the sites say, by method, for tables.
    command: the command line of the same audit.
    """

    title: str
    findings: Findings | TooFew
    decision: str
    verdict: str
    conditions: str = ""
    design: tuple[str, str] = ("", "")
    answers: Mapping[str, str] = field(default_factory=dict)
    next_step: tuple[str, str] = ("", "")
    sums: Mapping[str, FromSums] = field(default_factory=dict)
    command: str = ""
    frame: pd.DataFrame = field(default_factory=pd.DataFrame, compare=False)

    def __repr__(self) -> str:
        return f"Audit of {self.title}: {self.decision} {self.verdict}"

    def _repr_html_(self) -> str:
        """For notebooks: the decision, and the answers by question."""
        return html_table(repr(self), [], list(self.answers.items()))

    def plot(self) -> go.Figure:
        """The first figure of the page: what to expect at a new site (plotly)."""
        if isinstance(self.findings, TooFew):
            raise FarshoreError(f"there is nothing to draw: {self.verdict}")
        check_plotly()
        from .figures import expected_scores

        return on_white(expected_scores(self.findings).views[0].figure)

    @property
    def facts(self) -> dict[str, str]:
        """Where the numbers come from: versions, machine, dates, checksums of the data."""
        return dict(provenance(self.frame, {}).facts) if len(self.frame) else {}

    def plain(self) -> dict[str, Any]:
        """All numbers as plain values, for JSON."""
        sums = {name: each.plain() for name, each in self.sums.items()}
        said = {"decided": self.decision, "verdict": self.verdict, "next": self.next_step[0]}
        made = {"design": self.design[0], "command": self.command, "made": self.facts}
        told = {**said, **made, "from_sums": sums}
        return self.findings.plain() | {name: value for name, value in told.items() if value}

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write a page (.html) or all numbers (.json); return the path."""
        out = Path(path)
        if out.suffix not in FORMS:
            raise FarshoreError(f"{str(out)!r} is not allowed: end it in {' or '.join(FORMS)}")
        if out.suffix == ".json":
            text = json.dumps(self.plain(), indent=1)
        elif isinstance(self.findings, TooFew):
            raise FarshoreError(f"there is no page to write: {self.verdict}")
        else:
            from .page import audit_page

            text = audit_page(self, self.findings)
        write_inside(out.parent, out, text.encode())
        return out


def audit(
    data: Any,
    *,
    domain: str | None = None,
    label: str | None = None,
    methods: Sequence[str] | str | None = None,
    orders: Sequence[str] | str | None = None,
    seeds: int = 1,
    steps: int | None = None,
    memory: int | None = None,
    minutes: float | None = None,
    design: str | None = None,
    network: str | None = None,
    network_settings: Mapping[str, Any] = MappingProxyType({}),
    settings: Mapping[str, Any] = MappingProxyType({}),
    runs: str | os.PathLike[str] = "runs",
    workers: int = 1,
    device: str = "auto",
    name: str = "frame",
    progress: bool = False,
    **options: Any,
) -> Audit:
    """Say what to expect at a new site, and which method to use there.

    Every domain is left out in turn. Runs that are already in the folder `runs` are not repeated.

    data: a data frame (pandas, Polars or Arrow), the path of a table or of a folder of images, or
        the name of a benchmark.
    domain, label: the columns of a table with the site and with the class.
    methods: candidates; added for reference are majority, joint and, for tables, joint-linear,
        joint-forest and joint-trees. By default `finetune`, `er`,
        two tailored methods, `ridge`, `slda`, `trees` and `auto`. The default method of `learn`,
        `slda` (of numbers `ridge`), is recommended unless another one is certainly better.
    orders: orders of the sources, written as for `farshore compare --orders`; by default listed and
        reversed, or chronological if there is a time column.
    minutes: how long it may take, by default 10. The highest design of the ladder that fits is
        carried out: glance, small, medium, large or full (docs/audit.md says what they are). More
        minutes continue. With `workers` 1, a run that has begun is not interrupted.
    design: exactly this one, however long it takes.
    settings: for example {"train": "all"}: train the whole network on your images.
    seeds, steps, memory, network, network_settings, workers, name, progress, options: as for
        `farshore.compare`.
    """
    methods, orders = ([each] if isinstance(each, str) else each for each in (methods, orders))
    folder = Path(runs)
    given = {"domain": domain, "label": label, **options}
    benchmark, chosen = find_data(data, given, folder, name)

    def perform(plan: Plan, store: Store) -> None:
        failures = carry_out_quietly(plan, store, workers, progress)
        if failures:
            raise FarshoreError(
                f"{len(failures)} runs failed, but an audit needs all of them: {failures[0]}"
            )

    of_network = {"network": network, "network_settings": dict(network_settings)}
    return carry_out_audit(
        {"benchmark": benchmark, "options": chosen, **of_network},
        methods,
        store=Store(folder),
        perform=perform,
        say=lambda text: print(text, file=sys.stderr) if progress else None,
        device=choose_device(device),
        workers=workers,
        minutes=minutes,
        design=design,
        orders=orders,
        seeds=seeds,
        steps=steps,
        memory=memory,
        settings=settings,
    )


def carry_out_audit(
    data: Mapping[str, Any],
    methods: Sequence[str] | None,
    *,
    store: Store,
    perform: Callable[[Plan, Store], object],
    say: Callable[[str], None],
    device: str,
    workers: int | None,
    minutes: float | None,
    design: str | None,
    **conditions: Any,
) -> Audit:
    """Plan an audit's runs, have `perform` carry them out, and compute the findings.

    say: told the first answers, of every design that is finished on the way.
    """
    deadline = time.monotonic() + SHARE * 60 * check_design(minutes, design)
    name, options = str(data["benchmark"]), data["options"]
    benchmark = make_benchmark(name, options)
    absent = benchmark.missing()
    if absent is not None:
        raise FarshoreError(f"{benchmark.title} is not available here: {absent}")
    note = ""
    if isinstance(benchmark, OwnBenchmark):  # first: other checks would hide this reason
        facts = benchmark.read_facts()
        named = facts["domain"].value_counts()
        counts = {str(site): int(count) for site, count in named.items()}
        few = check_enough(benchmark.title, counts, list(counts))
        if few is not None:
            return Audit(few.title, few, FEW, too_few(few))
        alone = [] if options.get("classes") is not None else benchmark.classes_of_one_domain()
        if alone:
            options = {**options, "classes": FROM_FILE}
            data, benchmark = {**data, "options": options}, make_benchmark(name, options)
            which = f"class{'es' if len(alone) > 1 else ''} {listed(alone)}"
            note = f"One site alone has {which}: while it is left out, these rows count as errors."
    targets = list(benchmark.each_target())
    sites = read_sites(name, options)
    few = check_enough(benchmark.title, sites.counts, targets)
    if few is not None:
        return Audit(few.title, few, FEW, too_few(few))
    candidates = None if methods is None else select_methods(methods)
    designs = plan_designs(data, benchmark, targets, candidates, **conditions)
    full = designs["full"].parts[0]
    sums: dict[str, FromSums] = {}
    if benchmark.network == "mlp":  # of images, features would have to be computed first
        for method in (each for each in SUMMED if each in full.methods):
            known = from_sums(benchmark, method, conditions.get("settings"))
            if known is not None:
                sums[method] = known
                say(known.line())
    if design is not None:
        plan = plan_comparison(designs[design], store, device=device)
        perform(plan, store)
    else:
        climb = Climb(
            store=store,
            make=lambda each: plan_comparison(each, store, device=device, record=False),
            designs=to_climb(designs, benchmark, len(targets)),
            deadline=deadline,
            steps=benchmark.usual_steps(),
            slots=workers,
            done=lambda name, plan: say(first_answers(name, plan, store)),
        )
        perform(climb, store)
        design, plan = climb.highest()
        plan.experiment = record_comparison(designs[design], store.runs)
    frame = select(frame_of_plan(plan, store), plan.selection)
    missing = int((frame["status"] == "missing").sum())
    if missing:
        raise FarshoreError(
            f"{missing} of {len(frame)} runs have no result, but an audit needs all of them: run "
            "the same audit again to retry them"
        )
    findings = find_all(frame, sites, in_time=benchmark.ordered_by_time)
    left_out = what_is_left_out(design, designs[design].parts[0], full, len(targets))
    return Audit(
        findings.title,
        findings,
        findings.decision.sentence,
        verdict(findings),
        " ".join(filter(None, (conditions_of(frame), note))),
        (design, left_out),
        answers(findings) | answer_from_sums(sums),
        deploy(designs[design], findings.recommendation),
        sums,
        _command(data, methods, design, conditions),
        frame,
    )


def _command(
    data: Mapping[str, Any],
    methods: Sequence[str] | None,
    design: str,
    conditions: Mapping[str, Any],
) -> str:
    """The command line of the same audit."""
    words = ["farshore", "audit", *data_words(str(data["benchmark"]), data["options"])]
    for name, values in {"methods": methods, "orders": conditions.get("orders")}.items():
        words += [f"--{name}", ",".join(values)] if values is not None else []
    for name, usual in {"steps": None, "memory": None, "seeds": 1}.items():
        value = conditions.get(name, usual)
        words += [f"--{name}", str(value)] if value not in (None, usual) else []
    if data.get("network") is not None:
        words += ["--network", data["network"]]
    words += assignments("--network-set", data.get("network_settings") or {})
    return shlex.join([*words, *setting_words(conditions["settings"]), "--design", design])


def first_answers(design: str, plan: Plan, store: Store) -> str:
    """The mean scores of a finished design, in one line."""
    ranking = rank(select(frame_of_plan(plan, store), plan.selection))
    means = [
        f"{each.row} {ranking.metric.text(each.estimate.mean)}{ranking.metric.unit}"
        for each in ranking.ranked
        if each.estimate is not None
    ]
    sites = len({planned.condition.target for planned in plan.runs})
    return f"design {design}, mean over {several(sites, 'left-out site')}: {listed(means)}"
