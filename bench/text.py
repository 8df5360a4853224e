"""How good are hashed words? Reviews of four groups of products, each group left out in turn.

    python bench/text.py scores REVIEWS
    python bench/text.py widths REVIEWS
    python bench/text.py projected REVIEWS

REVIEWS is a table with the columns domain (books, dvd, electronics, kitchen), title, text and
label: 2,000 labelled reviews per group (Blitzer, Dredze and Pereira, "Biographies, Bollywood,
Boom-boxes and Blenders: Domain Adaptation for Sentiment Classification", ACL 2007). It is not part
of Farshore.

scores: `ridge` and `er` learn the other three groups one after another. Beside them, scikit-learn's
TfidfVectorizer and LogisticRegression are fitted to all rows of the three groups at once, with
their defaults and with pairs of words and 1 + log counts, on title and text as one; and the scores
of training jointly on the three groups with 5,000 words that Zhao et al. published ("Multiple
Source Domain Adaptation with Adversarial Learning", 2018).
widths: `ridge` with other numbers of inputs for words and for groups of characters.
projected: the inputs that most rows of the first source have, beside a fixed random projection of
all hashed words and characters to as many inputs (signs, seeded), both with the weights of the
first source and scikit-learn's RidgeClassifierCV on the three groups at once.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import record
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize

from farshore.data.text import hashed
from farshore.runs.protocol import execute
from farshore.runs.run import Run

PUBLISHED = {"books": 76.6, "dvd": 75.9, "electronics": 84.6, "kitchen": 85.5}
WIDTHS = ((768, 256), (1536, 0), (1536, 512), (2048, 512))


@cache
def reviews(path: Path) -> pd.DataFrame:
    """The table."""
    return pd.read_csv(path)


def ours(path: Path, method: str, target: str) -> float:
    """The accuracy of a method at a group that it has not seen, in %."""
    options = {"path": str(path), "domain": "domain", "label": "label", "text": "text,title"}
    others = [column for column in reviews(path) if column not in options.values()]
    options["drop"] = ",".join(set(others) - {"text", "title"})
    run = Run.build(benchmark="table", options=options, method=method, target=target)
    result = execute(run)
    assert result.target is not None
    return 100 * result.target.scores["accuracy"]


def jointly(path: Path, target: str, pairs: bool) -> float:
    """The accuracy of TF-IDF and logistic regression, fitted to the three other groups."""
    frame = reviews(path)
    texts = frame["title"].astype(str) + "\n" + frame["text"].astype(str)
    more = {"ngram_range": (1, 2), "sublinear_tf": True} if pairs else {}
    model = make_pipeline(TfidfVectorizer(**more), LogisticRegression(max_iter=1000))
    inside = frame["domain"] == target
    model.fit(texts[~inside], frame["label"][~inside])
    return 100 * float(model.score(texts[inside], frame["label"][inside]))


def scores(path: Path) -> Iterator[list[str]]:
    """A row per group, and the mean."""
    columns: list[list[float]] = []
    for target, published in PUBLISHED.items():
        found = [ours(path, method, target) for method in ("ridge", "er")]
        found += [jointly(path, target, pairs) for pairs in (False, True)]
        columns.append([*found, published])
        yield [target, *(f"{value:.1f}" for value in columns[-1])]
    means = [sum(column) / len(columns) for column in zip(*columns, strict=True)]
    yield ["mean", *(f"{value:.1f}" for value in means)]


def widths(path: Path) -> Iterator[list[str]]:
    """A row per pair of widths."""
    usual = hashed.GRAMS
    for words, characters in WIDTHS:
        most = {"words": words, "characters": characters}
        hashed.GRAMS = {
            kind: hashed.Grams(grams.analyzer, grams.lengths, most[kind])
            for kind, grams in usual.items()
        }
        began = time.process_time()
        found = [ours(path, "ridge", target) for target in PUBLISHED]
        seconds = (time.process_time() - began) / len(found)
        megabytes = 4 * 2000 * (words + characters) / 1e6
        cells = [words, characters, *(f"{value:.1f}" for value in found)]
        yield [*map(str, cells), f"{sum(found) / 4:.1f}", f"{seconds:.0f}", f"{megabytes:.0f}"]


def projected(path: Path) -> Iterator[list[str]]:
    """A row per group: chosen inputs and projected ones, under the same classifier."""
    frame = reviews(path)
    for target in PUBLISHED:
        known = [name for name in PUBLISHED if name != target]
        parts = [frame[frame["domain"] == known[0]], frame[frame["domain"].isin(known)]]
        parts.append(frame[frame["domain"] == target])
        first, train, unseen = ([part["text"], part["title"]] for part in parts)
        words = hashed.HashedWords()
        words.learn(_texts(first))
        rows = hashed._rows_with(_texts(first))
        weights = np.log((1 + len(parts[0])) / (1 + rows)) + 1
        found = []
        for encode in (words.encode, lambda texts, by=weights: _projection(texts, by)):
            model = RidgeClassifierCV(np.logspace(-2, 2, 9))
            model.fit(encode(_texts(train)), parts[1]["label"])
            found.append(100 * float(model.score(encode(_texts(unseen)), parts[2]["label"])))
        yield [target, *(f"{value:.1f}" for value in found)]


def _texts(columns: list[pd.Series]) -> list[np.ndarray]:
    return [column.fillna("").to_numpy(object) for column in columns]


def _projection(columns: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
    """All buckets of each kind, weighted, of length 1, projected to half of the usual width."""
    half = sum(grams.most for grams in hashed.GRAMS.values()) // 2
    sides = []
    for place, grams in enumerate(hashed.GRAMS.values()):
        draws = np.random.default_rng(place)
        signs = draws.choice(np.array([-1, 1], np.float32), size=(hashed.BUCKETS, half))
        total = np.zeros((len(columns[0]), half), np.float32)
        for column in columns:
            counts = hashed._counts(grams, column).astype(np.float32)
            counts.data = 1 + np.log(counts.data)
            total += normalize(counts.multiply(weights[place].astype(np.float32)).tocsr()) @ signs
        sides.append(total / half**0.5)
    return np.hstack(sides)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("scores", "widths", "projected"))
    parser.add_argument("reviews", type=Path)
    record.add_save(parser)
    args = parser.parse_args()
    data = "8,000 reviews of four groups of products, each group left out in turn, accuracy in %"
    if args.what == "scores":
        header = ["unseen group", "`ridge`", "`er`", "TF-IDF and logistic regression, jointly"]
        header += ["the same with pairs of words", "published, jointly, 5,000 words"]
        record.show(args, data, header, scores(args.reviews), ["scikit-learn"])
    elif args.what == "projected":
        header = ["unseen group", "chosen inputs", "projected inputs"]
        record.show(args, data, header, projected(args.reviews), ["scikit-learn"])
    else:
        header = ["words", "characters", *PUBLISHED, "mean", "CPU seconds per run", "MB per source"]
        record.show(args, f"{data}, `ridge`", header, widths(args.reviews), ["scikit-learn"])


if __name__ == "__main__":
    main()
