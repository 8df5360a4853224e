"""ER-ACE: replay in which incoming rows do not suppress classes absent from their batch."""

from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from ..data.batch import Batch
from ..networks.network import Network
from ..settings import MethodSettings, setting
from .finetune import Finetune
from .method import Replay, Terms

COSINE_SCALE = 10.0  # the official code's


class ERACESettings(MethodSettings):
    """It has no numeric settings, in the paper's table or in the official repository."""

    mask: Literal["absent", "official"] = setting(
        "absent",
        help="mask all classes absent from the batch; official (as in the code): all but the "
        "highest class seen so far",
    )
    head: Literal["cosine", "linear"] = setting(
        "cosine", help="logits 10 · cos(features, weights) without bias (official), or linear"
    )


class ERACE(Finetune):
    """Asymmetric cross-entropy: incoming rows use the classes of their batch, replayed rows all.

    Equation: L = CE(h(x) restricted to the classes of B_s, y) + CE(h(x'), y'), (x', y') ~ memory;
    the sum of two means. h(x)_c = 10 · cos(f(x), w_c).
    Paper: Caccia et al., "New Insights on Reducing Abrupt Representation Change in Online Continual
    Learning", ICLR 2022.

    The paper's table has no default, because the method has no numeric settings. It was designed
    for classes that arrive one after another. Here every domain usually has all classes, and so
    does a batch much larger than C ln C: then nothing is masked, and with a linear head ER-ACE is
    ER up to the weight of the replayed rows (sum of means, not pooled) and a uniform memory. It
    differs if batches miss classes, as with many classes or few rows. Readings: the head is the
    cosine head that the official code uses for ER-ACE but not for ER, and that Mammoth uses for
    ER-ACE by default (`head=linear` keeps the network's own, as in the other methods); exactly the
    absent classes are masked (`mask=official` spares the highest class seen so far, an artefact of
    how the code treats unseen classes); masking and replay start with the second domain, which is
    Mammoth's default. The memory is a reservoir over the stream, so it also contains rows of the
    current domain. The two terms run in separate passes.
    """

    name = "er-ace"
    needs_classes = True
    group = "replay"
    results_version = 3
    reference = "Caccia et al., ICLR 2022, arXiv:2104.05025"
    weighs_rows = False
    grows = False
    Settings: ClassVar[type[MethodSettings]] = ERACESettings
    settings: ERACESettings
    remembers = ("highest",)
    replay = Replay(memory="reservoir", joined=False, draws=("replay",))

    def prepare(self, network: Network) -> Network:
        """Replace the classifier by a cosine head, unless the linear one is kept."""
        if self.settings.head == "cosine":
            width, classes = network.feature_dim, network.classes
            network.classifier = CosineHead(width, classes, scale=COSINE_SCALE)
        return network

    def setup(self) -> None:
        """Start with no class seen."""
        self.highest = torch.zeros((), dtype=torch.long, device=self.device)

    def terms(self, batch: Batch) -> Terms:
        """`erm` on the incoming rows, masked from the second domain on, and `replay`."""
        torch.maximum(self.highest, batch.labels.max(), out=self.highest)
        _, logits = self.forward(batch)
        if "replay" not in batch.draws:
            return {"erm": self.risk(logits, batch.labels)}
        spared = self.highest if self.settings.mask == "official" else None
        masked = mask_absent(logits, batch.labels, spared)
        draw = batch.draws["replay"]
        replay = self.risk(self.network(draw.inputs), draw.labels)
        return {"erm": self.risk(masked, batch.labels), "replay": replay}


def mask_absent(logits: Tensor, labels: Tensor, spared_from: Tensor | None = None) -> Tensor:
    """Mask the logits of classes that are not among the labels, except from `spared_from` on."""
    classes = logits.shape[1]
    kept = torch.zeros(classes, dtype=torch.bool, device=logits.device).index_fill_(0, labels, True)
    if spared_from is not None:
        kept |= torch.arange(classes, device=logits.device) >= spared_from
    # A finite value, to avoid NaN; its softmax is 0 anyway.
    return logits.masked_fill(~kept, torch.finfo(logits.dtype).min)


class CosineHead(nn.Module):
    """Maps features f to logits s · cos(f, w_c), without bias: lengths have no influence."""

    def __init__(self, feature_dim: int, classes: int, *, scale: float) -> None:
        super().__init__()
        self.in_features, self.out_features = feature_dim, classes
        self.scale = scale
        # Drawn as the weights of a linear layer.
        self.weight = nn.Parameter(nn.Linear(feature_dim, classes, bias=False).weight.detach())

    def forward(self, features: Tensor) -> Tensor:
        """One logit per class."""
        directions = nn.functional.normalize(features, dim=1)
        return self.scale * (directions @ nn.functional.normalize(self.weight, dim=1).T)
