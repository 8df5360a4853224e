"""Tables with text through a model's life; its folder has numbers, and no word of any row."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from exported import encode
from texts import OF_SITE, every_site, notes

import farshore
from farshore.deployment import model as model_file
from farshore.deployment.changes import learn
from farshore.deployment.export import export_model
from farshore.deployment.model import Model
from farshore.deployment.new_model import NewModel
from farshore.deployment.site import Columns
from farshore.training.checkpoints import Checkpoints

# Words that Farshore or its records use themselves.
ITS_OWN = {"about", "with", "the", "in", "our", "we", "this", "others", "some", "after"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tables of four sites, and a model of the first three."""
    root = tmp_path_factory.mktemp("text")
    for site in OF_SITE:
        notes(site).to_csv(root / f"{site}.csv", index=False)
    made(root, "model", "er")
    return root


def made(root: Path, name: str, method: str) -> Path:
    columns = Columns(label="pleased", text=("note",), drop=("head",))
    settings = {"learning_rate": 0.01}
    new = NewModel(method=method, memory=60, settings=settings, network_settings={"width": 16})
    for site in list(OF_SITE)[:3]:
        table = root / f"{site}.csv"
        learn(root / name, table, name=site, columns=columns, new=new, steps=20, every=5)
    return root / name


def test_a_model_predicts_and_scores_texts(folder: Path, typed) -> None:
    code, out = typed("evaluate", folder / "model", folder / "school.csv")
    assert code == 0, out
    assert float(re.search(r"accuracy +([\d.]+) %", out)[1]) > 90
    opened = Model.open(folder / "model")
    table = opened.predict(opened.read(folder / "school.csv", labelled=False))
    assert (table["prediction"] == notes("school")["pleased"]).mean() > 0.9
    assert set(table["unknown"]) == {""}
    code, out = typed("predict", folder / "model", folder / "school.csv", "-o", folder / "p.csv")
    assert code == 0, out
    assert "verdict: " in out
    small = notes("school").head(25)
    small.to_csv(folder / "small.csv", index=False)
    site = opened.read(folder / "small.csv", labelled=False)
    verdict = opened.judge(site).verdict
    assert not any("constant" in reason or "single value" in reason for reason in verdict.reasons)


def test_no_word_of_a_row_is_in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in the memory, held-out rows, summaries, logs or checkpoints, nor in what is printed."""
    monkeypatch.setenv("FARSHORE_FEATURES", str(tmp_path / "features"))
    for site in OF_SITE:
        notes(site).to_csv(tmp_path / f"{site}.csv", index=False)
    contents: list[bytes] = []

    def look(folder: Path) -> None:
        contents.extend(path.read_bytes() for path in folder.rglob("*") if path.is_file())

    clear = Checkpoints.clear
    monkeypatch.setattr(Checkpoints, "clear", lambda self: (look(tmp_path / "er"), clear(self))[1])
    for method in ("er", "ridge"):
        look(made(tmp_path, method, method))
    assert not list(tmp_path.glob("features/**/*.npy"))
    everything = b"".join(contents).lower()
    rows = pd.concat([notes(site) for site in OF_SITE])
    words = {word for text in rows["note"] for word in text.split()} - ITS_OWN
    assert len(words) > 25
    assert [word for word in words if word.encode() in everything] == []
    # What the test looks for is found where it is.
    assert all(word.encode() in (tmp_path / "shop.csv").read_bytes() for word in OF_SITE["shop"])


def test_chunks_change_no_prediction(folder: Path, typed, monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = []
    for rows in (1 << 16, 32):
        monkeypatch.setattr(model_file, "CHUNK_ROWS", rows)
        out = folder / f"{rows}.csv"
        code, said = typed("predict", folder / "model", folder / "school.csv", "-o", out)
        assert code == 0, said
        outputs.append(pd.read_csv(out))
    columns = ["row", "prediction", "p(yes)", "strangeness", "nearest"]
    for column in columns:
        one, two = (table[column] for table in outputs)
        pd.testing.assert_series_equal(one, two, rtol=1e-4)


def test_a_site_with_other_columns_is_refused_or_reported(folder: Path, typed) -> None:
    school, model = notes("school"), folder / "model"
    school.drop(columns="note").to_csv(folder / "lacks.csv", index=False)
    code, out = typed("predict", model, folder / "lacks.csv")
    assert code == 2
    assert "lacks.csv has no column 'note'" in out
    assert "add the missing ones with empty cells" in out
    school.assign(note=range(len(school))).to_csv(folder / "numbers.csv", index=False)
    code, out = typed("predict", model, folder / "numbers.csv")
    assert code == 0, out
    assert "column 'note': 80 of 80 texts have hardly a group of characters" in out
    school.assign(note="").to_csv(folder / "empty.csv", index=False)
    code, out = typed("predict", model, folder / "empty.csv")
    assert code == 0, out
    assert "column 'note': no row has a text" in out
    assert "missing values: 50.0%, known sites at most 0.0%" in out


def test_a_very_long_cell_is_refused_in_a_text_file_and_read_elsewhere(folder: Path, typed) -> None:
    school = notes("school").head(30)
    school.loc[3, "note"] = "superb house " * 90_000
    school.to_csv(folder / "long.csv", index=False)
    code, out = typed("predict", folder / "model", folder / "long.csv")
    assert code == 2
    assert "131,072 characters" in out
    assert "a quote" in out
    opened = farshore.load(folder / "model")
    assert opened.predict(school)[3] == "yes"


def test_the_card_says_what_reads_the_texts(folder: Path, typed) -> None:
    code, out = typed("card", folder / "model")
    assert code == 0
    width = farshore.load(folder / "model").preprocessing.texts.features.width
    assert "Texts (note) are read as hashed words and characters, weighted by how rare" in out
    assert f"at the first site: {width} features." in out
    assert "no text of the columns note; the hash numbers of words" in out


@pytest.mark.parametrize("suffix", [".onnx", ".pt2"])
def test_an_exported_model_takes_features_of_texts(
    folder: Path, suffix: str, tmp_path: Path
) -> None:
    if suffix == ".onnx":
        pytest.importorskip("onnxscript")
    learner, school = farshore.load(folder / "model"), notes("school")
    facts = export_model(learner, tmp_path / f"m{suffix}")
    assert facts["inputs"] == ["numbers", "texts"]
    assert facts["texts"]["columns"] == ["note"]
    assert facts["texts_from"] == "farshore.load(FOLDER).text_features(frame)"
    inputs = encode(learner.preprocessing, school)
    inputs["texts"] = torch.from_numpy(learner.text_features(school))
    assert inputs["texts"].shape[1] == len(facts["texts"]["features"])
    if suffix == ".onnx":
        import onnxruntime

        session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
        found = session.run(None, {name: value.numpy() for name, value in inputs.items()})[0]
        stored = session.get_modelmeta().custom_metadata_map["farshore"]
        assert json.loads(stored)["texts"] == facts["texts"]
    else:
        program = torch.export.load(tmp_path / "m.pt2")
        found = program.module()(*inputs.values()).detach().numpy()
    np.testing.assert_allclose(found, learner.predict_proba(school), atol=1e-5)


def test_an_estimator_and_a_learner_take_named_columns(tmp_path: Path) -> None:
    frame, settings = notes("shop"), {"learning_rate": 0.01}
    x, y = frame[["age", "head"]], frame["pleased"]
    estimator = farshore.FarshoreClassifier(text=["head"], steps=20, settings=settings).fit(x, y)
    assert estimator.learner_.preprocessing.texts.columns == ["head"]
    learner = farshore.Learner(text="head", settings=settings)
    learner.save(tmp_path / "new")  # before the first domain
    again = farshore.load(tmp_path / "new")
    again.learn(x, y, steps=20)
    assert again.preprocessing.texts.columns == ["head"]
    assert again.profile == "text"
    with pytest.raises(farshore.FarshoreError, match="has no columns of text"):
        farshore.Learner().text_features(x)


@pytest.mark.soak
def test_an_audit_names_the_column_of_text_that_differs(tmp_path: Path) -> None:
    found = farshore.audit(
        every_site(40),
        domain="site",
        label="pleased",
        text=["note"],
        drop=["head"],
        design="glance",
        methods=["ridge"],
        steps=5,
        workers=1,
        runs=tmp_path,
    )
    assert found.decision.startswith("Ready for a pilot with labels")
    assert "The columns that differ most are note (gap" in str(found.answers)
    assert "--text note" in found.next_step[0]
