"""Saved features: how to read and project them, and how well they distinguish the domains."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

FOLDS = 5
# UMAP and the classifier are seeded so that the same features give the same picture.
SEED = 0
NEIGHBOURS = 15
LEAST_ROWS = 2 * NEIGHBOURS


@dataclass(frozen=True)
class Features:
    """Rows of features with their domains, whether these are the target, and their classes."""

    features: np.ndarray[Any, np.dtype[np.float32]]
    domains: list[str]
    target: np.ndarray[Any, np.dtype[np.bool_]]
    classes: np.ndarray[Any, np.dtype[np.int64]]

    def frame(self) -> pd.DataFrame:
        """One line per row, without the features."""
        return pd.DataFrame({"domain": self.domains, "target": self.target, "class": self.classes})


@dataclass(frozen=True)
class Overlap:
    """How well a linear classifier predicts the domain of a row, and whether it is the target.

    Both are cross-validated balanced accuracies.
    """

    domain_accuracy: float | None
    domain_chance: float
    target_accuracy: float | None

    def sentence(self) -> str:
        """Both numbers with their chance levels."""
        if self.domain_accuracy is None or self.target_accuracy is None:
            return "A domain has too few rows to train a classifier."
        return (
            "A linear classifier predicts the domain of a row with "
            f"{100 * self.domain_accuracy:.0f}% accuracy (chance {100 * self.domain_chance:.0f}%), "
            f"and whether it comes from the target with {100 * self.target_accuracy:.0f}% "
            "(chance 50%)."
        )


def read_features(path: Path) -> Features | None:
    """The features that a run saved; None if the file is damaged: the report works without it."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        tensors = load_file(path)
    except (OSError, SafetensorError):
        return None
    blocks, domains, target, classes = [], [], [], []
    for key in sorted(name for name in tensors if name.endswith(" features")):
        name = key.removesuffix(" features")
        rows = tensors[key].reshape(len(tensors[key]), -1).astype(np.float32)
        labels = tensors.get(f"{name} labels")
        if labels is None or len(labels) != len(rows) or not np.isfinite(rows).all():
            return None
        is_target = name.startswith("target ")
        blocks.append(rows)
        domains += [
            name.removeprefix("target ")
            if is_target
            else name.removeprefix("source ").partition(" ")[2]
        ] * len(rows)
        target += [is_target] * len(rows)
        classes.append(labels.reshape(-1))
    if not blocks:
        return None
    return Features(
        np.concatenate(blocks),
        domains,
        np.array(target, dtype=bool),
        np.concatenate(classes).astype(np.int64),
    )


def project(features: np.ndarray[Any, np.dtype[np.float32]]) -> tuple[pd.DataFrame, str]:
    """Two coordinates per row, and the name of the projection.

    It is UMAP, or principal components if UMAP is not installed or there are too few rows.
    """
    with warnings.catch_warnings(), _same_threads():
        # umap and numba warn about versions and threads, which readers cannot change.
        warnings.simplefilter("ignore")
        try:
            from umap import UMAP
        except ImportError:
            UMAP = None
        if UMAP is not None and len(features) >= LEAST_ROWS:
            plane = UMAP(
                n_neighbors=NEIGHBOURS, min_dist=0.1, random_state=SEED, n_jobs=1
            ).fit_transform(features)
            return pd.DataFrame(plane, columns=["x", "y"]), "UMAP"
    from sklearn.decomposition import PCA

    # Zero columns, so that two components exist even for a single feature.
    padded = np.column_stack([features, np.zeros_like(features)])
    plane = PCA(2, random_state=SEED).fit_transform(padded)
    return pd.DataFrame(plane, columns=["x", "y"]), "principal components"


@contextmanager
def _same_threads() -> Iterator[None]:
    """Restore PyTorch's number of threads, which Numba changes when it compiles UMAP."""
    import torch

    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)


def measure(saved: Features) -> Overlap:
    """How distinguishable the domains are in the space of the features, not in the plane."""
    names = sorted(set(saved.domains))
    numbers = np.array([names.index(name) for name in saved.domains])
    return Overlap(
        domain_accuracy=accuracy(saved.features, numbers),
        domain_chance=1 / len(names),
        target_accuracy=accuracy(saved.features, saved.target.astype(np.int64)),
    )


def accuracy(
    features: np.ndarray[Any, np.dtype[np.float32]], labels: np.ndarray[Any, np.dtype[np.int64]]
) -> float | None:
    """Cross-validated balanced accuracy of a linear discriminant classifier with shrinkage.

    Domains count equally, whatever their sizes. None if a domain has fewer rows than there are
    folds, or if there is only one domain.
    """
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.metrics import balanced_accuracy_score
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    counts = np.bincount(labels)
    if len(counts) < 2 or counts.min() < FOLDS:
        return None
    classifier = LinearDiscriminantAnalysis(
        solver="lsqr", shrinkage="auto", priors=np.full(len(counts), 1 / len(counts))
    )
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)
    predicted = cross_val_predict(classifier, features.astype(np.float64), labels, cv=folds)
    return float(balanced_accuracy_score(labels, predicted))
