"""Forms of saved states: what fits passes, what does not is refused with its place."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

from farshore.base.forms import LARGEST_NUMBER, FormError, Like, ListOf, MapOf, Maybe, check_form


@pytest.mark.parametrize(
    ("form", "stored"),
    [
        (torch.zeros(2), torch.tensor([-1.0, float("nan")])),
        (torch.zeros(2, dtype=torch.long), torch.tensor([0, LARGEST_NUMBER - 1])),
        (torch.zeros(2, dtype=torch.bool), torch.tensor([True, False])),
        (torch.zeros(0, dtype=torch.long), torch.zeros(0, dtype=torch.long)),
        ({"a": 1, "b": [1.5, ""]}, {"a": 7, "b": [2, "x"]}),
        (ListOf(Maybe(1)), [None, 3, None]),
        (MapOf(Like((None, 2))), {"any": torch.zeros(5, 2)}),
    ],
)
def test_what_fits_passes(form: Any, stored: Any) -> None:
    check_form(stored, form, "state")


@pytest.mark.parametrize(
    ("form", "stored", "message"),
    [
        (torch.zeros(2), torch.zeros(3), "state has shape [3], not [2]"),
        (torch.zeros(2), torch.zeros(2, dtype=torch.long), "state has type int64, not float32"),
        (
            torch.zeros(2, dtype=torch.long),
            torch.tensor([0, -1]),
            f"state has numbers from -1 to 0, not from 0 to {LARGEST_NUMBER - 1}",
        ),
        (
            torch.zeros(1, dtype=torch.long),
            torch.tensor([LARGEST_NUMBER]),
            f"state has numbers from {LARGEST_NUMBER} to {LARGEST_NUMBER}",
        ),
        ({"a": 1}, {"a": "1"}, "state.a is str, not int"),
        ({"a": 1}, {}, "state has no 'a'"),
        ({"a": 1}, {"a": 1, "c": 2}, "state has an unknown entry 'c'"),
        ([1, 2], [1], "state is not a list of 2 entries"),
        (ListOf("", distinct=True), ["x", "x"], "state has an entry twice"),
        ({"a": [1.0]}, {"a": [float("inf")]}, "state.a.0 is inf, not a finite number"),
        (Like((2,), finite=True), torch.tensor([0.0, float("inf")]), "NaN or infinite values"),
        (Like((None,), torch.long, below=3), torch.tensor([3]), "not from 0 to 2"),
    ],
)
def test_what_does_not_fit_is_refused(form: Any, stored: Any, message: str) -> None:
    with pytest.raises(FormError, match=re.escape(message)):
        check_form(stored, form, "state")
