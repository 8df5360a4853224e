"""A learner without gradients is a System like any other: Learner, protocol and deployment carry
out a nearest class mean without knowing what it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import farshore
from farshore.benchmarks.heart_hospitals import read_heart
from farshore.cli.show import show
from farshore.data.domain import Domain, Rows
from farshore.deployment.changes import forget, learn
from farshore.deployment.model import Model
from farshore.deployment.new_model import NewModel
from farshore.deployment.site import Columns
from farshore.methods import METHODS, Entry
from farshore.system import SYSTEMS, Setup, System, Usage
from farshore.testing import check_method, differences, toy_rows

SOURCES = Path(farshore.__file__).parent


class MeansPredictor(nn.Module):
    """Minus half the squared distance of a row to each class mean."""

    means: Tensor
    seen: Tensor

    def __init__(self, classes: int, width: int) -> None:
        super().__init__()
        self.register_buffer("means", torch.zeros(classes, width))
        self.register_buffer("seen", torch.zeros(classes))

    def forward(self, inputs: Tensor) -> Tensor:
        distances = torch.cdist(inputs.flatten(1).float(), self.means).square()
        return torch.where(self.seen > 0, -0.5 * distances, -1e6)


class NearestMeanSystem(System):
    """Sums and counts per domain and class: learning is one pass, forgetting is exact."""

    def __init__(self, setup: Setup) -> None:
        self.classes, self.device = setup.classes, setup.device
        self.settings = setup.entry.Settings.build(setup.settings)
        self.width = int(np.prod(setup.shape))
        self.sums: dict[str, Tensor] = {}
        self.counts: dict[str, Tensor] = {}
        self.seconds = {"steps": 0.0, "closing": 0.0}
        self.rows_per_step = 0
        self.notes: list[str] = []
        self.model = MeansPredictor(setup.classes, self.width).to(setup.device)

    @property
    def domains(self) -> list[str]:
        return list(self.sums)

    def learn(self, domain: Domain, *, steps: int, checkpoints: object = None) -> None:
        rows = domain.split("train").to(self.device)
        inputs, labels = rows.take(torch.arange(len(rows)))
        members = nn.functional.one_hot(labels, self.classes).double()
        self.sums[domain.name] = members.T @ inputs.flatten(1).double()
        self.counts[domain.name] = members.sum(dim=0)
        self.rows_per_step = len(rows)
        self._fit()

    def _fit(self) -> None:
        counts = sum(self.counts.values(), torch.zeros(self.classes, dtype=torch.float64))
        sums = sum(self.sums.values(), torch.zeros(self.classes, self.width, dtype=torch.float64))
        self.model.means.copy_(sums / counts.clamp(min=1)[:, None])
        self.model.seen.copy_(counts)

    def logits(self, rows: Rows) -> Tensor:
        return torch.cat([self.model(inputs.to(self.device)) for inputs, _ in rows.batches(512)])

    def features(self, inputs: Tensor) -> Tensor:
        return inputs.flatten(1).float()

    def predictor(self) -> nn.Module:
        return self.model

    def forget(self, domain: str) -> None:
        del self.sums[domain], self.counts[domain]
        self._fit()

    def kept_rows(self) -> dict[str, dict[str, Tensor]]:
        return {}

    def usage(self) -> Usage:
        held = [*self.sums.values(), *self.counts.values()]
        return Usage(
            settings=self.settings.model_dump(),
            method_bytes=sum(each.numel() * each.element_size() for each in held),
        )

    def state_dict(self) -> dict[str, Any]:
        return {"names": self.domains, "sums": list(self.sums.values())} | {
            "counts": list(self.counts.values())
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.sums = dict(zip(state["names"], state["sums"], strict=True))
        self.counts = dict(zip(state["names"], state["counts"], strict=True))
        self._fit()


class NearestMean(Entry):
    """The class whose mean is nearest.

    Equation: h_c(x) = -||x - μ_c||² / 2, with μ_c over the rows of all domains.
    Paper: Mensink et al., "Distance-Based Image Classification", TPAMI 2013, without the metric.
    """

    name = "nearest-mean"
    group = "replay"
    reference = "Mensink et al., 2013"
    system = "nearest-mean"
    weighs_classes = False


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    METHODS.add("nearest-mean", NearestMean)
    SYSTEMS.add("nearest-mean", NearestMeanSystem)
    yield
    METHODS.remove("nearest-mean")
    SYSTEMS.remove("nearest-mean")


def test_a_learner_learns_predicts_saves_loads_and_forgets(tmp_path: Path) -> None:
    learner = farshore.Learner(method="nearest-mean", preprocess="none")
    for number in range(3):
        scores = learner.learn(*toy_rows(number), domain=f"d{number}")
        assert scores["validation accuracy"] > 0.9
    learner.save(tmp_path)
    loaded = farshore.load(tmp_path)
    assert differences(learner.state_dict(), loaded.state_dict()) == []
    inputs = toy_rows(1)[0]
    assert np.array_equal(learner.predict(inputs), loaded.predict(inputs))
    loaded.forget("d0")
    assert loaded.system.domains == ["d1", "d2"]
    held = learner.state_dict()["system"]
    exact = sum(held["sums"][1:]) / sum(held["counts"][1:])[:, None]
    assert torch.equal(loaded.system.predictor().means, exact.float())
    with pytest.raises(farshore.FarshoreError, match="several domains at once"):
        farshore.Learner(method="nearest-mean", classes=[0, 1], preprocess="none").learn_jointly(
            [Domain.divided("a", *toy_rows(0))], steps=1
        )


def test_the_protocol_measures_it_on_the_unseen_target() -> None:
    result = farshore.execute(farshore.Run(benchmark="heart-hospitals", method="nearest-mean"))
    assert result.status == "done"
    assert result.target is not None
    assert result.target.rows == 200
    assert result.kind == "continual"
    assert (result.memory_items, result.execution) == (0, "eager")
    assert result.method_bytes == 3 * 8 * (2 * 39 + 2)
    assert len(result.matrices["validation"]) == 3
    source = result.source_score()
    assert source is not None
    assert source > 0.7


def test_a_model_in_a_folder_learns_predicts_and_is_evaluated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = read_heart()
    frame["num"] = (frame["num"] > 0).astype(int)
    folder = tmp_path / "model"
    new, columns = NewModel(method="nearest-mean"), Columns(label="num", drop=["hospital"])
    for hospital in ("cleveland", "hungarian", "va"):
        path = tmp_path / f"{hospital}.csv"
        frame[frame["hospital"] == hospital].to_csv(path, index=False)
        if hospital != "va":
            learned = learn(folder, path, name=hospital, columns=columns, new=new)
            assert learned.scores["validation"] > 0.7
    model = Model.open(folder)
    site = model.read(tmp_path / "va.csv", labelled=True)
    logits, labels = model.outputs(site)
    assert float((logits.argmax(dim=1) == labels).double().mean()) > 0.6
    predicted = model.predict(site)
    assert set(predicted["prediction"]) <= {"0", "1"}
    assert set(predicted["nearest"]) <= {"cleveland", "hungarian"}
    show(folder)
    assert "nearest-mean" in capsys.readouterr().out
    assert forget(folder, "cleveland").learner.system.domains == ["hungarian"]


def test_it_passes_the_checks_that_apply_to_it() -> None:
    check_method("nearest-mean")


@pytest.mark.parametrize(
    "path",
    [
        "learner",
        "runs/protocol.py",
        "runs/result.py",
        "runs/run.py",
        "runs/resume.py",
        "deployment",
    ],
)
def test_nobody_asks_what_kind_of_system_it_is(path: str) -> None:
    whole = SOURCES / path
    for file in whole.rglob("*.py") if whole.is_dir() else [whole]:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "cast"):
                text = ast.unparse(node)
                named = ("System", "Trainer", "Method", "Memory", "Benchmark")
                assert not any(name in text for name in named), f"{file.name}: {text}"
            if isinstance(node, ast.Attribute) and ast.unparse(node).endswith("system.method"):
                pytest.fail(f"{file.name} assumes that a system has a method")
