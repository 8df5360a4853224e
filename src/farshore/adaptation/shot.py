"""SHOT++: fit the features to the source classifier, then learn from the most confident rows."""

from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import SGD, Optimizer

from ..base.randomness import seeded
from ..data.inputs import Inputs
from ..networks.network import Network
from ..settings import setting
from . import adaptation
from .augmentation import as_unit, quarter_turns, shift

TURNS = 4
FLOOR = 1e-5  # inside the logarithms of the information maximisation, as in the official code
# Labelling transfer in the official code, for all data sets: the factor of the features' learning
# rate, the temperature T for sharpening guesses, and the weight of the unlabelled rows at the end
# of its linear ramp.
LABELLING_FEATURE_RATE = 0.1
TEMPERATURE = 0.5
UNLABELLED_WEIGHT = 100.0
# How often pseudo-labels are taken from the nearest centroid.
ROUNDS = 2


class SHOTPPSettings(adaptation.AdaptationSettings):
    """The official repository's values: for digits by default, for objects with large data; not
    searched.
    """

    adaptation_rate: float = setting(
        1e-2, ge=0, help="first rate per stage of SGD (momentum 0.9, Nesterov, weight decay 1e-3)"
    )
    feature_rate: float = setting(
        1.0, ge=0, help="factor on the features' learning rate in hypothesis transfer"
    )
    adaptation_batch: int = setting(64, ge=2, help="target rows per step of hypothesis transfer")
    hypothesis_epochs: int = setting(
        15, ge=0, help="passes over the target in hypothesis transfer and for the rotation head"
    )
    pseudo_label_weight: float = setting(
        0.1, ge=0, help="weight of the cross-entropy to the pseudo-labels"
    )
    rotation_weight: float = setting(
        0.2, ge=0, help="weight of predicting quarter turns (square images only); 0 disables it"
    )
    labelling_epochs: int = setting(
        30, ge=0, help="passes over the target in labelling transfer; 0 disables it"
    )
    labelling_batch: int = setting(
        36, ge=2, help="labelled rows, and unlabelled rows, per step of labelling transfer"
    )
    labelling_classifier: Literal["source", "fresh"] = setting(
        "source", help="labelling transfer starts from the source classifier, or a fresh one"
    )
    mixup: float = setting(0.1, gt=0, help="α of the Beta distribution of mixing weights")
    stage_steps: int | None = setting(
        None, gt=0, help="maximum number of steps in each stage, regardless of the epochs"
    )
    flips: bool = setting(
        False, help="also mirror images; not suitable for digits and other oriented objects"
    )
    table_noise: float = setting(
        0.0, ge=0, help="noise on views of tabular rows, in standard deviations of each column"
    )


class SHOTPP(adaptation.Adaptation):
    """Hypothesis transfer, then labelling transfer.

    In hypothesis transfer the source classifier g is fixed while the features adapt to it.

    Equation: (1) square images: a linear head R learns from [f(x), f(x turned)] by how many quarter
    turns x was turned, f fixed. (2) g fixed, each step on f and R: mean_i H(p_i) - H(mean_i p_i) +
    w_cls · CE(h(x), ŷ) + w_rot · CE(R([f(x), f(x turned)]), turns), f(x) constant in the last term;
    ŷ are nearest-centroid labels, recomputed every epoch. (3) MixMatch on f and g: rows of low
    entropy count as labelled with their predicted class; guesses for the others are the sharpened
    mean over two views; all are mixed.
    Paper: Liang, Hu, Wang, He, Feng, "Source Data-absent Unsupervised Domain Adaptation through
    Hypothesis Transfer and Labeling Transfer", TPAMI 2021.

    Scored after adaptation, by the final model, on the rows that it adapted to. Learning rates
    decay as (1 + 10 t/T)^-0.75 in each stage.
    Readings: our networks have no bottleneck, so f is everything before the linear classifier, and
    the source model is the usual one, without label smoothing. Stage 3 starts from the source
    classifier (`labelling_classifier=fresh` is the repository's), an epoch of it has as many
    batches as the target fills, and one joint pass replaces the interleaving of batches for
    BatchNorm. Labels of the confident rows are predictions (the repository's digits code uses true
    labels there by mistake). Views are small shifts, of images only. If domains are rotations, a
    quarter turn changes the domain: `rotation_weight=0` disables the rotation task. Dropout is off.
    """

    name = "shot++"
    reference = "Liang et al., TPAMI 2021, arXiv:2012.07297"
    measure = adaptation.AFTERWARDS
    Settings = SHOTPPSettings
    settings: SHOTPPSettings

    def adapt(self, network: Network, target: Inputs, generator: torch.Generator) -> Tensor:
        """Run the three stages, then predict the whole target."""
        network.eval().requires_grad_(False)
        if len(target) > 1:  # one row cannot be clustered or split by confidence
            self.hypothesis_transfer(network, target, generator)
            self.labelling_transfer(network, target, generator)
        logits = adaptation.predict(network, target)
        self.notes += adaptation.note_collapse(logits)
        return logits

    # ---- stages 1 and 2 --------------------------------------------------------------------------

    def hypothesis_transfer(
        self, network: Network, target: Inputs, generator: torch.Generator
    ) -> None:
        """Fit the features to the classifier, which is not changed."""
        settings = self.settings
        batches, steps = self._plan(
            len(target), settings.adaptation_batch, settings.hypothesis_epochs
        )
        if steps == 0:
            return
        square = len(target.shape) == 3 and target.shape[1] == target.shape[2]
        predicts_turns = settings.rotation_weight > 0 and square
        head = self.rotation_head(network, target, generator) if predicts_turns else None
        network.features.requires_grad_(True)
        rate = settings.adaptation_rate
        optimizer = descent((network.features, rate * settings.feature_rate), (head, rate))
        labels = torch.empty(0)
        for step, rows in enumerate(epochs(len(target), batches, steps, generator)):
            if step % batches == 0:
                labels = self.label(network, target)
            decay(optimizer, step / steps)
            self._transfer_step(
                network, head, optimizer, target.take(rows), labels[rows], generator
            )
        network.features.requires_grad_(False)
        network.eval()

    def label(self, network: Network, target: Inputs) -> Tensor:
        """Pseudo-labels of all target rows by the current model, in evaluation mode."""
        features = extract(network, target)
        with torch.no_grad():
            return pseudo_labels(features, network.classifier(features).softmax(dim=1))

    def _transfer_step(
        self,
        network: Network,
        head: nn.Linear | None,
        optimizer: Optimizer,
        inputs: Tensor,
        labels: Tensor,
        generator: torch.Generator,
    ) -> None:
        if len(inputs) < 2:  # as in the official code: one row has no diversity
            return
        # Evaluation mode with BatchNorm in training mode: its statistics adapt too, dropout is
        # off.
        with network.batchnorm("train"):
            features = network.extract(inputs)
            logits = network.classifier(features)
            pseudo = self.settings.pseudo_label_weight * functional.cross_entropy(logits, labels)
            loss = information(logits.softmax(dim=1)) + pseudo
            if head is not None:
                turns = draw(TURNS, len(inputs), generator)
                turned = network.extract(quarter_turns(inputs, turns))
                guess = head(torch.cat([features.detach(), turned], dim=1))
                weight = self.settings.rotation_weight
                loss = loss + weight * functional.cross_entropy(guess, turns)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    def rotation_head(
        self, network: Network, target: Inputs, generator: torch.Generator
    ) -> nn.Linear:
        """Train R on fixed features, which are computed only once for each quarter turn."""
        settings = self.settings
        with seeded(generator):
            head = nn.Linear(2 * network.feature_dim, TURNS)
        head.to(generator.device)
        features = torch.stack([extract(network, target, turns=turns) for turns in range(TURNS)])
        optimizer = descent((head, settings.adaptation_rate))
        batches, steps = self._plan(
            len(target), settings.adaptation_batch, settings.hypothesis_epochs
        )
        for step, rows in enumerate(epochs(len(target), batches, steps, generator)):
            decay(optimizer, step / steps)
            turns = draw(TURNS, len(rows), generator)
            optimizer.zero_grad(set_to_none=True)
            logits = head(torch.cat([features[0, rows], features[turns, rows]], dim=1))
            functional.cross_entropy(logits, turns).backward()
            optimizer.step()
        return head

    # ---- stage 3 ---------------------------------------------------------------------------------

    def labelling_transfer(
        self, network: Network, target: Inputs, generator: torch.Generator
    ) -> None:
        """Run MixMatch, with the most confident rows of each predicted class as labelled rows."""
        settings = self.settings
        _, steps = self._plan(len(target), settings.labelling_batch, settings.labelling_epochs)
        if steps == 0:
            return
        logits = adaptation.predict(network, target)
        predicted = logits.argmax(dim=1)
        confident = confident_rows(adaptation.entropy(logits), predicted)
        labelled, unlabelled = confident.nonzero()[:, 0], (~confident).nonzero()[:, 0]
        if len(labelled) == 0:
            self.notes.append(
                "labelling transfer skipped: no target rows are more confident than the others"
            )
            return
        if settings.labelling_classifier == "fresh":
            linear = [each for each in network.classifier.modules() if isinstance(each, nn.Linear)]
            with seeded(generator):
                for layer in linear:
                    layer.reset_parameters()
        network.requires_grad_(True)
        rate = settings.adaptation_rate
        slow = rate * LABELLING_FEATURE_RATE
        optimizer = descent((network.features, slow), (network.classifier, rate))
        mixing_seed = torch.randint(2**62, (), generator=generator, device=generator.device)
        mixing_rng = np.random.default_rng(int(mixing_seed))
        view = self._views(target, generator)
        for step in range(steps):
            decay(optimizer, step / steps)
            pools, count = (labelled, unlabelled), settings.labelling_batch
            known, guessed = (pool[draw(len(pool), count, generator)] for pool in pools)
            rows, unlabelled_rows = target.take(known), target.take(guessed)
            inputs = [view(rows), view(unlabelled_rows), view(unlabelled_rows)]
            one_hot = functional.one_hot(predicted[known], logits.shape[1]).float()
            share = float(mixing_rng.beta(settings.mixup, settings.mixup))
            weight = UNLABELLED_WEIGHT * step / steps
            self._mixmatch_step(
                network, optimizer, inputs, one_hot, max(share, 1 - share), weight, generator
            )
        network.requires_grad_(False)
        network.eval()

    def _mixmatch_step(
        self,
        network: Network,
        optimizer: Optimizer,
        inputs: list[Tensor],
        labels: Tensor,
        share: float,
        weight: float,
        generator: torch.Generator,
    ) -> None:
        with network.batchnorm("train"):
            with torch.no_grad(), network.batchnorm("no_update"):
                first, second = (network(views).softmax(dim=1) for views in inputs[1:])
                guesses = sharpen((first + second) / 2, TEMPERATURE)
            targets = torch.cat([labels, guesses, guesses])
            order = torch.randperm(len(targets), generator=generator, device=generator.device)
            mixed, mixed_targets = mix(torch.cat(inputs), targets, share, order)
            loss = mixmatch_loss(network(mixed), mixed_targets, len(labels), weight)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    def _views(self, target: Inputs, generator: torch.Generator) -> Callable[[Tensor], Tensor]:
        """How views of rows are made: images are shifted, other rows get noise if it is set."""
        flips, noise = self.settings.flips, self.settings.table_noise
        if len(target.shape) == 3:
            return lambda rows: shift(as_unit(rows), generator, flips=flips)
        if not noise:
            return lambda rows: rows
        rows = torch.cat(list(target.batches(adaptation.PREDICTION_ROWS)))
        spread = rows.float().std(dim=0) * noise

        def noisy(rows: Tensor) -> Tensor:
            return rows + spread * torch.randn(rows.shape, generator=generator, device=rows.device)

        return noisy

    def _plan(self, rows: int, size: int, passes: int) -> tuple[int, int]:
        """(batches per pass, steps of the stage)."""
        batches = -(-rows // size)
        steps = batches * passes
        most = self.settings.stage_steps
        return batches, steps if most is None else min(steps, most)


def information(probabilities: Tensor) -> Tensor:
    """mean_i H(p_i) - H(mean_i p_i): small if rows are certain and, taken together, diverse."""
    certain = -(probabilities * (probabilities + FLOOR).log()).sum(dim=1).mean()
    mean = probabilities.mean(dim=0)
    return certain + (mean * (mean + FLOOR).log()).sum()


def extract(network: Network, target: Inputs, *, turns: int = 0) -> Tensor:
    """Features of all rows in evaluation mode; images are rotated by `turns` quarter turns."""
    network.eval()
    with torch.no_grad():
        parts = (
            torch.rot90(part, turns, dims=(2, 3)) if turns else part
            for part in target.batches(adaptation.PREDICTION_ROWS)
        )
        return torch.cat([network.extract(part).float() for part in parts])


def descent(*groups: tuple[nn.Module | None, float]) -> SGD:
    """The repository's SGD of modules with their learning rates, stored as `first`, too."""
    used = [(module, rate) for module, rate in groups if module is not None]
    parameters = [{"params": list(of.parameters()), "lr": lr, "first": lr} for of, lr in used]
    return SGD(parameters, momentum=0.9, weight_decay=1e-3, nesterov=True)


def decay_factor(done: float) -> float:
    """(1 + 10 t/T)^-0.75."""
    return float((1 + 10 * done) ** -0.75)


def decay(optimizer: Optimizer, done: float) -> None:
    """Set the learning rates after this fraction of the stage."""
    for group in optimizer.param_groups:
        group["lr"] = group["first"] * decay_factor(done)


def epochs(rows: int, batches: int, steps: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Row indices of each step: a new order per pass, in batches that differ by at most one row."""
    parts: list[Tensor] = []
    for _ in range(steps):
        if not parts:
            order = torch.randperm(rows, generator=generator, device=generator.device)
            parts = list(order.tensor_split(batches))
        yield parts.pop(0)


def draw(pool: int, count: int, generator: torch.Generator) -> Tensor:
    """Draw positions in a pool, uniformly with replacement."""
    return torch.randint(pool, (count,), generator=generator, device=generator.device)


def pseudo_labels(features: Tensor, probabilities: Tensor) -> Tensor:
    """Labels [n] from features [n, D] and predicted probabilities [n, C].

    A 1 is appended to the features, which are then normalised to unit length: g. Centroids are
    c_k = Σ_i p_ik g_i / Σ_i p_ik. The label of a row is the nearest centroid by cosine distance,
    among the classes predicted for at least one row. A second round uses these labels as p.
    """
    longer = torch.cat([features, torch.ones_like(features[:, :1])], dim=1)
    directions = functional.normalize(longer, dim=1)
    classes = probabilities.shape[1]
    allowed = torch.bincount(probabilities.argmax(dim=1), minlength=classes) > 0
    weights = probabilities
    labels = probabilities.argmax(dim=1)
    for _ in range(ROUNDS):
        total = weights.sum(dim=0)
        centroids = (weights.T @ directions) / (1e-8 + total)[:, None]
        similarity = directions @ functional.normalize(centroids, dim=1).T
        # A class that lost all its rows in the first round no longer has a centroid.
        similarity = similarity.masked_fill(~(allowed & (total > 0)), -torch.inf)
        labels = similarity.argmax(dim=1)
        weights = functional.one_hot(labels, classes).to(directions.dtype)
    return labels


# ---- MixMatch, on mixtures of labelled and unlabelled rows ---------------------------------------


def confident_rows(entropies: Tensor, predicted: Tensor) -> Tensor:
    """Which rows count as labelled, [n]: the same share of each predicted class, lowest entropy.

    The share is the fraction of all rows with an entropy below the mean.
    """
    share = float((entropies < entropies.mean()).double().mean())
    chosen = torch.zeros_like(predicted, dtype=torch.bool)
    for label in predicted.unique():
        members = (predicted == label).nonzero()[:, 0]
        by_entropy = members[entropies[members].argsort(stable=True)]
        chosen[by_entropy[: int(share * len(members))]] = True
    return chosen


def sharpen(probabilities: Tensor, temperature: float) -> Tensor:
    """p^(1/T), normalised; T < 1 increases the largest probability."""
    raised = probabilities ** (1 / temperature)
    return raised / raised.sum(dim=1, keepdim=True)


def mix(inputs: Tensor, targets: Tensor, share: float, order: Tensor) -> tuple[Tensor, Tensor]:
    """Mix inputs and targets with those that `order` gives: share · own + (1 - share) · other."""
    mixed, labels = (share * of + (1 - share) * of[order] for of in (inputs, targets))
    return mixed, labels


def mixmatch_loss(logits: Tensor, targets: Tensor, labelled: int, weight: float) -> Tensor:
    """Soft cross-entropy of the first `labelled` rows + weight · squared error of the others.

    The squared error is between probabilities, as a mean over rows and classes.
    """
    supervised = functional.cross_entropy(logits[:labelled], targets[:labelled])
    distance = (logits[labelled:].softmax(dim=1) - targets[labelled:]).square().mean()
    return supervised + weight * distance
