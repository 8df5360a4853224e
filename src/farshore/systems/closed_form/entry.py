"""ClosedForm: what the closed-form learners have in common."""

from abc import abstractmethod
from typing import ClassVar, Literal

import torch

from ...entry import Entry
from ...settings import Choice, MethodSettings, setting
from ...tasks.classification import CLASSIFICATION
from ...tasks.task import Task
from .head import Head
from .sums import DomainSums, Level

TUNING_ONLY = "used by first_domain_tuning alone"


class ClosedFormSettings(MethodSettings):
    """`features` and `first_domain_tuning` are ours; the rest is for the tuning alone."""

    learning_rate: float = setting(1e-3, gt=0, help=f"step size of the optimiser; {TUNING_ONLY}")
    weight_decay: float = setting(0.0, ge=0, help=f"weight decay of the optimiser; {TUNING_ONLY}")
    batch_size: int = setting(64, ge=1, le=2**20, help=f"rows per step; {TUNING_ONLY}")
    features: Literal["auto", "inputs", "network"] = setting(
        "auto",
        Choice(("inputs", "network")),
        help="inputs: the scaled columns or the pixels (averaged over squares if an image has more "
        "than 1,024 values); network: the features of the network at its initial weights; auto: "
        "inputs, but network for images if it is pretrained or your own",
    )
    first_domain_tuning: bool = setting(
        False, help="train the network on the first domain, then freeze it and use its features"
    )


class ClosedForm(Entry):
    """Base of all learners whose head follows from sums. A subclass computes the head."""

    group = "closed-form"
    system = "closed-form"
    weighs_rows = True
    grows = True
    Settings: ClassVar[type[MethodSettings]] = ClosedFormSettings
    # What is summed, and the type in which the products of one batch of rows are computed.
    level: ClassVar[Level] = "products"
    product_type: ClassVar[torch.dtype] = torch.float64

    def __init__(self, settings: MethodSettings) -> None:
        self.settings = settings
        # What a label is; set by the system.
        self.task: Task = CLASSIFICATION

    def projection(self, features: int) -> int:
        """The width of the random projection of that many features; 0 if there is none."""
        return 0

    @abstractmethod
    def fit(self, domains: DomainSums) -> Head:
        """The head for the sums of these domains, at least one. Their order has no influence."""
