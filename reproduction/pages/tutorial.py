"""Write and execute docs/tutorial.ipynb, the tutorial of the documentation site.

    python -m reproduction.pages.tutorial            # `make docs` does this too

The cells are below. The notebook records what executed it and is compared as the executed pages are
(`executed.agree`); it is only written if it no longer agrees.
"""

from __future__ import annotations

import os
import tempfile

import nbformat
from nbclient import NotebookClient

from reproduction import DOCS
from reproduction.pages.executed import agree, machine

NOTEBOOK = DOCS / "tutorial.ipynb"
# The tables of the notebook have fractions: 0.003 are the 0.3 points of the executed pages.
TOLERANCE = 0.003
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
    methods=["finetune", "er", "ridge", "auto", "majority"],
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

learner = farshore.Learner(method="auto", memory=150, seed=0)
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
    """The notebook with the outputs of this machine, run in an empty folder with one thread."""
    made = notebook()
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(made, timeout=600, resources={"metadata": {"path": folder}})
        client.execute(env={**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"})
    for cell in made.cells:
        cell.metadata.pop("execution", None)  # times
        if cell.cell_type == "code":  # warnings name files of this machine
            cell.outputs = [each for each in cell.outputs if each.get("name") != "stderr"]
    made.metadata.pop("language_info", None)
    made.metadata["executed_with"] = machine()
    return made


def shown(made: nbformat.NotebookNode) -> str:
    """All outputs of a notebook as one text, with what executed it."""
    outputs = [output for cell in made.cells for output in cell.get("outputs", ())]
    texts = [str(text) for each in outputs for _, text in sorted(each.get("data", each).items())]
    return "\n".join(texts) + f"\n<!-- executed with {made.metadata['executed_with']} -->\n"


def main() -> None:
    """Execute the notebook, and write it if it does not agree with what is stored."""
    today, stored = executed(), nbformat.read(NOTEBOOK, as_version=4)
    ours, theirs = ([cell["source"] for cell in made.cells] for made in (today, stored))
    recorded = "executed_with" in stored.metadata
    if ours != theirs or not recorded or not agree(shown(stored), shown(today), TOLERANCE):
        nbformat.write(today, NOTEBOOK)


if __name__ == "__main__":
    main()
