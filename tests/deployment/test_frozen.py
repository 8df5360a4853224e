"""A deployed model on a frozen backbone keeps features: no raw input is on the disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from farshore.deployment.changes import forget, learn, take_back
from farshore.deployment.model import Model
from farshore.deployment.new_model import NewModel
from farshore.deployment.site import Columns
from farshore.errors import FarshoreError
from farshore.methods import OF_CLASSES, OF_NETWORKS


def site(folder: Path, seed: int) -> Path:
    rng = np.random.default_rng(seed)
    for shade, label in enumerate(("dark", "light")):
        (folder / label).mkdir(parents=True)
        for number in range(8):
            values = rng.integers(0, 100, (16, 16, 3)) + 120 * shade
            Image.fromarray(values.astype(np.uint8)).save(folder / label / f"{number}.png")
    return folder


def learn_site(model: Path, data: Path, name: str, **settings: str) -> None:
    new = NewModel(method="er", settings=settings)
    learn(model, data, name=name, columns=Columns(), new=new, steps=3, size=16, every=1)


def disk(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def test_no_raw_input_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FARSHORE_FEATURES", str(tmp_path / "features"))
    monkeypatch.setenv("FARSHORE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    model = tmp_path / "model"
    pixels = {}
    written: list[bytes] = []

    def record(*_: object) -> None:
        written.append(disk(model))

    # Checkpoints inside a domain count too: they are looked at while they exist.
    from farshore.training.checkpoints import Checkpoints

    clear = Checkpoints.clear
    monkeypatch.setattr(Checkpoints, "clear", lambda self: (record(), clear(self))[1])
    for number, name in enumerate(("a", "b")):
        data = site(tmp_path / name, number)
        learn_site(model, data, name, store="features")
        files = sorted(data.rglob("*.png"))
        pixels |= {file: np.asarray(Image.open(file)).transpose(2, 0, 1) for file in files}
    written.append(disk(model))
    opened = Model.open(model)
    kept = opened.learner.system.kept_rows()
    assert {name: len(rows["inputs"]) for name, rows in kept.items()} == {"a": 13, "b": 13}
    assert opened.learner.shape == (3, 16, 16)
    assert all(rows["inputs"].shape[1:] == (608,) for rows in kept.values())
    everything = b"".join(written)
    for file, image in pixels.items():
        for raw in (image, image[:1], image.astype(np.float32), image.astype(np.float32) / 255):
            # A part that is not just noise of one colour: the first two rows of a channel.
            assert np.ascontiguousarray(raw[0, :2]).tobytes() not in everything, file
        assert file.name.encode() not in everything
    # Nothing was written elsewhere: features of a deployed model stay out of the shared cache.
    for folder in ("features", "data", "temporary"):
        assert not [path for path in (tmp_path / folder).rglob("*") if path.is_file()]
    table = opened.predict(opened.read(tmp_path / "b", labelled=False))
    assert table["prediction"].tolist() == ["dark"] * 8 + ["light"] * 8


def test_without_a_frozen_backbone_the_memory_holds_images(tmp_path: Path) -> None:
    """What the test above looks for is found where it is."""
    data = site(tmp_path / "a", 0)
    new = NewModel(method="er", network="cnn", network_settings={"width": 8})
    learn(tmp_path / "model", data, name="a", columns=Columns(), new=new, steps=1, size=16)
    everything = disk(tmp_path / "model")
    images = [np.asarray(Image.open(file)).transpose(2, 0, 1) for file in data.rglob("*.png")]
    found = [np.ascontiguousarray(image[0, :2]).tobytes() in everything for image in images]
    assert all(found)  # training and held-out rows
    wrong = NewModel(method="er", network="cnn", settings={"store": "features"})
    with pytest.raises(FarshoreError, match="store = 'features' is not allowed with train = 'all'"):
        learn(tmp_path / "other", data, name="a", columns=Columns(), new=wrong, steps=1)


def test_undo_and_forget_on_features(tmp_path: Path) -> None:
    model = tmp_path / "model"
    for number, name in enumerate(("a", "b")):
        learn_site(model, site(tmp_path / name, number), name)
    assert [each["name"] for each in take_back(model).learner.domains] == ["a"]
    assert [each["name"] for each in forget(model, "a").learner.domains] == []


@pytest.mark.parametrize(
    ("new", "method"),
    [
        (NewModel(), OF_CLASSES),
        (NewModel(network="histogram", method="slda"), "slda"),
        (NewModel(network="cnn", network_settings={"width": 8}), OF_NETWORKS),
    ],
)
def test_the_usual_method_of_images(new: NewModel, method: str, tmp_path: Path) -> None:
    """The default method, or replay for a network that has to be trained."""
    data = site(tmp_path / "a", 0)
    learn(tmp_path / "model", data, name="a", columns=Columns(), new=new, steps=1, size=16)
    made = Model.open(tmp_path / "model").learner
    assert made.config["method"] == method
    if method == "slda":
        assert made.system.usage().settings["shrinkage"] == 0.5
