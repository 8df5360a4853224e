"""The text columns of a table as one block of features, cached by content."""

import hashlib
import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from ...base.forms import NAMES, FormError, check_form
from ...errors import FarshoreError
from ..downloads.hf_models import PREFIX
from ..feature_files import FeatureCache, Once
from ..tables.cells import as_texts
from .encoder import EncodedTexts, open_encoder
from .hashed import HashedWords

# Texts are recognised by this mean length, if at least this share of the rows has its own.
LONG, OWN_SHARE, FEWEST_ROWS = 20, 0.5, 10
# What texts have and codes do not: spaces, or letters of scripts that are written without spaces.
_PROSE = re.compile(r"\S\s+\S|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
# Texts with a smaller share of known groups of characters are foreign (one in a hundred is known by
# chance), and a site with a larger share of such texts is reported.
LEAST_KNOWN, REPORTED = 0.05, 0.1
VERSION = 2
Features: TypeAlias = HashedWords | EncodedTexts


def divide_names(declared: Collection[str]) -> tuple[list[str], str | None]:
    """The columns that `--text note,title,hf:NAME` names, and the encoder that reads them."""
    encoders = [each for each in declared if each.startswith(PREFIX)]
    if len(encoders) > 1:
        raise FarshoreError(f"--text names two encoders, {' and '.join(encoders[:2])}: name one")
    return [each for each in declared if each not in encoders], encoders[0] if encoders else None


def is_text(texts: np.ndarray) -> bool:
    """Whether the cells of a column, without missing ones, are texts rather than categories.

    There are at least 10, half as many different ones, and they have 20 characters on average;
    most contain a space, or letters of a script without spaces.
    """
    distinct = set(texts)
    if len(texts) < FEWEST_ROWS or len(distinct) < OWN_SHARE * len(texts):
        return False
    prose = sum(_PROSE.search(text) is not None for text in distinct)
    return prose > len(distinct) / 2 and sum(map(len, distinct)) >= LONG * len(distinct)


class TextColumns:
    """Columns of text. Features are learned on the first source, and then stay as they are.

    A row has an indicator of a missing text per column, and the features of all columns together,
    scaled so that a feature has about the size of a scaled number.
    """

    @classmethod
    def new(cls, columns: Sequence[str], encoder: str | None) -> "TextColumns | None":
        """These columns, read by the encoder or as hashed words; None if there is no column."""
        if encoder is not None and not columns:
            raise FarshoreError(
                f"--text {encoder}: the first domain has no column of long texts: name the columns "
                f"that {encoder} should read, --text COLUMN,{encoder}"
            )
        features = EncodedTexts(open_encoder(encoder)) if encoder is not None else None
        return cls(columns, features) if columns else None

    def __init__(self, columns: Sequence[str], features: Features | None = None) -> None:
        self.columns = list(columns)
        self.features: Features = features or HashedWords()

    @property
    def names(self) -> list[str]:
        """The names of the features."""
        missing = [f"{column} = (missing)" for column in self.columns]
        together = "+".join(self.columns)
        return missing + [f"{together} = text {number}" for number in range(self.features.width)]

    def learn(self, frame: pd.DataFrame, cache: FeatureCache | None = None) -> None:
        """Learn what the features need from rows of the first source, unless it is learned."""
        if not self.features.width:
            columns = self._texts(frame)
            self.features.learn(columns, _keeper(columns, cache))

    def encode(self, frame: pd.DataFrame, cache: FeatureCache | None = None) -> np.ndarray:
        """Indicators and features, [rows, columns + width]."""
        columns = self._texts(frame)
        missing = np.stack([pd.isna(texts) for texts in columns], axis=1)
        found = self.features.encode(columns, _keeper(columns, cache))
        scaled = found * np.float32(math.sqrt(self.features.width))
        return np.concatenate([missing.astype(np.float32), scaled], axis=1)

    def differences(self, frame: pd.DataFrame) -> list[str]:
        """How the texts of a site differ from those of the first source, one sentence each."""
        sentences = []
        for column, texts in zip(self.columns, self._texts(frame), strict=True):
            present = texts[~pd.isna(texts)]
            if not len(present):
                sentences.append(f"column {column!r}: no row has a text")
                continue
            foreign = int((self.features.known(present) < LEAST_KNOWN).sum())
            if foreign > REPORTED * len(present):
                sentences.append(
                    f"column {column!r}: {foreign} of {len(present)} texts have hardly a "
                    f"{self.features.lacks}: check the language, and whether it is this column"
                )
        return sentences

    def state_dict(self) -> dict[str, Any]:
        """The complete state; it contains no text."""
        return {"columns": self.columns, "features": self.features.state_dict()}

    @classmethod
    def from_state(cls, state: Any) -> "TextColumns":
        """Restore the columns, after a check of the state."""
        check_form(state, {"columns": NAMES, "features": None}, "preprocessing.texts")
        features = state["features"]
        known = {each.kind: each for each in (HashedWords, EncodedTexts)}
        if not isinstance(features, Mapping) or features.get("kind") not in known:
            raise FormError("preprocessing.texts.features are of an unknown kind")
        made = cls(state["columns"], known[features["kind"]].from_state(features))
        if isinstance(made.features, EncodedTexts):
            width = len(made.columns) * made.features.encoder.width
            if made.features.width not in (0, width):
                raise FormError(f"preprocessing.texts has {made.features.width} means, not {width}")
        return made

    def _texts(self, frame: pd.DataFrame) -> list[np.ndarray]:
        return [as_texts(frame[column]) for column in self.columns]


def _keeper(columns: Sequence[np.ndarray], cache: FeatureCache | None) -> Once:
    """What computes an array for these texts, and keeps it for other runs if there is a cache."""

    def once(what: str, shape: tuple[int, ...], compute: Callable[[], np.ndarray]) -> np.ndarray:
        if cache is None:
            return compute()
        digest = hashlib.sha256(f"{VERSION} {what}".encode())
        for texts in columns:
            digest.update(json.dumps(texts.tolist()).encode())

        def write(out: np.ndarray) -> None:
            out[:] = compute()

        try:
            return cache.get(digest.hexdigest(), shape, write)
        except (OSError, FarshoreError):  # a full disk, or a folder that cannot be written
            return compute()

    return once
