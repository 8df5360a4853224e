"""Saved features of sources and target in a plane, and how well they distinguish the domains."""

import warnings
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray

from ..cells import SERIES
from .shape import PLACE, Drawn, View, canvas, places, text

TARGET_COLOUR = "#d7263d"
Floats = NDArray[np.float32]
Whole = NDArray[np.int64]


def draw(frame: pd.DataFrame) -> go.Figure:
    """Points in the colour of their domain, the target in red; classes at their centres."""
    figure = canvas(x="", y="", height=520)
    sources = 0
    for domain in frame["domain"].unique():
        part = frame[frame["domain"] == domain]
        target = bool(part["target"].iloc[0])
        colour = TARGET_COLOUR if target else SERIES[sources % len(SERIES)]
        sources += not target
        size, symbol = (5, "x") if target else (4, "circle")
        figure.add_scatter(
            x=part["x"].to_numpy("float32"),
            y=part["y"].to_numpy("float32"),
            mode="markers",
            name=f"{'target' if target else 'source'} {text(domain)}",
            marker={"color": colour, "size": size, "opacity": 0.7, "symbol": symbol},
            customdata=list(part["class"]),
            hovertemplate=f"{text(domain)}, class %{{customdata}}<extra></extra>",
        )
    centres = frame[~frame["target"]].groupby("class")[["x", "y"]].median()
    figure.add_scatter(
        x=list(centres["x"]),
        y=list(centres["y"]),
        mode="text",
        text=[f"<b>{number}</b>" for number in centres.index],
        textfont={"size": 18},
        name="class",
        showlegend=False,
        hoverinfo="skip",
    )
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    return figure


def drawing(runs: pd.DataFrame) -> Drawn | None:
    """The figure, if features were saved; one run per data set, target and method."""
    runs = runs[runs["features"] != ""].sort_values("selected", ascending=False, kind="stable")
    runs = runs.drop_duplicates([*PLACE, "row"]).sort_index().assign(selected=True)
    shown, frames, projections = [], [], set()
    for place, part in places(runs):
        for run in part.to_dict("records"):
            saved = read_features(Path(run["features"]))
            if saved is None:  # damaged
                continue
            named = {"benchmark": run["benchmark"], "target_name": run["target"]}
            frame = saved.frame().assign(**named, method=run["row"])
            plane, projection = project(saved.features)
            frame[["x", "y"]] = plane.round(2)
            note = measure(saved).sentence()
            shown.append(View(run["row"], draw(frame), of=place, note=note))
            projections.add(projection)
            frames.append(frame)
    if not shown:
        return None
    says = (
        "Features that the frozen model computes for every source (validation rows) and for the "
        f"unseen target, projected onto a plane by {' or '.join(sorted(projections))}; numbers "
        "mark the centres of the sources' classes. A picture alone proves nothing, so a "
        "classifier tries to predict the domain: the closer its accuracy is to chance, the less "
        "the features reveal where a row comes from."
    )
    numbers = pd.concat(frames, ignore_index=True)
    return says, shown, numbers, runs


FOLDS = 5
# UMAP and the classifier are seeded so that the same features give the same picture.
SEED = 0
NEIGHBOURS = 15
LEAST_ROWS = 2 * NEIGHBOURS


@dataclass(frozen=True)
class Features:
    """Rows of features with their domains, whether these are the target, and their classes."""

    features: Floats
    domains: list[str]
    target: NDArray[np.bool_]
    classes: Whole

    def frame(self) -> pd.DataFrame:
        """One line per row, without the features."""
        return pd.DataFrame({"domain": self.domains, "target": self.target, "class": self.classes})


@dataclass(frozen=True)
class Overlap:
    """Cross-validated balanced accuracy of telling domains apart, and the target from sources."""

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
        named = name.partition(" ")[2]
        domains += [named if is_target else named.partition(" ")[2]] * len(rows)
        target += [is_target] * len(rows)
        classes.append(labels.reshape(-1))
    if not blocks:
        return None
    numbers = np.concatenate(classes).astype(np.int64)
    return Features(np.concatenate(blocks), domains, np.array(target, dtype=bool), numbers)


def project(features: Floats) -> tuple[pd.DataFrame, str]:
    """Two coordinates per row and their name: UMAP, or principal components without it."""
    import torch

    with warnings.catch_warnings(), ExitStack() as at_the_end:
        # umap and numba warn about versions and threads, which readers cannot change. Numba changes
        # PyTorch's number of threads when it compiles UMAP.
        warnings.simplefilter("ignore")
        at_the_end.callback(torch.set_num_threads, torch.get_num_threads())
        try:
            from umap import UMAP
        except ImportError:
            UMAP = None
        if UMAP is not None and len(features) >= LEAST_ROWS:
            umap = UMAP(n_neighbors=NEIGHBOURS, min_dist=0.1, random_state=SEED, n_jobs=1)
            plane = umap.fit_transform(features)
            return pd.DataFrame(plane, columns=["x", "y"]), "UMAP"
    from sklearn.decomposition import PCA

    # Zero columns, so that two components exist even for a single feature.
    padded = np.column_stack([features, np.zeros_like(features)])
    plane = PCA(2, random_state=SEED).fit_transform(padded)
    return pd.DataFrame(plane, columns=["x", "y"]), "principal components"


def measure(saved: Features) -> Overlap:
    """How distinguishable the domains are in the space of the features, not in the plane."""
    names, numbers = np.unique(saved.domains, return_inverse=True)
    of_target = accuracy(saved.features, saved.target.astype(np.int64))
    return Overlap(accuracy(saved.features, numbers), 1 / len(names), of_target)


def accuracy(features: Floats, labels: Whole) -> float | None:
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
    even = np.full(len(counts), 1 / len(counts))
    classifier = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto", priors=even)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)
    predicted = cross_val_predict(classifier, features.astype(np.float64), labels, cv=folds)
    return float(balanced_accuracy_score(labels, predicted))
