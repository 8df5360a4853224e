"""Columns of text: how they are recognised, and features that need no row of a later site."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from texts import GOOD, every_site, notes

import farshore
from farshore.base.forms import FormError
from farshore.data.feature_files import FeatureCache
from farshore.data.preprocessing import from_state
from farshore.data.tables.columns import column_notes, plan_columns
from farshore.data.tables.table import TablePreprocessing
from farshore.data.text import hashed
from farshore.data.text.columns import TextColumns, is_text
from farshore.data.text.hashed import HashedWords
from farshore.errors import FarshoreError


def as_cells(*texts: str | None) -> np.ndarray:
    return np.array(texts, dtype=object)


# ---- recognition ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([f"patient {n} felt rather well today" for n in range(30)], True),
        ([f"{n}番目の患者は今日とても元気で、よく眠れたと言っています" for n in range(30)], True),
        ([f"пациент {n} сегодня чувствует себя хорошо" for n in range(30)], True),
        ([f"patient {n % 2} felt rather well today" for n in range(30)], False),  # categories
        ([f"patient {n} felt rather well today" for n in range(9)], False),  # too few rows
        ([f"room {n}" for n in range(30)], False),  # short
        ([f"{n:040x}" for n in range(30)], False),  # codes
    ],
)
def test_texts_are_long_and_differ(texts: list[str], expected: bool) -> None:
    assert is_text(as_cells(*texts)) is expected


def test_the_first_rows_decide_and_one_line_says_so() -> None:
    frame = notes("shop").drop(columns="pleased")
    plan = plan_columns(frame, list(frame))
    assert plan.texts is not None
    assert plan.texts.columns == ["note"]
    assert list(plan.numbers) == ["age"]
    assert list(plan.categories) == ["head"]
    [line] = [note for note in column_notes(frame, plan) if note.startswith("text: ")]
    assert line == (
        "text: 'note', read as hashed words (--text names the columns of text, --drop leaves one "
        "out)"
    )
    declared = plan_columns(frame, list(frame), texts=["head"])
    assert declared.texts is not None
    assert declared.texts.columns == ["note", "head"]
    as_category = plan_columns(frame, list(frame), categories=["note"])
    assert as_category.texts is None
    with pytest.raises(FarshoreError, match="is in --text and in --categories"):
        plan_columns(frame, list(frame), categories=["note"], texts=["note"])
    with pytest.raises(FarshoreError, match=r"unknown column in --text 'nota'.*'note'"):
        plan_columns(frame, list(frame), texts=["nota"])


# ---- features ------------------------------------------------------------------------------------


def test_features_are_those_of_a_second_implementation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words with a dictionary, counted in a loop; no two words of it share a bucket."""
    monkeypatch.setattr(hashed, "GRAMS", {"words": hashed.Grams("word", (1, 1), 4)})
    first = as_cells("red red blue", "red green", "blue green red", None, "once")
    made = HashedWords()
    made.learn([first])
    # once is in one row only. n = 5 rows; in how many of them each word is:
    rows_with = {"red": 3, "blue": 2, "green": 2}
    assert made.width == 3
    encoded = made.encode([as_cells("red red red green new", "once", None, "blue")])
    for row, text in enumerate(("red red red green", "", "", "blue")):
        weights = {
            word: (1 + np.log(count)) * (np.log(6 / (1 + rows_with[word])) + 1)
            for word, count in Counter(text.split()).items()
        }
        length = np.sqrt(sum(weight**2 for weight in weights.values())) or 1.0
        expected = sorted(weight / length for weight in weights.values())
        found = np.sort(encoded[row][encoded[row] > 0])
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert not encoded[1:3].any()


def test_products_of_texts_are_those_of_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    """With an input per word, the features are TfidfVectorizer's in another order."""
    monkeypatch.setattr(hashed, "BUCKETS", 1 << 22)  # no two words share one
    monkeypatch.setattr(hashed, "FEWEST_ROWS", 1)
    monkeypatch.setattr(hashed, "GRAMS", {"words": hashed.Grams("word", (1, 2), 1 << 16)})
    first, later = notes("shop")["note"], notes("clinic")["note"]
    made = HashedWords()
    made.learn([first.to_numpy()])
    ours = made.encode([later.to_numpy()])
    exact = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True).fit(first).transform(later)
    np.testing.assert_allclose(ours @ ours.T, (exact @ exact.T).toarray(), atol=1e-5)


def test_columns_are_added_and_the_most_frequent_buckets_stay() -> None:
    frame = notes("shop")
    columns = [frame["note"].to_numpy(), frame["head"].to_numpy()]
    made = HashedWords()
    made.learn(columns)
    together = made.encode(columns)
    alone = [made.encode([column]) for column in columns]
    np.testing.assert_allclose(together, (alone[0] + alone[1]) / np.sqrt(2), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(alone[0], axis=1), 1, atol=1e-6)
    for kind, grams in hashed.GRAMS.items():
        assert 0 < len(made.buckets[kind]) <= grams.most
        assert bool((made.buckets[kind].diff() > 0).all())


def test_pieces_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [notes("shop")["note"].to_numpy()]
    whole = HashedWords()
    whole.learn(texts)
    expected = whole.encode(texts)
    monkeypatch.setattr(hashed, "PIECE", 100)
    small = HashedWords()
    small.learn(texts)
    assert all(torch.equal(small.buckets[kind], whole.buckets[kind]) for kind in hashed.GRAMS)
    assert np.array_equal(small.encode(texts), expected)


def test_later_rows_change_nothing() -> None:
    frame, later = notes("shop"), notes("clinic")
    plan = plan_columns(frame, ["age", "note"]).learn(frame)
    expected = plan.transform(frame)
    state = plan.state_dict()
    plan.learn(later)
    plan.transform(later)
    assert torch.equal(plan.transform(frame), expected)
    again = from_state(state)
    assert isinstance(again, TablePreprocessing)
    assert torch.equal(again.transform(frame), expected)
    assert again.features == plan.features
    assert len(plan.features) == expected.shape[1]


def test_strange_texts_are_rows_like_others() -> None:
    frame = notes("shop")
    plan = plan_columns(frame, ["note"]).learn(frame)
    place = plan.features.index("note = (missing)")
    strange = {
        "empty": "",
        "spaces": "   ",
        "one word": "superb",
        "marks": "###",
        "other script": "患者は今日とても元気です",
        "control characters": "\x01\x02 superb \x7f\ufffd",
        "number": 17,
        "long": "superb house " * 90_000,  # more than 1 MB
    }
    inputs = plan.transform(pd.DataFrame({"note": pd.Series([*strange.values()], dtype=object)}))
    assert bool(torch.isfinite(inputs).all())
    missing = dict(zip(strange, inputs[:, place].tolist(), strict=True))
    assert [name for name, value in missing.items() if value] == ["empty", "spaces"]
    known = inputs[:, place + 1 :].abs().sum(dim=1) > 0
    assert dict(zip(strange, known.tolist(), strict=True)) == {
        **dict.fromkeys(strange, False),
        **dict.fromkeys(("one word", "control characters", "long"), True),
    }
    with pytest.raises(FarshoreError, match="column 'note' contains bytes values"):
        plan.transform(pd.DataFrame({"note": [b"\x00\xff"]}))


def test_a_site_in_other_words_is_reported() -> None:
    frame = notes("shop")
    plan = plan_columns(frame, ["note"]).learn(frame)
    assert plan.differences(notes("clinic")) == []
    japanese = pd.DataFrame({"note": ["患者は今日とても元気です"] * 9 + [frame["note"][0]]})
    [sentence] = plan.differences(japanese)
    assert sentence.startswith("column 'note': 9 of 10 texts have hardly a group")
    [sentence] = plan.differences(pd.DataFrame({"note": [17.0, 18.0]}))
    assert "2 of 2 texts have hardly" in sentence
    [sentence] = plan.differences(pd.DataFrame({"note": [None, ""]}))
    assert sentence == "column 'note': no row has a text"


def test_features_are_cached_by_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = notes("shop")
    plan = plan_columns(frame, ["note"]).learn(frame)
    expected, cache = plan.transform(frame), FeatureCache(tmp_path)
    assert torch.equal(plan.transform(frame, cache), expected)
    assert len(list(tmp_path.rglob("*.npy"))) == 1
    monkeypatch.setattr(HashedWords, "_encoded", None)  # read back, not computed
    assert torch.equal(plan.transform(frame, cache), expected)
    monkeypatch.undo()
    plan.transform(notes("clinic"), cache)
    other = plan_columns(frame, ["note"]).learn(notes("clinic"))
    other.transform(frame, cache)
    assert len(list(tmp_path.rglob("*.npy"))) == 3
    state = plan.state_dict()
    for _ in range(2):  # what is counted at the first source is kept, too
        counted = plan_columns(frame, ["note"]).learn(frame, cache)
        assert str(counted.state_dict()) == str(state)
        monkeypatch.setattr(hashed, "_counts", None)
    assert len(list(tmp_path.rglob("*.npy"))) == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s["features"].update(kind="other"), "unknown kind"),
        (lambda s: s["features"]["buckets"].update(words=torch.tensor([1 << 20])), "numbers from"),
        (lambda s: s["features"]["weights"].update(words=torch.tensor([1.0])), "buckets"),
        (lambda s: s["features"]["weights"].update(words=torch.tensor([torch.nan])), "NaN"),
        (lambda s: s["features"]["buckets"].pop("words"), "words"),
        (lambda s: s.update(columns=["note", "note"]), "columns"),
        (lambda s: s.update(columns=["age"]), "columns"),
    ],
)
def test_damaged_states_are_refused(change: object, message: str) -> None:
    frame = notes("shop")
    state = plan_columns(frame, ["note"]).learn(frame).state_dict()
    state["texts"]["features"] = {
        key: dict(value) if isinstance(value, dict) else value
        for key, value in state["texts"]["features"].items()
    }
    change(state["texts"])  # type: ignore[operator]
    with pytest.raises(FormError, match=message):
        from_state(state)


def test_a_state_from_before_there_was_text_is_read() -> None:
    state = TablePreprocessing(["age"]).learn(pd.DataFrame({"age": [1.0, 2.0]})).state_dict()
    del state["texts"]
    assert from_state(state) is not None
    assert TextColumns(["note"]).features.width == 0


# ---- the target is sealed ------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["er", "ridge", "slda"])
@pytest.mark.parametrize("given", ["file", "frame"])
def test_words_of_the_target_change_no_weight(method: str, given: str, tmp_path: Path) -> None:
    """Other words, gaps, numbers and scripts in place of the target's texts."""
    found = []
    noise = ["никто этого не ждал", "", "17", "患者は今日とても元気です"] * 10
    for number, target in enumerate((None, noise)):
        frame = every_site(40)
        if target is not None:
            frame.loc[frame["site"] == "school", "note"] = target
            frame.loc[frame["site"] == "school", "head"] = "other"
        path = tmp_path / f"{number}.csv"
        frame.to_csv(path, index=False)
        done = farshore.compare(
            path if given == "file" else frame,
            domain="site",
            label="pleased",
            text=["note"],
            methods=[method],
            target="school",
            seeds=1,
            steps=4,
            runs=tmp_path / f"runs{number}",
        )
        [result] = done.results
        assert result.target is not None
        found.append((result.target.weights, result.matrices, result.settings))
        assert any(note.startswith("text: 'note'") for note in result.notes)
    assert found[0] == found[1]


@pytest.mark.parametrize("method", ["er", "ridge"])
def test_a_number_is_predicted_from_texts(method: str, tmp_path: Path) -> None:
    """How many good words a note has, as a quantity; words of the target change no weight."""
    found, errors = [], []
    for noise in (False, True):
        frame = every_site(40)
        words = frame["note"].str.split()
        stars = 1.5 + words.map(lambda each: sum(word in GOOD for word in each))
        frame["stars"] = stars + np.linspace(0, 0.4, len(frame))
        if noise:
            frame.loc[frame["site"] == "school", "note"] = "никто этого не ждал"
        done = farshore.compare(
            frame,
            domain="site",
            label="stars",
            task="regression",
            text=["note"],
            drop=["head", "pleased", "age"],
            methods=[method, "majority"],
            target="school",
            seeds=1,
            steps=60,
            workers=1,
            settings={"learning_rate": 0.01} if method == "er" else {},
            runs=tmp_path / str(noise),
        )
        results = {result.run.method: result for result in done.results}
        assert results[method].target is not None
        found.append((results[method].target.weights, results[method].matrices))
        errors.append({name: each.target_score for name, each in results.items()})
    assert found[0] == found[1]
    assert errors[0][method] < errors[0]["majority"] / 2
    assert errors[1][method] > 2 * errors[0][method]
