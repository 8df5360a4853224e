"""Construct domains from a stream of rows, without domain or class labels.

The paper names missing domain labels as its first limitation and suggests constructing them. There
are four ways:
- `blocks`: the same number of rows each, in stream order;
- `time`: periods of equal length;
- `drift`: boundaries where the distribution of the inputs changes;
- `cluster`: similar rows, wherever they are in the stream.

Drift: rows are scaled, rotated onto their principal axes and mapped to random Fourier features. A
change of the features' mean is then a change of distribution (the kernel mean embedding behind MMD,
which reflects mean, variance and correlation). Binary segmentation picks the split with the largest
gain in between-segment scatter, as long as it beats every one of a number of permutations of the
same rows by a margin. Finally, each boundary moves to where a linear discriminant between the two
neighbouring segments places it, which is more precise than the difference of means.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from torch import Tensor

from ...errors import FarshoreError

By = Literal["blocks", "time", "drift", "cluster"]
FOUND = "domains were constructed without labels (by {}): {}"
BLOCKS = 4  # default number of domains for `blocks` and `time`
MOST_CLUSTERS = 8
MOST_CLUSTERED = 2000  # rows used to fit the clusters
AXES = 30
FOURIER = 512
KEPT = 64  # principal axes of the Fourier features used to refine a boundary
SEARCHED = 32  # principal axes used to find it
PERMUTATIONS = 60
# A split must gain this many times more than the best split of any permutation. True changes gain
# ten times as much; the margin allows for streams in which neighbouring rows are correlated.
MARGIN = 1.5
FEWEST_ROWS = 20
COARSE = 500  # number of candidate positions in the first search
SCATTER_ROWS = 20_000  # rows used to estimate scales, axes and bandwidth


@dataclass(frozen=True)
class Constructed:
    """The domain number of every row, and a one-line summary."""

    domain: np.ndarray
    note: str

    @property
    def names(self) -> list[str]:
        """Domain names in stream order."""
        return [f"part {number + 1}" for number in range(int(self.domain.max()) + 1)]


def construct(
    inputs: Tensor | np.ndarray,
    by: By,
    *,
    count: int | None = None,
    times: np.ndarray | None = None,
    seed: int = 0,
) -> Constructed:
    """Divide a stream into domains: `count` of them, or as many as are found if it is None.

    `inputs` are in stream order; `times` are needed for `by="time"`.
    """
    rows = len(inputs)
    if count is not None and not 1 <= count <= rows:
        raise FarshoreError(
            f"--domains {count} is not allowed: it should be between 1 and the number of rows "
            f"({rows})"
        )
    if by == "time":
        if times is None:
            raise FarshoreError(
                "--domain-by time needs a time column: add --time COLUMN, or use --domain-by blocks"
            )
        return _periods(times, count or BLOCKS)
    if by == "cluster":
        return _clusters(_embed(inputs, seed)[0], count, seed)
    if by == "blocks":
        ends = np.linspace(0, rows, (count or BLOCKS) + 1).round().astype(int)[1:-1].tolist()
    else:
        ends = _drift(_embed(inputs, seed)[1], count, seed)
    at = f", boundaries at rows {', '.join(map(str, ends))} of {rows}"
    location = at if ends else f" in {rows} rows"
    domain = np.searchsorted(np.array(ends, dtype=int), np.arange(rows), side="right")
    return Constructed(domain, FOUND.format(by, f"{len(ends) + 1} found{location}"))


def join_small(constructed: Constructed, labels: np.ndarray) -> Constructed:
    """Join domains that are too small to learn, with fewer than 2 rows or classes, to a neighbour.

    The neighbour is the previous domain; for the first domain, the next one.
    """
    domain, joined = constructed.domain.copy(), 0
    while (last := int(domain.max())) > 0:
        parts = [labels[domain == number] for number in range(last + 1)]
        small = [at for at, part in enumerate(parts) if len(pd.unique(part)) < 2 or len(part) < 2]
        if not small:
            break
        number = small[-1]
        domain[domain == number] = number - 1 if number else 1
        domain[domain > number] -= 1
        joined += 1
    what = f"{joined} of them with one class or one row were joined to a neighbour"
    extra = f"; {what}, {int(domain.max()) + 1} remain" if joined else ""
    return Constructed(domain, constructed.note + extra)


def _periods(times: np.ndarray, count: int) -> Constructed:
    edges = np.linspace(times.min(), times.max(), count + 1)[1:-1]
    used, domain = np.unique(np.searchsorted(edges, times, side="right"), return_inverse=True)
    sizes = ", ".join(map(str, np.bincount(domain).tolist()))
    found = f"{len(used)} periods of equal length with {sizes} rows"
    return Constructed(domain, FOUND.format("time", found))


def _clusters(axes: np.ndarray, count: int | None, seed: int) -> Constructed:
    """Cluster with k-means on the principal axes; the silhouette score chooses the number.

    Clusters are numbered by the median position of their rows in the stream.
    """
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    sample = axes[np.linspace(0, len(axes) - 1, min(len(axes), MOST_CLUSTERED)).astype(int)]
    fits = {}
    for k in [count] if count is not None else range(2, min(MOST_CLUSTERS, len(sample) - 1) + 1):
        model = KMeans(k, n_init=4, random_state=seed).fit(sample)
        several = 1 < len(set(model.labels_.tolist())) < len(sample)
        fits[silhouette_score(sample, model.labels_) if several else -1.0] = model
    if not fits:
        return Constructed(np.zeros(len(axes), dtype=int), FOUND.format("cluster", "1 found"))
    label = fits[max(fits)].predict(axes)
    middle = {each: float(np.median(np.flatnonzero(label == each))) for each in np.unique(label)}
    number = {each: order for order, each in enumerate(sorted(middle, key=middle.__getitem__))}
    domain = np.array([number[cluster] for cluster in label])
    sizes = ", ".join(map(str, np.bincount(domain).tolist()))
    return Constructed(domain, FOUND.format("cluster", f"{len(number)} found with {sizes} rows"))


def _embed(inputs: Tensor | np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return principal axes [n, q] and random Fourier features [n, D] of the rows.

    Both are in single precision and computed in chunks.
    """
    rng = np.random.default_rng(seed)
    rows = len(inputs)
    sample = _flatten(inputs, np.linspace(0, rows - 1, min(rows, SCATTER_ROWS)).astype(int))
    centre, scale = np.median(sample, axis=0), sample.std(axis=0)
    varies = scale > 1e-9 * max(1.0, float(scale.max()))
    if not varies.any():
        return np.zeros((rows, 1), np.float32), np.zeros((rows, 1), np.float32)

    def scaled(values: np.ndarray) -> np.ndarray:
        return np.clip((values[:, varies] - centre[varies]) / scale[varies], -5, 5)

    scaled_sample = scaled(sample)
    mean = scaled_sample.mean(axis=0)
    covariance = np.cov(scaled_sample - mean, rowvar=False).reshape(scaled_sample.shape[1], -1)
    _, vectors = np.linalg.eigh(covariance)
    rotation = vectors[:, ::-1][:, :AXES]
    parts = np.array_split(np.arange(rows), -(-rows // SCATTER_ROWS))
    centred = (scaled(_flatten(inputs, part)) - mean for part in parts)
    axes = np.concatenate([(part @ rotation).astype(np.float32) for part in centred])
    pairs = rng.integers(rows, size=(2, 2000))
    distances = np.sqrt(((axes[pairs[0]] - axes[pairs[1]]) ** 2).sum(axis=1))
    positive = distances > 0
    bandwidth = float(np.median(distances[positive])) if positive.any() else 1.0
    frequencies = rng.standard_normal((axes.shape[1], FOURIER // 2)) / bandwidth
    waves = axes @ frequencies.astype(np.float32)
    fourier = np.concatenate([np.cos(waves), np.sin(waves)], axis=1)
    fourier -= fourier.mean(axis=0)
    _, vectors = np.linalg.eigh(fourier.T @ fourier)
    return axes, fourier @ vectors[:, ::-1][:, :KEPT]


def _flatten(inputs: Tensor | np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return rows as vectors; large images are averaged down to 16 x 16 pixels.

    Drift does not show in single pixels, so the average loses nothing that matters.
    """
    values = inputs[rows].numpy() if isinstance(inputs, Tensor) else np.asarray(inputs[rows])
    if values.ndim == 4 and min(values.shape[-2:]) >= 32:
        high, wide = values.shape[-2] // 16, values.shape[-1] // 16
        cropped = values[..., : 16 * high, : 16 * wide].astype(np.float32)
        values = cropped.reshape(*values.shape[:2], 16, high, 16, wide).mean(axis=(3, 5))
    return values.reshape(len(values), -1).astype(np.float64)


def _drift(features: np.ndarray, count: int | None, seed: int) -> list[int]:
    rows = len(features)
    block = max(1, -(-rows // COARSE))
    starts = np.arange(0, rows, block)
    searched = features[:, :SEARCHED].astype(np.float64)
    # Scale halfway to equal variance: a change of correlation shows in low-variance axes.
    variance = searched.var(axis=0)
    sums = np.add.reduceat(searched / np.sqrt(variance + variance.mean() + 1e-12), starts, axis=0)
    least = max(2, -(-max(FEWEST_ROWS, rows // 50) // block))
    rng = np.random.default_rng(seed)
    splits_found: list[int] = []
    segments = [(0, len(starts))]
    while segments and (count is None or len(splits_found) < count - 1):
        splits = [(*_best_split(sums[a:b], least), a, b) for a, b in segments if b - a >= 2 * least]
        if not splits:
            break
        if count is None:  # split each segment whose best split beats chance

            def by_chance(part: np.ndarray) -> float:
                """The best gain over random permutations of the same sums."""
                orders = (rng.permutation(part) for _ in range(PERMUTATIONS))
                return max(_best_split(order, least)[0] for order in orders)

            splits = [of for of in splits if of[0] > MARGIN * by_chance(sums[of[2] : of[3]])]
            splits_found += [a + at for _, at, a, _ in splits]
            segments = [part for _, at, a, b in splits for part in ((a, a + at), (a + at, b))]
        else:  # take the best split overall until there are enough
            _, at, a, b = max(splits)
            splits_found.append(a + at)
            segments = [part for part in segments if part != (a, b)] + [(a, a + at), (a + at, b)]
    return _refine(features, [int(starts[at]) for at in sorted(splits_found)])


def _best_split(sums: np.ndarray, least: int) -> tuple[float, int]:
    """Return the largest gain in between-segment scatter and the split that has it."""
    total = sums.cumsum(axis=0)
    at = np.arange(least, len(sums) - least + 1)
    left = total[at - 1]
    before, after = (left**2).sum(axis=1) / at, ((total[-1] - left) ** 2).sum(axis=1)
    gains = before + after / (len(sums) - at) - (total[-1] ** 2).sum() / len(sums)
    best = int(gains.argmax())
    return float(gains[best]), int(at[best])


def _refine(
    features: np.ndarray, ends: list[int], rounds: int = 3, ridge: float = 0.1
) -> list[int]:
    """Move each boundary to the best cut by a linear discriminant of its two segments."""
    edges = [0, *ends, len(features)]
    for _ in range(rounds if ends else 0):
        for number in range(1, len(edges) - 1):
            low, middle, high = edges[number - 1 : number + 2]
            # Rows next to the boundary may be on the wrong side of it, so the discriminant is not
            # fitted to them.
            left = features[low : max(low + 2, middle - (middle - low) // 10)].astype(np.float64)
            right = features[min(high - 2, middle + (high - middle) // 10) : high].astype(
                np.float64
            )
            scatter = sum(np.cov(side, rowvar=False) * len(side) for side in (left, right))
            scatter = np.atleast_2d(scatter / (len(left) + len(right)))
            scatter += (ridge * np.trace(scatter) / len(scatter) + 1e-12) * np.eye(len(scatter))
            direction = np.linalg.solve(scatter, left.mean(axis=0) - right.mean(axis=0))
            centre = (left.mean(axis=0) + right.mean(axis=0)) / 2
            evidence = np.cumsum((features[low:high] - centre) @ direction)
            rim = max(2, (high - low) // 20)
            edges[number] = low + rim + 1 + int(evidence[rim:-rim].argmax())
    return edges[1:-1]
