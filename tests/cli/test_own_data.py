from __future__ import annotations

import shutil
import sys
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

import farshore
from farshore import Network, Result
from farshore.cli.app import main
from farshore.methods import METHODS
from farshore.networks import NETWORKS


def type_in(line: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", line.split())
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


@pytest.fixture
def heart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    with as_file(files("farshore.benchmarks") / "files" / "heart.csv") as path:
        shutil.copy(path, tmp_path / "heart.csv")
    return tmp_path


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("heart.csv --domain hospital --label num", "finetune er cl-coral ridge slda"),
        ("heart-hospitals", "many"),
    ],
)
def test_own_data_are_compared_with_a_few_quick_methods(
    data: str, expected: str, heart: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named: list[list[str]] = []
    seeds: list[int] = []

    def stop(fields: object, methods: list[str], **given: range) -> None:
        named.append(methods)
        seeds.append(len(given["seeds"]))
        raise farshore.FarshoreError("far enough")

    monkeypatch.setattr("farshore.runs.plan.comparison.make_comparison", stop)
    assert type_in(f"farshore compare {data}", monkeypatch) == 2
    [methods] = named
    beside = ["majority", "joint-linear", "joint-forest", "joint-trees"]
    assert set(beside) <= set(methods)
    assert seeds == [3 if expected == "many" else 1]
    if expected == "many":
        assert len(methods) > 20
    else:
        assert methods == [*expected.split(), *beside]


@pytest.mark.parametrize("method", ["er", "cl-coral"])
def test_heart_as_a_user_types_it(
    method: str, heart: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if method not in METHODS.names():
        pytest.skip(f"{method} is not there yet")
    line = (
        f"farshore run heart.csv {method} --domain hospital --label num --target va --steps "
        "20 --out out"
    )
    assert type_in(line, monkeypatch) == 0
    printed = capsys.readouterr().out
    assert "target va (unseen, 200 rows)" in printed
    assert "heart.csv: 920 rows, 13 input columns" in printed
    result = Result.read(next((heart / "out").glob("*/result.json")))
    assert (result.title, result.run.benchmark) == ("heart.csv", "table")
    assert result.run.options == {"path": "heart.csv", "domain": "hospital", "label": "num"}
    assert result.data["set"] == "heart.csv"
    assert result.classes == ["0", "1", "2", "3", "4"]
    assert result.sources == ["cleveland", "hungarian", "switzerland"]
    learner = farshore.load(next((heart / "out").glob("*/model")))
    assert result.target is not None
    va = pd.read_csv("heart.csv", na_values="?").query("hospital == 'va'")
    right = float((learner.predict(va) == va["num"].astype(str)).mean())
    assert result.metric == "macro_f1"  # a degree of disease has fewer than 5% of Cleveland's rows
    assert right == pytest.approx(
        result.target.scores["accuracy"]
    )  # the saved preprocessing and model give the same on raw rows


def test_images_as_a_user_types_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for site in ("a", "b", "c"):
        for place, name in enumerate(("cat", "dog")):
            Path("pictures", site, name).mkdir(parents=True)
            for number in range(10):
                stripes = (
                    np.tile(np.repeat([[40], [200]], 2, axis=0), (4, 16))
                    if place
                    else np.tile([[40, 40, 200, 200]], (16, 4))
                )
                pixels = (stripes[..., None] + rng.integers(0, 40, (16, 16, 3))).astype(np.uint8)
                Image.fromarray(pixels).save(Path("pictures", site, name, f"{number}.png"))
    line = (
        "farshore run pictures er --target c --size 16 --steps 30 --set learning_rate=0.003 "
        "--out out"
    )
    assert type_in(line, monkeypatch) == 0
    assert "pictures: 60 images as 16x16 RGB" in capsys.readouterr().out
    result = Result.read(next((tmp_path / "out").glob("*/result.json")))
    assert result.target_score is not None
    assert result.target_score > 0.9
    assert farshore.load(next(Path("out").glob("*/model"))).preprocessing is not None


def test_domains_are_found_as_a_user_types_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert (
        type_in(
            f"farshore run rotated-digits er --domain auto --steps 3 --out {tmp_path}", monkeypatch
        )
        == 0
    )
    assert "4 found, boundaries at rows 360, 720, 1079 of 1438" in capsys.readouterr().out
    result = Result.read(next(tmp_path.glob("*/result.json")))
    assert (result.run.options, result.sources) == (
        {"domain_by": "drift"},
        ["part 1", "part 2", "part 3", "part 4"],
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "farshore run heart.csv er --domain hospitl --label num --target va",
            "did you mean 'hospital'?",
        ),
        ("farshore run heart.csv er --label num", "--domain is not given"),
        (
            "farshore run heart.csv er --domain hospital --label num --target each",
            "is one run per domain: use farshore compare --methods er --target each",
        ),
        (
            "farshore run hart.csv er --domain hospital --label num",
            "there is no file or folder 'hart.csv'",
        ),
        (
            "farshore run rotated-digits er --label num",
            "unknown option of rotated-digits 'label': known: domain_by, domains",
        ),
        (
            "farshore run rotated-digits er --shared-rows keep",
            "unknown option of rotated-digits 'shared_rows'",
        ),
        (
            "farshore run rotated-digits er --option severty=2",
            "unknown option of rotated-digits 'severty'",
        ),
        (
            "farshore run cifar10-c er --option severty=2",
            "unknown option of cifar10-c 'severty': did you mean 'severity'?",
        ),
        ("farshore run cifar10-c er --severity 2 --option severity=3", "give one of the two"),
        ("farshore run rotated-digits er --network mpl", "unknown network 'mpl': did you mean"),
        (
            "farshore run rotated-digits er --network-set widht=8",
            "unknown setting of network 'cnn' 'widht': did you mean 'width'?",
        ),
        (
            "farshore run rotated-digits er --network mlp --network-set width=wide",
            "network 'mlp': width = 'wide' is not allowed",
        ),
        (
            "farshore run rotated-digits er --network-set width",
            "write it as name=value, for example --network-set width=64",
        ),
        ("farshore run rotated-digits er --domain-by drift", "it needs --domain auto"),
        (
            "farshore run rotated-digits er --domain auto --domain-by dirft",
            "domain_by = 'dirft' is not allowed",
        ),
        (
            "farshore run heart.csv er --domain hospital --label num --target va --preprocess some",
            "preprocess = 'some' is not allowed",
        ),
        (
            "farshore run heart.csv er --domain hospital --label num --target va --shared-rows x",
            "is not allowed: it should be 'keep'",
        ),
        (
            "farshore run heart.csv er --domain hospital --label num --target va --size 0",
            "unknown option of table 'size'",
        ),
        ("farshore run rotated-mnist er --root nowhere", "--root 'nowhere' is not a folder"),
        ("farshore run rotated-mnist er", "type `farshore prepare rotated-mnist` first"),
        ("farshore run rotated-mnist-extended er", "type `farshore prepare rotated-mnist` first"),
        ("farshore prepare rotated-mnst", "did you mean 'rotated-mnist'?"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(
    line: str,
    message: str,
    heart: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("FARSHORE_DATA", str(heart / "empty"))
    assert type_in(line, monkeypatch) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.err.startswith("farshore: error: ")
    assert printed.err.count("\n") == 1


def test_prepare_what_is_shipped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert type_in("farshore prepare rotated-digits", monkeypatch) == 0
    assert "nothing to prepare" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "shown"),
    [("covertype", "farshore prepare covertype"), ("rotated-digits", "shipped with farshore")],
)
def test_benchmarks_say_where_their_data_are(
    name: str, shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert type_in(f"farshore benchmarks {name}", monkeypatch) == 0
    assert shown in capsys.readouterr().out


def test_prepare_without_a_network_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from farshore.benchmarks.rotated_mnist import RotatedMNIST
    from farshore.data.downloads.public_files import PublicFile

    monkeypatch.setattr(
        RotatedMNIST,
        "files",
        (
            PublicFile(
                "train-images-idx3-ubyte.gz", ("http://127.0.0.1:9/t.gz",), "0" * 64, 9912422
            ),
        ),
    )
    assert type_in(f"farshore prepare rotated-mnist --root {tmp_path}", monkeypatch) == 2
    told = capsys.readouterr().err
    assert f"put train-images-idx3-ubyte.gz (9.9 MB) into {tmp_path}/mnist" in told
    assert f"`farshore prepare rotated-mnist --root {tmp_path}`" in told


def test_help_names_the_options(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert type_in("farshore run --help", monkeypatch) == 0
    printed = capsys.readouterr().out
    for option in (
        "--domain",
        "--label",
        "--target",
        "--drop",
        "--time",
        "--group",
        "--preprocess",
        "--domain-by",
        "--root",
    ):
        assert option in printed


def test_a_network_in_place_of_the_benchmarks_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = f"farshore run rotated-digits er --steps 2 --out {tmp_path} --network mlp"
    assert type_in(f"{line} --network-set width=16", monkeypatch) == 0
    result = Result.read(next(tmp_path.glob("*/result.json")))
    assert result.network == {"name": "mlp", "width": 16}
    assert (result.run.network, result.run.network_settings) == ("mlp", {"width": 16})
    line = f"farshore run rotated-digits er --steps 2 --out {tmp_path}"
    assert type_in(f"{line} --network-set width=8", monkeypatch) == 0
    result = Result.read(next(tmp_path.glob("*/result.json")))
    assert result.network == {"name": "cnn", "width": 8}


def test_own_data_stand_apart_in_the_list(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert type_in("farshore benchmarks", monkeypatch) == 0
    named, own = capsys.readouterr().out.split("your own data")
    assert "rotated-digits" in named
    assert "table " not in named
    assert "table " in own
    assert "image-folder" in own
    assert type_in("farshore benchmarks table", monkeypatch) == 0
    shown = capsys.readouterr().out
    assert all(option in shown for option in ("path", "label", "shared_rows", "preprocess"))


def test_compare_takes_own_data(
    heart: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "farshore compare heart.csv --methods er,finetune --seeds 1 --workers 1 --steps 2"
    asked = f"{line} --domain hospital --label num --target va"
    assert type_in(asked, monkeypatch) == 0
    assert "heart.csv: macro F1 on the unseen target in %" in capsys.readouterr().out
    assert type_in(f"{asked} --orders listed,reversed", monkeypatch) == 0
    assert "by last source" in capsys.readouterr().out


def test_a_network_of_another_package_can_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A builder without annotations gets the text of the command line as it is."""

    def linear(shape, classes, *, bias="yes"):  # type: ignore[no-untyped-def]
        size = int(np.prod(shape))
        features = torch.nn.Sequential(
            torch.nn.Flatten(), torch.nn.Linear(size, 8, bias=bias == "yes")
        )
        return Network(features, torch.nn.Linear(8, classes), feature_dim=8)

    NETWORKS.add("linear", linear)
    try:
        line = f"farshore run heart-hospitals er --steps 2 --network linear --out {tmp_path}"
        assert type_in(f"{line} --network-set bias=no", monkeypatch) == 0
        assert type_in(f"{line} --network-set bais=no", monkeypatch) == 2
    finally:
        NETWORKS.remove("linear")
    result = Result.read(next(tmp_path.glob("*/result.json")))
    assert result.network == {"name": "linear", "bias": "no"}
