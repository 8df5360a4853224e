"""Fitting boosted trees with scikit-learn or LightGBM; both give the same kind of ensemble."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch

from ...errors import needs
from ..fitted import Examples
from .ensemble import TreeEnsemble, from_sklearn, from_trees
from .entry import TreesSettings

# The bins of scikit-learn, and the rows up to which it bins all of them.
BINS, MOST_BINNED = 255, 200_000
# The numbers of the bins that have rows, and the thresholds between all bins.
_Bins = tuple[np.ndarray, np.ndarray]


def fit_sklearn(settings: TreesSettings, examples: Examples) -> TreeEnsemble:
    """Fit scikit-learn's HistGradientBoosting."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    make = partial(
        examples.task.either(HistGradientBoostingClassifier, HistGradientBoostingRegressor),
        **examples.task.boosting("sklearn"),
        learning_rate=settings.learning_rate,
        max_iter=settings.iterations,
        max_leaf_nodes=settings.leaves,
        min_samples_leaf=settings.rows_per_leaf,
        l2_regularization=settings.weight_decay,
        early_stopping=False,
        random_state=examples.seed,
    )
    bins: dict[int, _Bins] = {}
    if examples.weights is not None and len(examples.inputs) <= MOST_BINNED:
        inputs, bins = _binned(examples.inputs, examples.weights)
        examples = replace(examples, inputs=inputs)
    ensemble = from_sklearn(examples.fitted(make), examples.task.outputs)
    leaf = ensemble.left == torch.arange(len(ensemble.left))
    for column, (numbers, thresholds) in bins.items():
        nodes = (ensemble.feature == column) & ~leaf
        below = np.searchsorted(numbers, ensemble.threshold[nodes].numpy()) - 1
        ensemble.threshold[nodes] = torch.from_numpy(thresholds[numbers[below]])
    return ensemble


def _binned(inputs: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, dict[int, _Bins]]:
    """Replace the values of columns with many of them by the numbers of their bins.

    The bins are scikit-learn's, at the weighted percentiles of a column, and so are the trees. But
    it sorts a column again for each of 254 percentiles, which takes two thirds of a whole fit.
    """
    inputs, bins = inputs.copy(), {}
    weighty = weights != 0
    for column, values in enumerate(inputs.T):
        order = np.argsort(values[weighty])
        known, of_known = values[weighty][order], weights[weighty][order]
        if 1 + np.count_nonzero(np.diff(known)) <= BINS:
            continue
        order = np.argsort(known)
        total = np.cumsum(of_known[order])
        ranks = np.linspace(0, 100, num=BINS + 1)[1:-1] / 100 * total[-1]
        last = len(known) - 1
        at = np.clip(np.searchsorted(total, ranks), 0, last)
        above = total[at] - ranks > np.finfo(np.float64).eps
        first, second = known[order[at]], known[order[np.clip(at + 1, 0, last)]]
        thresholds = np.unique(np.where(above, first, (first + second) / 2))
        numbers = np.searchsorted(thresholds, values)
        inputs[:, column] = numbers
        bins[column] = np.unique(numbers[weighty]), thresholds
    return inputs, bins


def fit_lightgbm(settings: TreesSettings, examples: Examples) -> TreeEnsemble:
    """Fit LightGBM with the same settings, in the way that repeats itself exactly."""
    try:
        import lightgbm
    except ImportError:
        what = "library = 'lightgbm' needs the package lightgbm"
        raise needs("trees", what, otherwise="use library=sklearn") from None
    parameters = {
        "learning_rate": settings.learning_rate,
        "num_leaves": settings.leaves,
        "min_data_in_leaf": settings.rows_per_leaf,
        "lambda_l2": settings.weight_decay,
        "seed": examples.seed % 2**31,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": torch.get_num_threads(),
        "verbosity": -1,
    }

    def trees_of(numbers: np.ndarray, objective: dict[str, Any]) -> tuple[list[Any], int]:
        weights, quiet = examples.weights, {"verbosity": -1}
        rows = lightgbm.Dataset(examples.inputs, numbers, weight=weights, params=quiet)
        chosen = {**parameters, **objective}
        dumped = lightgbm.train(chosen, rows, num_boost_round=settings.iterations).dump_model()
        trees = [_flat(tree["tree_structure"]) for tree in dumped["tree_info"]]
        return trees, int(dumped["num_tree_per_iteration"])

    task, labels = examples.task, examples.labels
    # Its first trees already contain the scores that boosting starts from.
    if labels.ndim > 1:
        found = [trees_of(each, task.boosting("lightgbm"))[0] for each in labels.T]
        turns = [tree for of_turn in zip(*found, strict=True) for tree in of_turn]
        return from_trees(turns, np.zeros(len(found)), np.arange(len(found)), len(found))
    present, numbers = np.unique(labels, return_inverse=True)
    several = {"objective": "multiclass", "num_class": len(present)}
    trees, outputs = trees_of(numbers, several if len(present) > 2 else {"objective": "binary"})
    return from_trees(trees, np.zeros(outputs), present, task.outputs)


def _flat(root: dict[str, Any]) -> dict[str, np.ndarray]:
    """One tree as arrays, parents before children; a leaf's children are the leaf itself."""
    nodes: list[dict[str, float]] = []

    def add(node: dict[str, Any]) -> int:
        own = len(nodes)
        if "split_feature" not in node:
            leaf = {"feature": 0, "threshold": 0.0, "left": own, "right": own}
            nodes.append({**leaf, "value": node["leaf_value"]})
            return own
        nodes.append({"feature": node["split_feature"], "threshold": node["threshold"], "value": 0})
        nodes[own]["left"] = add(node["left_child"])
        nodes[own]["right"] = add(node["right_child"])
        return own

    add(root)
    whole = ("feature", "left", "right")
    return {
        name: np.array([node[name] for node in nodes], np.int64 if name in whole else np.float64)
        for name in ("feature", "threshold", "left", "right", "value")
    }
