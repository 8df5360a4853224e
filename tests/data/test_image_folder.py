from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from farshore.base import allocation
from farshore.base.names import natural_key
from farshore.data.images.image_folder import ImagePreprocessing, list_images, read_images
from farshore.errors import FarshoreError


def save(path: Path, pixels: np.ndarray, **options: object) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, **options)
    return str(path)


def test_layout_gives_domain_and_class(tmp_path: Path) -> None:
    for path in ("site a/cat", "site a/dog", "site b/cat"):
        save(tmp_path / path / "1.png", np.zeros((4, 4), np.uint8))
    (tmp_path / "site a" / "cat" / "notes.txt").write_text("not an image")
    (tmp_path / "site a" / "cat" / ".hidden.png").write_text("ignored")
    frame, notes = list_images(tmp_path)
    assert frame[["domain", "class"]].to_numpy().tolist() == [
        ["site a", "cat"],
        ["site a", "dog"],
        ["site b", "cat"],
    ]
    assert notes == ["1 files do not have an image suffix and were left out: site a/cat/notes.txt"]


def test_images_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    for path in ("b/cat/1.png", "a/dog/1.png", "a/cat/2.png", "a/dog/3.png"):
        save(tmp_path / path, np.zeros((4, 4), np.uint8))
    frame, _ = list_images(tmp_path)
    assert [Path(file).relative_to(tmp_path).as_posix() for file in frame["file"]] == [
        "a/dog/1.png",
        "a/cat/2.png",
        "a/dog/3.png",
        "b/cat/1.png",
    ]


def test_numbers_in_names_are_sorted_by_value(tmp_path: Path) -> None:
    for site in (10, 1, 2):
        for file in (11, 9, 100):
            path = tmp_path / f"site-{site}" / "a" / f"{file}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("L", (2, 2)).save(path)
    listed, _ = list_images(tmp_path)
    assert list(listed["domain"].unique()) == ["site-1", "site-2", "site-10"]
    assert [Path(file).stem for file in listed["file"][:3]] == ["9", "11", "100"]
    shuffled = ["b", "a10", "a2b", "", "a", "10", "9", "a2a", "é", "2", "02"]
    expected = ["", "02", "2", "9", "10", "a", "a2a", "a2b", "a10", "b", "é"]
    assert sorted(shuffled, key=natural_key) == expected


def test_other_layouts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FarshoreError, match="no image file"):
        list_images(tmp_path)
    save(tmp_path / "cat" / "1.png", np.zeros((4, 4), np.uint8))
    assert "domain" not in list_images(tmp_path)[0]
    save(tmp_path / "site" / "cat" / "1.png", np.zeros((4, 4), np.uint8))
    with pytest.raises(
        FarshoreError,
        match="images 1 folders and 2 folders deep: the layout must be domain/class/file",
    ):
        list_images(tmp_path)


def test_any_size_becomes_one(tmp_path: Path) -> None:
    wide = np.tile(np.linspace(0, 255, 60).astype(np.uint8), (20, 1))
    files = [
        save(tmp_path / "wide.png", wide),
        save(tmp_path / "white.png", np.full((7, 9), 255, np.uint8)),
    ]
    images, preprocessing, _ = read_images(files, 16)
    assert (images.shape, images.dtype, preprocessing) == (
        (2, 1, 16, 16),
        np.uint8,
        ImagePreprocessing(16, 1),
    )
    assert (images[1] == 255).all()
    assert (np.diff(images[0, 0, 8].astype(int)) > 0).all()  # still a ramp from left to right


def test_colour_is_kept_if_any_image_has_it(tmp_path: Path) -> None:
    red = np.zeros((5, 5, 3), np.uint8)
    red[..., 0] = 200
    files = [
        save(tmp_path / "grey.png", np.full((5, 5), 50, np.uint8)),
        save(tmp_path / "red.png", red),
    ]
    images, preprocessing, _ = read_images(files, 5)
    assert preprocessing.channels == 3
    assert images[1, :, 0, 0].tolist() == [200, 0, 0]
    assert images[0, :, 0, 0].tolist() == [50, 50, 50]
    assert read_images(files[:1], 5)[1].channels == 1


def test_deep_grey_is_scaled_not_clipped(tmp_path: Path) -> None:
    deep = np.full((4, 4), 32768, np.uint16)
    images, _, _ = read_images([save(tmp_path / "deep.png", deep)], 4)
    assert (images == 128).all()


def test_palettes(tmp_path: Path) -> None:
    colours = Image.fromarray(
        np.dstack([np.arange(16).reshape(4, 4) * 10, np.zeros((4, 4)), np.zeros((4, 4))]).astype(
            np.uint8
        )
    )
    colours.convert("P").save(tmp_path / "colour.gif")
    Image.fromarray(np.arange(16, dtype=np.uint8).reshape(4, 4) * 10).save(tmp_path / "grey.gif")
    assert read_images([str(tmp_path / "colour.gif")], 4)[1].channels == 3
    assert read_images([str(tmp_path / "grey.gif")], 4)[1].channels == 1


def test_only_listed_formats_are_decoded_whatever_the_suffix(tmp_path: Path) -> None:
    disguised = tmp_path / "disguised.png"
    Image.fromarray(np.zeros((4, 4), np.uint8)).save(disguised, format="EPS")
    with pytest.raises(FarshoreError, match=r"1 images cannot be read: .*allowed formats: PNG"):
        read_images([str(disguised)], 4)
    wrong_suffix = tmp_path / "photo.png"
    Image.fromarray(np.full((4, 4), 9, np.uint8)).save(wrong_suffix, format="JPEG")
    assert read_images([str(wrong_suffix)], 4)[0].shape == (1, 1, 4, 4)


def test_a_name_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    save(tmp_path / "cat" / "1.png", np.zeros((4, 4), np.uint8))
    folder = os.fsencode(tmp_path / "cat")
    for name in (b"caf\xe9.png", b"two\nlines.png"):
        (tmp_path / "cat" / "1.png").rename(os.fsdecode(folder + b"/" + name))
        with pytest.raises(FarshoreError, match="rename it"):
            list_images(tmp_path)
        Path(os.fsdecode(folder + b"/" + name)).rename(tmp_path / "cat" / "1.png")
    assert len(list_images(tmp_path)[0]) == 1


def test_chosen_rows_decide_about_colour(tmp_path: Path) -> None:
    red = np.zeros((5, 5, 3), np.uint8)
    red[..., 0] = 200
    files = [
        save(tmp_path / "grey.png", np.full((5, 5), 50, np.uint8)),
        save(tmp_path / "red.png", red),
    ]
    images, preprocessing, coloured = read_images(files, 5, deciding=[0])
    assert (preprocessing.channels, images.shape) == (1, (2, 1, 5, 5))
    assert coloured.tolist() == [False, True]
    assert read_images(files, 5, deciding=[1])[1].channels == 3


def test_unreadable_images_are_listed(tmp_path: Path) -> None:
    good = save(tmp_path / "good.png", np.zeros((30, 30), np.uint8))
    bad = []
    for number in range(7):
        (tmp_path / f"bad{number}.png").write_bytes(b"no picture")
        bad.append(str(tmp_path / f"bad{number}.png"))
    with pytest.raises(
        FarshoreError,
        match=r"7 images cannot be read: .*bad0\.png \(not an image\).*bad4.* and 2 more",
    ):
        read_images([good, *bad], 8)
    cut = tmp_path / "cut.png"
    noisy = save(
        tmp_path / "noisy.png", np.random.default_rng(0).integers(0, 255, (30, 30), dtype=np.uint8)
    )
    cut.write_bytes(Path(noisy).read_bytes()[:400])
    with pytest.raises(FarshoreError, match=r"1 images cannot be read: .*cut\.png"):
        read_images([good, str(cut)], 8)


def test_a_decompression_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    big = save(tmp_path / "big.png", np.zeros((50, 50), np.uint8))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    with pytest.raises(FarshoreError, match="1 images cannot be read"):
        read_images([big], 8)


def test_a_large_set_is_memory_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [
        save(tmp_path / f"{number}.png", np.full((4, 4), number, np.uint8)) for number in range(5)
    ]
    monkeypatch.setattr(allocation, "LARGEST_IN_MEMORY", 10)
    images, _, _ = read_images(files, 4)
    assert isinstance(images, np.memmap)
    assert not images.flags.writeable
    assert images[:, 0, 0, 0].tolist() == [0, 1, 2, 3, 4]


def test_the_preprocessing_is_plain_values() -> None:
    state = ImagePreprocessing(24, 3).state_dict()
    assert ImagePreprocessing.from_state(state) == ImagePreprocessing(24, 3)
