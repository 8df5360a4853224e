"""Opening what a stranger made connects to nothing: models, runs, and what they name."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
from stored_networks import VIT, changed_model, make_images, make_vit
from torch import nn

import farshore
from farshore.base.inert import inert
from farshore.data.downloads import hub
from farshore.data.images.hf_columns import load_hf_dataset
from farshore.deployment.changes import learn
from farshore.deployment.new_model import NewModel
from farshore.deployment.site import Columns
from farshore.errors import FarshoreError, StateError
from farshore.networks.build import build_network
from farshore.results.collect import collect

FORM = {"mean": (0.0,) * 3, "std": (1.0,) * 3}
RUNS = """
name: {name}
about: x
parts:
  - benchmarks: [{benchmark}]
    methods: [ncm]
    target: c
    search: {{trials: 1, seeds: 1}}
"""
# What the experiments of a stranger's folder of runs name.
NAMED = {
    "hub-data": "{hf-dataset: {path: evil/data, domain: d, label: y}}",
    "bucket": "{hf-dataset: {path: buckets/evil/data/x, domain: d, label: y}}",
    "address": "{hf-dataset: {path: 'hf://datasets/evil/data', domain: d, label: y}}",
    "described": "{hf-dataset: {path: FOLDER/described, domain: d, label: y}}",
    "table": "{table: {path: 'https://evil.example/t.csv', domain: d, label: y}}",
    "hub-network": "{image-folder: {path: FOLDER/images}}]\n    network: hf:evil/m\n    vary: [",
}
DESCRIBED = """---
configs:
- config_name: default
  data_files: https://evil.example/data.parquet
---
"""


def make_site(folder: Path) -> Path:
    draws = np.random.default_rng(0)
    lines = [f"{x:.2f},{'yn'[int(x > 0)]}" for x in draws.normal(size=40)]
    (folder / "site.csv").write_text("\n".join(["x,y", *lines]) + "\n")
    return folder / "site.csv"


def test_commands_on_a_model_and_on_runs_connect_to_nothing(
    tmp_path: Path, typed, connections: list
) -> None:
    site, model, runs = make_site(tmp_path), tmp_path / "model", tmp_path / "runs"
    learn(model, site, name="a", columns=Columns(label="y"), new=NewModel(), steps=2)
    farshore.compare("rotated-digits", methods="ncm", seeds=1, runs=runs)
    for words in (
        ["show", model],
        ["predict", model, site, "-o", tmp_path / "p.csv"],
        ["card", model],
        ["export", model, tmp_path / "model.pt2"],
        ["report", runs, "-o", tmp_path / "page.html"],
        ["results", runs],
    ):
        code, out = typed(*words)
        assert code == 0, out
    assert connections == []


def test_a_report_of_strangers_runs_asks_for_nothing_that_they_name(
    tmp_path: Path, typed, connections: list
) -> None:
    runs = tmp_path / "runs"
    farshore.compare("rotated-digits", methods="ncm", seeds=1, runs=runs)
    make_images(tmp_path / "images")
    (tmp_path / "described").mkdir()
    (tmp_path / "described" / "README.md").write_text(DESCRIBED)
    for name, benchmark in NAMED.items():
        text = RUNS.format(name=name, benchmark=benchmark).replace("FOLDER", str(tmp_path))
        text = text.replace("    vary: []\n", "")
        (runs / "experiments" / f"{name}.yaml").write_text(text)
    problems = collect(runs).problems
    for name in NAMED.keys() - {"table"}:  # a table that is missing is planned without its rows
        start = f"{name} has no table because it cannot be planned"
        assert any(text.startswith(start) for text in problems), problems
    for words in (["report", runs, "-o", tmp_path / "page.html"], ["results", runs]):
        code, out = typed(*words)
        assert code == 0, out
    assert connections == []


def test_a_library_of_networks_is_rebuilt_without_a_connection(
    connections: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    """timm is not needed for this: the function that makes a model is replaced."""
    made = []

    def create_model(name: str, **options: object) -> nn.Module:
        made.append((name, options["pretrained"]))
        return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())

    timm = ModuleType("timm")
    timm.create_model = create_model  # type: ignore[attr-defined]
    timm.get_pretrained_cfg = lambda name: SimpleNamespace(to_dict=dict)  # type: ignore[attr-defined]
    timm.__version__ = "1"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "timm", timm)
    build_network("timm:resnet18", (3, 8, 8), 2, FORM, restored=True)
    assert made == [("resnet18", False)]
    assert connections == []
    with pytest.raises(StateError, match="the mean of network 'timm:resnet18' is not stored"):
        build_network("timm:resnet18", (3, 8, 8), 2, {}, restored=True)


def test_a_data_set_is_read_from_the_disk_alone_while_others_files_are_read(
    tmp_path: Path, connections: list
) -> None:
    datasets = pytest.importorskip("datasets")
    frame = {"x": [1.0, 2.0], "y": ["a", "b"]}
    datasets.Dataset.from_dict(frame).save_to_disk(tmp_path / "saved")
    (tmp_path / "plain").mkdir()
    datasets.Dataset.from_dict(frame).to_parquet(tmp_path / "plain" / "data.parquet")
    with inert():
        assert load_hf_dataset(str(tmp_path / "saved"), None, "train")["y"] == ["a", "b"]
        assert load_hf_dataset(str(tmp_path / "plain"), None, "train")["y"] == ["a", "b"]
        (tmp_path / "plain" / "README.md").write_text(DESCRIBED)
        with pytest.raises(FarshoreError, match=r"its README\.md may name addresses"):
            load_hf_dataset(str(tmp_path / "plain"), None, "train")
    assert connections == []
    hub._reachable.cache_clear()
    with pytest.raises(FarshoreError, match="cannot be loaded"):
        load_hf_dataset("evil/data", None, "train")
    assert connections != []  # the library asks, if it may
    hub._reachable.cache_clear()


# ---- models of transformers ---------------------------------------------------------------------

BACKBONE = {"backbone": "evil/backbone", "use_pretrained_backbone": True}
# Kinds of models whose library fetches a part of them that the configuration names.
FETCHING = """
conditional_detr dab-detr deformable_detr depth_anything detr dpt grounding-dino mask2former
maskformer oneformer omdet-turbo rt_detr rt_detr_v2 table-transformer timm_backbone timm_wrapper
tvp upernet vitmatte vitpose zoedepth
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with images and a model of them on a small ViT."""
    pytest.importorskip("transformers")
    return make_vit(tmp_path_factory.mktemp("hf"))


@pytest.mark.soak
@pytest.mark.parametrize("command", ["show", "predict", "card", "export"])
def test_a_model_of_transformers_opens_without_a_connection(
    model: Path, tmp_path: Path, typed, connections: list, command: str
) -> None:
    more = {
        "predict": [model / "images" / "b", "-o", tmp_path / "p.csv"],
        "export": [tmp_path / "model.pt2"],
    }
    code, out = typed(command, model / "model", *more.get(command, []))
    assert code == 0, out
    assert connections == []


@pytest.mark.soak
@pytest.mark.parametrize("kind", FETCHING.split())
def test_a_stored_configuration_that_names_another_model_is_refused(
    model: Path, tmp_path: Path, typed, connections: list, kind: str
) -> None:
    def change(tree: dict) -> None:
        tree["config"]["network_settings"]["config"] = {**VIT, **BACKBONE, "model_type": kind}

    changed = changed_model(model, tmp_path / "model", change)
    for words in (["show", changed], ["predict", changed, model / "images" / "b"]):
        code, out = typed(*words)
        assert code == 2, out
        assert f"is a model of the kind {kind!r}: it should be one of" in out
    assert connections == []


@pytest.mark.soak
@pytest.mark.parametrize("absent", ["config", "mean", "std"])
@pytest.mark.parametrize("how", ["deleted", "null"])
def test_a_stored_network_that_would_have_to_be_looked_up_is_refused(
    model: Path, tmp_path: Path, typed, connections: list, absent: str, how: str
) -> None:
    def change(tree: dict) -> None:
        settings = tree["config"]["network_settings"]
        settings[absent] = None
        if how == "deleted":
            del settings[absent]

    code, out = typed("show", changed_model(model, tmp_path / "model", change))
    assert code == 2, out
    assert connections == []


@pytest.mark.soak
@pytest.mark.parametrize("where", ["_attn_implementation", "attn_implementation", "auto_map"])
def test_what_a_kind_of_model_does_not_have_is_no_order_to_its_library(
    model: Path, tmp_path: Path, connections: list, where: str
) -> None:
    """The library would load a kernel of that name, which is compiled code."""

    def change(tree: dict) -> None:
        tree["config"]["network_settings"]["config"] = {
            **VIT,
            **BACKBONE,
            where: "evil/kernel",
            "use_kernels": True,
        }

    loaded = farshore.load(changed_model(model, tmp_path / "model", change))
    module = loaded.system.method.network.features.model
    assert module.config._attn_implementation in ("eager", "sdpa")
    assert not any(hasattr(module.config, key) for key in BACKBONE)
    with torch.no_grad():
        assert loaded.predict_proba(np.zeros((2, 3, 8, 8), np.uint8)).shape == (2, 2)
    assert connections == []


@pytest.mark.soak
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"_attn_implementation": "evil/kernel"}, "asks for the attention 'evil/kernel'"),
        ({"model_type": "detr", **BACKBONE}, "is a model of the kind 'detr'"),
    ],
)
def test_a_new_network_is_of_a_kind_that_can_be_stored(
    tmp_path: Path, connections: list, change: dict, words: str
) -> None:
    pytest.importorskip("transformers")
    (tmp_path / "config.json").write_text(json.dumps({**VIT, **change}))
    with inert(), pytest.raises(FarshoreError, match=words):
        build_network(f"hf:{tmp_path}", (3, 8, 8), 2, {})
    assert connections == []
