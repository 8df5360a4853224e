"""Every table and figure of the paper: our verdicts, their unit and n, and what has not run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from farshore.runs.plan.experiment import read_experiment
from reproduction import EXPERIMENTS
from reproduction.compared import BENCHMARKS
from reproduction.finished_runs import rows_of
from reproduction.formatting import markdown
from reproduction.sections.claims import CLAIMS, Claim, judged

# What the head of the page explains.
IMAGES, SEARCH = "*images*", "*search*"
STEP_TIMES = "experiment `step_time` (a GPU)"
# The paper's search with drawn orders has run on this data set on a CPU and told its seconds.
TIMED = "covertype-natural"


@dataclass(frozen=True)
class PaperTable:
    """A table or figure of the paper that shows results.

    data: its name in paper_tables.csv, empty for a figure without printed numbers. claims: how the
    claims that rest on it begin. page: where our numbers are. needs: what of it has not run.
    searched: our experiment with the paper's settings, whose cost on covertype is told.
    """

    title: str
    data: str
    claims: tuple[str, ...]
    page: str
    needs: str
    searched: str = ""


PAPER_TABLES = (
    PaperTable(
        "main results",
        "target_main",
        (
            "tailored methods beat optimisation",
            "tailored methods beat regularisation",
            "tailored methods beat replay",
            "methods rank",
            "tailored methods take",
        ),
        "orders",
        IMAGES,
        "main",
    ),
    PaperTable(
        "in-domain performance (figure and appendix table)",
        "source",
        ("on the sources,",),
        "claims",
        IMAGES,
    ),
    PaperTable(
        "naive extensions (main text and appendix)",
        "target_naive",
        ("naive forms beat", "AGEM, ER-ACE and SI"),
        "orders",
        IMAGES,
        "naive",
    ),
    PaperTable(
        "improvement over the naive forms (figure and appendix table)",
        "",
        ("tailored methods beat their naive",),
        "orders",
        IMAGES,
    ),
    PaperTable(
        "adaptation to the target (CDA, CTTA)",
        "target_vs_adaptation",
        ("tailored methods beat adaptation",),
        "orders",
        f"{IMAGES}; {SEARCH}",
    ),
    PaperTable("backward transfer", "backward_transfer", ("backward",), "transfer", IMAGES),
    PaperTable("run times", "runtime_minutes", ("tailored methods train",), "run-time", IMAGES),
    PaperTable("time of a step (three figures)", "", (), "run-time", STEP_TIMES),
    PaperTable(
        "no alignment",
        "ablation_no_alignment",
        ("alignment helps",),
        "ablations",
        SEARCH,
        "no_alignment",
    ),
    PaperTable(
        "dynamic priors", "ablation_dynamic_priors", ("static priors",), "ablations", SEARCH
    ),
    PaperTable(
        "memory of 50% (figure and appendix table)",
        "buffer_50",
        ("with 50% of the memory",),
        "ablations",
        f"STAR; {IMAGES}; {SEARCH}",
    ),
    PaperTable(
        "memory of 25% (figure and appendix table)",
        "buffer_25",
        ("with 25% of the memory",),
        "ablations",
        f"STAR; {IMAGES}; {SEARCH}",
    ),
    PaperTable(
        "other target",
        "other_target",
        ("with another target",),
        "ablations",
        f"AGEM, UPGD, EWC, SI and STAR; {IMAGES}; {SEARCH}",
    ),
    PaperTable(
        "half the steps",
        "half_budget",
        ("with half the steps",),
        "ablations",
        f"AGEM, UPGD, EWC, SI and STAR; {IMAGES}; {SEARCH}",
    ),
    PaperTable(
        "sensitivity to λ and β (two figures)",
        "",
        ("tailored methods are robust",),
        "sensitivity",
        "experiment `sensitivity` on wm811k (a GPU)",
    ),
    PaperTable(
        "feature space of RotatedMNIST (figure)",
        "",
        (),
        "features",
        "experiment `feature_space`, after the search of `main`",
    ),
    PaperTable(
        "feature space of Camelyon17 (figure)",
        "",
        (),
        "features",
        "Camelyon17, which cannot be had here, and a GPU",
    ),
)


def claims_of(paper_table: PaperTable) -> list[Claim]:
    """The claims that rest on a table."""
    return [claim for claim in CLAIMS if claim.text.startswith(paper_table.claims or ("\n",))]


def tables_section() -> str:
    """One row per table or figure of the paper that shows results."""
    rows = []
    for each in PAPER_TABLES:
        found = [judged(claim) for claim in claims_of(each)]
        verdicts = Counter(words.strip("*") for _, words in found)
        said = ", ".join(f"{count} {words}" for words, count in verdicts.most_common())
        units = []
        for place, benchmark in enumerate(BENCHMARKS):
            kinds = dict.fromkeys(of[place].n for of, _ in found if of[place] is not None)
            if kinds:
                units.append(f"{benchmark}: {', '.join(kinds)}")
        needs = f"not run: needs {each.needs}"
        if each.searched:
            needs += f"; as printed on covertype, {as_printed(each.searched)}"
        title = f"[{each.title}](reproduction/{each.page}.md)" if units else each.title
        rows.append([title, said or "**not run**", "; ".join(units) or "-", needs])
    return markdown(["the paper", "claims on it", "unit and n", "what is not run"], rows)


def as_printed(experiment: str) -> str:
    """What an experiment as the paper prints it needs on covertype.

    The seconds are those of the search with drawn orders on as many rows, on a CPU.
    """
    runs, timed = runs_on("covertype", experiment), rows_of("paper_protocol", TIMED)
    timed = timed[timed["device"] == "cpu"]
    seconds = timed.groupby("method")["seconds_of_training"].mean()
    hours = sum(count * float(seconds[method]) for method, count in runs.items()) / 3600
    return f"{sum(runs.values()):,} runs, {hours:.1f} core-hours of training"


def runs_on(benchmark: str, experiment: str) -> Mapping[str, int]:
    """The runs that an experiment has on a data set, by method: trials times seeds."""
    read = read_experiment(EXPERIMENTS / f"{experiment}.yaml")
    found: Counter[str] = Counter()
    for part in read.parts:
        search = part.search or read.search
        if benchmark in part.benchmarks:
            found.update(dict.fromkeys(part.systems, search.trials * len(search.run_seeds)))
    return found
