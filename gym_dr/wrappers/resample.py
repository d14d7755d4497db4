"""Decides when to re-draw: every few rollouts, or by hand."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from gymnasium.vector import VectorEnv

from gym_dr.arrays import Array, Mask
from gym_dr.envs.stack import stack_of
from gym_dr.envs.vector_arguments import check_mask, check_whole_number
from gym_dr.errors import EnvStateError, RandomizationError
from gym_dr.randomization.sampler import seed_word
from gym_dr.randomization.space import exact_values
from gym_dr.wrappers.base import EpisodeWrapper
from gym_dr.wrappers.vector_params import with_params


class ResampleParams(EpisodeWrapper):
    """Re-draws the parameters of all sub-environments every ``every`` rollouts of ``rollout_steps`` steps.

    A draw takes effect at each sub-environment's next reset, so parameters stay fixed within an episode. It replaces
    the draw that the environment would make at every reset; values pinned by ``set_params`` stay. Like the
    environment's own draws, they are keyed by each sub-environment's seed and the number of draws since seeding. The
    environment's sampler makes them; this wrapper holds the keys of those that the next resets use.

    Example:
        >>> import gymnasium as gym, gym_dr
        >>> envs = gym.make_vec("gym_dr/LunarLanderDR-v3", num_envs=4, vectorization_mode="sync")
        >>> envs = gym_dr.ResampleParams(envs, rollout_steps=128, every=4)
        >>> _, info = envs.reset(seed=42)
        >>> info["params"]["gravity"].shape
        (4,)
        >>> envs.close()
    """

    follows = False

    def __init__(self, env: VectorEnv[Any, Any, Any], *, rollout_steps: int | None, every: int = 1) -> None:
        """Wraps a vector environment.

        Args:
            env: A native environment, or a sync or async one of randomized sub-environments.
            rollout_steps: Vector steps per rollout; None to re-draw only by hand.
            every: Rollouts between draws.

        Raises:
            ConfigError: A number is not a whole number above 0.
            RandomizationError: The environment has no parameters or this wrapper already, or its draws come from a
                sampler that learns.
        """
        rollouts = check_whole_number("every", every)
        # vector steps between draws; None to draw only by hand
        interval = None if rollout_steps is None else rollouts * check_whole_number("rollout_steps", rollout_steps)
        if any(isinstance(layer, ResampleParams) for layer in stack_of(env)):
            raise RandomizationError("ResampleParams: the environment already has this wrapper. Leave one of them out.")
        if getattr(env, "adapts", False):  # AdaptParams, which imports this module, or a wrapper around it
            raise RandomizationError(
                "ResampleParams: expected draws that never change, got those of a sampler that learns from "
                "episodes (AdaptParams). Use one of the two."
            )
        self._params_env = cast(Any, with_params(env))
        super().__init__(self._params_env)
        self.interval, self._seed_words = interval, np.zeros(self.num_envs, np.uint64)
        self._seeded: Mask = np.zeros(self.num_envs, np.bool_)  # those with a seed
        self._next_index = np.zeros(self.num_envs, dtype=np.int64)  # the draw that each next reset uses

    @property
    def pending(self) -> dict[str, Array]:
        """The draws that the next resets use, unless values are pinned: name -> array of shape ``(num_envs,)``.

        Raises:
            EnvStateError: There was no reset yet, so there are no seeds.
        """
        self._check_seeded("pending")
        return dict(self.sampler.draw(self._seed_words, self._next_index))

    def resample(self, mask: Mask | None = None) -> None:
        """Makes the next draw now; it takes effect at each sub-environment's next reset.

        Args:
            mask: Shape ``(num_envs,)`` bool, the sub-environments to draw for; None for all.

        Raises:
            EnvStateError: There was no reset yet, so there are no seeds.
            RandomizationError: The mask has the wrong shape or dtype.
        """
        chosen = check_mask(mask, self.num_envs)
        self._check_seeded("resample()")
        self._next_index[chosen] += 1
        self._params_env.hold_draws(self._seed_words, self._next_index)

    def _before_reset(self, seeds: list[int | None], mask: Mask, options: dict[str, Any]) -> list[int | None] | None:
        """Restarts the draws of sub-environments that get a seed, or never had one; they are keyed before the reset."""
        if options.keys() - {"reset_mask"} and exact_values(options, self.param_space) is not None:
            self.param_space.check_vector(options["params"], self.num_envs)  # before anything changes
        restarted = np.flatnonzero(mask & (~self._seeded | [seed is not None for seed in seeds]))
        if len(restarted) == 0:
            return None
        for i in restarted.tolist():
            if seeds[i] is None:
                seeds[i] = int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> np.uint64(2))
            self._seed_words[i] = seed_word(cast(int, seeds[i]))
        self._next_index[restarted] = 0
        self._seeded |= mask
        if mask.all():
            self._steps = 0
        self._params_env.hold_draws(self._seed_words, self._next_index)
        return seeds

    def _due(self) -> None:
        self.resample()

    def _check_seeded(self, call: str) -> None:
        """Raises EnvStateError if there was no reset yet, so that draws have no keys."""
        if not self._seeded.any():
            raise EnvStateError(f"ResampleParams: expected reset() before {call}: the draws are keyed by its seeds.")
