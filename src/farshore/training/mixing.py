"""C-Mixup: every row of a step lies between itself and a row of its domain with a similar label."""

from dataclasses import replace

import numpy as np
import torch
from scipy.special import betaincinv
from torch import Tensor

from ..base.randomness import Generators
from ..data.batch import Batch, Draw
from ..memory.memory import Fields
from ..settings import RunSettings

# λ is one of so many quantiles of its distribution, all equally likely.
QUANTILES = 4096


class LabelMixing:
    """x̃ = λ x + (1 - λ) x', ỹ = λ y + (1 - λ) y'; λ ~ Beta(α, α), once per step.

    x' is a row of the same domain in the same step, x among them, drawn with a probability
    proportional to exp(-‖y - y'‖² / 2h²). Weights of rows, and the outputs that a memory stored
    with them, are mixed alike.

    Yao et al., "C-Mixup: Improving Generalization in Regression", NeurIPS 2022; partners within a
    batch and one λ per batch, as in the authors' code. Within a domain, because methods compare
    domains; rows of a memory that mixes them are one group. Partners of replayed rows are drawn by
    the memory's generator, so that methods that replay see the same current rows as others.
    """

    def __init__(self, run: RunSettings, generators: Generators) -> None:
        self.bandwidth, self.generators = run.label_bandwidth, generators
        middles = (np.arange(QUANTILES) + 0.5) / QUANTILES
        shares = torch.from_numpy(betaincinv(run.mix_alpha, run.mix_alpha, middles))
        self.shares = shares.float().to(generators.data.device)

    def __call__(self, batch: Batch) -> Batch:
        """The batch with mixed rows; the given one stays as it is."""
        own, device = self.generators.data, self.shares.device
        share = self.shares[torch.randint(QUANTILES, (), generator=own, device=device)]
        flat: Fields = {"inputs": batch.inputs, "labels": batch.labels}
        if batch.weights is not None:
            flat["weights"] = batch.weights
        parts = [self.mixed({name: batch.current(of) for name, of in flat.items()}, share, own)]
        stored: Fields = {}
        if batch.replayed:
            past = {name: batch.replay(of) for name, of in flat.items()}
            parts.append(self.mixed({**past, **batch.stored}, share, self.generators.memory))
            stored = {name: parts[1][name] for name in batch.stored}
        joined = {name: torch.cat([part[name].flatten(0, 1) for part in parts]) for name in flat}
        draws = {name: self._draw(draw, share) for name, draw in batch.draws.items()}
        mixed = replace(batch, inputs=joined["inputs"], labels=joined["labels"])
        mixed.weights, mixed.stored, mixed.draws = joined.get("weights"), stored, draws
        return mixed

    def _draw(self, draw: Draw, share: Tensor) -> Draw:
        rows = {"inputs": draw.inputs, "labels": draw.labels, **draw.stored}
        apart = len(draw.domains) > 0
        grouped = {name: of if apart else of[None] for name, of in rows.items()}
        mixed = self.mixed(grouped, share, self.generators.memory)
        rows = {name: of if apart else of[0] for name, of in mixed.items()}
        return Draw(rows.pop("inputs"), rows.pop("labels"), rows, draw.domains)

    def mixed(self, rows: Fields, share: Tensor, generator: torch.Generator) -> Fields:
        """Rows [E, n, ...] of E groups, each mixed with one of its group."""
        labels = rows["labels"]
        apart = (labels[:, :, None] - labels[:, None]).square().sum(dim=3)
        uniform = torch.rand(apart.shape, generator=generator, device=labels.device)
        # The largest of log probabilities plus Gumbel noise is a draw; nothing waits for it.
        chances = apart / (-2 * self.bandwidth**2) - (-uniform.log()).log()
        partners = chances.argmax(dim=2)
        groups = torch.arange(len(labels), device=labels.device)[:, None]
        return {name: between(of, of[groups, partners], share) for name, of in rows.items()}


def between(one: Tensor, other: Tensor, share: Tensor) -> Tensor:
    """λ one + (1 - λ) other; images stay whole numbers."""
    mixed = share * one + (1 - share) * other
    return mixed if one.is_floating_point() else mixed.round().to(one.dtype)
