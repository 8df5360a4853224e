"""Hashed words: texts as numbers of a fixed width, without a dictionary and without a download.

Single words, pairs of neighbouring words, and groups of two to four characters inside words (which
also serve languages without spaces) are hashed into buckets. Those that most rows of the first
source have get an input each; a hashed word that the first source does not have, or has in one row
only, is not counted. A count c becomes 1 + log c, times the inverse document frequency
log((1 + n) / (1 + d)) + 1 for n rows of the first source, d of which have the bucket. In each
column, the words of a text get length 1, and so do its characters. Columns share the inputs: their
vectors are added.
Sources: weights of terms as in Salton and Buckley, "Term-weighting approaches in automatic text
retrieval", 1988; hashing as in Weinberger et al., "Feature Hashing for Large Scale Multitask
Learning", ICML 2009.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...base.forms import FormError, Like, check_form
from ..feature_files import Once, array_checksum, directly

BUCKETS = 1 << 18
# A bucket that fewer rows of the first source have gets no input.
FEWEST_ROWS = 2
# Characters of text, and rows, that are counted at a time.
PIECE, MOST_ROWS = 1 << 21, 4096


@dataclass(frozen=True)
class Grams:
    """A way to divide texts: scikit-learn's analyzer and lengths, and at most how many inputs."""

    analyzer: str
    lengths: tuple[int, int]
    most: int


# `python bench/text.py widths` compares other widths. With these, ridge keeps 17 MB per source.
GRAMS = {"words": Grams("word", (1, 2), 1536), "characters": Grams("char_wb", (2, 4), 512)}


class HashedWords:
    """The features of texts by hashed words. Buckets and weights are those of the first source."""

    kind = title = "hashed words"
    lacks = "group of characters of the first domain's"
    computes = "hashed words and characters, weighted by how rare they are at the first site"
    stored = (
        "the hash numbers of words and groups of characters that at least 2 rows of the first site "
        "have, with their weights: who guesses a word can check whether it is among them"
    )

    def __init__(self) -> None:
        # Buckets, in order, and their weights, by the kind of grams; empty until learned.
        self.buckets: dict[str, Tensor] = {}
        self.weights: dict[str, Tensor] = {}

    @property
    def width(self) -> int:
        """The number of features."""
        return sum(map(len, self.buckets.values()))

    def learn(self, columns: Sequence[np.ndarray], once: Once = directly) -> None:
        """Choose buckets and weights by these rows."""
        shape = (len(GRAMS), BUCKETS)
        seen = once(f"rows {GRAMS}", shape, lambda: _rows_with(columns)).astype(np.int64)
        for rows, (kind, grams) in zip(seen, GRAMS.items(), strict=True):
            most = np.argsort(-rows, kind="stable")[: grams.most]
            chosen = np.sort(most[rows[most] >= FEWEST_ROWS])
            weights = np.log((1 + len(columns[0])) / (1 + rows[chosen])) + 1
            self.buckets[kind] = torch.from_numpy(chosen)
            self.weights[kind] = torch.from_numpy(weights.astype(np.float32))

    def encode(self, columns: Sequence[np.ndarray], once: Once = directly) -> np.ndarray:
        """Features [rows, width] of columns of texts, None where there is none."""
        decides = [
            array_checksum(each) for each in (*self.buckets.values(), *self.weights.values())
        ]
        shape = (len(columns[0]), self.width)
        return once(f"features {GRAMS} {decides}", shape, lambda: self._encoded(columns))

    def _encoded(self, columns: Sequence[np.ndarray]) -> np.ndarray:
        features = np.zeros((len(columns[0]), self.width), np.float32)
        for part in _parts(columns):
            for column in columns:
                start = 0
                for kind, grams in GRAMS.items():
                    end = start + len(self.buckets[kind])
                    features[part, start:end] += self._weighted(kind, grams, column[part])
                    start = end
        return features / np.float32(np.sqrt(len(GRAMS) * len(columns)))

    def known(self, texts: np.ndarray) -> np.ndarray:
        """Which share of the groups of characters of each text has an input; 0 if it has none."""
        shares = [np.zeros(0)]
        for part in _parts([texts]):
            counts = _counts(GRAMS["characters"], texts[part])
            inside = counts[:, self.buckets["characters"].numpy()].sum(axis=1)
            shares.append(np.asarray(inside / np.maximum(counts.sum(axis=1), 1)).ravel())
        return np.concatenate(shares)

    def _weighted(self, kind: str, grams: Grams, texts: np.ndarray) -> np.ndarray:
        """One kind of grams of one column: vectors of length 1, or 0 if no gram is known."""
        counts = _counts(grams, texts)
        counts.data = 1 + np.log(counts.data)
        weighted: np.ndarray = counts[:, self.buckets[kind].numpy()].toarray()
        weighted *= self.weights[kind].numpy()
        lengths = np.linalg.norm(weighted, axis=1, keepdims=True)
        return weighted / np.where(lengths > 0, lengths, 1)

    def state_dict(self) -> dict[str, Any]:
        """Buckets and weights by the kind of grams: numbers, no words."""
        return {"kind": self.kind, "buckets": self.buckets, "weights": self.weights}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "HashedWords":
        """Restore the features, after a check of every part of the state."""
        form = {
            "kind": "",
            "buckets": _by_kind(state["buckets"], Like((None,), torch.int64, below=BUCKETS)),
            "weights": _by_kind(state["weights"], Like((None,), torch.float32, finite=True)),
        }
        check_form(state, form, "preprocessing.texts.features")
        made = cls()
        made.buckets, made.weights = dict(state["buckets"]), dict(state["weights"])
        for kind, buckets in made.buckets.items():
            if len(buckets) > GRAMS[kind].most or len(buckets) != len(made.weights[kind]):
                raise FormError(f"preprocessing.texts: {kind} have {len(buckets)} buckets")
        return made


def _by_kind(stored: Any, form: Like) -> dict[str, Like]:
    """The form of a tensor per kind of grams; of none before the first source."""
    return dict.fromkeys(GRAMS, form) if stored else {}


def _rows_with(columns: Sequence[np.ndarray]) -> np.ndarray:
    """How many rows have each bucket, by the kind of grams."""
    seen = np.zeros((len(GRAMS), BUCKETS), dtype=np.int64)
    for part in _parts(columns):
        for rows, grams in zip(seen, GRAMS.values(), strict=True):
            counts = sum(_counts(grams, column[part]) for column in columns)
            rows += np.bincount(counts.indices, minlength=BUCKETS)
    return seen


def _counts(grams: Grams, texts: np.ndarray) -> Any:
    """How often each row has each bucket, as a sparse matrix."""
    from sklearn.feature_extraction.text import HashingVectorizer

    counter = HashingVectorizer(
        analyzer=grams.analyzer,
        ngram_range=grams.lengths,
        n_features=BUCKETS,
        norm=None,
        alternate_sign=False,  # buckets are not added up, so that their signs do not matter
        dtype=np.float32,
    )
    return counter.transform([text or "" for text in texts])


def _parts(columns: Sequence[np.ndarray]) -> Iterator[slice]:
    """Parts of the rows with a bounded number of characters each, however long the texts are."""
    start = characters = 0
    for row, texts in enumerate(zip(*columns, strict=True)):
        length = sum(len(text or "") for text in texts)
        if row > start and (characters + length > PIECE or row - start == MOST_ROWS):
            yield slice(start, row)
            start, characters = row, 0
        characters += length
    yield slice(start, len(columns[0]))
