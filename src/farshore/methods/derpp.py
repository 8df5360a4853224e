"""DER++: replay rows with their labels and with the logits from when they were observed."""

from collections.abc import Mapping
from typing import ClassVar

from torch import Tensor, nn

from ..data.batch import Batch
from ..settings import MethodSettings, Uniform, setting
from .finetune import Finetune
from .method import Replay, Terms


class DERPPSettings(MethodSettings):
    """α 0.5, β 1, both U(0.1, 1): the authors' values for rotated MNIST with 500 rows and their
    range; not in the paper's table.
    """

    distillation_weight: float = setting(
        0.5, Uniform(0.1, 1.0), ge=0, help="α, the weight of the distance to the stored logits"
    )
    replay_weight: float = setting(
        1.0, Uniform(0.1, 1.0), ge=0, help="β, the weight of the loss on replayed labels; 0 is DER"
    )


class DERPP(Finetune):
    """Dark experience replay: match the logits stored during training, and the labels.

    Equation: L = CE(h(x), y) + α · mean (h(x') - z')² + β · CE(h(x''), y''), with (x', z') and
    (x'', y'') from two independent draws; the squared distance is a mean over rows and classes.
    Paper: Buzzega, Boschini, Porrello, Abati, Calderara, "Dark Experience for General Continual
    Learning: a Strong, Simple Baseline", NeurIPS 2020. Not compared in the paper.

    α and β: the authors' tables, which have no single default. The memory is a reservoir over the
    stream and also contains rows of the current domain. z are the logits of the step in which the
    row was offered, before that step's update, and are never refreshed. Replay starts with the
    second domain, as in all methods here (the authors start at the second step). The three terms
    run in separate passes; a term of weight 0 is not computed.
    """

    name = "der++"
    group = "replay"
    results_version = 2
    reference = "Buzzega et al., NeurIPS 2020, arXiv:2004.07211"
    weighs_rows = False
    grows = False
    Settings: ClassVar[type[MethodSettings]] = DERPPSettings
    settings: DERPPSettings
    replay = Replay(
        memory="reservoir", joined=False, draws=("distillation", "replay"), stores=("logits",)
    )
    reduces_to = ("finetune", {"distillation_weight": 0, "replay_weight": 0})

    def weights(self) -> Mapping[str, float | Tensor]:
        """α and β."""
        settings = self.settings
        return {"distillation": settings.distillation_weight, "replay": settings.replay_weight}

    def terms(self, batch: Batch) -> Terms:
        """`erm`, and from the second domain on `distillation` and `replay`."""
        terms = super().terms(batch)
        if "distillation" in batch.draws and self.settings.distillation_weight:
            draw = batch.draws["distillation"]
            logits = self.network(draw.inputs)
            terms["distillation"] = nn.functional.mse_loss(logits, draw.stored["logits"])
        if "replay" in batch.draws and self.settings.replay_weight:
            draw = batch.draws["replay"]
            terms["replay"] = self.risk(self.network(draw.inputs), draw.labels)
        return terms
