"""Domains where nobody wrote them down: boundaries are constructed from a stream of rows, without
domain or class labels.

The paper's first limitation is that domain labels may be missing, and its answer is to construct
them. Four ways:
- `blocks`: equally many rows each, in the order of the stream;
- `time`: equally long periods;
- `drift`: where the distribution of the inputs changes;
- `cluster`: rows that look alike, wherever they stand.

Drift: the rows are scaled, rotated onto their main axes and mapped by random Fourier features, so
that a change of their mean is a change of distribution (the kernel mean embedding behind MMD; mean,
variance and correlation all show in it). Binary segmentation takes the split with the largest gain
in between-segment scatter, as long as it beats every one of a number of permutations of the same
rows by a margin. Each boundary is then moved to where a linear discriminant between its two
neighbours puts it, which is sharper than the mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from torch import Tensor

from ..errors import FarshoreError

By = Literal["blocks", "time", "drift", "cluster"]
WAYS: tuple[str, ...] = get_args(By)
BLOCKS = 4  # of `blocks` and `time`, where no number is given
MOST_CLUSTERS = 8
MOST_CLUSTERED = 2000  # rows that fix the clusters
AXES = 30
FOURIER = 512
KEPT = 64  # main axes of the Fourier features that sharpen a boundary
SEARCHED = 32  # and those that find it
PERMUTATIONS = 60
# A split must gain this much more than the best split of any permutation. True changes gain ten
# times as much; the margin is for streams whose neighbouring rows are a little alike.
MARGIN = 1.5
FEWEST_ROWS = 20
COARSE = 500  # points between which the first search looks for boundaries
SCATTER_ROWS = 20_000  # rows that fix scales, axes and bandwidth


@dataclass(frozen=True)
class Constructed:
    """The domain number of every row, and one line that says what was found."""

    domain: np.ndarray
    note: str

    @property
    def names(self) -> list[str]:
        """A name for each domain, in the order of the stream."""
        return [f"part {number + 1}" for number in range(int(self.domain.max()) + 1)]


def construct(
    inputs: Tensor | np.ndarray,
    by: By,
    *,
    count: int | None = None,
    times: np.ndarray | None = None,
    seed: int = 0,
) -> Constructed:
    """Divide a stream into domains. `inputs` stand in the order of the stream; `count` asks for
    a number of domains.
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
                "--domain-by time needs the column that holds it: add --time COLUMN, or use "
                "--domain-by blocks"
            )
        return _periods(times, count or BLOCKS)
    if by == "cluster":
        return _clusters(_embed(inputs, seed)[0], count, seed)
    if by == "blocks":
        ends = np.linspace(0, rows, (count or BLOCKS) + 1).round().astype(int)[1:-1].tolist()
    else:
        ends = _drift(_embed(inputs, seed)[1], count, seed)
    where = (
        f", boundaries at rows {', '.join(map(str, ends))} of {rows}"
        if ends
        else f" in {rows} rows"
    )
    domain = np.searchsorted(np.array(ends, dtype=int), np.arange(rows), side="right")
    return Constructed(
        domain, f"domains were constructed without labels (by {by}): {len(ends) + 1} found{where}"
    )


def join_small(found: Constructed, labels: np.ndarray) -> Constructed:
    """Join each domain with fewer than 2 rows or one class to the one before it (the first to
    the next): it cannot be learned.
    """
    domain, joined = found.domain.copy(), 0
    while (last := int(domain.max())) > 0:
        small = [
            number
            for number in range(last + 1)
            if len(np.unique(labels[domain == number])) < 2 or (domain == number).sum() < 2
        ]
        if not small:
            break
        number = small[-1]
        domain[domain == number] = number - 1 if number else 1
        domain[domain > number] -= 1
        joined += 1
    extra = (
        f"; {joined} of them with one class or one row were joined to a neighbour, "
        f"{int(domain.max()) + 1} remain"
        if joined
        else ""
    )
    return Constructed(domain, found.note + extra)


def _periods(times: np.ndarray, count: int) -> Constructed:
    edges = np.linspace(times.min(), times.max(), count + 1)[1:-1]
    used, domain = np.unique(np.searchsorted(edges, times, side="right"), return_inverse=True)
    sizes = ", ".join(map(str, np.bincount(domain).tolist()))
    return Constructed(
        domain,
        f"domains were constructed without labels (by time): {len(used)} periods of equal length "
        f"with {sizes} rows",
    )


def _clusters(axes: np.ndarray, count: int | None, seed: int) -> Constructed:
    """k-means on the main axes; the number of clusters by silhouette. Clusters are numbered by
    where their rows stand.
    """
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    some = axes[np.linspace(0, len(axes) - 1, min(len(axes), MOST_CLUSTERED)).astype(int)]
    fits = {}
    for k in [count] if count is not None else range(2, min(MOST_CLUSTERS, len(some) - 1) + 1):
        model = KMeans(k, n_init=4, random_state=seed).fit(some)
        fits[
            silhouette_score(some, model.labels_)
            if 1 < len(set(model.labels_.tolist())) < len(some)
            else -1.0
        ] = model
    if not fits:
        return Constructed(
            np.zeros(len(axes), dtype=int),
            "domains were constructed without labels (by cluster): 1 found",
        )
    label = fits[max(fits)].predict(axes)
    place = {
        cluster: float(np.median(np.flatnonzero(label == cluster))) for cluster in np.unique(label)
    }
    number = {
        cluster: order
        for order, cluster in enumerate(sorted(place, key=lambda cluster: place[cluster]))
    }
    domain = np.array([number[cluster] for cluster in label])
    sizes = ", ".join(map(str, np.bincount(domain).tolist()))
    return Constructed(
        domain,
        f"domains were constructed without labels (by cluster): {len(number)} found with {sizes} "
        "rows",
    )


def _embed(inputs: Tensor | np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Main axes [n, q] and random Fourier features [n, D] of the rows, in single precision and
    in parts.
    """
    rng = np.random.default_rng(seed)
    rows = len(inputs)
    some = _flat(inputs, np.linspace(0, rows - 1, min(rows, SCATTER_ROWS)).astype(int))
    centre, scale = np.median(some, axis=0), some.std(axis=0)
    varies = scale > 1e-9 * max(1.0, float(scale.max()))
    if not varies.any():
        return np.zeros((rows, 1), np.float32), np.zeros((rows, 1), np.float32)

    def scaled(values: np.ndarray) -> np.ndarray:
        cut: np.ndarray = np.clip((values[:, varies] - centre[varies]) / scale[varies], -5, 5)
        return cut

    first = scaled(some)
    mean = first.mean(axis=0)
    _, vectors = np.linalg.eigh(np.cov(first - mean, rowvar=False).reshape(first.shape[1], -1))
    turn = vectors[:, ::-1][:, :AXES]
    parts = np.array_split(np.arange(rows), -(-rows // SCATTER_ROWS))
    axes = np.concatenate(
        [((scaled(_flat(inputs, part)) - mean) @ turn).astype(np.float32) for part in parts]
    )
    pairs = rng.integers(rows, size=(2, 2000))
    gaps = np.sqrt(((axes[pairs[0]] - axes[pairs[1]]) ** 2).sum(axis=1))
    bandwidth = float(np.median(gaps[gaps > 0])) if (gaps > 0).any() else 1.0
    waves = axes @ (rng.standard_normal((axes.shape[1], FOURIER // 2)) / bandwidth).astype(
        np.float32
    )
    fourier = np.concatenate([np.cos(waves), np.sin(waves)], axis=1)
    fourier -= fourier.mean(axis=0)
    _, vectors = np.linalg.eigh(fourier.T @ fourier)
    return axes, fourier @ vectors[:, ::-1][:, :KEPT]


def _flat(inputs: Tensor | np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Rows as vectors; large images are averaged down to 16 pixels a side, since drift is not in
    single pixels.
    """
    values = inputs[rows].numpy() if isinstance(inputs, Tensor) else np.asarray(inputs[rows])
    if values.ndim == 4 and min(values.shape[-2:]) >= 32:
        high, wide = values.shape[-2] // 16, values.shape[-1] // 16
        cut = values[..., : 16 * high, : 16 * wide].astype(np.float32)
        values = cut.reshape(*values.shape[:2], 16, high, 16, wide).mean(axis=(3, 5))
    return values.reshape(len(values), -1).astype(np.float64)


def _drift(features: np.ndarray, count: int | None, seed: int) -> list[int]:
    rows = len(features)
    block = max(1, -(-rows // COARSE))
    starts = np.arange(0, rows, block)
    searched = features[:, :SEARCHED].astype(np.float64)
    # Half-way to equal variance: a change of correlation shows in axes with little of it.
    variance = searched.var(axis=0)
    sums = np.add.reduceat(searched / np.sqrt(variance + variance.mean() + 1e-12), starts, axis=0)
    least = max(2, -(-max(FEWEST_ROWS, rows // 50) // block))
    rng = np.random.default_rng(seed)
    found: list[int] = []
    open_parts = [(0, len(starts))]
    while open_parts and (count is None or len(found) < count - 1):
        splits = [
            (*_best_split(sums[a:b], least), a, b) for a, b in open_parts if b - a >= 2 * least
        ]
        if not splits:
            break
        if count is None:  # each part on its own: does its best split beat chance?
            splits = [
                split
                for split in splits
                if split[0] > MARGIN * _chance(sums[split[2] : split[3]], least, rng)
            ]
            found += [a + at for _, at, a, _ in splits]
            open_parts = [part for _, at, a, b in splits for part in ((a, a + at), (a + at, b))]
        else:  # the best split of all, until there are enough
            _, at, a, b = max(splits)
            found.append(a + at)
            open_parts = [part for part in open_parts if part != (a, b)] + [
                (a, a + at),
                (a + at, b),
            ]
    return _sharpen(features, [int(starts[at]) for at in sorted(found)])


def _best_split(sums: np.ndarray, least: int) -> tuple[float, int]:
    """The split with the largest gain in between-segment scatter, and that gain."""
    total = sums.cumsum(axis=0)
    at = np.arange(least, len(sums) - least + 1)
    left = total[at - 1]
    gains = (
        (left**2).sum(axis=1) / at
        + ((total[-1] - left) ** 2).sum(axis=1) / (len(sums) - at)
        - (total[-1] ** 2).sum() / len(sums)
    )
    best = int(gains.argmax())
    return float(gains[best]), int(at[best])


def _chance(sums: np.ndarray, least: int, rng: np.random.Generator) -> float:
    return max(_best_split(rng.permutation(sums), least)[0] for _ in range(PERMUTATIONS))


def _sharpen(
    features: np.ndarray, ends: list[int], rounds: int = 3, ridge: float = 0.1
) -> list[int]:
    """Move each boundary to where a linear discriminant of its neighbours changes sign for good."""
    edges = [0, *ends, len(features)]
    for _ in range(rounds if ends else 0):
        for place in range(1, len(edges) - 1):
            low, middle, high = edges[place - 1 : place + 2]
            # Rows next to the boundary may be on the wrong side of it: they do not teach the
            # discriminant.
            left = features[low : max(low + 2, middle - (middle - low) // 10)].astype(np.float64)
            right = features[min(high - 2, middle + (high - middle) // 10) : high].astype(
                np.float64
            )
            scatter = np.cov(left, rowvar=False) * len(left) + np.cov(right, rowvar=False) * len(
                right
            )
            scatter = np.atleast_2d(scatter / (len(left) + len(right)))
            scatter += (ridge * np.trace(scatter) / len(scatter) + 1e-12) * np.eye(len(scatter))
            direction = np.linalg.solve(scatter, left.mean(axis=0) - right.mean(axis=0))
            evidence = np.cumsum(
                (features[low:high] - (left.mean(axis=0) + right.mean(axis=0)) / 2) @ direction
            )
            rim = max(2, (high - low) // 20)
            edges[place] = low + rim + 1 + int(evidence[rim:-rim].argmax())
    return edges[1:-1]
