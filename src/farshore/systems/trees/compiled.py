"""CompiledTrees: the trees of an ensemble evaluated by scikit-learn's compiled loop, on a CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from .ensemble import TreeEnsemble

NO_CATEGORIES = np.zeros((0, 8), np.uint32)


class CompiledTrees:
    """The scores of an ensemble, equal to those of the module up to the rounding of their sums.

    A module has to gather from arrays at every level of every tree; the compiled loop follows one
    row at a time and is many times as fast. Children come after their parents (`from_parts` checks
    it), so that the loop always ends.
    """

    def __init__(self, ensemble: TreeEnsemble) -> None:
        from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
        from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

        parts = {name: part.cpu().numpy() for name, part in ensemble.named_buffers()}
        nodes = np.zeros(len(parts["left"]), PREDICTOR_RECORD_DTYPE)
        own = np.arange(len(nodes))
        starts = np.repeat(parts["root"], np.diff([*parts["root"], len(nodes)]))
        nodes["value"] = parts["value"]
        nodes["feature_idx"] = parts["feature"]
        nodes["num_threshold"] = parts["threshold"]
        nodes["left"] = parts["left"] - starts
        nodes["right"] = parts["right"] - starts
        nodes["is_leaf"] = parts["left"] == own
        self.trees: list[Any] = [
            TreePredictor(tree, NO_CATEGORIES, NO_CATEGORIES)
            for tree in np.split(nodes, parts["root"][1:])
        ]
        self.outputs, self.baseline = parts["output"], parts["baseline"]

    def scores(self, inputs: Tensor) -> Tensor:
        """Sums of the trees [n, outputs] for rows [n, d], with the baseline."""
        rows = np.ascontiguousarray(inputs.flatten(1).double().numpy())
        sums = np.tile(self.baseline, (len(rows), 1))
        no_map = np.zeros(rows.shape[1], np.uint32)
        for tree, output in zip(self.trees, self.outputs, strict=True):
            sums[:, output] += tree.predict(rows, NO_CATEGORIES, no_map, torch.get_num_threads())
        return torch.from_numpy(sums)
