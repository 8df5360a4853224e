"""FarshoreClassifier: the learner as a scikit-learn estimator.

`fit(X, y, domain=names)` learns the domains of the rows one after another; `partial_fit` learns one
more. Pipeline and GridSearchCV pass the names on by metadata routing:
`sklearn.set_config(enable_metadata_routing=True)`, then
`FarshoreClassifier().set_fit_request(domain=True)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import (
    assert_all_finite,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from .data.tables.frames import Preprocess
from .errors import FarshoreError
from .learner.learner import Learner
from .learner.loading import from_state_dict
from .methods import DEFAULT_METHOD
from .networks.network import Network

# The parameters that a learner has, too.
OF_LEARNER = (
    *("network", "method", "memory", "settings", "network_settings", "preprocess", "device"),
)


class FarshoreClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that learns a sequence of domains.

    The columns of an array or a data frame are scaled and encoded by the first domain's training
    rows, as everywhere in Farshore; NaN is a missing value. `preprocess="none"` takes numbers as
    they are.

    network, method, memory, settings, network_settings, preprocess, device: as for
    `farshore.Learner`.
    steps: training steps per domain; by default 20 passes over its rows, 100 to 1000 steps.
    validation: the share of each domain's rows that is held out, as in `Learner.learn`, to measure
    `scores_`; with 0, every row is trained on.
    domain_order: the order in which `fit` learns the domains; by default, the order in which their
    names first appear.
    random_state: the seed.
    """

    def __init__(
        self,
        network: str | Network = "mlp",
        method: str = DEFAULT_METHOD,
        memory: int = 1000,
        *,
        steps: int | None = None,
        settings: Mapping[str, Any] | None = None,
        network_settings: Mapping[str, Any] | None = None,
        preprocess: Preprocess | None = None,
        validation: float | int = 0.2,
        domain_order: Sequence[Any] | None = None,
        random_state: int | None = 0,
        device: str = "cpu",
    ) -> None:
        self.network = network
        self.method = method
        self.memory = memory
        self.steps = steps
        self.settings = settings
        self.network_settings = network_settings
        self.preprocess = preprocess
        self.validation = validation
        self.domain_order = domain_order
        self.random_state = random_state
        self.device = device

    def fit(self, X: Any, y: Any, domain: Any = None) -> FarshoreClassifier:
        """Learn from scratch; `domain` is each row's domain name, without it all belong to one."""
        X, y = self._validated(X, y)
        check_classification_targets(y)
        names = (
            np.full(len(y), "domain 1", dtype=object)
            if domain is None
            else np.asarray(column_or_1d(domain)).astype(str).astype(object)
        )
        if len(names) != len(y):
            raise ValueError(
                f"domain has {len(names)} names, but X has {len(y)} rows: give one name per row"
            )
        domains = list(dict.fromkeys(names.tolist()))
        order = domains if self.domain_order is None else [str(name) for name in self.domain_order]
        unordered = [name for name in domains if name not in order]
        if unordered:
            raise ValueError(f"domain_order does not name the domain {unordered[0]!r}")
        self._start(unique_labels(y))
        for name in order:
            if name in domains:  # a cross-validation fold may lack a domain
                rows = np.flatnonzero(names == name)
                self._learn(_take(X, rows), y[rows], name)
        return self

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, domain: Any = None
    ) -> FarshoreClassifier:
        """Learn one more domain.

        `domain` is its name (one name, or the same name for each row). The first call fixes the
        classes.
        """
        first = not hasattr(self, "learner_")
        X, y = self._validated(X, y, reset=first)
        check_classification_targets(y)
        if first:
            self._start(unique_labels(y) if classes is None else np.unique(classes))
        names = (
            []
            if domain is None
            else list(
                dict.fromkeys(map(str, np.atleast_1d(np.asarray(domain, dtype=object)).tolist()))
            )
        )
        if len(names) > 1:
            raise ValueError(
                f"partial_fit learns one domain at a time, but domain has {len(names)} names"
            )
        self._learn(X, y, names[0] if names else f"domain {len(self.domains_) + 1}")
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class, in the order of `classes_`."""
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        probabilities: np.ndarray = self.learner_.predict_proba(X)
        return probabilities

    def predict(self, X: Any) -> np.ndarray:
        """The label of each row."""
        check_is_fitted(self)
        labels: np.ndarray = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return labels

    @property
    def domains_(self) -> list[str]:
        """The domains that were learned, in order."""
        check_is_fitted(self, "learner_")
        return [str(domain["name"]) for domain in self.learner_.domains]

    def _validated(self, X: Any, y: Any = "no_validation", *, reset: bool = True) -> Any:
        """X, or X and y, after scikit-learn's checks.

        Data frames stay data frames, so that text columns can be encoded, unless the estimator was
        fitted without names.
        """
        columns = self._preprocesses_columns()
        named = isinstance(X, pd.DataFrame) and (reset or hasattr(self, "feature_names_in_"))
        if columns and named:
            validate_data(self, X, y, reset=reset, skip_check_array=True)
            if isinstance(y, str):
                return X
            y = column_or_1d(y, warn=True)
            check_consistent_length(X, y)
            assert_all_finite(y, input_name="y")
            return X, y
        if getattr(X, "ndim", 2) == 4 and self.network != "mlp":  # images keep their type
            return validate_data(self, X, y, reset=reset, dtype=None, allow_nd=True)
        checks = {"dtype": np.float64, "ensure_all_finite": "allow-nan" if columns else True}
        return validate_data(self, X, y, reset=reset, **checks)

    def _preprocesses_columns(self) -> bool:
        default = "columns" if isinstance(self.network, str) else "none"
        return (self.preprocess or default) == "columns"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._preprocesses_columns()
        return tags

    def _start(self, classes: np.ndarray) -> None:
        if len(classes) < 2:
            raise ValueError(
                "the data contain only one class: a classifier needs at least 2; name all classes "
                "in partial_fit(classes=...)"
            )
        seed = np.random.randint(2**31) if self.random_state is None else int(self.random_state)
        try:
            given = {name: getattr(self, name) for name in OF_LEARNER}
            learner = Learner(**given, seed=seed, classes=list(range(len(classes))))
        except FarshoreError as error:
            raise ValueError(str(error)) from None
        self.classes_, self.learner_ = classes, learner
        self.scores_: dict[str, dict[str, float]] = {}

    def _learn(self, X: np.ndarray, y: np.ndarray, name: str) -> None:
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(
                f"y contains the class {unknown[0]!r}, which the first call did not name: give it "
                "in partial_fit(classes=...)"
            )
        try:
            self.scores_[name] = self.learner_.learn(
                X,
                np.searchsorted(self.classes_, y),
                domain=name,
                steps=self.steps,
                validation=self.validation,
            )
        except FarshoreError as error:
            raise ValueError(str(error)) from None

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "learner_" in state:
            # Random generators cannot be pickled, so the learner is copied as its state_dict.
            state["learner_"] = state["learner_"].state_dict()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        saved = state.pop("learner_", None)
        super().__setstate__(state)
        if saved is not None:
            network = self.network if isinstance(self.network, Network) else None
            self.learner_ = from_state_dict(
                saved, "the copied estimator", network=network, device=self.device
            )


def _take(X: Any, rows: np.ndarray) -> Any:
    return X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]
