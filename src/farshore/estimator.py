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
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from .errors import FarshoreError
from .learner import Learner, from_state_dict
from .networks.network import Network


class FarshoreClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that learns a sequence of domains.

    The inputs are numbers; scale them first, for example with StandardScaler.

    network, method, memory, settings, network_settings, device: as for `farshore.Learner`.
    steps: training steps per domain; by default 20 passes over its rows, 100 to 1000 steps.
    domain_order: the order in which `fit` learns the domains; by default, the order in which their
    names first appear.
    random_state: the seed.
    """

    def __init__(
        self,
        network: str | Network = "mlp",
        method: str = "er",
        memory: int = 1000,
        *,
        steps: int | None = None,
        settings: Mapping[str, Any] | None = None,
        network_settings: Mapping[str, Any] | None = None,
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
        self.domain_order = domain_order
        self.random_state = random_state
        self.device = device

    def fit(self, X: Any, y: Any, domain: Any = None) -> FarshoreClassifier:
        """Learn from scratch.

        `domain` is the domain name of each row; without it, all rows belong to one domain.
        """
        X, y = validate_data(self, X, y, dtype=np.float32)
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
                self._learn(X[names == name], y[names == name], name)
        return self

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, domain: Any = None
    ) -> FarshoreClassifier:
        """Learn one more domain.

        `domain` is its name (one name, or the same name for each row). The first call fixes the
        classes.
        """
        first = not hasattr(self, "learner_")
        X, y = validate_data(self, X, y, dtype=np.float32, reset=first)
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
        X = validate_data(self, X, dtype=np.float32, reset=False)
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

    def _start(self, classes: np.ndarray) -> None:
        if len(classes) < 2:
            raise ValueError(
                "the data contain only one class: a classifier needs at least 2; name all classes "
                "in partial_fit(classes=...)"
            )
        seed = np.random.randint(2**31) if self.random_state is None else int(self.random_state)
        try:
            learner = Learner(
                network=self.network,
                method=self.method,
                memory=self.memory,
                settings=self.settings,
                seed=seed,
                device=self.device,
                network_settings=self.network_settings,
                classes=list(range(len(classes))),
            )
        except FarshoreError as error:
            raise ValueError(str(error)) from None
        self.classes_, self.learner_ = classes, learner

    def _learn(self, X: np.ndarray, y: np.ndarray, name: str) -> None:
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(
                f"y contains the class {unknown[0]!r}, which the first call did not name: give it "
                "in partial_fit(classes=...)"
            )
        try:
            self.learner_.learn(
                X, np.searchsorted(self.classes_, y), domain=name, steps=self.steps, validation=0
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
