"""Decides when to re-draw: every few rollouts or by hand, for each sub-environment or one draw for all."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from gymnasium.vector import VectorEnv

from gym_dr.arrays import Array, Mask, Words
from gym_dr.envs.stack import stack_of
from gym_dr.envs.vector_arguments import check_mask
from gym_dr.errors import EnvStateError, RandomizationError
from gym_dr.randomization.draws import seed_word
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

    def __init__(
        self, env: VectorEnv[Any, Any, Any], *, rollout_steps: int | None, every: int = 1, shared: bool = False
    ) -> None:
        """Wraps a vector environment.

        Args:
            env: A native environment, or a sync or async one of randomized sub-environments.
            rollout_steps: Vector steps per rollout; None to re-draw only by hand.
            every: Rollouts between draws.
            shared: Whether all sub-environments share one draw, keyed by the first one's seed.

        Raises:
            RandomizationError: A number is not a whole number above 0, the environment has no parameters, or its draws
                come from this wrapper already, or from a sampler that learns.
        """
        by_hand = rollout_steps is None
        for name, value in (("rollout_steps", 1 if by_hand else rollout_steps), ("every", every)):
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
                raise RandomizationError(
                    f"ResampleParams: expected {name} to be a whole number above 0, got {value!r}."
                )
        if any(isinstance(layer, ResampleParams) for layer in stack_of(env)):
            raise RandomizationError("ResampleParams: the environment already has this wrapper.")
        if getattr(env, "adapts", False):  # AdaptParams, which imports this module, or a wrapper around it
            raise RandomizationError(
                "ResampleParams: expected draws that never change, got those of a sampler that learns from "
                "episodes (AdaptParams). Use one of the two."
            )
        self._params_env = cast(Any, with_params(env))
        super().__init__(self._params_env)
        # vector steps between draws; None to draw only by hand
        self.interval = None if rollout_steps is None else int(rollout_steps) * int(every)
        self.shared = shared
        self._seeds: Words | None = None  # (num_envs,), None before the first reset
        self._seeded: Mask = np.zeros(self.num_envs, np.bool_)  # those with a draw from here
        self.draw_seeds: tuple[int | None, ...] = (None,) * self.num_envs  # seeds in the keys of draws
        self._next_index = np.zeros(self.num_envs, dtype=np.int64)  # the draw that each next reset uses

    @property
    def pending(self) -> dict[str, Array]:
        """The draws that the next resets use, unless values are pinned: name -> array of shape ``(num_envs,)``.

        Raises:
            EnvStateError: There was no reset yet, so there are no seeds.
        """
        return dict(self.sampler.draw(self._words("pending"), self._next_index))

    def resample(self, mask: Mask | None = None) -> None:
        """Makes the next draw now; it takes effect at each sub-environment's next reset.

        Args:
            mask: Shape ``(num_envs,)`` bool, the sub-environments to draw for; None for all.

        Raises:
            EnvStateError: There was no reset yet, so there are no seeds.
            RandomizationError: The mask has the wrong shape or dtype.
        """
        chosen = check_mask(mask, self.num_envs)
        words = self._words("resample()")
        self._next_index[chosen] = (self._next_index.max() if self.shared else self._next_index[chosen]) + 1
        self._params_env.hold_draws(words, self._next_index)

    def _before_reset(self, seeds: list[int | None], mask: Mask, options: dict[str, Any]) -> list[int | None] | None:
        """Checks values before anything changes; seeded sub-environments start again from their first draw."""
        if options.get("params") is not None:
            self.param_space.check_vector(options["params"], self.num_envs)
        seeded = any(seed is not None for seed in seeds)
        return self._reseed(seeds, mask) if seeded or not self._seeded[mask].all() else None

    def _due(self) -> None:
        self.resample()

    def _reseed(self, seeds: list[int | None], mask: Mask) -> list[int | None]:
        """Restarts the draws of masked sub-environments with a seed, given or new; returns a seed for each."""
        words = np.zeros(self.num_envs, dtype=np.uint64) if self._seeds is None else self._seeds.copy()
        chosen, keyed, known = mask.copy(), self._seeded.copy(), list(self.draw_seeds)
        if self.shared:  # the first one's seed is in the key of all draws, from the first reset of any of them on
            chosen[0], keyed[0] = mask[0] or self._seeds is None, self._seeds is not None
        for i in np.flatnonzero(chosen).tolist():
            if seeds[i] is None and keyed[i]:
                continue
            if seeds[i] is not None or not self.shared:
                self._next_index[i] = 0
            if seeds[i] is None:  # never seeded: choose a seed, so that draws have a key
                seeds[i] = int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> np.uint64(2))
            known[i] = seeds[i]
            words[i] = seed_word(cast(int, seeds[i]))
        self._seeds = words
        self._seeded |= mask
        self.draw_seeds = (known[0],) * self.num_envs if self.shared else tuple(known)
        if mask.all():
            self._steps = 0
        self._params_env.hold_draws(self._words("resample()"), self._next_index)
        return seeds

    def _words(self, call: str) -> Words:
        """The seed words in the keys of the draws.

        Raises:
            EnvStateError: There was no reset yet, so there are none.
        """
        if self._seeds is None:
            raise EnvStateError(f"ResampleParams: expected reset() before {call}: the draws are keyed by its seeds.")
        return np.full_like(self._seeds, self._seeds[0]) if self.shared else self._seeds
