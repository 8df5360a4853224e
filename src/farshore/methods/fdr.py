"""FDR: on remembered rows, keep the predictions from when their domain ended."""

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor

from ..data.batch import Batch
from ..settings import MethodSettings, Uniform, setting
from ..tasks.classification import CLASSIFICATION
from ..tasks.task import Task
from .finetune import Finetune
from .method import Replay, Terms


class FDRSettings(MethodSettings):
    """α 1, U(0.3, 1): Mammoth's `fdr`, not in the paper's table. Its authors tuned α but never
    used it: their numbers have α = 1.
    """

    penalty_weight: float = setting(
        1.0,
        Uniform(0.3, 1.0),
        ge=0,
        help="α, weight of the distance to stored predictions; 0: none",
    )
    second_step: bool = setting(
        True, help="true: a separate step for the distance (Mammoth); false: one step on the sum"
    )


class FDR(Finetune):
    """Keep the predicted probabilities on remembered rows close to the stored ones.

    Equation: a step on L_ERM(B_s), then a second one on α · E_{(x,z) ~ memory} ||softmax h(x) -
    softmax z||₂, z the logits of the end-of-domain model. The norm is not squared: it is between 0
    and √2, and its gradient does not vanish near agreement.
    Paper: Benjamin, Rolnick, Kording, "Measuring and regularizing networks in function space", ICLR
    2019.

    The authors' code of this experiment is not public; this follows Mammoth's `fdr`: two optimiser
    steps per batch, which advance Adam twice and apply weight decay twice, and no use of the
    remembered labels. `second_step=false` takes one step on the sum. Unlike Mammoth, the memory is
    shared exactly evenly, z is computed in evaluation mode, and α weights the second step. With
    α = 0 that step is skipped, because Adam moves even with a zero gradient. The first domain is
    fine-tuning.
    """

    name = "fdr"
    group = "replay"
    reference = "Benjamin et al., ICLR 2019, arXiv:1805.08289"
    weighs_rows = False
    grows = False
    Settings: ClassVar[type[MethodSettings]] = FDRSettings
    settings: FDRSettings
    replay = Replay(memory="partitions", joined=False, draws=("replay",), stores=("logits",))
    reduces_to = ("finetune", {"penalty_weight": 0})

    def weights(self) -> Mapping[str, float | Tensor]:
        """α for the distance."""
        return {"distance": self.settings.penalty_weight}

    def terms(self, batch: Batch) -> Terms:
        """`erm`; with one step also `distance`."""
        terms = super().terms(batch)
        if not self.settings.second_step and self._remembers(batch):
            terms["distance"] = self._distance(batch)
        return terms

    def update(self, batch: Batch) -> Terms:
        """Step on the current rows; from the second domain on, then step on remembered rows."""
        terms = super().update(batch)
        if self.settings.second_step and self._remembers(batch):
            with self.stepping():
                distance = self._distance(batch)
                (self.settings.penalty_weight * distance).backward()
            terms["distance"] = distance.detach()
        return terms

    def _remembers(self, batch: Batch) -> bool:
        return "replay" in batch.draws and self.settings.penalty_weight > 0

    def _distance(self, batch: Batch) -> Tensor:
        draw = batch.draws["replay"]  # [E, m, ...]: the distance is a mean over all rows
        now, then = self.network(draw.inputs.flatten(0, 1)), draw.stored["logits"].flatten(0, 1)
        return function_distance(now, then, self.task)


def function_distance(logits: Tensor, stored: Tensor, task: Task = CLASSIFICATION) -> Tensor:
    """Mean over rows of ||p(logits) - p(stored)||₂; its gradient at 0 is 0, not NaN.

    p is softmax for classes; numbers are compared as they are.
    """
    difference = task.shown(logits) - task.shown(stored.detach())
    return torch.linalg.vector_norm(difference, dim=1).mean()
