"""Full-size counts of the corrupted benchmarks, and the published folders of Tiny-ImageNet-C.

Corrupting 100,000 images takes minutes, so here a corruption does not change the image. The images
contain their numbers, and the tests check which image is in which domain.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from farshore.benchmarks import corrupted
from farshore.benchmarks.cifar10_c import CIFAR10C
from farshore.benchmarks.corrupted import CLEAN, PAIRS, CorruptedImages
from farshore.benchmarks.tinyimagenet_c import TinyImageNetC
from farshore.benchmarks.wm811k import WM811K
from farshore.errors import FarshoreError


def numbered(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return images of three bytes that encode their number."""
    numbers = np.arange(count)
    images = np.stack([numbers >> 16, (numbers >> 8) & 255, numbers & 255], axis=1).astype(
        np.uint8
    )[:, :, None, None]
    return images, (numbers % 10).astype(np.uint8)


def number_of(images: np.ndarray) -> np.ndarray:
    spelled = images[:, :, 0, 0].astype(int)
    return spelled[:, 0] * 65536 + spelled[:, 1] * 256 + spelled[:, 2]


@pytest.fixture(
    params=[(CIFAR10C, 50_000, 10_000), (TinyImageNetC, 100_000, 6_000)],
    ids=["cifar10-c", "tinyimagenet-c"],
)
def built(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """A function that makes the domains, the benchmark, and the counts of clean and target."""
    kind, clean, target = request.param
    monkeypatch.setattr(corrupted, "corrupt", lambda images, *rest, **more: images)
    monkeypatch.setattr(corrupted, "read_photographs", lambda folder, size: [])
    monkeypatch.setattr(kind, "read_train", lambda self, raw: numbered(clean))
    monkeypatch.setattr(kind, "read_test", lambda self, raw: numbered(10_000))

    def make(
        seed: int = 0, exchanged: str | None = None
    ) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        benchmark: CorruptedImages = kind()
        benchmark.origin, benchmark.exchanged = "generated", exchanged
        return {
            name: (images, labels)
            for name, images, labels in benchmark.build_domains(tmp_path, seed)
        }

    return make, kind, clean, target


def test_the_papers_counts(built) -> None:
    make, kind, clean, target = built
    domains = make()
    counts = {name: len(labels) for name, (_, labels) in domains.items()}
    assert counts == {CLEAN: clean, **dict.fromkeys(PAIRS, 16_000), kind.default_target: target}
    assert list(counts) == list(kind.domains)


def test_no_image_of_the_target_is_in_a_source_and_every_image_is_used(built) -> None:
    make, kind, _, _ = built
    domains = make()
    target_images = set(number_of(domains[kind.default_target][0]).tolist())
    assert len(target_images) == 2_000
    for name in PAIRS:
        source_images = number_of(domains[name][0])
        assert np.array_equal(
            source_images[:8_000], source_images[8_000:]
        )  # each image once under each of the two corruptions
        assert not target_images & set(source_images.tolist())
        assert target_images | set(source_images.tolist()) == set(range(10_000))
        assert np.array_equal(domains[name][1], source_images % 10)  # labels follow their images


def test_an_exchanged_target_takes_the_held_out_images(built) -> None:
    make, kind, _, _ = built
    usual, changed = make(), make(exchanged="brightness+contrast")
    target_images = set(number_of(usual[kind.default_target][0]).tolist())
    assert set(changed) == {kind.default_target, "brightness+contrast"}
    assert set(number_of(changed["brightness+contrast"][0]).tolist()) == target_images
    assert not target_images & set(number_of(changed[kind.default_target][0]).tolist())


def test_the_same_seed_gives_the_same_bytes_and_another_one_others(built) -> None:
    make, kind, _, _ = built
    first, same, other = make(0), make(0), make(1)
    for name, (images, labels) in first.items():
        assert images.tobytes() == same[name][0].tobytes()
        assert labels.tobytes() == same[name][1].tobytes()
    assert first[kind.default_target][0].tobytes() != other[kind.default_target][0].tobytes()


def test_published_folders_of_tiny_imagenet_c_are_read_by_class_and_name(tmp_path: Path) -> None:
    """A small official layout: two classes with two images each, identified by colour."""
    classes, raw = ["n02", "n01"], tmp_path / "tinyimagenet"
    top = raw / "tiny-imagenet-200"
    listed = [
        ("val_0.JPEG", "n01"),
        ("val_1.JPEG", "n02"),
        ("val_2.JPEG", "n01"),
        ("val_3.JPEG", "n02"),
    ]
    (top / "val" / "images").mkdir(parents=True)
    (top / "wnids.txt").write_text("\n".join(classes))
    (top / "val" / "val_annotations.txt").write_text(
        "".join(f"{file}\t{name}\t0\t0\t63\t63\n" for file, name in listed)
    )
    for name in classes:
        (top / "train" / name / "images").mkdir(parents=True)
        grey(0).save(top / "train" / name / "images" / f"{name}_0.JPEG")
    made = TinyImageNetC({"severity": 3})
    made.about = {}
    for number, (file, name) in enumerate(listed):
        grey(10).save(top / "val" / "images" / file)
        folder = raw / "Tiny-ImageNet-C" / "fog" / "3" / name
        folder.mkdir(parents=True, exist_ok=True)
        grey(50 * number).save(folder / file, quality=100)
    _, labels = made.read_test(raw)
    assert labels.tolist() == [0, 1, 0, 1]  # classes in the order of their names
    assert made.about["classes"] == ["n01", "n02"]
    images = made.read_published(raw, "fog", labels)
    assert np.abs(images.mean(axis=(1, 2, 3)) - [0, 50, 100, 150]).max() < 2
    (raw / "Tiny-ImageNet-C" / "fog" / "3" / "n02" / "val_3.JPEG").unlink()
    with pytest.raises(FarshoreError, match=r"val_3\.JPEG is missing"):
        made.read_published(raw, "fog", labels)


def grey(value: int) -> Image.Image:
    return Image.new("RGB", (64, 64), (value, value, value))


@pytest.mark.soak
def test_wafers_are_the_same_bytes_whenever_they_are_prepared(shared: Path, tmp_path: Path) -> None:
    if not (shared / "wm811k").is_dir():
        pytest.skip(
            "the wafer maps are missing: set FARSHORE_SHARED to the folder that contains wm811k/"
        )
    built = []
    for _ in range(2):
        made = WM811K()
        made.about = {}
        built.append(
            {
                name: (images.tobytes(), labels.tobytes())
                for name, images, labels in made.build_domains(shared / "wm811k", 0)
            }
        )
    assert list(built[0]) == list(WM811K.domains)
    assert built[0] == built[1]
