"""TreeEnsemble: boosted trees or a forest as arrays, evaluated for many rows and trees at once."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...base.forms import FormError, Like, check_form
from ..fitted import ABSENT, FittedModel

# Steps taken at once on a CPU, over rows and trees: few enough to stay in the cache.
STEPS_AT_ONCE = 8192
FIELDS = (
    *("feature", "threshold", "left", "right", "value", "root", "output", "baseline", "columns"),
)


class TreeEnsemble(FittedModel):
    """Logits of boosted trees, or of a forest.

    Nodes of all trees are concatenated. `left` and `right` are the next nodes of each node; a leaf
    points to itself, so that `depth` steps end in a leaf from every root. A leaf of a boosted tree
    has one `value`, and `output` is the column to which its tree adds. A leaf of a forest has the
    share of each class, and all trees add to all columns.
    """

    fields = FIELDS
    feature: Tensor
    threshold: Tensor
    left: Tensor
    right: Tensor
    value: Tensor
    root: Tensor
    output: Tensor
    baseline: Tensor

    def __init__(self, classes: int, parts: Mapping[str, Tensor], depth: int) -> None:
        super().__init__(classes, parts)
        self.depth = depth
        assign = torch.nn.functional.one_hot(parts["output"], len(parts["baseline"]))
        self.register_buffer("assign", assign.double(), persistent=False)

    @property
    def forest(self) -> bool:
        """Whether leaves have the shares of classes."""
        return self.value.ndim == 2

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits [n, classes] of rows [n, d]."""
        rows = inputs.flatten(1).double()
        node = self.root.expand(rows.shape[0], -1)
        for _ in range(self.depth):
            below = rows.gather(1, self.feature[node]) <= self.threshold[node]
            node = torch.where(below, self.left[node], self.right[node])
        if self.forest:
            return self.logits(self.value[node].sum(dim=1))
        return self.logits(self.value[node] @ self.get_buffer("assign") + self.baseline)

    def scores(self, inputs: Tensor) -> Tensor:
        """Sums of the trees [n, outputs] for rows [n, d], with the baseline.

        On a CPU this is many times as fast as `forward`: a few trees at a time, which stop at their
        own leaves. Trees are added one after another, so that the sums have the same bits for any
        number of rows.
        """
        rows = inputs.flatten(1).double().cpu().numpy()
        parts = {name: part.cpu().numpy() for name, part in self.named_buffers()}
        feature, threshold, value = parts["feature"], parts["threshold"], parts["value"]
        leaf = parts["left"] == np.arange(len(parts["left"]))
        children = np.stack([parts["right"], parts["left"]], axis=1).ravel()
        cells, first_cell = rows.ravel(), np.arange(len(rows))[:, None] * rows.shape[1]
        sums = np.tile(parts["baseline"], (len(rows), 1))
        trees = max(1, STEPS_AT_ONCE // max(1, len(rows)))
        for first in range(0, len(parts["root"]), trees):
            node = np.tile(parts["root"][first : first + trees], (len(rows), 1))
            while not leaf.take(node).all():
                below = cells.take(first_cell + feature.take(node)) <= threshold.take(node)
                node = children.take(2 * node + below)
            for output, leaves in zip(parts["output"][first:], node.T, strict=False):
                if self.forest:
                    sums += value.take(leaves, axis=0)
                else:
                    sums[:, output] += value.take(leaves)
        return torch.from_numpy(sums)

    def logits(self, scores: Tensor) -> Tensor:
        """Logits [n, classes] from the sums of the trees [n, outputs]."""
        if self.forest:
            trees = len(self.root)
            scores = (scores / trees).clamp(min=1 / (2 * trees)).log()
        if scores.shape[1] < len(self.columns):  # two classes: the score of the second one
            scores = torch.cat([torch.zeros_like(scores), scores], dim=1)
        return super().logits(scores)

    def parts(self) -> dict[str, Any]:
        """The arrays and the depth, for a saved state."""
        return {**super().parts(), "depth": self.depth}


def from_sklearn(models: Sequence[Any], classes: int) -> TreeEnsemble:
    """Copy the trees of a fitted classifier of class numbers, or of a regressor per output.

    They are boosted or forests. A forest of numbers becomes a sum of trees: the values in its
    leaves are divided by their number.
    """
    of_classes = hasattr(models[0], "classes_")
    columns = models[0].classes_ if of_classes else np.arange(len(models))
    if hasattr(models[0], "estimators_"):
        parts = 0 if of_classes else len(models[0].estimators_)
        trees = [[_grown(tree.tree_, parts) for tree in model.estimators_] for model in models]
        starts = np.zeros(len(columns))
    else:
        grown = ([tree for turn in model._predictors for tree in turn] for model in models)
        trees = [[_boosted(tree.nodes) for tree in of_model] for of_model in grown]
        starts = np.concatenate([np.ravel(model._baseline_prediction) for model in models])
    turns = [tree for of_turn in zip(*trees, strict=True) for tree in of_turn]
    return from_trees(turns, starts, columns, classes)


def _boosted(grown: np.ndarray) -> dict[str, np.ndarray]:
    """The nodes of one of scikit-learn's boosted trees."""
    own, leaf = np.arange(len(grown)), grown["is_leaf"].astype(bool)
    return {
        "feature": np.where(leaf, 0, grown["feature_idx"]),
        "threshold": np.where(leaf, 0.0, grown["num_threshold"]),
        "left": np.where(leaf, own, grown["left"].astype(np.int64)),
        "right": np.where(leaf, own, grown["right"].astype(np.int64)),
        "value": np.where(leaf, grown["value"], 0.0),
    }


def _grown(grown: Any, trees: int) -> dict[str, np.ndarray]:
    """The nodes of a tree of a forest: shares of classes, or one of so many numbers to add up."""
    own, leaf = np.arange(grown.node_count), grown.children_left < 0
    value = grown.value[:, 0, 0] * leaf / trees if trees else grown.value[:, 0] * leaf[:, None]
    return {
        "feature": np.where(leaf, 0, grown.feature).astype(np.int64),
        "threshold": np.where(leaf, 0.0, grown.threshold),
        "left": np.where(leaf, own, grown.children_left),
        "right": np.where(leaf, own, grown.children_right),
        "value": value,
    }


def from_trees(
    trees: Sequence[Mapping[str, np.ndarray]],
    baseline: np.ndarray,
    columns: np.ndarray,
    classes: int,
) -> TreeEnsemble:
    """Concatenate trees, those of the outputs taking turns.

    trees: the node fields of each tree, with children numbered within the tree.
    baseline: the score from which each output starts.
    columns: the class of each output; two classes have one output.
    """
    starts = np.cumsum([0, *(len(tree["left"]) for tree in trees)])[:-1]
    names = ("feature", "threshold", "value")
    joined = {name: np.concatenate([tree[name] for tree in trees]) for name in names}
    parts = {name: torch.from_numpy(values) for name, values in joined.items()}
    for name in ("left", "right"):
        moved = [tree[name] + start for tree, start in zip(trees, starts, strict=True)]
        parts[name] = torch.from_numpy(np.concatenate(moved))
    parts |= {
        "root": torch.from_numpy(starts),
        "output": torch.arange(len(trees)) % len(baseline),
        "baseline": torch.from_numpy(baseline.astype(np.float64)),
        "columns": torch.from_numpy(np.asarray(columns, dtype=np.int64)),
    }
    return TreeEnsemble(classes, parts, max(_depth(tree) for tree in trees))


def _depth(tree: Mapping[str, np.ndarray]) -> int:
    """The number of steps from the root to the farthest leaf; children come after parents."""
    depths = np.zeros(len(tree["left"]), np.int64)
    for node, (left, right) in enumerate(zip(tree["left"], tree["right"], strict=True)):
        if left != node:
            depths[[left, right]] = depths[node] + 1
    return int(depths.max())


def constant(label: np.ndarray | int, classes: int) -> TreeEnsemble:
    """The ensemble for rows of one class only, or with the same numbers: a single leaf."""
    only = np.asarray(label).tolist()
    if isinstance(only, list):
        baseline, columns = only, list(range(classes))
    else:
        baseline, columns = [0.0, ABSENT], [only, (only + 1) % classes]
    whole, real = torch.zeros(1, dtype=torch.long), torch.zeros(1, dtype=torch.float64)
    parts = {name: whole.clone() for name in ("feature", "left", "right", "root", "output")}
    parts |= {"threshold": real.clone(), "value": real.clone()}
    parts |= {
        "baseline": torch.tensor(baseline, dtype=torch.float64),
        "columns": torch.tensor(columns),
    }
    return TreeEnsemble(classes, parts, 0)


def from_parts(state: Any, width: int, classes: int) -> TreeEnsemble:
    """Restore an ensemble; raise a FormError if a step could leave its arrays."""
    check_form(state, {**dict.fromkeys(FIELDS), "depth": 0}, "trees")
    if not isinstance(state["left"], Tensor) or not isinstance(state["root"], Tensor):
        raise FormError("trees.left is not a tensor")
    nodes, trees = len(state["left"]), len(state["root"])
    outputs = len(state["baseline"]) if isinstance(state["baseline"], Tensor) else 0
    value = state["value"]
    shares = (outputs,) if isinstance(value, Tensor) and value.ndim == 2 else ()
    forms = {
        "feature": Like((nodes,), torch.long, below=width),
        "left": Like((nodes,), torch.long, below=nodes),
        "right": Like((nodes,), torch.long, below=nodes),
        "threshold": Like((nodes,), torch.float64),
        "value": Like((nodes, *shares), torch.float64, finite=True),
        "root": Like((trees,), torch.long, below=nodes),
        "output": Like((trees,), torch.long, below=outputs),
        "baseline": Like((outputs,), torch.float64, finite=True),
        "columns": Like((max(outputs, min(2, classes)),), torch.long, below=classes),
    }
    check_form({name: state[name] for name in FIELDS}, forms, "trees")
    _check_steps(state, nodes)
    if not 0 <= state["depth"] <= nodes or len(set(state["columns"].tolist())) < max(
        outputs, min(2, classes)
    ):
        raise FormError("trees.depth or trees.columns do not belong to these trees")
    return TreeEnsemble(classes, {name: state[name] for name in FIELDS}, state["depth"])


def _check_steps(state: Mapping[str, Tensor], nodes: int) -> None:
    """Raise a FormError unless every path from a root stays in its tree and ends in a leaf."""
    root, left, right = state["root"], state["left"], state["right"]
    ends = torch.cat([root[1:], root.new_tensor([nodes])])
    if not len(root) or root[0] != 0 or (ends <= root).any():
        raise FormError("trees.root does not divide the nodes into trees")
    own, end = torch.arange(nodes), torch.repeat_interleave(ends, ends - root)
    leaf = (left == own) & (right == own)
    inner = (left > own) & (right > own) & (left < end) & (right < end)
    if not (leaf | inner).all():
        raise FormError("trees.left and trees.right do not lead to leaves")
