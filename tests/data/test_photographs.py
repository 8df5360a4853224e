"""Images as people have them: formats, depths, orientation, broken files, tables and data sets."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from scenarios import make_scenario
from torch import nn

import farshore
from farshore.data.images.image_folder import find_broken, read_images
from farshore.data.progress import following
from farshore.data.seal import FrozenModel
from farshore.errors import FarshoreError
from farshore.runs.protocol import execute
from farshore.runs.run import Run

RAMP = np.tile(np.linspace(0, 255, 24).astype(np.uint8), (16, 1))


def colour() -> Image.Image:
    return Image.fromarray(np.dstack([RAMP, RAMP // 2, 255 - RAMP]))


@pytest.mark.parametrize(
    ("suffix", "options"),
    [
        (".jpg", {"quality": 95}),
        (".png", {}),
        (".tif", {}),
        (".webp", {"lossless": True}),
        (".bmp", {}),
    ],
)
def test_every_format_gives_the_same_picture(
    tmp_path: Path, suffix: str, options: dict[str, object]
) -> None:
    colour().save(tmp_path / f"image{suffix}", **options)
    read, form, coloured = read_images([str(tmp_path / f"image{suffix}")], 8)
    assert (form.channels, coloured.tolist()) == (3, [True])
    expected = np.asarray(colour().resize((8, 8), Image.Resampling.BILINEAR)).transpose(2, 0, 1)
    assert np.abs(read[0].astype(int) - expected).max() <= 12


@pytest.mark.parametrize("suffix", [".png", ".tif"])
def test_sixteen_bits_become_eight(tmp_path: Path, suffix: str) -> None:
    Image.fromarray(RAMP.astype(np.uint16) * 257).save(tmp_path / f"deep{suffix}")
    read, form, _ = read_images([str(tmp_path / f"deep{suffix}")], 16)
    assert form.channels == 1
    expected = np.asarray(Image.fromarray(RAMP).resize((16, 16), Image.Resampling.BILINEAR))
    assert np.abs(read[0, 0].astype(int) - expected).max() <= 1


def test_photographs_are_turned_upright_and_what_is_transparent_is_white(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 3  # upside down
    colour().save(tmp_path / "turned.jpg", exif=exif, quality=95)
    colour().rotate(180).save(tmp_path / "upright.jpg", quality=95)
    files = [str(tmp_path / name) for name in ("turned.jpg", "upright.jpg")]
    turned, upright = read_images(files, 16)[0].astype(int)
    assert np.abs(turned - upright).max() <= 8
    clear = Image.fromarray(np.dstack([np.zeros((4, 4, 3)), np.eye(4) * 255]).astype(np.uint8))
    clear.save(tmp_path / "clear.png")
    read = read_images([str(tmp_path / "clear.png")], 4)[0][0]
    assert (read[0] == 255 - 255 * np.eye(4)).all()


def test_images_are_resized_as_the_network_asks(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (16, 16), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "noise.png")
    file = str(tmp_path / "noise.png")
    kinds = ("nearest", "bilinear", "bicubic", "lanczos")
    made = {kind: read_images([file], 7, interpolation=kind)[0].tobytes() for kind in kinds}
    assert len(set(made.values())) == 4


def test_progress_of_reading_is_reported(tmp_path: Path) -> None:
    colour().save(tmp_path / "a.png")
    seen: list[tuple[str, int, int]] = []
    with following(lambda *parts: seen.append(parts)):
        read_images([str(tmp_path / "a.png")] * 5, 8)
    assert seen == [("reading images", done, 5) for done in range(1, 6)]


# ---- broken files --------------------------------------------------------------------------------


def bomb() -> bytes:
    """A PNG that says it has 400 million pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", 20_000, 20_000, 8, 0, 0, 0, 0)
    image = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + image


@pytest.fixture
def messy(tmp_path: Path) -> Path:
    """A folder with everything that goes wrong in folders of photographs."""
    root = tmp_path / "photos"
    rng = np.random.default_rng(0)
    for site in ("a", "b", "c"):
        for label in ("cat", "dog", "Dog ") if site == "a" else ("cat", "dog"):
            (root / site / label).mkdir(parents=True)
            for number in range(4):
                pixels = rng.integers(0, 255, (16, 16, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(root / site / label / f"{number}.jpg")
    whole = (root / "a/cat/0.jpg").read_bytes()
    (root / "a/cat/cut.jpg").write_bytes(whole[: len(whole) // 2])
    (root / "a/cat/text.jpg").write_text("this is no picture")
    (root / "b/dog/readme.txt").write_text("left out by its suffix")
    Image.new("RGB", (1, 1)).save(root / "b/dog/dot.png")
    (root / "c/cat/bomb.png").write_bytes(bomb())
    return root


def test_every_broken_file_gets_a_clear_reason_ahead_of_training(messy: Path) -> None:
    with pytest.raises(FarshoreError) as refused:
        make_scenario("image-folder", {"path": str(messy), "size": 8}, target="c")
    text = str(refused.value)
    assert text.startswith("4 images cannot be read: ")
    assert "\n" not in text
    for name, why in {
        "a/cat/cut.jpg": "truncated or damaged",
        "a/cat/text.jpg": "not an image",
        "b/dog/dot.png": "only 1 x 1 pixels",
        "c/cat/bomb.png": "more than 89,478,485 pixels (a decompression bomb)",
    }.items():
        assert f"{messy / name} ({why})" in text
    assert "--skip-broken" in text


def test_broken_files_can_be_left_out_and_are_listed(messy: Path) -> None:
    options = {"path": str(messy), "size": 8, "skip_broken": True, "classes": "from-file"}
    made = make_scenario("image-folder", options, target="c")
    assert [len(domain) for domain in made.sources] == [12, 8]
    notes = "\n".join(made.notes)
    for line in (
        "1 files do not have an image suffix and were left out: b/dog/readme.txt",
        f"warning: 1 of 32 images left out, truncated or damaged: {messy / 'a/cat/cut.jpg'}",
        f"warning: 1 of 32 images left out, not an image: {messy / 'a/cat/text.jpg'}",
        f"warning: 1 of 32 images left out, only 1 x 1 pixels: {messy / 'b/dog/dot.png'}",
        "(a decompression bomb)",
        "warning: 'Dog ' (4 images) and 'dog' (12 images) count as different classes",
        "note: domain 'b' has no image of class 'Dog '",
    ):
        assert line in notes
    assert len(made.target.open(FrozenModel(nn.Linear(1, 1)))) == 8


def test_a_deployed_model_refuses_or_leaves_out_broken_images(messy: Path, tmp_path: Path) -> None:
    from farshore.deployment.changes import learn
    from farshore.deployment.model import Learned
    from farshore.deployment.new_model import NewModel
    from farshore.deployment.site import Columns

    def learn_site(**options: bool) -> Learned:
        return learn(
            tmp_path / "model",
            messy / "a",
            name="a",
            columns=Columns(),
            new=NewModel(method="ncm"),
            steps=1,
            **options,
        )

    with pytest.raises(FarshoreError, match="2 images cannot be read"):
        learn_site()
    done = learn_site(skip_broken=True)
    assert done.rows == 12
    assert sum("left out" in note for note in done.notes) == 2
    assert len(find_broken([str(messy / "a/cat/cut.jpg")], ["x"])) == 1


# ---- tables and data sets ------------------------------------------------------------------------


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    """A table of images, in a folder of its own."""
    rng = np.random.default_rng(0)
    rows = []
    (tmp_path / "files").mkdir()
    for number in range(24):
        path = tmp_path / "files" / f"{number}.png"
        shade = number % 2
        values = rng.integers(0, 90, (10, 12, 3)) + 120 * shade
        Image.fromarray(values.astype(np.uint8)).save(path)
        rows.append((f"files/{number}.png", "abc"[number // 8], ("dark", "light")[shade]))
    frame = pd.DataFrame(rows, columns=["file", "site", "class"])
    frame.to_csv(tmp_path / "images.csv", index=False)
    return tmp_path / "images.csv"


def test_a_table_of_paths_is_a_benchmark(listed: Path) -> None:
    options = {
        "path": str(listed), "image": "file", "domain": "site", "label": "class", "size": 8,
    }  # fmt: skip
    result = execute(
        Run.build(benchmark="image-table", options=options, method="ncm", target="c", memory=9)
    )
    assert result.target_score == 1.0
    assert result.network["name"] == "histogram"
    with pytest.raises(FarshoreError, match="unknown column in --image 'path'"):
        make_scenario("image-table", {**options, "image": "path"}, target="c")
    frame = pd.read_csv(listed)
    frame.loc[3, "file"] = "files/none.png"
    frame.to_csv(listed, index=False)
    with pytest.raises(FarshoreError, match=r"1 of 24 files do not exist: files/none\.png"):
        make_scenario("image-table", options, target="c")


def test_data_sets_of_hugging_face(listed: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    frame = pd.read_csv(listed)
    columns = {
        "picture": [str(listed.parent / file) for file in frame["file"]],
        "site": frame["site"].tolist(),
        "label": [("dark", "light").index(name) for name in frame["class"]],
    }
    made = datasets.Dataset.from_dict(columns).cast_column("picture", datasets.Image())
    made = made.cast_column("label", datasets.ClassLabel(names=["dark", "light"]))
    made.save_to_disk(str(tmp_path / "saved"))
    options = {"path": str(tmp_path / "saved"), "domain": "site", "label": "label", "size": 8}
    result = execute(
        Run.build(benchmark="hf-dataset", options=options, method="ncm", target="c", memory=9)
    )
    assert (result.target_score, result.classes, result.title) == (1.0, ["dark", "light"], "saved")
    learner = farshore.Learner("histogram", "ncm", 10)
    for site in ("a", "b"):
        part = made.filter(lambda row, site=site: row["site"] == site)
        learner.learn(part, domain=site, steps=1)
    target = made.filter(lambda row: row["site"] == "c")
    assert learner.predict(target).tolist() == ["dark", "light"] * 4
    learner.save(tmp_path / "model")
    assert farshore.load(tmp_path / "model").predict(target).tolist() == ["dark", "light"] * 4
    table = datasets.Dataset.from_dict({"x": [0.0, 1.0] * 8, "label": ["no", "yes"] * 8})
    by_columns = farshore.Learner("mlp", "ncm", 10)
    by_columns.learn(table, domain="a", steps=1)
    assert by_columns.predict(table.remove_columns("label")).tolist() == ["no", "yes"] * 8
    datasets.DatasetDict({"test": made}).save_to_disk(str(tmp_path / "splits"))
    with pytest.raises(FarshoreError, match="unknown split of"):
        make_scenario("hf-dataset", {**options, "path": str(tmp_path / "splits")}, target="c")
