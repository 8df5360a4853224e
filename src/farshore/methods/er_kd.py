"""ER-KD: experience replay with distillation of stored logits, or of those of a slow teacher."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from ..base.trees import widened
from ..data.batch import Batch
from ..invariance.risk import distillation
from ..networks.freezing import frozen_copy
from ..networks.network import Network
from ..settings import Choice, MethodSettings, Uniform, setting
from .er import ER
from .finetune import Finetune
from .method import Terms, term_doses


class ERKDSettings(MethodSettings):
    """α 0.5, U(0.1, 1): the value and range of der++; not in the paper's table. d 0.98: runs here
    have hundreds of steps; CLS-ER's 0.999 is for thousands.
    """

    distillation_weight: float = setting(
        0.5, Uniform(0.1, 1.0), ge=0, help="α, the weight of the distance to the stored logits"
    )
    teacher: Literal["stored", "ema"] = setting(
        "stored",
        help="whose logits replayed rows keep: stored: of the model at their domain's end; ema: of "
        "a slow average of the weights of all steps so far",
    )
    teacher_decay: float = setting(
        0.98,
        Choice((0.9, 0.95, 0.98, 0.99, 0.995, 0.999)),
        ge=0,
        lt=1,
        help="d of teacher=ema, per step",
    )


class ERKD(Finetune):
    """ER that also keeps the logits of replayed rows: as they were when their domain ended, or as a
    slow teacher has them.

    Equation: L = L_ERM^replay + α · 1/|E| Σ_e E_(x,z)~B_e mean_c (h(x)_c - z_c)², with the current
    and the replayed rows in one joint pass. With `teacher=stored`, z are the logits of the
    end-of-domain model, stored in the memory. With `teacher=ema`, z = h_θ̄(x), where θ̄ is an average
    of the weights over the whole run: after step t, θ̄ ← d_t θ̄ + (1 - d_t) θ with d_t =
    min(1 - 1/(t+1), d), which is the plain mean up to step d/(1-d).
    Paper: Buzzega, Boschini, Porrello, Abati, Calderara, "Dark Experience for General Continual
    Learning: a Strong, Simple Baseline", NeurIPS 2020; after Li and Hoiem, "Learning without
    Forgetting", ECCV 2016. `teacher=ema`: Arani, Sarfraz, Zonooz, "Learning Fast, Learning Slow: A
    General Continual Learning Method based on Complementary Learning System" (CLS-ER), ICLR 2022.
    Not compared in the paper.

    Readings: the distance is DER's squared error of logits, a mean over rows and classes. LwF
    compares probabilities softened by a temperature; for high temperatures that distance tends to
    the squared error of centred logits (Hinton, Vinyals, Dean, 2015), so the squared error needs no
    temperature. Unlike der++, the same rows serve both terms, the memory has one partition per
    domain, and z are those of the end of the domain (`memory_fill=reservoir`: of the step in which
    the row was offered). With `average`, z are those of the raw weights.
    CLS-ER has two teachers, a faster and a slower one, updates each in a random share r of the
    steps, takes for each row the logits of the one that is surer of its label, and predicts with
    the slower. Here there is one, updated in every step (decay d at share r forgets as fast as
    1 - r (1 - d) at share 1), and the trained weights predict. The teacher computes in evaluation
    mode, with the trained network's BatchNorm statistics.
    """

    name = "er-kd"
    group = "replay"
    reference = "Buzzega et al., NeurIPS 2020, arXiv:2004.07211"
    Settings: ClassVar[type[MethodSettings]] = ERKDSettings
    settings: ERKDSettings
    replay = ER.replay
    remembers = ("teacher", "teacher_steps")
    reduces_to = ("er", {"distillation_weight": 0})

    def setup(self) -> None:
        """The teacher starts as a copy of the network."""
        taught = self.settings.teacher == "ema" and self.settings.distillation_weight > 0
        self.teacher = frozen_copy(self.network) if taught else None
        self.teacher_steps = torch.zeros((), dtype=torch.float64, device=self.device)

    def weights(self) -> Mapping[str, float | Tensor]:
        """α."""
        return {"distillation": self.settings.distillation_weight}

    def terms(self, batch: Batch) -> Terms:
        """`erm`, and with replayed domains `distillation`; of weight 0 it is not computed."""
        _, logits = self.forward(batch)
        terms = {"erm": self.risk(logits, batch.labels, batch.weights)}
        if batch.replayed and self.settings.distillation_weight:
            kept = self._taught(batch) if self.teacher is not None else batch.stored["logits"]
            terms["distillation"] = distillation(batch.replay(logits), kept, "mean").mean()
        return terms

    def doses(self, batch: Batch) -> Terms:
        """The length of the distillation's weighted gradient, relative to that of ERM."""
        return term_doses(self.terms(batch), self.weights(), self.network)

    @torch.no_grad()
    def _taught(self, batch: Batch) -> Tensor:
        """The teacher's logits of the replayed rows, [E, m, C]."""
        assert self.teacher is not None
        logits: Tensor = self.teacher(batch.inputs[batch.rows :])
        return logits.reshape(batch.replayed, batch.replay_rows, -1)

    @torch.no_grad()
    def after_step(self, batch: Batch) -> None:
        """Take the new weights into the teacher's."""
        if self.teacher is None:
            return
        self.teacher_steps.add_(1)
        rate = (1 / (self.teacher_steps + 1)).clamp(min=1 - self.settings.teacher_decay)
        slow: list[Tensor] = list(self.teacher.parameters())
        fast: list[Tensor] = list(self.network.parameters())
        changes = torch._foreach_sub(fast, slow)
        torch._foreach_mul_(changes, rate.to(slow[0].dtype))
        torch._foreach_add_(slow, changes)
        layers = zip(self.teacher.batchnorms(), self.network.batchnorms(), strict=True)
        for own, trained in layers:
            for kept, value in zip(own.buffers(), trained.buffers(), strict=True):
                kept.copy_(value)

    def state_dict(self) -> dict[str, Any]:
        """The teacher, if there is one."""
        return super().state_dict() if self.teacher is not None else {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the teacher, if there is one."""
        if self.teacher is not None:
            super().load_state_dict(state)

    def grown_state(self, state: Mapping[str, Any], grown: Network) -> Mapping[str, Any]:
        """The teacher's new outputs start like those of the network."""
        if self.teacher is None:
            return state
        fresh = grown.state_dict()
        wider = {name: widened(old, fresh[name]) for name, old in state["teacher"].items()}
        return {**state, "teacher": wider}
