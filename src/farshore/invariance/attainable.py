"""The attainable risk of a domain: what a regression on some of its rows reaches on the others."""

import math

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from ..tasks.task import Task
from .kernel_mean import median_distance

MOST_ROWS, FOLDS, MOST_STEPS = 500, 5, 200
STRENGTHS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
# The square of the kernel's constant: the level of the labels is hardly shrunk.
LEVEL = 100.0


def attainable_risk(task: Task, inputs: Tensor, labels: Tensor) -> float:
    """a = min_ρ 1/n Σ_i ℓ(g_ρi(x_i), y_i), with the task's loss ℓ, for n rows in random order.

    g_ρi minimises the mean loss of the rows outside of the fold of row i, plus ρ ‖g‖² in the space
    of the kernel k(x, x') = 100 + xᵀx' / d + exp(-‖x - x'‖² / 2σ²): a level, a plane and a smooth
    rest. x are the inputs, centred and divided by their root mean square; σ is their median
    distance. A single row is predicted by 0. All is computed in double precision on the CPU.
    """
    rows, (values, vectors) = len(labels), torch.linalg.eigh(kernel(inputs.flatten(1).double()))
    values = values.clamp_min(0)
    z = vectors * values.sqrt()  # k = z zᵀ
    strengths = torch.tensor(STRENGTHS, dtype=torch.float64)[:, None, None]
    # A squared error then has about the same curvature in all directions: few steps are needed.
    stretch = (values[:, None, None, None] / rows + strengths).rsqrt()
    fold = torch.arange(rows) % FOLDS
    outside = (fold[:, None] != torch.arange(FOLDS)).double()
    shares = outside / outside.sum(dim=0).clamp_min(1)
    tiled = labels.double() if labels.is_floating_point() else labels
    tiled = tiled.repeat_interleave(len(STRENGTHS) * FOLDS, dim=0)
    shape = (rows, len(STRENGTHS), FOLDS, task.outputs)

    def losses(weights: Tensor) -> Tensor:
        outputs = z @ weights.flatten(1)
        return task.losses(outputs.reshape(-1, task.outputs), tiled).reshape(shape[:3])

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        free = torch.from_numpy(flat).reshape(shape).requires_grad_()
        weights = free * stretch
        total = (losses(weights) * shares[:, None]).sum() + (strengths * weights.square()).sum()
        (slope,) = torch.autograd.grad(total, free)
        return float(total.detach()), slope.flatten().numpy()

    start, options = (
        np.zeros(math.prod(shape)),
        {"maxiter": MOST_STEPS, "gtol": 1e-6, "ftol": 1e-10},
    )
    fitted = minimize(objective, start, jac=True, method="L-BFGS-B", options=options).x
    held = losses(torch.from_numpy(fitted).reshape(shape) * stretch)[torch.arange(rows), :, fold]
    return float(held.mean(dim=0).min())


def kernel(x: Tensor) -> Tensor:
    """k of all pairs of rows [n, d]."""
    x = x - x.mean(dim=0)
    x = x / x.square().mean().sqrt().clamp_min(1e-12)
    far = torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist").square()
    return LEVEL + x @ x.mT / x.shape[1] + (-far / (2 * median_distance(x) ** 2)).exp()
