"""CoTTA: a student learns from a slow teacher; weights are occasionally reset to the source."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.optim import Adam

from ..data.inputs import Inputs
from ..networks.network import Network
from ..settings import setting
from . import adaptation
from .augmentation import as_unit, augment, in_unit_range, jitter_columns

# How the authors chose a threshold: a quantile of the confidence on source rows, less a margin.
CONFIDENCE_QUANTILE, CONFIDENCE_MARGIN = 0.05, 0.05


class CoTTASettings(adaptation.AdaptationSettings):
    """The official repository's values for CIFAR-10-C; not searched. Its threshold, 0.92, belongs
    to its source model, so by default the threshold is computed as the authors computed theirs.
    """

    adaptation_rate: float = setting(1e-3, ge=0, help="learning rate of Adam at the target")
    adaptation_batch: int = setting(200, ge=1, help="target rows per step")
    teacher_decay: float = setting(
        0.999, ge=0, le=1, help="α, how slowly the teacher follows the student"
    )
    restore_probability: float = setting(
        0.01,
        ge=0,
        le=1,
        help="p_rst, probability per step that a weight returns to its source value",
    )
    augmentations: int = setting(
        32, ge=1, help="N, augmented copies over which the teacher is averaged (images only)"
    )
    confidence_threshold: Annotated[float, Field(ge=0, le=1)] | Literal["source"] = setting(
        "source",
        help="p_th: below this confidence of the source model the teacher is averaged over copies; "
        "source: the 5% quantile on validation rows of the last source, minus 0.05",
    )
    averaged: Literal["rows", "batch"] = setting(
        "rows",
        help="which predictions are averaged: of each row below p_th (the authors' text), or of "
        "all rows of a batch whose mean confidence is below p_th (their code)",
    )
    table_noise: float = setting(
        0.1, ge=0, help="augmented tables: noise in standard deviations of each column of the batch"
    )
    flips: bool = setting(
        False, help="also mirror images; not suitable for digits and other oriented objects"
    )


class CoTTA(adaptation.Adaptation):
    """Train a student towards the predictions of a teacher, a moving average of the student.

    Equation: per batch, z_t = teacher(x), or, for rows x on which the frozen source model's
    confidence max_c p_c is below p_th, the mean of the teacher's logits over N augmented copies of
    the batch; z_t is the prediction. The student takes an Adam step on
    mean_i -Σ_c softmax(z_t)_c log softmax(z_s)_c; then teacher <- α · teacher + (1 - α) · student;
    then each weight of the student is reset to its source value with probability p_rst. All
    parameters move; BatchNorm normalises by the current batch.
    Paper: Wang, Fink, Van Gool, Dai, "Continual Test-Time Domain Adaptation", CVPR 2022.

    Online: each row is predicted once. Readings: the authors compute p_th as the 5% quantile of the
    source model's confidence on source images, minus 0.05 (as they explain in thread 16 of
    github.com/qinenergy/cotta), and filter images by it; their code compares the mean of a batch
    with it (`averaged=batch`). Here rows are compared with a quantile of rows: the mean of a batch
    is below it only if the source model is very confident, and otherwise nothing would ever be
    averaged. The source rows are validation rows of the source learned last (of all sources, if
    they were learned jointly): the model is less sure of sources that it has forgotten than of the
    target. The loss is the asymmetric one of the CIFAR experiments. Copies of a table are its rows
    with noise; images with values outside [0, 1] are not augmented. Batch sizes differ by at most
    one row. With α = 0.999 the teacher hardly moves within a few dozen batches, so the result is
    close to the source model with averaged copies.
    """

    name = "cotta"
    results_version = 2
    reference = "Wang et al., CVPR 2022, arXiv:2203.13591"
    measure = adaptation.ONLINE
    Settings = CoTTASettings
    settings: CoTTASettings

    student: Network
    teacher: Network
    anchor: Network

    def __init__(self, settings: adaptation.AdaptationSettings) -> None:
        super().__init__(settings)
        threshold = self.settings.confidence_threshold
        self.threshold = 0.0 if threshold == "source" else float(threshold)
        # Rows whose prediction was averaged over augmented copies, and batches with such rows.
        self.averaged_rows = self.averaged_batches = 0

    def prepare(self, network: Network, sources: Sequence[Inputs]) -> None:
        """Set p_th from the source model's confidence on rows of the source that it fits."""
        if self.settings.confidence_threshold != "source":
            return
        filled = [inputs for inputs in sources if len(inputs)]
        fitted = filled if self.settings.source == "joint" else filled[-1:]
        shares = (adaptation.predict(network, inputs).softmax(dim=1) for inputs in fitted)
        confidence = torch.cat([of_batch.amax(dim=1) for of_batch in shares])
        quantile = float(confidence.double().cpu().quantile(CONFIDENCE_QUANTILE))
        self.threshold = max(0.0, quantile - CONFIDENCE_MARGIN)

    def adapt(self, network: Network, target: Inputs, generator: torch.Generator) -> Tensor:
        """Adapt in one pass over the target."""
        network.eval().requires_grad_(False)
        self.teacher, self.anchor = deepcopy(network), deepcopy(network)
        self.student = network.requires_grad_(True)
        optimizer = Adam(self.student.parameters(), lr=self.settings.adaptation_rate, fused=True)
        parts = []
        for inputs in target.batches(self.settings.adaptation_batch):
            parts.append(self.teach(inputs, optimizer, generator))
            self.follow()
            self.restore(generator)
        logits = torch.cat(parts)
        self.notes += adaptation.note_collapse(logits)
        self.notes.append(
            f"teacher averaged over augmented copies in {self.averaged_batches} of {len(parts)} "
            f"batches, {self.averaged_rows} of {len(logits)} rows, threshold {self.threshold:.4f}"
        )
        return logits

    def teach(self, inputs: Tensor, optimizer: Adam, generator: torch.Generator) -> Tensor:
        """Train the student by one step towards the teacher's logits, and return these logits."""
        with torch.no_grad():
            lesson = self.lesson(inputs, generator)
        with adaptation.batch_statistics(self.student, len(inputs)):
            logits = self.student(inputs)
        optimizer.zero_grad(set_to_none=True)
        consistency(logits, lesson).backward()
        optimizer.step()
        return lesson.float()

    def lesson(self, inputs: Tensor, generator: torch.Generator) -> Tensor:
        """The teacher's logits, over augmented copies where the source model is not confident."""
        with adaptation.batch_statistics(self.anchor, len(inputs)):
            confidence = self.anchor(inputs).softmax(dim=1).amax(dim=1)
        if self.settings.averaged == "batch":
            confidence = confidence.mean().expand(len(inputs))
        unsure = confidence < self.threshold
        with adaptation.batch_statistics(self.teacher, len(inputs)):
            logits: Tensor = self.teacher(inputs)
            # This waits for the device once per batch, which is cheaper than N unnecessary forward
            # passes.
            rows = int(unsure.sum())
            if rows == 0 or not self.augments(inputs):
                return logits
            self.averaged_rows += rows
            self.averaged_batches += 1
            copies = self.settings.augmentations
            total = torch.zeros_like(logits)
            for _ in range(copies):
                # Copies of the whole batch, so that BatchNorm sees the same rows as without them.
                total += self.teacher(self.copied(inputs, generator))
            return torch.where(unsure[:, None], total / copies, logits)

    def augments(self, inputs: Tensor) -> bool:
        """Whether these inputs have augmented copies: images in [0, 1], and tables."""
        return in_unit_range(inputs) or (inputs.ndim == 2 and self.settings.table_noise > 0)

    def copied(self, inputs: Tensor, generator: torch.Generator) -> Tensor:
        """One augmented copy of the batch."""
        if inputs.ndim == 4:
            return augment(as_unit(inputs), generator, flips=self.settings.flips)
        return jitter_columns(inputs, self.settings.table_noise, generator)

    @torch.no_grad()
    def follow(self) -> None:
        """Move the teacher's parameters slightly towards the student's."""
        decay = self.settings.teacher_decay
        for slow, fast in zip(self.teacher.parameters(), self.student.parameters(), strict=True):
            slow.mul_(decay).add_(fast, alpha=1 - decay)

    @torch.no_grad()
    def restore(self, generator: torch.Generator) -> None:
        """Reset each scalar of the student to its source value with probability p_rst."""
        for weight, source in zip(self.student.parameters(), self.anchor.parameters(), strict=True):
            drawn = torch.rand(weight.shape, generator=generator, device=weight.device)
            chosen = drawn < self.settings.restore_probability
            weight.copy_(torch.where(chosen, source, weight))


def consistency(logits: Tensor, lesson: Tensor) -> Tensor:
    """Mean cross-entropy of the student's logits against the teacher's probabilities."""
    return -(lesson.softmax(dim=1) * logits.log_softmax(dim=1)).sum(dim=1).mean()
