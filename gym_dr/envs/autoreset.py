"""Tracks which sub-environments have an episode, and which the next step resets."""

from __future__ import annotations

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from gym_dr.arrays import Indices, Mask
from gym_dr.errors import EnvStateError


class AutoresetState:
    """Tracks the episodes of ``num_envs`` sub-environments from reset to end.

    Attributes:
        mode: NEXT_STEP, SAME_STEP or DISABLED, as Gymnasium defines them.
        begun: Shape ``(num_envs,)``, whether each has been reset at least once.
        all_begun: Whether all have been.
        done: Shape ``(num_envs,)``, whether each one's episode has ended without a reset since.
    """

    def __init__(self, mode: AutoresetMode, num_envs: int) -> None:
        """Starts before the first reset."""
        self.mode = mode
        self.all_begun = False
        self.begun: Mask = np.zeros(num_envs, np.bool_)
        self.done: Mask = np.zeros(num_envs, np.bool_)
        self._any_done = False

    @classmethod
    def of(cls, envs: VectorEnv[object, object, object]) -> AutoresetState:
        """The state of a vector environment that has not been reset yet."""
        return cls(envs.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP), envs.num_envs)

    @property
    def resets(self) -> Mask | None:
        """The sub-environments that the next step resets (NEXT_STEP), shape ``(num_envs,)``; None if none."""
        return self.done if self._any_done and self.mode == AutoresetMode.NEXT_STEP else None

    @property
    def will_step(self) -> Mask:
        """The sub-environments that the next step steps, shape ``(num_envs,)``."""
        return np.ones_like(self.done) if self.resets is None else ~self.done

    def check_begun(self, call: str) -> None:
        """Checks that every sub-environment has an episode.

        Raises:
            EnvStateError: A sub-environment was never reset.
        """
        if not self.all_begun:
            raise EnvStateError(f"Expected reset() of every sub-environment before {call}().")

    def check_step(self) -> None:
        """Checks that ``step`` may be called.

        Raises:
            EnvStateError: A sub-environment was never reset, or has an episode that ended without a reset (DISABLED).
        """
        self.check_begun("step")
        if self._any_done and self.mode == AutoresetMode.DISABLED:
            raise EnvStateError(
                "Expected reset(options={'reset_mask': ...}) of the sub-environments whose episode ended before "
                f"step(): {np.flatnonzero(self.done).tolist()[:10]}."
            )

    def restore(self, begun: Mask, done: Mask, envs: Indices) -> None:
        """Restores ``begun`` and ``done`` of some sub-environments."""
        self.done = self.done.copy()
        self.begun[envs], self.done[envs] = begun[envs], done[envs]
        self.all_begun, self._any_done = bool(self.begun.all()), bool(self.done.any())

    def reset(self, mask: Mask) -> None:
        """Records that new episodes have begun in some sub-environments."""
        self.begun |= mask
        self.all_begun = bool(self.begun.all())
        self.done = self.done & ~mask
        self._any_done = bool(self.done.any())

    def step(self, done: Mask) -> None:
        """Records which episodes a step has ended; with SAME_STEP the next ones have begun."""
        self.done = np.zeros_like(done) if self.mode == AutoresetMode.SAME_STEP else done
        self._any_done = bool(np.count_nonzero(self.done))  # any() takes five times as long for few environments
