"""One frame of runs: a row per run, planned or done. Everything that shows results asks this frame.

| column | what it is |
|---|---|
| `run` | the name of the run's folder |
| `experiment`, `part` | the recorded experiment and the number of its part; else `runs` |
| `benchmark` | the benchmark, or the file or folder of own data |
| `method`, `variant`, `row` | the method, what distinguishes rows of a method, and its name |
| `group`, `kind` | of the method; only `continual` methods are ranked |
| `target` | the unseen domain |
| `order`, `last_source` | the sources as they were learned; `drawn` if each seed draws an order |
| `sources` | the sources as this run learned them |
| `condition`, `seed`, `trial` | position in the plan; runs of a seed differ in the trial alone |
| `held_out` | the source that a run leaves out to judge its trial; otherwise empty |
| `status` | done, diverged, pruned, or missing: planned, but without a result |
| `selected` | whether the run counts, see `farshore.results.select` |
| `metric`, `score` | the main score on the target, unscaled; all targets of own data share one |
| `accuracy` ... `skill` | every score on the target |
| `classes`, `guess` | number of classes, 0 for numbers; the score of always predicting the most
frequent one, or the sources' mean |
| `result`, `config` | the whole result; what is recorded beside it |
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from ..benchmarks import BENCHMARKS
from ..errors import FarshoreError
from ..runs import catalog
from ..runs.plan.experiment import Part
from ..runs.plan.plan import Plan, Planned
from ..runs.plan.select import DRAWN
from ..runs.result import Result
from ..runs.run import Run
from ..runs.store.store import Store, checked_config
from ..tasks.metrics import METRICS, guess_score

# The metric of own data whose runs chose different ones, each by its own sources.
SHARED_METRIC = "macro_f1"
# The experiment of runs that belong to none.
ALONE = "runs"
SEPARATOR = " → "
COLUMNS = (
    *("run", "experiment", "part", "benchmark", "method", "variant", "row", "group", "kind"),
    *("target", "order", "last_source", "sources", "condition", "seed", "trial", "held_out"),
    *("status", "selected", "metric", "score", *METRICS, "classes", "guess", "result", "config"),
)
# Fields of a part that distinguish rows of the same method in different parts.
CONDITIONS = (
    *("target", "steps", "memory", "settings", "at_most", "search", "settings_from", "best_seed"),
)
# Fields of a run without a plan that distinguish rows of the same method.
NAMES = frozenset({"steps", "memory", "network"})


def frame_of_plan(plan: Plan, store: Store, *, name: str = "") -> pd.DataFrame:
    """The runs of a plan, `missing` if without a result; `name`: under which it is recorded."""
    variants = _Variants(plan.experiment.parts if plan.experiment is not None else ())
    rows, experiment = [], name or plan.name or ALONE
    for planned in plan.runs:
        variant, condition = variants.find(planned), planned.condition
        if variant is None:  # the same run in another part
            continue
        folder = store.folder(planned.name)
        result = folder.read() if folder.finished() else None
        config = checked_config(folder.read_config()) if result is not None else {}
        row = _row(planned.name, planned.run, result, config)
        row |= {
            "experiment": experiment,
            "part": condition.part,
            "benchmark": condition.benchmark,
            "variant": variant,
            "condition": str(condition),
            "seed": planned.seed,
            "trial": planned.trial,
            "held_out": planned.held_out or "",
        }
        row |= {"order": DRAWN, "last_source": ""} if condition.order == DRAWN else {}
        rows.append((row, planned))
    return _frame([*_with_missing(rows), *_not_plannable(plan, experiment)])


def _not_plannable(plan: Plan, experiment: str) -> list[dict[str, Any]]:
    """A row for each method of a benchmark whose runs cannot be planned here or now."""
    parts = plan.experiment.parts if plan.experiment is not None else ()
    keys = [(each.method, each.benchmark) for each in plan.waiting]
    for part in parts:
        absent = [data.title for data in part.data if data.title in plan.absent]
        keys += [(method, title) for title in absent for method in part.systems]
    rows = [_empty_row("", *key) for key in dict.fromkeys(keys)]
    for row in rows:
        row |= {"experiment": experiment, "condition": f"{row['method']} on {row['benchmark']}"}
    return rows


def frame_of_results(
    results: Iterable[tuple[str, Result, Mapping[str, Any]]], *, alone: bool = False
) -> pd.DataFrame:
    """Runs without a plan; `alone` ignores what planned them and that they may judge a trial."""
    rows = []
    for name, result, config in results:
        planned = {} if alone else config.get("planned") or {}
        row = _row(name, result.run, result, config)
        judges = result.run.held_out and not alone
        row |= {
            "experiment": str(planned.get("experiment") or ALONE),
            "seed": int(planned.get("seed", result.run.seed)),
            "trial": int(planned.get("trial", 0)),
            "held_out": (result.run.target or "held out") if judges else "",
        }
        rows.append(row)
    frame = _frame(rows)
    return _with_conditions(frame) if len(frame) else frame


def row_name(method: str, variant: str) -> str:
    """The name of a row: the method as it is typed, and what distinguishes it from others of it."""
    return f"{method} ({variant})" if variant else method


def whole(frame: pd.DataFrame) -> bool:
    """Whether every planned run has ended."""
    return not (frame["status"] == "missing").any()


def _frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    return _named(pd.DataFrame(_in_one_metric(rows), columns=list(COLUMNS)))


def _in_one_metric(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows with one metric for all runs on the same data in an experiment.

    The rarest class decides the metric of own data, and each run looks for it in its own sources
    only. It selects by this metric, which its result keeps; here, the targets must be comparable.
    """
    chosen: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        if row["metric"] and not row["held_out"]:
            chosen.setdefault((row["experiment"], row["benchmark"]), set()).add(row["metric"])
    mixed = {place for place, metrics in chosen.items() if len(metrics) > 1}
    return [
        {**row, **_scores(row["result"], SHARED_METRIC)}
        if not row["held_out"] and (row["experiment"], row["benchmark"]) in mixed
        else row
        for row in rows
    ]


def _scores(result: Result | None, metric: str) -> dict[str, Any]:
    """The main score on the target in this metric, and that of the most frequent class."""
    if result is None or result.target is None:
        return {"metric": metric}
    scores, counts = result.target.scores, [sum(of) for of in result.target.confusion]
    guess = guess_score(metric, counts, scores)
    return {"metric": metric, "score": scores.get(metric), "guess": guess}


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(row=list(map(row_name, frame["method"], frame["variant"])))


def _row(name: str, run: Run, result: Result | None, config: Mapping[str, Any]) -> dict[str, Any]:
    """What a run and its result say, without its position in a plan."""
    sources = (run.order or ()) if result is None else result.sources
    row = _empty_row(name, run.method, run.benchmark) | {
        **dict.fromkeys(("order", "sources"), SEPARATOR.join(sources)),
        "last_source": sources[-1] if sources else "",
        "target": run.target or "",
        "seed": run.seed,
        "config": config,
    }
    if result is None:
        return row
    row |= {
        "benchmark": result.title,
        "kind": result.kind,
        "status": result.status,
        "classes": len(result.classes),
        "result": result,
        **_scores(result, result.metric),
    }
    if result.target is not None:
        scores = {key: value for key, value in result.target.scores.items() if key in METRICS}
        row |= {"target": result.target.name} | scores
    return row


def results_in_metric(frame: pd.DataFrame) -> pd.Series:
    """The results of the finished runs of a frame, in the metric that the frame has for them."""
    runs = frame[frame["result"].notna()]
    shown = [
        result.model_copy(update={"metric": metric or result.metric})
        for result, metric in zip(runs["result"], runs["metric"], strict=True)
    ]
    return pd.Series(shown, index=runs.index, dtype=object)


def _empty_row(name: str, method: str, benchmark: str) -> dict[str, Any]:
    """A run of which nothing is known but these."""
    group, kind = method_group(method)
    texts = ("variant", "target", "order", "last_source", "sources", "condition", "held_out")
    return {
        **dict.fromkeys(COLUMNS),
        **dict.fromkeys((*texts, "metric"), ""),
        **dict.fromkeys(("part", "seed", "trial"), 0),
        "run": name,
        "experiment": ALONE,
        "benchmark": benchmark,
        "method": method,
        "group": group,
        "kind": kind,
        "status": "missing",
        "selected": False,
        "config": {},
    }


def _with_missing(rows: Sequence[tuple[dict[str, Any], Planned]]) -> list[dict[str, Any]]:
    """Give runs without a score what runs beside them say: target and metric, order and sources."""
    of_target, of_order = ("target", "metric", "classes"), ("order", "sources", "last_source")
    known: dict[tuple[str, ...], dict[str, Any]] = {}
    for row, planned in rows:
        if row["score"] is not None and not row["held_out"]:
            target, order = _places(planned)
            known.setdefault(target, {key: row[key] for key in of_target})
            known.setdefault(order, {key: row[key] for key in of_order})
    for row, planned in rows:
        if row["score"] is None and not row["held_out"]:
            for place in _places(planned):
                row |= known.get(place, {})
            row["target"] = row["target"] or planned.condition.target
    return [row for row, _ in rows]


def _places(planned: Planned) -> tuple[tuple[str, ...], tuple[str, ...]]:
    condition = planned.condition
    target = condition.benchmark, condition.target
    return target, (*target, condition.order)


class _Variants:
    """What distinguishes rows of one method: the varied setting, and parts that differ."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts
        self.first: dict[tuple[str, ...], tuple[int, set[str]]] = {}

    def find(self, planned: Planned) -> str | None:
        """The variant of a run; None if an earlier part has the same run."""
        condition = planned.condition
        key = (condition.method, condition.varied, condition.benchmark, condition.target)
        part, names = self.first.setdefault((*key, condition.order), (condition.part, set()))
        if part == condition.part:
            names.add(planned.name)
            return condition.varied
        if planned.name in names:
            return None
        differing = _difference(self.parts[part], self.parts[condition.part])
        return ", ".join(filter(None, (condition.varied, differing)))


def _difference(first: Part, other: Part) -> str:
    differing = []
    for name in CONDITIONS:
        if (value := getattr(other, name)) != getattr(first, name):
            shown = "as usual" if value is None else str(value)
            if isinstance(value, Mapping):
                shown = " ".join(f"{key}={item}" for key, item in value.items())
            differing.append(f"{name} {shown}")
    return ", ".join(differing) or "again"


def _with_conditions(frame: pd.DataFrame) -> pd.DataFrame:
    """Runs without a plan: what differs between those on one benchmark names their rows."""
    alone = frame["experiment"] == ALONE
    texts = [_condition(r.run, a) for r, a in zip(frame["result"], alone, strict=True)]
    groups = pd.Series(texts, index=frame.index).groupby([frame["experiment"], frame["benchmark"]])
    several = groups.transform("nunique") > 1
    frame["variant"] = [text if use else "" for text, use in zip(texts, several, strict=True)]
    frame = _named(frame)
    parts = zip(*(frame[name] for name in ("benchmark", "row", "target", "order")), strict=True)
    frame["condition"] = ["\t".join(map(str, each)) for each in parts]
    # Runs that no plan numbers are the trials of their seed, in the order of their names.
    again = frame.groupby(["experiment", "condition", "seed", "held_out"], sort=False).cumcount()
    frame["trial"] = frame["trial"].where(~alone, again)
    return frame


def _condition(run: Run, alone: bool) -> str:
    """Options of a run that name its row; `alone`: with settings, which nothing searched."""
    changed = run.model_dump(include=set(NAMES), exclude_defaults=True, mode="json")
    known = run.benchmark in BENCHMARKS
    paths = BENCHMARKS.get(run.benchmark).path_options if known else frozenset()
    options = {name: value for name, value in run.options.items() if name not in paths}
    values = {**changed, **options, **run.network_settings, **(run.settings if alone else {})}
    return ", ".join(
        f"{name} {'>'.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in values.items()
    )


_GROUPS: dict[str, tuple[str, str]] = {}


def method_group(method: str) -> tuple[str, str]:
    """Group and kind of a method; one that is not installed is continual, in the group `other`."""
    if method not in _GROUPS:  # cached, because looking for plugins takes milliseconds
        try:
            system = catalog.find(method)
        except FarshoreError:
            return "other", "continual"
        _GROUPS[method] = system.group, system.kind
    return _GROUPS[method]
