"""What EvoS adds to a network: attention over past statistics, a critic, and a standardisation."""

import torch
from torch import Tensor, nn

EPS = 1e-6
# Of more past domains, the newest are attended to, and as many drawn ones are the adversary's.
MOST_PAST = 64


class Standardised(nn.Module):
    """A classifier of (f - μ) / (σ + ε); μ and log σ are written by the method, not trained."""

    mean: Tensor
    log_std: Tensor

    def __init__(self, classifier: nn.Module, width: int) -> None:
        super().__init__()
        self.classifier = classifier
        self.in_features = width
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("log_std", torch.zeros(width))

    @property
    def out_features(self) -> int:
        """The number of logits."""
        return int(self.classifier.out_features)  # type: ignore[arg-type]

    @torch.no_grad()
    def place(self, statistic: Tensor) -> None:
        """Standardise by this statistic from now on; written in place."""
        mean, log_std = statistic.chunk(2)
        self.mean.copy_(mean)
        self.log_std.copy_(log_std)

    def forward(self, features: Tensor) -> Tensor:
        """One logit per class."""
        return self.classifier((features - self.mean) / (self.log_std.exp() + EPS))


class Attention(nn.Module):
    """Multi-head self-attention among rows [n, width], without a bias before the heads."""

    def __init__(self, width: int, heads: int, head_dim: int) -> None:
        super().__init__()
        self.heads, self.head_dim = heads, head_dim
        self.inputs = nn.Linear(width, 3 * heads * head_dim, bias=False)
        self.outputs = nn.Linear(heads * head_dim, width)

    def forward(self, rows: Tensor) -> Tensor:
        """The attended rows, [n, width]."""
        split = self.inputs(rows).view(len(rows), 3, self.heads, self.head_dim)
        queries, keys, values = split.permute(1, 2, 0, 3)  # [heads, n, head_dim] each
        shares = (queries @ keys.transpose(1, 2) * self.head_dim**-0.5).softmax(dim=2)
        return self.outputs((shares @ values).transpose(0, 1).flatten(1))


class Evolution(nn.Module):
    """G: the statistic of the next domain from those of the past ones."""

    def __init__(self, features: int, scales: int, heads: int, head_dim: int, critic: int) -> None:
        super().__init__()
        self.first = nn.Parameter(torch.zeros(2, 2 * features))  # s_0 and s_1
        sizes = range(1, scales + 1)
        made = (Attention(k * 2 * features, k * heads, head_dim) for k in sizes)
        self.attention = nn.ModuleList(made)
        # D: one logit (1: past, 0: current).
        parts: list[nn.Module] = []
        for inputs in (features, critic):
            parts += [nn.Linear(inputs, critic), nn.BatchNorm1d(critic), nn.ReLU()]
        self.critic = nn.Sequential(*parts, nn.Linear(critic, 1))

    def forward(self, past: Tensor) -> tuple[Tensor, Tensor | None]:
        """s_t [2d] after t past statistics [t, 2d], and the consistency term, if there is one."""
        past = past[-MOST_PAST:]
        known = len(past)
        if known < 2:
            return self.first[known], None
        generated, distances = [], []
        for length, attend in enumerate(self.attention, start=1):
            if length > 1 and known <= length:
                break
            windows = past.unfold(0, length, 1).transpose(1, 2).flatten(1)  # oldest first
            parts = attend(windows).mean(dim=0).view(length, -1)
            generated.append(parts[-1])
            if length > 1:
                before = past[known - length + 1 :]
                distances.append((before - parts[:-1]).norm(dim=1).mean())
        consistency = torch.stack(distances).sum() if distances else None
        return torch.stack(generated).mean(dim=0), consistency
