"""ER-KD: experience replay with distillation of the stored logits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from torch import Tensor

from ..data.batch import Batch
from ..invariance.risk import distillation
from ..settings import MethodSettings, Uniform, setting
from .er import ER
from .finetune import Finetune
from .method import Terms


class ERKDSettings(MethodSettings):
    """α 0.5, U(0.1, 1): the value and range of der++; not in the paper's table."""

    distillation_weight: float = setting(
        0.5, Uniform(0.1, 1.0), ge=0, help="α, the weight of the distance to the stored logits"
    )


class ERKD(Finetune):
    """ER that also keeps the logits of replayed rows as they were when their domain ended.

    Equation: L = L_ERM^replay + α · 1/|E| Σ_e E_(x,z)~B_e mean_c (h(x)_c - z_c)², with the current
    and the replayed rows in one joint pass; z are the logits of the end-of-domain model, stored in
    the memory.
    Paper: Buzzega, Boschini, Porrello, Abati, Calderara, "Dark Experience for General Continual
    Learning: a Strong, Simple Baseline", NeurIPS 2020; after Li and Hoiem, "Learning without
    Forgetting", ECCV 2016. Not compared in the paper.

    Readings: the distance is DER's squared error of logits, a mean over rows and classes. LwF
    compares probabilities softened by a temperature; for high temperatures that distance tends to
    the squared error of centred logits (Hinton, Vinyals, Dean, 2015), so the squared error needs no
    temperature. Unlike der++, the same rows serve both terms, the memory has one partition per
    domain, and z are those of the end of the domain (`memory_fill=reservoir`: of the step in which
    the row was offered). With `average`, z are those of the raw weights.
    """

    name = "er-kd"
    group = "replay"
    reference = "Buzzega et al., NeurIPS 2020, arXiv:2004.07211"
    Settings: ClassVar[type[MethodSettings]] = ERKDSettings
    settings: ERKDSettings
    replay = ER.replay
    reduces_to = ("er", {"distillation_weight": 0})

    def weights(self) -> Mapping[str, float | Tensor]:
        """α."""
        return {"distillation": self.settings.distillation_weight}

    def terms(self, batch: Batch) -> Terms:
        """`erm`, and with replayed domains `distillation`; of weight 0 it is not computed."""
        _, logits = self.forward(batch)
        terms = {"erm": self.risk(logits, batch.labels, batch.weights)}
        if batch.replayed and self.settings.distillation_weight:
            terms["distillation"] = distillation(
                batch.replay(logits), batch.stored["logits"], "mean"
            ).mean()
        return terms
