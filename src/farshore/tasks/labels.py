"""How the labels of a user's rows, as they are written, become those of a task.

Which task it is, the first source's labels decide, never the target's; `--task` overrides it.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from ..data.tables.cells import is_missing_number, is_number, parse_numbers
from ..data.tables.columns import check_class_labels, is_quantity, sort_classes
from ..data.tables.convert import as_labels, find_classes
from ..errors import FarshoreError
from .classification import Classification
from .metrics import listed, several
from .regression import Regression, announcement, as_values
from .task import MetricName, Task, TaskName

TaskChoice = Literal["auto", "classification", "regression"]
LABEL = "label"
# Value of the option `classes`: the file may have more in the target than in the sources.
FROM_FILE = "from-file"
# A class with a smaller share of the rows hardly counts in an accuracy.
RARE = 0.05
# A source of numbers with fewer rows than this is left out.
FEWEST_ROWS = 10
# Sites whose medians differ by more than this factor probably have different units.
UNITS_DIFFER = 1000.0
SHOWN = 5


@dataclass(frozen=True)
class LabelOptions:
    """What the user says of the labels; `names` are the columns, [] if folders name classes."""

    names: Sequence[str] = ()
    task: TaskChoice = "auto"
    metric: MetricName | None = None
    classes: str | None = None
    log: bool = False
    unit: str = ""


class Labels(ABC):
    """The labels of all rows of a scenario: checked, and encoded as its task says.

    `facts` has a column `domain`, and one per label: `label`, `label 2` ... as texts, None where
    one is missing. `present` are the rows that can be used.
    """

    task: Task
    metric: MetricName
    # Why this metric; written last among the notes.
    why: tuple[str, ...] = ()

    def __init__(self, facts: pd.DataFrame, options: LabelOptions) -> None:
        self.facts, self.options = facts, options
        self.domain = facts["domain"].to_numpy()
        self.present = np.ones(len(facts), dtype=bool)

    @abstractmethod
    def start(
        self, used: np.ndarray, sources: list[str], target: str, *, held_out: bool
    ) -> tuple[list[str], list[str]]:
        """Check the labels of the rows `used`; return the sources that can be learned, and notes.

        held_out: the target is a source of a larger run, which knows its classes.
        """

    def members(self, name: str) -> np.ndarray:
        """The rows of a domain that can be used."""
        return np.flatnonzero(self.present & (self.domain == name))

    def enough(self, name: str) -> bool:
        """Whether a domain has rows enough to be one of several targets."""
        return True

    @abstractmethod
    def check_domain(self, members: np.ndarray, name: str, *, is_target: bool) -> list[str]:
        """Refuse a domain that cannot be learned; notes for one that is only the target."""

    def learn(self, first: np.ndarray, training: np.ndarray) -> None:
        """Learn from the training rows of the first source, and those of all sources."""

    def alone(self) -> list[str]:
        """The classes that only one of the domains has, if any other class is left."""
        return []

    @abstractmethod
    def encode(self, members: np.ndarray) -> Tensor:
        """The labels of these rows as the network sees them."""

    def _check_size(self, members: np.ndarray, name: str) -> None:
        if len(members) < 2:
            raise FarshoreError(
                f"domain {name!r} has {len(members)} row: a domain needs at least 2; merge it "
                "with another one or remove it"
            )


class ClassLabels(Labels):
    """Labels that are classes."""

    def __init__(self, facts: pd.DataFrame, options: LabelOptions, first: np.ndarray) -> None:
        super().__init__(facts, options)
        if len(options.names) > 1:
            raise FarshoreError(
                f"--label {','.join(options.names)}: several labels must be numbers (--task "
                "regression); name one column of classes"
            )
        for given, flag in ((options.log, "--log-label"), (bool(options.unit), "--unit")):
            if given:
                raise FarshoreError(
                    f"{flag} is for a number as the label, and here labels are classes: leave it "
                    "out, or say --task regression"
                )
        missing = np.flatnonzero(pd.isna(facts[LABEL]))
        if len(missing):
            raise FarshoreError(
                f"--label {options.names[0]}: {len(missing)} rows have no value there, the first "
                f"is row {facts.index[missing[0]]}: fill or drop them"
            )
        self.labels = facts[LABEL]
        shares = self.labels.iloc[first].value_counts(normalize=True)
        self.metric = _chosen(options.metric, Classification) or "accuracy"
        if options.metric is None and len(shares) and shares.iloc[-1] < RARE:
            self.metric = "macro_f1"
            self.why = (
                f"class {shares.index[-1]!r} has {100 * shares.iloc[-1]:.1f}% of the rows of "
                f"{self.domain[first[0]]}: scores are macro F1, in which every class counts the "
                "same (--metric accuracy for accuracy)",
            )

    def start(
        self, used: np.ndarray, sources: list[str], target: str, *, held_out: bool
    ) -> tuple[list[str], list[str]]:
        """Find the classes: those named, or those of the sources, one of which may be held out."""
        labels, in_target = self.labels[used], self.domain[used] == target
        if self.options.names:
            check_class_labels(labels[~in_target].to_numpy(), self.options.names[0])
        given, notes = self.options.classes, list[str]()
        if given in (None, FROM_FILE):
            names = sort_classes(map(str, (labels if held_out else labels[~in_target]).unique()))
            if not held_out:
                notes = self.check_target(used, target)
        else:
            names = [name.strip() for name in str(given).split(",") if name.strip()]
            missing = sort_classes(set(labels) - set(names))
            if missing:
                raise FarshoreError(
                    f"--classes does not name {', '.join(map(repr, missing))}, which rows have: "
                    "name every class"
                )
        self.task = Classification(tuple(names))
        return sources, notes

    def check_target(self, used: np.ndarray, target: str) -> list[str]:
        """Refuse classes that only the target has, unless their rows count as errors; notes.

        They cannot be learned, and how many there are must not reach training.
        """
        labels, inside = self.labels[used], self.domain[used] == target
        unknown = labels[inside & ~labels.isin(labels[~inside].unique()).to_numpy()]
        if not len(unknown):
            return []
        names, count = ", ".join(map(repr, sorted(set(unknown)))), len(unknown)
        if self.options.classes == FROM_FILE:
            return [
                f"note: {count} rows of the target have class {names}, which no source has: errors"
            ]
        raise FarshoreError(
            f"class {names} exists only in the target {target!r} ({count} rows), so it cannot be "
            "learned: remove those rows, choose another --target, or count them as errors "
            "(--classes from-file)"
        )

    def alone(self) -> list[str]:
        """By name."""
        places = self.facts.groupby(LABEL)["domain"].nunique()
        found = [str(label) for label in places.index[places == 1]]
        return found if len(places) - len(found) > 1 else []

    def check_domain(self, members: np.ndarray, name: str, *, is_target: bool) -> list[str]:
        """Refuse a domain with fewer than 2 rows or a source with one class; warn for a target."""
        self._check_size(members, name)
        classes = self.labels.iloc[members].unique()
        if len(classes) > 1:
            return []
        if is_target:
            return [
                f"warning: the target {name!r} has one class only ({classes[0]!r}): its accuracy "
                "means little"
            ]
        raise FarshoreError(
            f"domain {name!r} has one class only ({classes[0]!r}): merge it with another domain or "
            f"remove its {len(members)} rows"
        )

    def encode(self, members: np.ndarray) -> Tensor:
        """Class numbers; one more stands for all other classes."""
        numbers = {label: number for number, label in enumerate(self.task.classes)}
        found = [numbers.get(label, len(numbers)) for label in self.labels.iloc[members]]
        return torch.tensor(found, dtype=torch.long)


class NumberLabels(Labels):
    """Labels that are numbers. Rows without one are left out, and so are small sources."""

    task: Regression

    def __init__(self, facts: pd.DataFrame, options: LabelOptions, first: np.ndarray) -> None:
        super().__init__(facts, options)
        if options.classes is not None:
            raise FarshoreError(
                "--classes is for labels that are classes, and here the label is a number (--task "
                "classification if it is not)"
            )
        self.names = list(options.names) or [LABEL]
        if len(self.names) > 1 and options.unit:
            raise FarshoreError(
                f"--unit {options.unit} is for one label: the scores of several are in deviations "
                "of the first site's labels; leave it out"
            )
        self.metric = _chosen(options.metric, Regression) or "mae"
        columns = label_columns(len(self.names))
        self.texts = [facts[column].to_numpy(dtype=object) for column in columns]
        self.values = np.stack([parse_numbers(each) for each in self.texts], axis=1)

    def start(
        self, used: np.ndarray, sources: list[str], target: str, *, held_out: bool
    ) -> tuple[list[str], list[str]]:
        """Parse the numbers; leave out rows without one, and sources with fewer than 10 rows."""
        notes = [announcement(self.names), *self.parse(used)]
        sizes = {name: len(self.members(name)) for name in sources}
        kept = [name for name in sources if sizes[name] >= FEWEST_ROWS]
        small = [f"{name} ({sizes[name]})" for name in sources if name not in kept]
        if small:
            notes.append(
                f"warning: {several(len(small), 'source')} with fewer than {FEWEST_ROWS} labelled "
                f"rows left out: {listed(small, SHOWN)}; merge them with others to use them"
            )
        if not kept:
            raise FarshoreError(
                f"no source has {FEWEST_ROWS} rows with a number as the label: {listed(small)}; "
                "merge sites, or name another column (--label)"
            )
        return kept, [*notes, *self._other_units(kept)]

    def parse(self, used: np.ndarray) -> list[str]:
        """Note which of the rows `used` have all labels; refuse what is no finite number."""
        missing = np.zeros(len(used), dtype=bool)
        for name, texts, numbers in zip(self.names, self.texts, self.values.T, strict=True):
            empty = is_missing_number(texts)
            missing |= empty
            wrong = np.flatnonzero(used & ~empty & ~np.isfinite(numbers))
            if len(wrong):
                row = self.facts.index[wrong[0]]
                raise FarshoreError(
                    f"--label {name}, row {row}: {texts[wrong[0]]!r} is not a finite number: fix "
                    "or empty the cell (rows without a label are left out), or say --task "
                    "classification"
                )
            low = np.flatnonzero(used & (numbers <= 0))
            if self.options.log and len(low):
                raise FarshoreError(
                    f"--log-label needs labels above 0, and {name} is {numbers[low[0]]:g} in row "
                    f"{self.facts.index[low[0]]}: leave it out"
                )
        self.present = used & ~missing
        left_out = int((used & missing).sum())
        return [f"{several(left_out, 'row')} without a label left out"] if left_out else []

    def _other_units(self, sources: Sequence[str]) -> list[str]:
        """Warn of sources whose median label is a thousand times that of another."""
        notes = []
        for column, name in enumerate(self.names):
            medians = {
                site: float(np.median(np.abs(self.values[self.members(site), column])))
                for site in sources
            }
            above = {site: median for site, median in medians.items() if median > 0}
            if not above:
                continue
            low, high = min(above, key=above.__getitem__), max(above, key=above.__getitem__)
            if above[high] >= UNITS_DIFFER * above[low]:
                notes.append(
                    f"warning: the median {name} is {above[low]:.4g} at {low} and "
                    f"{above[high]:.4g} at {high}, a factor of {above[high] / above[low]:,.0f}: "
                    "check that both have the same unit"
                )
        return notes

    def enough(self, name: str) -> bool:
        """At least 10 labelled rows."""
        return len(self.members(name)) >= FEWEST_ROWS

    def check_domain(self, members: np.ndarray, name: str, *, is_target: bool) -> list[str]:
        """Refuse a domain with fewer than 2 labelled rows, or a source with one label only."""
        self._check_size(members, name)
        if is_target:
            few = len(members) < FEWEST_ROWS
            return [
                f"warning: the target {name!r} has {len(members)} labelled rows only: its scores "
                "mean little"
            ] * few
        check_varied(self.values[members], self.names, f"domain {name!r}")
        return []

    def learn(self, first: np.ndarray, training: np.ndarray) -> None:
        """Standardise by the first source; the mean of all is what guessing says."""
        options = self.options
        task = Regression.fitted(self.values[first], self.names, log=options.log, unit=options.unit)
        self.task = task.over(task.standardised(self.values[training]))

    def encode(self, members: np.ndarray) -> Tensor:
        """Standardised numbers."""
        return self.task.standardised(self.values[members])


def label_columns(count: int) -> list[str]:
    """The names of so many labels in a table of facts."""
    return [LABEL, *(f"{LABEL} {number + 2}" for number in range(count - 1))]


def read_labels(facts: pd.DataFrame, options: LabelOptions, first: str) -> Labels:
    """The labels of all rows, as the labels of the first source say, or the options."""
    rows = np.flatnonzero((facts["domain"] == first).to_numpy())
    kind = NumberLabels if decide(facts.iloc[rows], options) == "regression" else ClassLabels
    return kind(facts, options, rows)


def are_numbers(task: Task | TaskChoice | None) -> bool:
    """Whether labels are numbers, as far as the task or the choice of it says."""
    return (task.name if isinstance(task, Task) else task) == Regression.name


def need_classes(task: TaskName, label: str, what: str) -> None:
    """Refuse numbers where only classes will do."""
    if task != "classification":
        raise FarshoreError(
            f"{what} is for labels that are classes, and {label!r} looks like a number: say --task "
            "classification if it is none"
        )


def decide(facts: pd.DataFrame, options: LabelOptions) -> TaskName:
    """Which task rows with these labels are.

    Regression, if all labels are numbers, and look like a quantity (`is_quantity`) or there are
    several.
    """
    if options.task != "auto":
        return options.task
    if not options.names or options.classes is not None:
        return "classification"
    if len(options.names) > 1 or options.log:
        return "regression"
    present = facts[LABEL][~is_missing_number(facts[LABEL].to_numpy(dtype=object))]
    if not len(present) or not all(map(is_number, set(present))):
        return "classification"
    numbers = parse_numbers(present.to_numpy(dtype=object))
    quantity = is_quantity(numbers[np.isfinite(numbers)], len(present))
    return "regression" if quantity else "classification"


def first_task(values: Any, train: np.ndarray, choice: TaskChoice, where: str) -> Task:
    """The task of a first domain's labels in memory, of which these rows train."""
    array = np.asarray(values)
    several_columns = array.ndim == 2 and array.shape[1] > 1
    fractions = array.dtype.kind == "f" and is_quantity(array, len(array))
    if choice == "regression" or (choice == "auto" and (several_columns or fractions)):
        known = as_values(values, where=where)
        return Regression.fitted(known[train], label_columns(known.shape[1]))
    return Classification(tuple(find_classes(as_labels(values, where=where))))


def read_site_labels(
    texts: np.ndarray, options: LabelOptions, rows: pd.Index, *, first: bool
) -> tuple[TaskName, np.ndarray, list[str]]:
    """The kind of a site's labels as texts [n, K], the rows that can be used, and notes.

    first: whether these are the first rows of the site; later ones may be few.
    """
    facts = pd.DataFrame(texts, index=rows, columns=label_columns(texts.shape[1])).assign(domain="")
    if decide(facts, options) == "classification":
        ClassLabels(facts, options, np.arange(len(facts)))  # refuses missing ones
        if first:
            check_class_labels(texts[:, 0], options.names[0])
        return "classification", np.ones(len(texts), dtype=bool), []
    labels = NumberLabels(facts, options, np.arange(0))
    notes = labels.parse(labels.present)
    return "regression", labels.present, notes


def check_varied(values: np.ndarray, names: Sequence[str], where: str) -> None:
    """Refuse a label [n, K] with one value only."""
    for name, column in zip(names, values.T, strict=True):
        if len(np.unique(column)) == 1:
            raise FarshoreError(
                f"{where} has one value of {name} only ({column[0]:g}) in {len(column)} rows: "
                "merge it with another one or remove it"
            )


def check_site(
    kind: TaskName, labels: Sequence[Any], names: Sequence[str], site: str, known: Task | None
) -> list[str]:
    """Refuse numbers of a site that cannot be learned; warn of another unit than known sites'."""
    if kind == "classification":
        return []
    values = as_values(labels, where=site)
    if len(values) < FEWEST_ROWS:
        raise FarshoreError(
            f"{site!r} has {several(len(values), 'row')} with a number as the label, and learning "
            f"takes at least {FEWEST_ROWS}: wait for more rows, or merge it with another site"
        )
    check_varied(values, names, repr(site))
    if not isinstance(known, Regression):
        return []
    found, usual = np.median(np.abs(values), axis=0), known.magnitude
    return [
        f"warning: the median {name} is {here:.4g} at {site}, and {before:.4g} is usual at the "
        f"sites before, a factor of {max(here / before, before / here):,.0f}: check that both have "
        "the same unit"
        for name, here, before in zip(names, found, usual, strict=True)
        if here > 0 and not 1 / UNITS_DIFFER < here / before < UNITS_DIFFER
    ]


def first_site_task(
    kind: TaskName, labels: Sequence[str], train: np.ndarray, options: LabelOptions
) -> Task:
    """The task of a model's first site, of which these rows train."""
    if kind == "classification":
        return Classification(tuple(sort_classes(labels)))
    values = as_values(labels, where="the first site")
    return Regression.fitted(values[train], list(options.names), log=options.log, unit=options.unit)


def usual_metric(kind: TaskName, labels: Sequence[str]) -> MetricName:
    """MAE; of classes, accuracy, or macro F1 if one is so rare that it hardly counts in it."""
    if kind == "regression":
        return Regression.metrics[0]
    counts = Counter(labels)
    return "macro_f1" if counts and min(counts.values()) < RARE * len(labels) else "accuracy"


def restored_task(state: Any) -> Task:
    """A task from its state; older states of classes have none, and the classes are beside it."""
    if state is None or (isinstance(state, Mapping) and state.get("name") == Classification.name):
        return Classification()
    return Regression.from_state(state)


def _chosen(metric: MetricName | None, task: type[Task]) -> MetricName | None:
    """The metric that was asked for, if the task has it."""
    if metric is not None and metric not in task.metrics:
        raise FarshoreError(
            f"--metric {metric} is not allowed for {task.name}: it should be one of "
            f"{', '.join(task.metrics)}"
        )
    return metric
