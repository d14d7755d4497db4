"""Raises an error when an environment returns NaN or infinity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gym_dr.arrays import Floats
from gym_dr.envs.vector_arguments import Options, Seeds
from gym_dr.errors import NotFiniteError
from gym_dr.wrappers.record import seeds_of_draws
from gym_dr.wrappers.vector_params import ParamsWrapper

if TYPE_CHECKING:
    from gym_dr.compiled.policy import SmallPolicy
    from gym_dr.compiled.steps import Steps


class RequireFinite(ParamsWrapper):
    """Raises an error if an observation or reward is NaN or infinite, before anything is computed from it.

    Checks only observations that are arrays of floating-point numbers.
    """

    remembers = False

    def reset(self, *, seed: Seeds = None, options: Options = None) -> tuple[Any, dict[str, Any]]:
        """Resets the sub-environments.

        Raises:
            NotFiniteError: An observation is not finite.
        """
        options = dict(options) if options else None  # a copy: Gymnasium removes reset_mask from it
        observations, info = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]  # as Gymnasium's
        self._check("observation", observations, info)
        return observations, info

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Steps the sub-environments.

        Raises:
            NotFiniteError: An observation or reward is not finite.
        """
        observations, rewards, terminations, truncations, info = self.env.step(actions)
        self._check("reward", rewards, info)  # first, since policies may observe it
        self._check("observation", observations, info)
        return observations, rewards, terminations, truncations, info

    def rollout(
        self, policy: SmallPolicy, noise: Floats, steps: Steps, first: int, last: int
    ) -> tuple[int, dict[str, Any]]:
        """Plays many steps at once, like the environment's ``rollout``.

        Raises:
            NotFiniteError: An observation or reward is not finite.
        """
        stop, info = cast(Any, self.env).rollout(policy, noise, steps, first, last)
        self._check("observation", steps.observations[first + 1 : stop + 1].swapaxes(0, 1), info)
        self._check("reward", steps.rewards[first:stop].swapaxes(0, 1), info)
        return int(stop), info

    def _check(self, what: str, values: Any, info: dict[str, Any]) -> None:
        """Checks an array with the sub-environments along its first axis."""
        if not (isinstance(values, np.ndarray) and values.dtype.kind == "f") or np.isfinite(values).all():
            return
        bad = ~np.isfinite(values).reshape(self.num_envs, -1)
        i = int(np.flatnonzero(bad.any(axis=1))[0])
        value = values.reshape(self.num_envs, -1)[i][bad[i]][0]
        seeds = seeds_of_draws(self.env)
        seed = f", seed {seeds[i]}" if isinstance(seeds, tuple) else ""
        draw = f", draw {int(info['draw_index'][i])}" if "draw_index" in info else ""
        raise NotFiniteError(f"Sub-environment {i}{seed}{draw} returned {value} in its {what}.")
