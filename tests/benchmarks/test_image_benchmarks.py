from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from official import old_pickle, use_made_frost, wafers, write_hospitals
from scenarios import make_scenario
from sweeping import experiment, planned, swept

from farshore import Run, execute
from farshore.benchmarks import BENCHMARKS
from farshore.benchmarks.camelyon17 import Camelyon17, Camelyon17Extended
from farshore.benchmarks.cifar10_c import BATCHES, CIFAR10C, TARGET, TEST, TRAIN
from farshore.benchmarks.corrupted import CLEAN, GENERATED, PAIRS
from farshore.benchmarks.tinyimagenet_c import TinyImageNetC
from farshore.benchmarks.wm811k import WM811K, WM811KExtended, cut_lots, resize
from farshore.data.downloads.inert_pickle import read_inert
from farshore.data.downloads.prepared import Prepared
from farshore.data.seal import FrozenModel
from farshore.errors import FarshoreError
from farshore.runs.store.store import Store


def opened(scenario):
    return scenario.target.open(FrozenModel(torch.nn.Linear(1, 1)))


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thin ResNet18, so that a run takes seconds."""
    for name in ("cifar10-c", "wm811k", "camelyon17", "camelyon17-extended"):
        monkeypatch.setattr(BENCHMARKS.get(name), "network_settings", {"width": 8})


# ---- cifar10-c -----------------------------------------------------------------------------------


class FewCIFAR10C(CIFAR10C):
    """100 training and 50 test images instead of the official numbers, all different."""

    def read_train(self, raw: Path) -> tuple[np.ndarray, np.ndarray]:
        return self._few(0, 100)

    def read_test(self, raw: Path) -> tuple[np.ndarray, np.ndarray]:
        return self._few(1, 50)

    def has_clean(self, raw: Path) -> bool:
        return True

    def _few(self, kind: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        images = np.random.default_rng(kind).integers(0, 256, (count, 3, 32, 32)).astype(np.uint8)
        return images, (np.arange(count) % 10).astype(np.uint8)


@pytest.fixture
def few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root with made-up frost, since the real photographs are not shipped."""
    use_made_frost(tmp_path, monkeypatch)
    monkeypatch.setenv("FARSHORE_DATA", str(tmp_path))
    return tmp_path


def scenario(**settings):
    severity = settings.pop("severity", 5)
    return FewCIFAR10C({"weights": "none", "severity": severity}).scenario(**settings)


def test_cifar10_c_has_the_papers_domains(few: Path) -> None:
    made = scenario()
    assert [(domain.name, len(domain)) for domain in made.sources] == [
        ("clean", 100),
        *((name, 80) for name in PAIRS),
    ]
    target = opened(made)
    assert (target.name, len(target)) == (TARGET, 50)
    assert (made.steps, made.memory, made.profile, made.metric) == (
        1200,
        5000,
        "long-training",
        "accuracy",
    )
    assert "generated" in made.notes[0]
    assert "CIFAR-10-C" in made.notes[0]
    assert made.notes[-1] == "resnet18 starts from scratch, as requested: no pretrained weights"
    assert made.network_settings["weights"] == "none"


def test_no_image_of_the_target_is_in_a_source(few: Path) -> None:
    made = FewCIFAR10C()
    images, labels = made.read_test(few)
    known = {image.tobytes(): row for row, image in enumerate(images)}
    exchanged = scenario(target="brightness+contrast", severity=1)
    # Corrupted images cannot be identified, so compare the labels of the two parts in order.
    target_images = {known[image.tobytes()] for image in images[_split(0)[0]]}
    source_images = {known[image.tobytes()] for image in images[_split(0)[1]]}
    assert (len(target_images), len(source_images)) == (10, 40)
    assert not target_images & source_images
    assert torch.equal(
        exchanged.sources[1].labels,
        torch.from_numpy(np.tile(labels[sorted(source_images)], 2)).long(),
    )
    assert torch.equal(
        opened(scenario()).labels,
        torch.from_numpy(np.tile(labels[sorted(target_images)], 5)).long(),
    )


def _split(seed: int) -> tuple[np.ndarray, np.ndarray]:
    from farshore.base.randomness import generator

    order = torch.randperm(50, generator=generator(seed, "cifar10-c", "images")).numpy()
    return np.sort(order[:10]), np.sort(order[10:])


def test_validation_images_are_the_same_in_all_corrupted_sources(few: Path) -> None:
    made = scenario()
    for domain in made.sources[1:]:
        train, validation = (
            set((domain.train % 40).tolist()),
            set((domain.validation % 40).tolist()),
        )
        assert not train & validation
        assert validation == set((made.sources[1].validation % 40).tolist())
        assert (len(domain.train), len(domain.validation)) == (64, 16)


@pytest.mark.parametrize("every", [2, 5])
def test_a_part_of_the_rows_keeps_all_corruptions_of_each_image(few: Path, every: int) -> None:
    whole = scenario()
    part = FewCIFAR10C({"weights": "none", "every": every}).scenario()
    for all_of_it, some in zip(whole.sources, part.sources, strict=True):
        assert np.array_equal(some.inputs, all_of_it.inputs[::every])
        assert torch.equal(some.labels, all_of_it.labels[::every])
        assert len(some.train) + len(some.validation) == len(some)
    images = len(part.sources[1]) // 2
    assert images == 40 // every
    assert set((part.sources[1].validation % images).tolist()) == set(
        (part.sources[2].validation % images).tolist()
    )
    assert len(opened(part)) == 50 // every


def test_another_target_takes_the_held_out_images(few: Path) -> None:
    made = scenario(target="frost+fog")
    assert [domain.name for domain in made.sources] == [
        "clean",
        *PAIRS[:4],
        TARGET,
        PAIRS[5],
    ]  # in the position of the new target
    sizes = {domain.name: len(domain) for domain in made.sources}
    assert sizes[TARGET] == 40 * 5
    assert sizes[PAIRS[0]] == 80
    assert len(opened(made)) == 10 * 2
    assert len(opened(scenario(target="clean"))) == 100
    assert next(domain.name for domain in scenario(target="clean").sources) == TARGET
    usual = scenario()
    assert np.array_equal(np.asarray(made.sources[1].inputs), np.asarray(usual.sources[1].inputs))


def test_same_seed_same_bytes_other_severity_other_bytes(
    few: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other_root = tmp_path_factory.mktemp("other")
    (other_root / "frost").symlink_to(few / "frost", target_is_directory=True)
    first, second = FewCIFAR10C().prepare(), FewCIFAR10C().prepare(other_root)
    assert first.manifest["files"] == second.manifest["files"]
    assert FewCIFAR10C().prepare(seed=1).manifest["files"] != first.manifest["files"]
    assert FewCIFAR10C({"severity": 1}).prepare().folder != first.folder
    assert FewCIFAR10C({"severity": "5"}).prepare().folder == first.folder
    with pytest.raises(FarshoreError, match="severity = 9"):
        make_scenario("cifar10-c", {"severity": 9, "weights": "none"})
    with pytest.raises(FarshoreError, match="unknown option of heart-hospitals 'severity'"):
        make_scenario("heart-hospitals", {"severity": 1})
    with pytest.raises(FarshoreError, match="unknown option of heart-hospitals 'weights'"):
        make_scenario("heart-hospitals", {"weights": "none"})


def test_another_network_needs_no_pretrained_weights(few: Path) -> None:
    """The ImageNet weights are not in this folder: a resnet18 would be refused."""
    with pytest.raises(FarshoreError, match="ImageNet weights"):
        FewCIFAR10C().scenario()
    made = FewCIFAR10C().scenario(network="cnn")
    assert (made.network, made.network_settings) == ("cnn", {})
    assert not any("resnet18" in note for note in made.notes)


def test_published_arrays_are_used_if_they_exist(few: Path) -> None:
    images, labels = FewCIFAR10C().read_test(few)
    folder = few / "cifar10" / "CIFAR-10-C"
    folder.mkdir(parents=True)
    np.save(folder / "labels.npy", np.tile(labels, 5))
    for number, name in enumerate([*"+".join(PAIRS).split("+"), *TARGET.split("+")]):
        rows = np.stack(
            [np.full_like(images, 5 * number + severity) for severity in range(5)]
        ).reshape(-1, 3, 32, 32)
        np.save(folder / f"{name}.npy", rows.transpose(0, 2, 3, 1))
    made = scenario(severity=2)
    assert made.notes[0] == "corruptions of severity 2 are those of the published CIFAR-10-C"
    assert made.data["corruptions"] == "published"
    assert np.unique(made.sources[1].inputs).tolist() == [
        1,
        6,
    ]  # second severity of the first two corruptions
    np.save(folder / "labels.npy", np.tile(labels[::-1], 5))
    with pytest.raises(FarshoreError, match="do not fit"):
        scenario(severity=3)


def test_cifar10_c_runs(few: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FewCIFAR10C, "network_settings", {"width": 8})
    monkeypatch.setitem(BENCHMARKS._loaded, "cifar10-c", FewCIFAR10C)
    result = execute(
        Run(
            benchmark="cifar10-c",
            method="er",
            steps=2,
            options={"weights": "none"},
            memory=20,
            settings={"batch_size": 4},
        )
    )
    assert result.target is not None
    assert result.network == {"name": "resnet18", "width": 8, "weights": "none"}
    assert any(GENERATED in note for note in result.notes)
    assert result.data["corruptions"] == "generated"
    assert "part" not in result.data
    assert result.data["set"] == "cifar10-c-seed-0"
    assert len(result.data["sha256"]) == 64
    assert any("from scratch" in note for note in result.notes)
    with pytest.raises(FarshoreError, match="ImageNet weights"):
        execute(Run(benchmark="cifar10-c", method="er", steps=2))


def test_official_batches_are_counted(tmp_path: Path) -> None:
    (tmp_path / "cifar10" / BATCHES).mkdir(parents=True)
    for name in (*TRAIN, *TEST):
        (tmp_path / "cifar10" / BATCHES / name).write_bytes(b"\0" * 3073)
    with pytest.raises(FarshoreError, match="not the official ones"):
        CIFAR10C().read_test(tmp_path / "cifar10")


# ---- tinyimagenet-c ------------------------------------------------------------------------------


def test_forty_classes_of_tinyimagenet(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not (shared / "tinyimagenet").is_dir():
        pytest.skip(
            "the 40-class part of TinyImageNet is missing: set FARSHORE_SHARED to the folder "
            "that holds tinyimagenet/"
        )
    monkeypatch.setenv("FARSHORE_DATA", str(tmp_path))
    made = TinyImageNetC()
    made.about = {}
    images, labels = made.read_test(shared / "tinyimagenet")
    assert images.shape == (2000, 3, 64, 64)
    assert np.bincount(labels).tolist() == [50] * 40
    assert len(made.about["classes"]) == 40
    assert made.about["file"] == "tiny-imagenet-40.zip"
    assert (
        TinyImageNetC.steps,
        TinyImageNetC.profile,
        len(TinyImageNetC.classes),
    ) == (2500, "large-data", 200)


@pytest.mark.parametrize(("classes", "rows"), [(40, 20_000), (200, 99_999), (200, 100_000)])
def test_a_part_of_tinyimagenet_is_a_fact_of_the_result(classes: int, rows: int) -> None:
    manifest = {
        "about": {"classes": ["a class"] * classes, "file": "part.zip"},
        "domains": [{"name": CLEAN, "rows": rows}],
        "files": {},
    }

    class Few(TinyImageNetC):
        def open(self, seed: int) -> Prepared:
            return Prepared(Path("few"), manifest)

    whole = rows == 100_000
    facts = Few().data_facts(0)
    assert facts.get("part") == (None if whole else f"{classes} of 200 classes (part.zip)")
    assert facts["corruptions"] == "generated"
    assert bool(Few().notes(Few().open(0))) == (not whole)


# ---- wm811k --------------------------------------------------------------------------------------


def test_wafers_in_ranges_of_lots(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not (shared / "wm811k").is_dir():
        pytest.skip(
            "the wafer maps are missing: set FARSHORE_SHARED to the folder that contains wm811k/"
        )
    (tmp_path / "wm811k").symlink_to(shared / "wm811k", target_is_directory=True)
    monkeypatch.setenv("FARSHORE_DATA", str(tmp_path))
    made = make_scenario("wm811k", {"weights": "none"})
    counts = [len(domain) for domain in made.sources]
    assert counts == [12657, 12262, 11949, 13272]
    target = opened(made)
    assert len(target) == 11995
    assert (made.metric, made.steps, made.memory, made.profile) == (
        "macro_f1",
        500,
        5000,
        "large-data",
    )
    assert made.sources[0].inputs.shape[1:] == (1, 48, 48)
    assert np.unique(made.sources[0].inputs[:200]).tolist() == [0, 128, 255]
    assert made.notes[0].startswith("113 of 62248 wafers were left out")
    assert made.data["part"].startswith("62248 labelled wafers")
    lots = WM811K().open(0).about["lots"]
    ends = [end for name in lots for end in lots[name]]
    assert ends == sorted(set(ends))  # ranges follow one another and share no lot
    by_class = np.bincount(
        np.concatenate([d.labels.numpy() for d in (*made.sources, target)]), minlength=9
    )
    assert by_class.sum() == 62248 - 113
    long = WM811KExtended({"weights": "none"})
    names = [domain.name for domain in long.scenario().sources]
    assert (len(names), names[0], names[4], names[-1]) == (15, "lots-1-1", "lots-1-2", "lots-3-4")


@pytest.mark.parametrize("form", ["old", "new"])
def test_the_authors_pickle_is_read_without_running_it(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = wafers()
    data = old_pickle(table) if form == "old" else pickle.dumps(table)
    columns = read_inert(data)
    assert {"waferMap", "lotName", "failureType"} <= set(columns)
    assert np.array_equal(columns["waferMap"][7], table["waferMap"][7])
    (tmp_path / "wm811k").mkdir()
    (tmp_path / "wm811k" / "LSWMD.pkl").write_bytes(data)
    monkeypatch.setenv("FARSHORE_DATA", str(tmp_path))
    made = make_scenario("wm811k", {"weights": "none"})
    assert (
        sum(len(domain) for domain in (*made.sources, opened(made))) == 45
    )  # every fourth wafer has no label
    assert made.notes[:-1] == ()
    assert "part" not in made.data


def test_a_pickle_that_would_run_code_is_refused(tmp_path: Path) -> None:
    import os

    class Evil:
        def __reduce__(self):  # type: ignore[no-untyped-def]
            return os.mkdir, (str(tmp_path / "was-run"),)

    with pytest.raises(FarshoreError, match="refused"):
        read_inert(pickle.dumps({"a": Evil()}))
    assert not (tmp_path / "was-run").exists()
    with pytest.raises(FarshoreError, match="cannot be read"):
        read_inert(b"not a pickle")
    with pytest.raises(FarshoreError, match="does not contain a pandas table"):
        read_inert(pickle.dumps([1, 2]))


def test_cuts_are_between_lots() -> None:
    lots = np.repeat(np.arange(1, 101), 7)
    cuts = cut_lots(lots, lots)
    assert cuts.tolist() == [21, 41, 61, 81]
    with pytest.raises(FarshoreError, match="too few lots"):
        cut_lots(np.ones(50, int), np.ones(50, int))
    wafer = np.array([[0, 1], [2, 1]], np.uint8)
    assert resize(wafer)[[0, 0, 47, 47], [0, 47, 0, 47]].tolist() == [0, 128, 255, 128]


def test_without_files_the_error_says_what_to_put_where(tmp_path: Path) -> None:
    for kind, file in ((WM811K, "LSWMD.pkl"), (Camelyon17, "metadata.csv")):
        with pytest.raises(FarshoreError, match=file):
            kind().prepare(tmp_path)


# ---- camelyon17 ----------------------------------------------------------------------------------


@pytest.fixture
def hospitals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_hospitals(tmp_path)
    monkeypatch.setenv("FARSHORE_DATA", str(tmp_path))
    return tmp_path


def test_hospitals_of_camelyon17(hospitals: Path, narrow: None) -> None:
    made = make_scenario("camelyon17", {"weights": "none"})
    assert [(domain.name, len(domain)) for domain in made.sources] == [
        ("center-0", 10),
        ("center-1", 12),
        ("center-3", 10),
        ("center-4", 10),
    ]
    target = opened(made)
    assert (target.name, len(target)) == ("center-2", 12)
    for domain in (*made.sources, target):
        assert {int(pixel) for pixel in domain.inputs[:, 0, 0, 0]} == {int(domain.name[-1])}
        assert torch.equal(
            domain.labels, torch.from_numpy(np.asarray(domain.inputs[:, 1, 0, 0]) % 2).long()
        )
    assert made.sources[0].inputs.shape[1:] == (3, 96, 96)
    assert (made.steps, made.memory) == (1000, 5000)
    assert made.profile == "large-data-short-training"
    assert made.notes[0].startswith("6 patches")
    result = execute(
        Run(
            benchmark="camelyon17",
            method="cl-coral",
            steps=2,
            options={"weights": "none"},
            settings={"batch_size": 4},
        )
    )
    assert result.target is not None
    assert result.target.rows == 12


@pytest.mark.parametrize("method", ["urm", "tent", "cotta", "shot++"])
def test_methods_that_are_not_continual_run_on_resnet18_too(
    method: str, hospitals: Path, narrow: None
) -> None:
    settings = {"batch_size": 4, **({"stage_steps": 2} if method == "shot++" else {})}
    result = execute(
        Run(
            benchmark="camelyon17",
            method=method,
            steps=2,
            options={"weights": "none"},
            settings=settings,
        )
    )
    assert result.status == "done"
    assert result.target_score is not None


def test_a_sweep_of_an_image_benchmark(hospitals: Path, narrow: None) -> None:
    found = experiment(
        search={"trials": 1, "seeds": 1},
        part={
            "benchmarks": ["camelyon17", "heart-hospitals"],
            "methods": ["er"],
            "options": {"weights": "none"},
        },
    )
    _, progress = swept(found, hospitals / "runs")
    assert (progress.done, progress.failures) == (2, [])
    assert (
        "starts from scratch"
        in Store(hospitals / "runs")
        .read(next(iter(planned(found, hospitals / "runs").unique())))
        .notes[-1]
    )


def test_extended_hospitals(hospitals: Path) -> None:
    made = Camelyon17Extended({"weights": "none"})
    found = made.scenario()
    names = [domain.name for domain in found.sources]
    assert len(set(names)) == 15
    assert names[:5] == ["center-0-1", "center-1-1", "center-3-1", "center-4-1", "center-0-2"]
    assert torch.equal(found.sources[0].train, found.sources[4].train)
    with pytest.raises(FarshoreError, match="not unseen"):
        made.scenario(target="center-0-1")
