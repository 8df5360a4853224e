"""hf:NAME among the columns of text: a frozen encoder reads them, the same for every row."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from texts import COMMON, OF_SITE, every_site, make_encoder, notes

import farshore
from farshore.base.forms import FormError
from farshore.data.feature_files import FeatureCache
from farshore.data.preprocessing import from_state
from farshore.data.tables.columns import column_notes, plan_columns
from farshore.data.tables.table import TablePreprocessing
from farshore.data.text.columns import TextColumns, divide_names
from farshore.data.text.encoder import EncodedTexts, Encoder, open_encoder
from farshore.deployment.changes import learn
from farshore.deployment.export import export_model
from farshore.deployment.new_model import NewModel
from farshore.deployment.site import Columns
from farshore.errors import FarshoreError

pytest.importorskip("transformers", reason="transformers is not installed", exc_type=ImportError)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"hf:{make_encoder(tmp_path_factory.mktemp('encoder'))}"


def planned(encoder: str, *columns: str, site: str = "shop") -> TablePreprocessing:
    frame = notes(site)
    return plan_columns(frame, list(columns), texts=[*columns, encoder]).learn(frame)


def test_vectors_are_the_mean_over_tokens_scaled_by_the_first_rows(encoder: str) -> None:
    """A second implementation: all texts at once, padded, with a mask, as its authors write it."""
    from transformers import AutoModel, AutoTokenizer

    first, later = notes("shop")["note"], notes("clinic")["note"][:20]
    folder = encoder.removeprefix("hf:")
    tokenizer = AutoTokenizer.from_pretrained(folder, pad_token="[PAD]")
    model = AutoModel.from_pretrained(folder).eval()

    def vectors(texts: pd.Series) -> np.ndarray:
        given = tokenizer(texts.tolist(), padding=True, return_tensors="pt")
        with torch.no_grad():
            states = model(**given).last_hidden_state
        mask = given["attention_mask"][:, :, None]
        mean = (states * mask).sum(1) / mask.sum(1)
        return (mean / mean.norm(dim=1, keepdim=True)).numpy()

    expected = (vectors(later) - vectors(first).mean(0)) / vectors(first).std(0)
    plan = planned(encoder, "note")
    found = plan.transform(later.to_frame())[:, 1:].numpy()
    np.testing.assert_allclose(found, expected.clip(-10, 10), atol=2e-3)
    assert plan.texts is not None
    assert plan.features == ["note = (missing)", *(f"note = text {n}" for n in range(32))]


def test_a_row_is_the_same_to_the_bit_whatever_stands_beside_it(encoder: str) -> None:
    plan, frame = planned(encoder, "note", "head"), notes("school")
    together = plan.transform(frame)
    assert together.shape == (80, 2 + 2 * 32)
    alone = torch.cat([plan.transform(frame.iloc[[row]]) for row in (3, 50, 7)])
    assert torch.equal(together[[3, 50, 7]], alone)


def test_one_line_says_what_reads_the_texts(encoder: str) -> None:
    frame = notes("shop")[["age", "note"]]
    plan = plan_columns(frame, list(frame), texts=[encoder])
    [line] = [note for note in column_notes(frame, plan) if note.startswith("text: ")]
    assert line.startswith(f"text: 'note', read as the mean tokens of {encoder} (--text names")
    assert divide_names(["note", encoder, "head"]) == (["note", "head"], encoder)
    with pytest.raises(FarshoreError, match="names two encoders, hf:a and hf:b"):
        divide_names(["hf:a", "hf:b"])
    with pytest.raises(FarshoreError, match="no column of long texts: name the columns"):
        plan_columns(frame[["age"]], ["age"], texts=[encoder])


def test_an_encoder_that_is_none_is_refused(encoder: str, tmp_path: Path) -> None:
    with pytest.raises(FarshoreError, match=r"not available here .* put config.json, tokenizer"):
        open_encoder(f"hf:{tmp_path}")
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    with pytest.raises(FarshoreError, match="is a model of the kind 'gpt2': it should be one of"):
        open_encoder(f"hf:{tmp_path}")
    frame = every_site(20)
    with pytest.raises(FarshoreError, match="'gpt2'"):  # before any run
        farshore.compare(
            frame,
            domain="site",
            label="pleased",
            text=["note", f"hf:{tmp_path}"],
            runs=tmp_path / "runs",
        )
    assert not list((tmp_path / "runs").glob("*/result.json"))


def test_strange_texts_are_rows_like_others(encoder: str) -> None:
    plan = planned(encoder, "note")
    texts = ["", "患者は今日とても元気です", "\x01\ufffd", "superb house " * 90_000, 17]
    inputs = plan.transform(pd.DataFrame({"note": pd.Series(texts, dtype=object)}))
    assert bool(torch.isfinite(inputs).all())
    assert inputs[0].tolist() == [1.0] + [0.0] * 32
    assert inputs[1:, 0].tolist() == [0.0] * 4
    with pytest.raises(FarshoreError, match="contains bytes values"):
        plan.transform(pd.DataFrame({"note": [b"\x00"]}))
    foreign = pd.DataFrame({"note": ["никто этого не ждал"] * 9})
    [sentence] = plan.differences(foreign)
    assert "9 of 9 texts have hardly a token that the encoder knows" in sentence
    assert plan.differences(notes("clinic")) == []


def test_vectors_are_cached_by_content(
    encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, cache = planned(encoder, "note"), FeatureCache(tmp_path)
    expected = plan.transform(notes("clinic"), cache)
    assert len(list(tmp_path.rglob("*.npy"))) == 1
    monkeypatch.setattr(Encoder, "vector", None)  # read back, not computed
    other = TablePreprocessing(["age"], texts=TextColumns(["note"], plan.texts.features))
    assert torch.equal(other.transform(notes("clinic"), cache)[:, 2:], expected)


@pytest.mark.parametrize("given", ["file", "frame"])
def test_words_of_the_target_change_no_weight(given: str, encoder: str, tmp_path: Path) -> None:
    found = []
    noise = ["никто этого не ждал", "", "17", "superb dreadful"] * 10
    for number, target in enumerate((None, noise)):
        frame = every_site(40)
        if target is not None:
            frame.loc[frame["site"] == "school", "note"] = target
        path = tmp_path / f"{number}.csv"
        frame.to_csv(path, index=False)
        done = farshore.compare(
            path if given == "file" else frame,
            domain="site",
            label="pleased",
            text=["note", encoder],
            drop=["head"],
            methods=["er"],
            target="school",
            seeds=1,
            steps=4,
            runs=tmp_path / f"runs{number}",
        )
        [result] = done.results
        assert result.target is not None
        found.append((result.target.weights, result.matrices, result.settings))
    assert found[0] == found[1]


def test_a_model_lives_without_the_encoders_folder(tmp_path: Path, typed) -> None:
    """Its folder has the encoder and its published vocabulary, and no other word of any row."""
    encoder = make_encoder(tmp_path / "encoder")
    columns = Columns(label="pleased", text=("note", f"hf:{encoder}"), drop=("head",))
    for site in ("shop", "clinic"):
        notes(site).to_csv(tmp_path / f"{site}.csv", index=False)
        new = NewModel(method="er", memory=40, network_settings={"width": 16})
        table, model = tmp_path / f"{site}.csv", tmp_path / "model"
        learn(model, table, name=site, columns=columns, new=new, steps=10)
    shutil.rmtree(encoder)
    open_encoder.cache_clear()
    files = [path for path in (tmp_path / "model").rglob("*") if path.is_file()]
    everything = b" ".join(path.read_bytes() for path in files).lower()
    words = [word for site in OF_SITE.values() for word in site]
    assert [word for word in words if re.search(rb"\b%s\b" % word.encode(), everything)] == []
    assert COMMON[-1].encode() in everything  # the vocabulary of the encoder
    code, out = typed("card", tmp_path / "model")
    assert code == 0
    assert "Texts (note) are read as the mean tokens of hf:" in out
    assert "no text of the columns note; the encoder that reads them, with its own pub" in out
    code, out = typed("predict", tmp_path / "model", tmp_path / "clinic.csv")
    assert code == 0, out
    learner, rows = farshore.load(tmp_path / "model"), notes("garage")
    facts = export_model(learner, tmp_path / "m.pt2")
    inputs = [*facts["inputs"]]
    assert inputs == ["numbers", "texts"]
    program = torch.export.load(tmp_path / "m.pt2").module()
    given = torch.from_numpy(learner.text_features(rows))
    numbers = torch.tensor(rows[["age"]].to_numpy(), dtype=torch.float64)
    found = program(numbers, given).detach().numpy()
    np.testing.assert_allclose(found, learner.predict_proba(rows), atol=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s["config"].update(model_type="gpt2"), "of the kind 'gpt2'"),
        (lambda s: s["config"].update(hidden_size=64), r"weights.*shape"),
        (lambda s: s["config"].update(num_hidden_layers=10**6), "which no model has"),
        (lambda s: s["weights"].popitem(), "weights has no"),
        (lambda s: s.update(tokenizer="{}"), "tokenizer cannot be read"),
        (lambda s: s.update(length=10**6), "length is 1000000"),
        (lambda s: s.update(length=400), "cannot be made from its configuration"),
        (lambda s: s.update(centre=torch.zeros(3)), "3 means"),
    ],
)
def test_damaged_states_are_refused(
    change: Callable[[dict[str, Any]], object], message: str, encoder: str
) -> None:
    state = planned(encoder, "note").state_dict()
    features = dict(state["texts"]["features"])
    features |= {key: dict(features[key]) for key in ("config", "weights")}
    change(features)
    state["texts"] = {**state["texts"], "features": features}
    with pytest.raises((FormError, FarshoreError), match=message):
        from_state(state)


def test_scales_are_those_of_the_first_rows(encoder: str) -> None:
    plan = planned(encoder, "note")
    state = plan.state_dict()
    plan.learn(notes("clinic"))
    again = from_state(state)
    assert isinstance(again, TablePreprocessing)
    assert again.texts is not None
    assert isinstance(again.texts.features, EncodedTexts)
    frame = notes("garage")
    assert torch.equal(again.transform(frame), plan.transform(frame))
