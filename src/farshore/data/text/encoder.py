"""hf:NAME: texts as the mean token of a frozen encoder of the transformers library.

One text at a time goes through the encoder, at most 512 of its tokens: its vector depends on the
text and the encoder alone, to the last bit. Each column of text has features of its own: vectors of
length 1, minus the mean of the first source, divided by its standard deviations. Both then stay as
they are. A missing text is 0 everywhere.
Source: the mean over tokens as in Reimers and Gurevych, "Sentence-BERT", EMNLP 2019.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pandas as pd
import torch

from ...base.forms import FormError, Like, MapOf, check_form, like_all
from ...errors import FarshoreError
from ..downloads.hf_models import (
    PREFIX,
    from_config,
    from_published,
    library,
    local,
    missing,
    quiet,
    unfit,
)
from ..downloads.hub import hub
from ..feature_files import Once, array_checksum, directly
from ..progress import followed

# Kinds of encoders that are all their own.
KINDS = (
    *("albert", "bert", "camembert", "data2vec-text", "deberta", "deberta-v2", "distilbert"),
    *("electra", "ernie", "mobilebert", "modernbert", "mpnet", "roberta"),
    *("roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl"),
)
FILE = "tokenizer.json"
MOST_TOKENS = 512
# Positions that models like RoBERTa have but do not use.
SET_APART = 2
# Features are clipped at this many standard deviations, as numbers are.
LIMIT = 10.0
WHERE = "preprocessing.texts.features"


class Encoder:
    """A frozen model with its tokenizer."""

    def __init__(self, name: str, model: Any, tokenizer: Any, length: int) -> None:
        self.name, self.length = name, length
        self.model = _without_pooler(model).eval().requires_grad_(False)
        self.tokenizer = tokenizer
        tokenizer.no_padding()
        tokenizer.enable_truncation(length)
        try:
            with torch.random.fork_rng(devices=[]):
                self.width = len(self.vector("a " * MOST_TOKENS))
        except Exception as error:  # a configuration may be wrong in any way
            raise unfit(f"text encoder {PREFIX + name!r}", error) from None

    def vector(self, text: str) -> np.ndarray:
        """The mean of the states of all tokens, with length 1."""
        ids = torch.tensor([self.tokenizer.encode(text).ids])
        with torch.inference_mode():
            found = self.model(input_ids=ids, attention_mask=torch.ones_like(ids))
            mean = found.last_hidden_state[0].mean(dim=0)
            vector: np.ndarray = (mean / mean.norm().clamp(min=1e-12)).numpy()
        if not np.isfinite(vector).all():
            raise FarshoreError("its outputs are not finite")
        return vector

    def known(self, text: str) -> float:
        """Which share of the tokens of a text the tokenizer knows; 1 if it knows every text."""
        tokens = self.tokenizer.encode(text, add_special_tokens=False).tokens
        unknown = getattr(self.tokenizer.model, "unk_token", None)
        return sum(token != unknown for token in tokens) / max(len(tokens), 1)

    @cached_property
    def state(self) -> dict[str, Any]:
        """What makes the same encoder again, without any file of its library."""
        return {
            "name": self.name,
            "config": json.loads(self.model.config.to_json_string(use_diff=False)),
            "tokenizer": self.tokenizer.to_str(),
            "length": self.length,
            "weights": {name: value.detach() for name, value in self.model.state_dict().items()},
        }

    @cached_property
    def checksum(self) -> str:
        """A checksum of everything that decides the vector of a text."""
        weights = {name: array_checksum(value) for name, value in self.state["weights"].items()}
        parts = [self.state | {"name": "", "weights": weights}, str(torch.__version__)]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@lru_cache(maxsize=1)
def open_encoder(entry: str) -> Encoder:
    """The encoder `hf:NAME`; NAME is a model of the hub or its folder."""
    name, what = entry.removeprefix(PREFIX), f"text encoder {entry!r}"
    transformers = library("transformers", "transformers", entry, "text encoder")
    try:
        with hub(), quiet(transformers):
            model = from_published(transformers, name, KINDS, what)
            tokens = transformers.AutoTokenizer.from_pretrained(
                local(name), trust_remote_code=False
            )
    except (OSError, ValueError, ImportError) as error:
        raise missing(name, FILE, error) from None
    if getattr(tokens, "backend_tokenizer", None) is None:
        raise FarshoreError(f"{what} has no {FILE}: choose a model that has one")
    positions = getattr(model.config, "max_position_embeddings", MOST_TOKENS + SET_APART)
    length = min(MOST_TOKENS, tokens.model_max_length, positions - SET_APART)
    return Encoder(name, model, tokens.backend_tokenizer, length)


def _restored(stored: Mapping[str, Any]) -> Encoder:
    """The encoder of a state, whose shapes are checked before anything is allocated."""
    from tokenizers import Tokenizer

    what = f"text encoder {PREFIX + stored['name']!r}"
    transformers = library("transformers", "transformers", PREFIX + stored["name"], "text encoder")
    with torch.random.fork_rng(devices=[]):
        with torch.device("meta"):
            shapes = from_config(transformers, stored["config"], KINDS, what)
        form = like_all(_without_pooler(shapes).state_dict())
        check_form(stored["weights"], form, f"{WHERE}.weights")
        model = _without_pooler(from_config(transformers, stored["config"], KINDS, what))
    model.load_state_dict(stored["weights"])
    try:
        tokenizer = Tokenizer.from_str(stored["tokenizer"])
    except Exception as error:  # the library raises nothing more special
        raise FormError(f"{WHERE}.tokenizer cannot be read: {str(error)[:80]}") from None
    if not 1 <= stored["length"] <= MOST_TOKENS:
        raise FormError(f"{WHERE}.length is {stored['length']}, not 1 to {MOST_TOKENS}")
    return Encoder(stored["name"], model, tokenizer, stored["length"])


def _without_pooler(model: Any) -> Any:
    """The model without a part whose weights are often not published; no mean needs it."""
    if getattr(model, "pooler", None) is not None:
        model.pooler = None
    return model


class EncodedTexts:
    """The features of texts by an encoder, scaled as the first source's are."""

    kind = "text encoder"
    lacks = "token that the encoder knows"
    stored = (
        "the encoder that reads them, with its own published vocabulary, and the mean and standard "
        "deviation of its features at the first site"
    )

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.centre, self.spread = torch.zeros(0), torch.zeros(0)
        # The vectors of the last rows: those that scales are learned from are among the next ones.
        self._recent: dict[str, np.ndarray] = {}

    @property
    def title(self) -> str:
        """What computes the features, in a line about the columns."""
        return f"the mean tokens of {PREFIX}{self.encoder.name}"

    @property
    def computes(self) -> str:
        """What computes the features, in a sentence."""
        return (
            f"{self.title}, a frozen encoder (at most {self.encoder.length} tokens of a text), "
            "scaled as at the first site"
        )

    @property
    def width(self) -> int:
        """The number of features; 0 before the first source."""
        return len(self.centre)

    def learn(self, columns: Sequence[np.ndarray], once: Once = directly) -> None:
        """Take the mean and the standard deviations of these rows."""
        vectors = np.split(self._vectors(columns, once).astype(np.float64), len(columns), axis=1)
        centres, spreads = [], []
        for part, texts in zip(vectors, columns, strict=True):
            present = part[~pd.isna(texts)] if any(texts) else part[:1]
            centres.append(present.mean(axis=0))
            spread = present.std(axis=0)
            spreads.append(np.where(spread > 1e-6, spread, 1.0))
        self.centre = torch.from_numpy(np.concatenate(centres).astype(np.float32))
        self.spread = torch.from_numpy(np.concatenate(spreads).astype(np.float32))

    def encode(self, columns: Sequence[np.ndarray], once: Once = directly) -> np.ndarray:
        """Features [rows, width] of columns of texts, None where there is none."""
        scaled = (self._vectors(columns, once) - self.centre.numpy()) / self.spread.numpy()
        present = np.stack([~pd.isna(texts) for texts in columns], axis=1)
        scaled = np.clip(scaled, -LIMIT, LIMIT) * present.repeat(self.encoder.width, axis=1)
        return (scaled / np.sqrt(self.width)).astype(np.float32)

    def known(self, texts: np.ndarray) -> np.ndarray:
        """Which share of the tokens of each text the tokenizer knows."""
        return np.array([self.encoder.known(text) for text in texts])

    def _vectors(self, columns: Sequence[np.ndarray], once: Once) -> np.ndarray:
        shape = (len(columns[0]), len(columns) * self.encoder.width)
        return once(f"encoder {self.encoder.checksum}", shape, lambda: self._encoded(columns))

    def _encoded(self, columns: Sequence[np.ndarray]) -> np.ndarray:
        distinct = sorted({text for texts in columns for text in texts if text is not None})
        found = {
            text: self._recent[text] if text in self._recent else self.encoder.vector(text)
            for text in followed(distinct, "texts through the encoder", len(distinct))
        }
        self._recent = found
        empty = np.zeros(self.encoder.width, np.float32)
        parts = [np.stack([found.get(text, empty) for text in texts]) for texts in columns]
        return np.concatenate(parts, axis=1)

    def state_dict(self) -> dict[str, Any]:
        """The encoder and the scales: numbers and the encoder's vocabulary, no text."""
        return {
            "kind": self.kind,
            **self.encoder.state,
            "centre": self.centre,
            "spread": self.spread,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "EncodedTexts":
        """Restore the features, after a check of every part of the state."""
        scales = Like((None,), torch.float32, finite=True)
        form = {
            **dict.fromkeys(("kind", "name", "tokenizer"), ""),
            **{"config": MapOf(None), "length": 0, "weights": MapOf(None)},
            **{"centre": scales, "spread": scales},
        }
        check_form(state, form, WHERE)
        made = cls(_restored(state))
        made.centre, made.spread = state["centre"], state["spread"]
        if len(made.centre) != len(made.spread) or len(made.centre) % made.encoder.width:
            raise FormError(f"{WHERE} has {len(made.centre)} means: not those of this encoder")
        return made
