"""The skeleton of wrappers around vector environments: it follows their episodes in every autoreset mode."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import concatenate, iterate
from gymnasium.wrappers.vector import DictInfoToList

from gym_dr.arrays import Array, Floats, Mask
from gym_dr.envs.autoreset import AutoresetState
from gym_dr.envs.played import Played
from gym_dr.envs.stack import stack_of
from gym_dr.envs.vector_arguments import Options, Seeds, check_reset_mask, check_seeds
from gym_dr.errors import ConfigError

if TYPE_CHECKING:  # numba is heavy
    from gym_dr.compiled.policy import SmallPolicy
    from gym_dr.compiled.steps import Steps

# what native environments and ``VectorParams`` offer beyond Gymnasium's interface; wrappers pass it on
PARAM_INTERFACE = (
    *("params", "pinned", "draw_index", "param_space", "randomization", "sampler"),
    *("set_params", "set_sampler", "hold_draws", "autoreset_mode"),
)

if TYPE_CHECKING:
    _VectorWrapper: TypeAlias = VectorWrapper[Any, Any, Any, Any, Any]
else:

    class _VectorWrapper(VectorWrapper):
        """Gymnasium's, which is not generic before 1.4."""

        def __del__(self) -> None:
            """Leaves the environment open; before 1.3 Gymnasium closes it when the wrapper is garbage-collected."""


class EpisodeWrapper(_VectorWrapper):
    """Follows the episodes of a vector environment; subclasses say what happens when they begin, go on and end.

    It checks seeds and masks, tells reset steps from others, and forwards compiled rollouts. Its hooks are
    ``_before_reset``, ``_was_reset``, ``_stepped`` and, every ``interval`` vector steps, ``_due``.

    Attributes:
        follows: Whether ``_stepped`` is called, which takes time.
        interval: Vector steps after which something is due; None for nothing.
    """

    follows = True
    interval: int | None = None

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        """Wraps a vector environment that has not been reset yet.

        Raises:
            ConfigError: The wrapper reads info, which is in ``DictInfoToList``.
        """
        super().__init__(env)
        if self.follows and any(isinstance(layer, DictInfoToList) for layer in stack_of(env)):
            raise ConfigError(
                f"{type(self).__name__}: expected info as a dict, got the list of DictInfoToList. Put DictInfoToList "
                "around this wrapper."
            )
        self._autoreset = AutoresetState.of(env)
        self._steps = 0  # vector steps so far

    def __getattr__(self, name: str) -> Any:
        """An attribute that the wrapper itself does not have."""
        if name in PARAM_INTERFACE:
            return getattr(self.env, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    # ---- hooks -------------------------------------------------------------------------------------------------------

    def _before_reset(self, seeds: list[int | None], mask: Mask, options: dict[str, Any]) -> list[int | None] | None:
        """Prepares for a reset whose seeds and mask are possible.

        Args:
            seeds: For each sub-environment.
            mask: Shape ``(num_envs,)``, the sub-environments to reset.
            options: A copy, from which a wrapper may take its own.

        Returns:
            Other seeds; None for those of the caller.
        """

    def _was_reset(self, mask: Mask, observations: Any, info: dict[str, Any]) -> None:
        """A call of ``reset`` has begun episodes in these sub-environments."""

    def _stepped(self, played: Played) -> None:
        """One vector step was made, or a rollout of many."""

    def _due(self) -> None:
        """The last ``interval`` vector steps have been made."""

    # ---- Gymnasium's interface, and ours -----------------------------------------------------------------------------

    def reset(self, *, seed: Seeds = None, options: Options = None) -> tuple[Any, dict[str, Any]]:
        """Resets sub-environments.

        Args:
            seed: As for the environment.
            options: As for the environment; they are left alone.

        Raises:
            RandomizationError: An impossible seed or mask; nothing has changed.
        """
        mask, observations, info = self._reset(seed, options)
        self._was_reset(mask, observations, info)
        return observations, info

    def _reset(self, seed: Seeds, options: Options) -> tuple[Mask, Any, dict[str, Any]]:
        """Resets the environment; returns the mask, observations and info."""
        mask, seeds = check_reset_mask(options, self.num_envs), check_seeds(seed, self.num_envs)
        own = dict(options or {})  # a copy: Gymnasium removes reset_mask from it
        if "reset_mask" in own:
            own["reset_mask"] = mask
        chosen: Any = self._before_reset(seeds, mask, own) or seed
        observations, info = self.env.reset(seed=chosen, options=own or None)
        self._autoreset.reset(mask)
        return mask, observations, info

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Steps all sub-environments."""
        made: tuple[Any, Any, Any, Any, dict[str, Any]] = self.env.step(actions)
        self._made(1, Played.of_step(*made, self._autoreset.resets) if self.follows else None)
        return made

    def rollout(self, policy: SmallPolicy, noise: Floats, steps: Steps, first: int, last: int) -> Played:
        """Plays many steps at once, like the environment's ``rollout``, until something is due."""
        if self.interval is not None:
            last = min(last, first + self.interval - self._steps % self.interval)
        played: Played = cast(Any, self.env).rollout(policy, noise, steps, first, last)
        self._made(len(played.ended), played if self.follows else None)
        return played

    def _made(self, steps: int, played: Played | None) -> None:
        """Follows vector steps, if they are given, and counts them; a rollout ends where something is due."""
        if played is not None:
            self._stepped(played)
            self._autoreset.step(played.ended[-1])
        self._steps += steps
        if self.interval is not None and self._steps % self.interval == 0:
            self._due()


class ViewWrapper(EpisodeWrapper):
    """Changes what a vector environment shows. It has no compiled rollouts, which would show the environment itself."""

    def _view(
        self,
        observations: Any,
        info: dict[str, Any],
        reported: Mask | None,
        begun: Mask | None,
        rewards: Array | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Shows the result of a reset or step of the environment.

        Args:
            observations: Shape ``(num_envs, ...)``, or dictionaries and tuples of such arrays.
            info: With it.
            reported: The sub-environments that it reports, shape ``(num_envs,)``; None for all.
            begun: Where the observation is the first of an episode; None if nowhere.
            rewards: Of the step; None for a reset, where only ``begun`` ones are new.

        Returns:
            The observations and info to show, in new arrays and a new mapping.
        """
        raise NotImplementedError

    def reset(self, *, seed: Seeds = None, options: Options = None) -> tuple[Any, dict[str, Any]]:
        """See ``EpisodeWrapper.reset``."""
        mask, observations, info = self._reset(seed, options)
        return self._view(observations, info, mask, mask)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Steps all sub-environments; with SAME_STEP, final observations belong to the episodes that they end."""
        observations, rewards, terminations, truncations, info = self.env.step(actions)
        begun, ended = self._autoreset.resets, np.logical_or(terminations, truncations)
        if self._autoreset.mode == AutoresetMode.SAME_STEP and np.count_nonzero(ended):
            last, final = _rows(self.env.observation_space, observations), np.full(self.num_envs, None, dtype=object)
            for i in np.flatnonzero(ended).tolist():
                last[i] = info["final_obs"][i]
            if isinstance(last, list):
                last = concatenate(self.env.single_observation_space, last, copy.deepcopy(observations))
            seen, final_info = self._view(last, info["final_info"], ended, None, rewards)
            shown = _rows(self.observation_space, seen)
            for i in np.flatnonzero(ended).tolist():
                final[i] = shown[i]
            info = {**info, "final_obs": final, "final_info": final_info}
            begun, played = ended, None
        else:
            played = rewards
        observations, info = self._view(observations, info, None, begun, played)
        self._autoreset.step(ended)
        return observations, rewards, terminations, truncations, info


def _rows(space: gym.Space[Any], observations: Any) -> Any:
    """A new array or list with one observation of each sub-environment, of those in a batch of this space."""
    return observations.copy() if isinstance(observations, np.ndarray) else list(iterate(space, observations))
