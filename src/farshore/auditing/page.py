"""The page of an audit: the verdict, an answer per question, tables and figures, in one file."""

from typing import TYPE_CHECKING, Any

from ..report.page import needed, rendered
from ..results.summary import metrics_of, rank
from ..results.verdict import judge
from ..tasks.metrics import percent
from .findings import Findings

if TYPE_CHECKING:
    from .audit import Audit

OF_CLASSES = (
    "In %. Sensitivity: the share of the class's rows that are recognised. Specificity: the share "
    "of the rows of other classes that are not mistaken for it. Means over sites with at least 5 "
    "such rows."
)
OF_SITES = (
    "Score: {unit}by the method chosen without the site. Separation: how well a classifier tells "
    "rows of the site from rows of other sites, as the area under the ROC curve; 0.50 is chance. "
    "Columns: with the largest gap between their distribution functions."
)


def audit_page(done: "Audit", findings: Findings) -> str:
    """The whole page as text."""
    needed()
    from .figures import figures

    return rendered(
        "audit.html",
        figures(findings, done.frame),
        audit=done,
        tables=[each for each in (_class_table(findings), _site_table(findings)) if each["rows"]],
        rankings=[rank(done.frame, name) for name in metrics_of(done.frame)],
        together=judge(done.frame).together,
    )


def _class_table(findings: Findings) -> dict[str, Any]:
    """The title, the header, the rows and the note of a table, for the template."""
    rows = []
    for each in findings.classes:
        lowest = f"{percent(each.lowest_sensitivity)} ({each.lowest_at})"
        cells = [percent(each.sensitivity), lowest if each.lowest_at is not None else "–"]
        rows.append([each.name, f"{each.rows:,}", *cells, percent(each.specificity)])
    title = f"Classes at left-out sites, {findings.choice.method}"
    header = ["class", "rows", "sensitivity", "lowest", "specificity"]
    return {"words": False, "title": title, "header": header, "rows": rows, "note": OF_CLASSES}


def _site_table(findings: Findings) -> dict[str, Any]:
    metric = findings.ranking.metric
    rows = [
        [
            shift.site,
            f"{shift.rows:,}",
            metric.text(findings.scores.get(shift.site)),
            findings.choice.without.get(shift.site, "–"),
            f"{shift.area:.2f}" + ("" if shift.different else " (chance)"),
            ", ".join(map(str, shift.columns[:3])),
        ]
        for shift in findings.shifts
    ]
    header = ["site", "rows", "score", "chosen without it", "separation"]
    header.append("columns that differ most")
    note = OF_SITES.format(unit=f"in {metric.unit.strip()}, " if metric.unit else "")
    return {"title": "Sites", "words": True, "header": header, "rows": rows, "note": note}
