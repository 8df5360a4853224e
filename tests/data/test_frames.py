from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset, IterableDataset, TensorDataset

import farshore
from farshore import Learner
from farshore.data.images.image_folder import ImagePreprocessing
from farshore.data.tables.convert import from_dataset
from farshore.data.tables.table import TablePreprocessing
from farshore.errors import FarshoreError


def patients(shift: float, rows: int = 60) -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(int(shift))
    sick = rng.random(rows) < 0.5
    age = np.where(rng.random(rows) < 0.2, np.nan, 50 + shift + 20 * sick + rng.normal(0, 3, rows))
    return pd.DataFrame(
        {"age": age, "ward": np.where(sick, "A", "B"), 7: rng.normal(size=rows)}
    ), pd.Series(np.where(sick, "ill", "well"))


def test_a_data_frame_with_text_and_missing_values_is_learned_and_resumed(tmp_path: Path) -> None:
    learner = Learner(network="mlp", network_settings={"width": 16}, method="er", memory=20)
    scores = learner.learn(*patients(0), domain="first", steps=80)
    assert scores["validation accuracy"] > 0.8
    assert isinstance(learner.preprocessing, TablePreprocessing)
    frozen = learner.preprocessing.state_dict()
    learner.learn(*patients(5), domain="second", steps=5)
    assert learner.preprocessing.state_dict() == frozen
    x, _ = patients(9)
    x.loc[0, "ward"] = "a ward nobody has seen"
    learner.save(tmp_path / "model")
    again = farshore.load(tmp_path / "model")
    assert np.array_equal(learner.predict_proba(x), again.predict_proba(x))
    again.learn(*patients(9), domain="third", steps=2)
    assert again.predict(x).shape == (60,)


def test_the_preprocessing_is_learned_on_training_rows_only() -> None:
    x = pd.DataFrame({"a": np.arange(10.0)})
    y = [0, 1] * 5
    learner = Learner(network="mlp", network_settings={"width": 8}, memory=5)
    learner.learn(x, y, steps=1, validation=5)
    assert isinstance(learner.preprocessing, TablePreprocessing)
    centre = learner.preprocessing.numbers["a"]
    assert centre is not None
    assert centre[0] != 4.5  # the median of all rows


def test_refused_data_change_nothing() -> None:
    learner = Learner(network="mlp", network_settings={"width": 8}, memory=5)
    with pytest.raises(FarshoreError, match="60 rows of inputs and 59 labels"):
        learner.learn(patients(0)[0], patients(0)[1][:-1])
    assert learner.preprocessing is None
    learner.learn(*patients(0), steps=1)
    with pytest.raises(FarshoreError, match="the table has no column 'age'"):
        learner.learn(patients(1)[0].drop(columns="age"), patients(1)[1])
    wrong = patients(1)[0]
    wrong["age"] = wrong["age"].astype(object)
    wrong.loc[3, "age"] = "old"
    with pytest.raises(FarshoreError, match="column 'age', row 3: 'old' is not a number"):
        learner.predict(wrong)
    assert len(learner.domains) == 1


def test_frames_of_numbers_after_arrays_need_the_same_columns() -> None:
    x, y = np.random.default_rng(0).normal(size=(20, 3)), [0, 1] * 10
    learner = Learner(network="mlp", network_settings={"width": 8}, memory=5)
    learner.learn(x, y, steps=1)
    frame = pd.DataFrame(x)
    assert np.array_equal(learner.predict(frame), learner.predict(x))
    learner.learn(frame, y, steps=1)
    with pytest.raises(FarshoreError, match="column"):
        learner.predict(frame.set_axis(["a", "b", "c"], axis=1))
    with pytest.raises(FarshoreError, match="2 columns, but this learner was started with 3"):
        learner.predict(x[:, :2])
    raw = Learner(network="mlp", network_settings={"width": 8}, memory=5, preprocess="none")
    raw.learn(frame, y, steps=1)
    assert raw.preprocessing is None
    assert np.array_equal(raw.predict(frame), raw.predict(x))
    with pytest.raises(FarshoreError, match='preprocess="columns"'):
        raw.predict(frame.assign(ward="A"))


def test_an_own_network_gets_rows_as_they_are_unless_asked_otherwise() -> None:
    x, y = np.random.default_rng(0).normal(size=(20, 3)) * 1000, [0, 1] * 10
    for width, options in ((3, {}), (6, {"preprocess": "columns"})):
        network = farshore.Network(torch.nn.Linear(width, 4), torch.nn.Linear(4, 2))
        learner = Learner(network, memory=5, **options)
        learner.learn(x, y, steps=1)
        assert learner.shape == (width,)


class Pictures(Dataset):
    def __len__(self) -> int:
        return 12

    def __getitem__(self, row: int) -> tuple[Image.Image, int]:
        return Image.fromarray(np.full((8, 8, 3), 20 * row, np.uint8)), row % 2


def test_torch_datasets_are_learned() -> None:
    learner = Learner(network="cnn", network_settings={"width": 8}, memory=4)
    learner.learn(Pictures(), domain="pictures", steps=1)
    assert learner.shape == (3, 8, 8)
    assert learner.dtype == torch.uint8
    assert learner.predict(Pictures()).shape == (12,)
    table = Learner(network="mlp", network_settings={"width": 8}, memory=4)
    table.learn(TensorDataset(torch.randn(10, 3), torch.arange(10) % 2), steps=1)
    assert table.shape == (6,)  # a number and whether it is missing, per column


class Endless(IterableDataset):
    def __iter__(self) -> None:  # type: ignore[override]
        raise NotImplementedError


class Ragged(Pictures):
    def __getitem__(self, row: int) -> tuple[torch.Tensor, int]:  # type: ignore[override]
        return torch.zeros(row + 1), 0


def test_refused_datasets() -> None:
    with pytest.raises(FarshoreError, match="contains its own labels"):
        from_dataset(Pictures(), [1])
    with pytest.raises(FarshoreError, match="without a length"):
        from_dataset(Endless())
    with pytest.raises(FarshoreError, match="different shapes"):
        from_dataset(Ragged())
    with pytest.raises(FarshoreError, match="is empty"):
        from_dataset(TensorDataset(torch.zeros(0, 2), torch.zeros(0)))


def test_image_preprocessing_is_saved_with_the_model(tmp_path: Path) -> None:
    learner = Learner(network="cnn", network_settings={"width": 8}, memory=4)
    learner.learn(Pictures(), steps=1)
    learner.preprocessing = ImagePreprocessing(8, 3)
    learner.save(tmp_path / "model")
    assert farshore.load(tmp_path / "model").preprocessing == ImagePreprocessing(8, 3)
