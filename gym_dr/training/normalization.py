"""Running moments of observations and of discounted returns, which scale the inputs and targets of networks to about 1.

Moments are float64 and cover valid steps only. They change between rollouts, never within one, so acting and learning
use the same moments, and stepping and compiled rollouts agree. Nothing is clipped, so normalization is a linear map,
which compiled policies fold into their first layer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from gym_dr.arrays import Floats, Mask
from gym_dr.training.returns import accumulated

SCALE_FLOOR = 1e-2  # scales inputs by at most 100: a nearly constant input may vary later
IGNORED = 1e120  # variance that scales every float32 to exactly 0


class Moments(nn.Module):
    """Mean and variance of each column over all rows so far; 0 and 1 before the first row."""

    count: Tensor
    mean: Tensor
    variance: Tensor

    def __init__(self, columns: int) -> None:
        """Starts without rows."""
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.float64, device="cpu"))
        self.register_buffer("mean", torch.zeros(columns, dtype=torch.float64, device="cpu"))
        self.register_buffer("variance", torch.ones(columns, dtype=torch.float64, device="cpu"))

    def update(self, rows: Tensor) -> None:
        """Adds ``rows``, shape ``(B, columns)``, at least one (Chan et al. 1979, "Updating Formulae", eq. 1.5)."""
        rows = rows.double()
        count = self.count + len(rows)
        ones = rows.new_ones((1, len(rows)))  # a product with it is much faster than a sum over rows
        mean = (ones @ rows)[0] / len(rows)
        variance = (ones @ (rows - mean).square_())[0] / len(rows)
        delta, new = mean - self.mean, len(rows) / count
        self.variance += new * (variance - self.variance + delta**2 * (1.0 - new))
        self.mean += new * delta
        self.count.copy_(count)

    def std(self) -> Tensor:
        """Standard deviations, at least ``SCALE_FLOOR``."""
        return self.variance.sqrt().clamp(min=SCALE_FLOOR)

    def scaled(self, rows: Tensor) -> Tensor:
        """Rows ``(..., columns)`` less the mean, divided by the standard deviation."""
        return (rows - self.mean.float()) / self.std().float()


class NormalizeObservations(Moments):
    """A network's first layer: subtracts the mean from its first columns and divides by the standard deviation.

    Other columns, the draws that the policy or the critic observes, are unchanged: they are already scaled.
    Ignored columns have the variance ``IGNORED``: finite numbers there become 0 and never change a weight.
    """

    def ignore(self, columns: Sequence[int]) -> None:
        """Makes the network ignore columns from now on, also with saved moments."""
        self.variance[list(columns)] = IGNORED

    def forward(self, inputs: Tensor) -> Tensor:
        """Normalized inputs, shape ``(..., columns + k)`` like ``inputs``."""
        columns = len(self.mean)
        return torch.cat([self.scaled(inputs[..., :columns]), inputs[..., columns:]], -1)

    def update(self, rows: Tensor) -> None:
        """Adds inputs, shape ``(B, columns + k)``."""
        ignored = self.variance == IGNORED
        super().update(rows[:, : len(self.mean)])
        self.mean[ignored], self.variance[ignored] = 0.0, IGNORED

    def folded(self, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        """Weight and bias of the linear map that equals this layer followed by the given one."""
        columns = len(self.mean)
        weight, bias = weight.detach().double().clone(), bias.detach().double()
        weight[:, :columns] /= self.std()
        return weight.float(), (bias - weight[:, :columns] @ self.mean).float()


class NormalizeRewards(Moments):
    """Running standard deviation of discounted returns, to divide rewards by.

    The return of a step accumulates past rewards, ``R_t = gamma * R_{t-1} + r_t``, as in Gymnasium's
    ``NormalizeReward`` and Stable-Baselines3's ``VecNormalize`` (Huang et al. 2022, detail 8 of continuous actions).
    """

    def __init__(self, gamma: float) -> None:
        """Starts without rewards."""
        super().__init__(columns=1)
        self.gamma = gamma
        self._returns = np.zeros(1)  # (N,) of the episodes under way

    def observe(self, rewards: Floats, ends: Mask, valid: Mask, *, fresh: bool) -> None:
        """Adds the returns of a rollout.

        Args:
            rewards: Shape ``(T, N)``, 0 on reset steps.
            ends: Whether an episode ended at step t, shape ``(T, N)``.
            valid: False on reset steps, shape ``(T, N)``.
            fresh: Whether all episodes were reset before the rollout.
        """
        following = np.zeros(rewards.shape[1]) if fresh else self._returns
        begins = np.concatenate([np.zeros_like(ends[:1]), ends[:-1]])
        returns = accumulated(rewards, self.gamma * ~begins, following)
        self._returns = returns[-1] * ~ends[-1]
        self.update(torch.from_numpy(returns[valid])[:, None])
