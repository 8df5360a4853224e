"""Made rows with notes: what a note says decides the label, at every site in other words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

GOOD = ["splendid", "flawless", "delightful", "superb", "charming", "reliable"]
BAD = ["dreadful", "broken", "useless", "shabby", "flimsy", "noisy"]
COMMON = [
    "after",
    "some",
    "weeks",
    "we",
    "wrote",
    "about",
    "this",
    "with",
    "the",
    "others",
    "in",
    "our",
    "small",
    "house",
    "again",
]
OF_SITE = {
    "shop": ["parcel", "counter", "cashier", "ribbon"],
    "clinic": ["ward", "nurse", "bandage", "corridor"],
    "garage": ["engine", "gearbox", "hoist", "puddle"],
    "school": ["chalk", "satchel", "teacher", "recess"],
}


def notes(site: str, rows: int = 80, sample: int = 0) -> pd.DataFrame:
    """Rows of a site: a number, a note of eleven words, a heading, and what the writer thinks."""
    draws = np.random.default_rng([list(OF_SITE).index(site), sample])
    pleased = draws.random(rows) < 0.5
    texts = []
    for each in pleased:
        words = [*draws.choice(GOOD if each else BAD, 2), *draws.choice(COMMON, 6)]
        texts.append(" ".join(draws.permutation([*words, *draws.choice(OF_SITE[site], 3)])))
    return pd.DataFrame(
        {
            "age": draws.integers(20, 80, rows),
            "note": texts,
            "head": [" ".join(text.split()[:2]) for text in texts],
            "pleased": np.where(pleased, "yes", "no"),
        }
    )


def every_site(rows: int = 80) -> pd.DataFrame:
    """The rows of all four sites, with a column that names the site."""
    parts = [notes(site, rows).assign(site=site) for site in OF_SITE]
    return pd.concat(parts, ignore_index=True)


def make_encoder(folder: Path) -> Path:
    """A tiny encoder with random weights and words as tokens, saved as transformers does."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    words = ["[PAD]", "[UNK]", *GOOD, *BAD, *COMMON]
    tokenizer = Tokenizer(models.WordLevel({w: n for n, w in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    more = {"intermediate_size": 16, "max_position_embeddings": 40, "vocab_size": len(words)}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        BertModel(BertConfig(**sizes, **more, initializer_range=0.5)).save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]").save_pretrained(folder)
    return folder
