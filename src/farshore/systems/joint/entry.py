"""What a user would take instead: a linear model, a forest and boosted trees, fitted to all rows.

Their inner settings are fixed: they are scikit-learn's defaults, except where a class says so.
"""

from abc import abstractmethod
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ...entry import Entry
from ...settings import MethodSettings
from ..closed_form.majority import UnusedSettings
from ..fitted import Examples, FittedModel
from ..trees import ensemble
from ..trees.boosted import fit_sklearn
from ..trees.entry import TreesSettings
from . import linear

# A forest draws at most this many rows for a tree, so that a large table takes seconds, too.
ROWS_PER_TREE = 20_000
# Columns tried at a split, and rows in a leaf: with 1 and all columns, a forest of numbers takes
# minutes and gigabytes.
OF_NUMBERS = {"max_features": 1 / 3, "min_samples_leaf": 5}


class Pooled(Entry):
    """Base of the references that pool all rows. A subclass fits the model."""

    group = "references"
    kind = "offline"
    system = "pooled"
    tables_only = True
    needs_classes = False
    any_order = True
    weighs_classes = False
    weighs_rows = True
    Settings: ClassVar[type[MethodSettings]] = UnusedSettings
    settings: UnusedSettings

    @staticmethod
    @abstractmethod
    def fit(examples: Examples) -> FittedModel:
        """The model of these rows, which have at least two different labels."""

    @staticmethod
    def constant(label: np.ndarray, width: int, classes: int) -> FittedModel:
        """The model of rows of one class only, or with the same numbers."""
        return ensemble.constant(label, classes)

    @staticmethod
    def restore(parts: Any, width: int, classes: int) -> FittedModel:
        """A saved model; raise a FormError if the arrays do not fit."""
        return ensemble.from_parts(parts, width, classes)


class JointLinear(Pooled):
    """Logistic regression on the rows of all sources at once; linear regression of numbers.

    Equation: min_{W, b} ½ ||W||² + Σ_i CE(W x̃_i + b, y_i) over all training rows, with each column
    scaled to mean 0 and deviation 1 over these rows; for numbers Σ_i (W x̃_i + b - y_i)².
    Paper: Cox, "The Regression Analysis of Binary Sequences", Journal of the Royal Statistical
    Society B 1958; fitted by scikit-learn's LogisticRegression (C=1, at most 1,000 iterations).

    A reference: what a user would take who may keep the data of all sites. Never ranked or
    recommended. Every row counts the same, or by its weight. No setting has an influence.
    """

    name = "joint-linear"
    reference = "Cox 1958"

    @staticmethod
    def fit(examples: Examples) -> FittedModel:
        """Fit on scaled columns; the scaling becomes part of the weights."""
        from sklearn.linear_model import LinearRegression, LogisticRegression

        inputs, task = examples.inputs, examples.task
        mean, deviation = inputs.mean(axis=0), inputs.std(axis=0)
        deviation[deviation == 0] = 1.0
        make = task.either(partial(LogisticRegression, max_iter=1000), LinearRegression)
        model: Any = make()
        model.fit((inputs - mean) / deviation, examples.labels, sample_weight=examples.weights)
        return linear.from_sklearn(model, mean, deviation, task)

    @staticmethod
    def constant(label: np.ndarray, width: int, classes: int) -> FittedModel:
        """No weights."""
        return linear.constant(label, width, classes)

    @staticmethod
    def restore(parts: Any, width: int, classes: int) -> FittedModel:
        """A saved linear model."""
        return linear.from_parts(parts, width, classes)


class JointForest(Pooled):
    """A random forest on the rows of all sources at once.

    Equation: h(x) = log(1/T Σ_t p_t(x)), with the shares p_t of the classes in the leaf of tree t
    to which x belongs; each of T = 100 trees is grown to the end on rows drawn with replacement, as
    many as there are and at most 20,000, with √d columns tried at a split. A class in none of these
    leaves has the probability 1/(2 T). Of numbers it is the mean of the leaves' means, with d/3
    columns tried (Breiman's choice) and at least 5 rows in a leaf.
    Paper: Breiman, "Random Forests", Machine Learning 2001; scikit-learn's RandomForestClassifier.

    A reference: what a user would take who may keep the data of all sites. Never ranked or
    recommended. Every row counts the same, or by its weight. No setting has an influence.
    """

    name = "joint-forest"
    reference = "Breiman 2001"

    @staticmethod
    def fit(examples: Examples) -> FittedModel:
        """Fit and copy the trees."""
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

        of_numbers = partial(RandomForestRegressor, **OF_NUMBERS)
        kind: Any = examples.task.either(RandomForestClassifier, of_numbers)
        rows = min(len(examples.inputs), ROWS_PER_TREE)
        make = partial(kind, max_samples=rows, random_state=examples.seed)
        return ensemble.from_sklearn(examples.fitted(make), examples.task.outputs)


class JointTrees(Pooled):
    """Boosted trees on the rows of all sources at once.

    Equation: F = F_0 + ν Σ_t f_t, as in `trees`, over all training rows of all sources, with 100
    trees per class of at most 31 leaves with at least 20 rows, and ν = 0.1.
    Paper: Friedman, "Greedy Function Approximation: A Gradient Boosting Machine", Annals of
    Statistics 2001; scikit-learn's HistGradientBoostingClassifier without early stopping.

    A reference: what a user would take who may keep the data of all sites. Never ranked or
    recommended. Every row counts the same, or by its weight. No setting has an influence.
    """

    name = "joint-trees"
    reference = "Friedman 2001"

    @staticmethod
    def fit(examples: Examples) -> FittedModel:
        """Fit with the defaults of `trees`."""
        return fit_sklearn(TreesSettings(), examples)
