"""Write and execute docs/tutorial.ipynb, the tutorial of the documentation site.

    python -m reproduction.pages.tutorial

The cells are below; the outputs in the notebook are those of this run.
"""

from __future__ import annotations

import os
import tempfile

import nbformat
from nbclient import NotebookClient

from reproduction import DOCS

NOTEBOOK = DOCS / "tutorial.ipynb"
TEXT, CODE = "text", "code"
CELLS: list[tuple[str, str]] = [
    (
        TEXT,
        """# A tour in one notebook

Four hospitals, one classifier, and a hospital that nobody has seen: each of the four takes that
role in turn. The data come with the package (UCI Heart Disease, 920 patients). Everything runs on a
CPU in a minute or two.""",
    ),
    (
        CODE,
        """from importlib.resources import files

import pandas as pd

import farshore

heart = pd.read_csv(files("farshore.benchmarks") / "files" / "heart.csv", na_values="?")
heart["disease"] = (heart.pop("num") > 0).map({True: "yes", False: "no"})
heart.groupby("hospital")["disease"].value_counts().unstack()""",
    ),
    (
        TEXT,
        """The hospitals differ: in Switzerland almost every patient is ill. That is what makes the
next hospital hard.

## Compare methods

Every hospital is left out in turn, and the three others are learned one after another, in two
orders. The table is ranked by the score at the hospital that was left out. `difference` is the
method's score minus that of `er`, with a 95% interval over hospitals.""",
    ),
    (
        CODE,
        """comparison = farshore.compare(
    heart,
    domain="hospital",
    label="disease",
    methods=["finetune", "er", "ridge", "best", "majority"],
    orders=["listed", "reversed"],
    seeds=1,
)
columns = ["rank", "method", "score", "worst", "worst_target", "difference", "low", "high"]
comparison.table[columns].round(3)""",
    ),
    (
        TEXT,
        """Fine-tuning depends on which hospital came last. With only four hospitals the intervals
are wide: the table ranks the methods, but it does not prove the ranking.

## Learn one hospital after another

A learner sees one hospital at a time. It can be saved and opened again weeks later, in another
process.""",
    ),
    (
        CODE,
        """by_hospital = {}
for name, rows in heart.groupby("hospital"):
    by_hospital[name] = rows.drop(columns="hospital")

learner = farshore.Learner(method="best", memory=150, seed=0)
for name in ("cleveland", "hungarian"):
    rows = by_hospital[name]
    learner.learn(rows.drop(columns="disease"), rows["disease"], domain=name)
learner.save("model")

learner = farshore.load("model")
rows = by_hospital["switzerland"]
learner.learn(rows.drop(columns="disease"), rows["disease"], domain="switzerland")
[domain["name"] for domain in learner.domains]""",
    ),
    (
        TEXT,
        """Now the hospital that it has never seen:""",
    ),
    (
        CODE,
        """new = by_hospital["va"]
predicted = learner.predict(new.drop(columns="disease"))
pd.crosstab(new["disease"], pd.Series(predicted, index=new.index, name="predicted"))""",
    ),
    (
        TEXT,
        """## What to read next

- *Audit* tells you what score to expect at a new site, with an interval, and which method to use.
- *Deployment* has the commands for a model in a folder: `learn`, `predict`, `undo`, `forget`.
- *Concepts* explains order, target, leak, replay, invariance and prior with one figure each.""",
    ),
]


def notebook() -> nbformat.NotebookNode:
    """The notebook without outputs."""
    cells = [
        nbformat.v4.new_markdown_cell(source) if kind == TEXT else nbformat.v4.new_code_cell(source)
        for kind, source in CELLS
    ]
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    made = nbformat.v4.new_notebook(cells=cells)
    made.metadata["kernelspec"] = {
        "display_name": "Python 3",
        "name": "python3",
        "language": "python",
    }
    return made


def executed() -> nbformat.NotebookNode:
    """The notebook with the outputs of this machine, run in an empty folder."""
    made = notebook()
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(made, timeout=600, resources={"metadata": {"path": folder}}).execute()
    for cell in made.cells:
        cell.metadata.pop("execution", None)  # times
    made.metadata.pop("language_info", None)
    return made


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    nbformat.write(executed(), NOTEBOOK)
