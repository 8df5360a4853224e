"""FarshoreClassifier and FarshoreRegressor: the learner as a scikit-learn estimator.

`fit(X, y, domain=names)` learns the domains of the rows one after another; `partial_fit` learns one
more. Pipeline and GridSearchCV pass the names on by metadata routing:
`sklearn.set_config(enable_metadata_routing=True)`, then
`FarshoreClassifier().set_fit_request(domain=True)`.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from types import MappingProxyType
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import (
    assert_all_finite,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)
from torch import nn

from .data.tables.frames import Preprocess, as_table
from .errors import FarshoreError
from .learner.learner import Learner
from .learner.loading import from_state_dict
from .networks.build import as_network
from .networks.network import Network

# The parameters that a learner has, too.
OF_LEARNER = (
    *("network", "method", "memory", "settings", "network_settings", "preprocess", "text"),
    "device",
)


@dataclass(eq=False, repr=False)
class _Estimator(BaseEstimator):  # type: ignore[misc]
    """What both estimators have in common."""

    network: str | Network | nn.Module | None = None
    method: str | None = None
    memory: int = 1000
    _: KW_ONLY
    steps: int | None = None
    settings: Mapping[str, Any] | None = None
    network_settings: Mapping[str, Any] | None = None
    preprocess: Preprocess | None = None
    text: Sequence[str] | None = None
    validation: float | int = 0.2
    domain_order: Sequence[Any] | None = None
    random_state: int | None = 0
    device: str = "cpu"

    # With metadata routing, the groups of a search or a cross-validation reach `fit`.
    __metadata_request__fit = MappingProxyType({"groups": True})

    def fit(
        self, X: Any, y: Any, domain: Any = None, sample_weight: Any = None, groups: Any = None
    ) -> Self:
        """Learn from scratch; `domain` is each row's domain name, without it all belong to one.

        groups: not used; a warning says so if they are given without `domain`.
        """
        if groups is not None and domain is None:
            warnings.warn(
                "groups divide rows for scikit-learn only: without domain, all rows are learned as "
                "one domain; to learn group after group, give domain=groups, too",
                stacklevel=2,
            )
        X, y = self._validated(X, y)
        weights = self._weights(sample_weight, y)
        names = np.full(len(y), "domain 1", dtype=object)
        if domain is not None:
            names = np.asarray(column_or_1d(domain)).astype(str).astype(object)
        if len(names) != len(y):
            why = f"domain has {len(names)} names, but X has {len(y)} rows: give one name per row"
            raise ValueError(why)
        domains = list(dict.fromkeys(names.tolist()))
        order = domains if self.domain_order is None else [str(name) for name in self.domain_order]
        unordered = [name for name in domains if name not in order]
        if unordered:
            raise ValueError(f"domain_order does not name the domain {unordered[0]!r}")
        self._start(self._task(y))
        for name in order:
            if name in domains:  # a cross-validation fold may lack a domain
                rows = np.flatnonzero(names == name)
                of_domain = X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]
                own = None if weights is None else weights[rows]
                self._learn(of_domain, y[rows], name, own)
        return self

    def _task(self, y: np.ndarray) -> dict[str, Any]:
        """How a learner is told what these labels are."""
        raise NotImplementedError

    def _learn_one_more(
        self, X: Any, y: Any, classes: Any, domain: Any, sample_weight: Any
    ) -> Self:
        first = not hasattr(self, "learner_")
        X, y = self._validated(X, y, reset=first)
        found = self._task(y)
        if first:
            self._start(found if classes is None else {"classes": np.unique(classes)})
        given = [] if domain is None else np.asarray(domain, dtype=object).reshape(-1).tolist()
        names = list(dict.fromkeys(map(str, given)))
        if len(names) > 1:
            raise ValueError(
                f"partial_fit learns one domain at a time, but domain has {len(names)} names"
            )
        weights = self._weights(sample_weight, y)
        self._learn(X, y, names[0] if names else f"domain {len(self.domains_) + 1}", weights)
        return self

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
        if hasattr(X, "get_columns") or hasattr(X, "to_pandas"):  # Polars or Arrow
            X = as_table(X)
        named = isinstance(X, pd.DataFrame) and (reset or hasattr(self, "feature_names_in_"))
        if columns and named:
            validate_data(self, X, y, reset=reset, skip_check_array=True)
            if isinstance(y, str):
                return X
            y = column_or_1d(y, warn=True)
            check_consistent_length(X, y)
            assert_all_finite(y, input_name="y")
            return X, y
        if getattr(X, "ndim", 2) == 4 and self.network not in (
            None,
            "mlp",
        ):  # images keep their type
            return validate_data(self, X, y, reset=reset, dtype=None, allow_nd=True)
        checks = {"dtype": np.float64, "ensure_all_finite": "allow-nan" if columns else True}
        return validate_data(self, X, y, reset=reset, **checks, **self._of_labels(y))

    def _preprocesses_columns(self) -> bool:
        default = "columns" if isinstance(as_network(self.network), str) else "none"
        return (self.preprocess or default) == "columns"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._preprocesses_columns()
        return tags

    def _of_labels(self, y: Any) -> dict[str, bool]:
        """Further checks of labels."""
        return {}

    def _start(self, task: Mapping[str, Any]) -> None:
        seed = np.random.randint(2**31) if self.random_state is None else int(self.random_state)
        try:
            given = {name: getattr(self, name) for name in OF_LEARNER}
            weight = getattr(self, "class_weight", None)
            if isinstance(weight, str):
                given["settings"] = {**(self.settings or {}), "class_weight": weight}
            self.learner_ = Learner(**given, seed=seed, **task)
        except FarshoreError as error:
            raise ValueError(str(error)) from None
        self.scores_: dict[str, dict[str, float]] = {}

    def _weights(self, given: Any, y: np.ndarray) -> np.ndarray | None:
        """The weight of each row times that of its class; None if all are equal."""
        weights = np.ones(len(y))
        if given is not None:
            weights = np.asarray(column_or_1d(given), dtype=float)
        if len(weights) != len(y):
            raise ValueError(f"sample_weight has {len(weights)} numbers, but X has {len(y)} rows")
        if not weights.any():
            raise ValueError("sample_weight is zero for every row")
        of_class = getattr(self, "class_weight", None)
        if isinstance(of_class, Mapping):
            weights = weights * [of_class.get(label, 1.0) for label in y.tolist()]
        return None if (weights == weights[0]).all() else weights

    def _learn(self, X: Any, y: np.ndarray, name: str, weights: np.ndarray | None) -> None:
        try:
            how: dict[str, Any] = {"steps": self.steps, "validation": self.validation}
            self.scores_[name] = self.learner_.learn(X, y, domain=name, weights=weights, **how)
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
            network = as_network(self.network)
            own = None if isinstance(network, str) else network
            self.learner_ = from_state_dict(
                saved, "the copied estimator", network=own, device=self.device
            )


@dataclass(eq=False, repr=False)
class FarshoreClassifier(ClassifierMixin, _Estimator):  # type: ignore[misc]
    """A classifier that learns a sequence of domains.

    The columns of an array or a data frame are scaled and encoded by the first domain's training
    rows, as everywhere in Farshore; NaN is a missing value. `preprocess="none"` takes numbers as
    they are.

    network, method, memory, settings, network_settings, preprocess, text, device: as for
    `farshore.Learner`.
    steps: training steps per domain; by default 20 passes over its rows, 100 to 1000 steps.
    class_weight: None, "balanced": every class counts the same in training, or a weight per class.
    validation: the share of each domain's rows that is held out, as in `Learner.learn`, to measure
    `scores_`; with 0, every row is trained on.
    domain_order: the order in which `fit` learns the domains; by default, the order in which their
    names first appear.
    random_state: the seed.
    """

    class_weight: str | Mapping[Any, float] | None = field(default=None, kw_only=True)

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        domain: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Learn one more domain.

        `domain` is its name (one name, or the same name for each row). The first call fixes the
        classes.
        """
        return self._learn_one_more(X, y, classes, domain, sample_weight)

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class, in the order of `classes_`."""
        check_is_fitted(self)
        return self.learner_.predict_proba(self._validated(X, reset=False))

    def predict(self, X: Any) -> np.ndarray:
        """The label of each row."""
        shares = self.predict_proba(X)  # first: it refuses an estimator that is not fitted
        return self.classes_[shares.argmax(axis=1)]

    def _task(self, y: np.ndarray) -> dict[str, Any]:
        check_classification_targets(y)
        return {"classes": unique_labels(y)}

    def _start(self, task: Mapping[str, Any]) -> None:
        classes = task["classes"]
        if len(classes) < 2:
            raise ValueError(
                "the data contain only one class: a classifier needs at least 2; name all classes "
                "in partial_fit(classes=...)"
            )
        super()._start({"classes": list(range(len(classes)))})
        self.classes_ = classes

    def _learn(self, X: Any, y: np.ndarray, name: str, weights: np.ndarray | None) -> None:
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(
                f"y contains the class {unknown[0]!r}, which the first call did not name: give it "
                "in partial_fit(classes=...)"
            )
        super()._learn(X, np.searchsorted(self.classes_, y), name, weights)


class FarshoreRegressor(RegressorMixin, _Estimator):  # type: ignore[misc]
    """A model of a number that learns a sequence of domains.

    The label is scaled by the first domain's training rows; predictions are in its own unit. The
    parameters are those of `FarshoreClassifier`, without `class_weight`; methods that need classes
    are refused.
    """

    def partial_fit(self, X: Any, y: Any, domain: Any = None, sample_weight: Any = None) -> Self:
        """Learn one more domain; `domain` is its name (one name, or the same name for each row)."""
        return self._learn_one_more(X, y, None, domain, sample_weight)

    def predict(self, X: Any) -> np.ndarray:
        """The value of each row."""
        check_is_fitted(self)
        return self.learner_.predict(self._validated(X, reset=False))

    def _task(self, y: np.ndarray) -> dict[str, Any]:
        if len(y) < 2:
            raise ValueError("one sample has no scale of the label: give at least 2 rows")
        return {"task": "regression"}

    def _of_labels(self, y: Any) -> dict[str, bool]:
        return {} if isinstance(y, str) else {"y_numeric": True}
