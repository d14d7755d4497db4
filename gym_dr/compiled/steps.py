"""The result of a rollout: arrays of shape [T, N] that environments and policies fill row by row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Steps(NamedTuple):
    """T steps of N sub-environments with NEXT_STEP autoreset. Row t is a step; observations have an extra row."""

    observations: npt.NDArray[np.float32]  # (T + 1, N, obs); if an episode ends at t, row t + 1 is its final one
    discrete: npt.NDArray[np.int64]  # (T, N) actions, counted from 0
    raw_actions: npt.NDArray[np.float32]  # (T, N, actions) continuous, as sampled, not clipped; no columns for discrete
    rewards: npt.NDArray[np.float64]  # (T, N)
    terminated: npt.NDArray[np.bool_]  # (T, N)
    truncated: npt.NDArray[np.bool_]  # (T, N)
    log_probs: npt.NDArray[np.float32]  # (T, N) of the actions under the policy that chose them
    states: npt.NDArray[np.float32]  # (T, N, H) what the policy remembered before each row; no columns without memory

    @staticmethod
    def allocate(steps: int, num_envs: int, *, inputs: int, actions: int, units: int = 0) -> Steps:
        """Memory for ``steps`` steps of ``num_envs`` sub-environments.

        Args:
            steps: T.
            num_envs: N.
            inputs: Numbers in an observation.
            actions: Numbers in a continuous action; 0 for discrete ones.
            units: Of the policy's memory; 0 for none.
        """
        shape = (steps, num_envs)
        return Steps(
            observations=np.empty((steps + 1, num_envs, inputs), np.float32),
            discrete=np.empty(shape, np.int64),
            raw_actions=np.empty((*shape, actions), np.float32),
            rewards=np.empty(shape, np.float64),
            terminated=np.empty(shape, np.bool_),
            truncated=np.empty(shape, np.bool_),
            log_probs=np.empty(shape, np.float32),
            states=np.empty((*shape, units), np.float32),
        )
