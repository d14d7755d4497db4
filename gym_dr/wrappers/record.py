"""Records every finished episode with its draw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from gym_dr.arrays import Floats, Mask
from gym_dr.envs.autoreset import AutoresetState
from gym_dr.envs.stack import stack_of
from gym_dr.envs.vector_arguments import Options, Seeds, check_reset_mask
from gym_dr.randomization.sampler import EpisodeRecord
from gym_dr.wrappers.vector_params import ParamsWrapper

if TYPE_CHECKING:  # numba is heavy
    from gym_dr.compiled.policy import SmallPolicy
    from gym_dr.compiled.steps import Steps


class RecordEpisodes(ParamsWrapper):
    """Calls a function with each finished episode: its draw, return and length.

    Reset steps (NEXT_STEP autoreset) belong to no episode; episodes cut short by a call of ``reset`` are not recorded.

    Attributes:
        paused: Shape ``(num_envs,)`` bool; set it to skip episodes. Those that end while their sub-environment is
            paused are not recorded. A reset ends the pause.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any], callback: Callable[[EpisodeRecord], None]) -> None:
        """Wraps a vector environment.

        Args:
            env: Any vector environment; without ``info["params"]`` the records have no values.
            callback: Called once for each finished episode, in the order of the sub-environments.
        """
        super().__init__(env)
        self.callback = callback
        self._autoreset = AutoresetState.of(env)
        self._returns = np.zeros(self.num_envs)
        self._lengths = np.zeros(self.num_envs, dtype=np.int64)
        self.paused = np.zeros(self.num_envs, dtype=np.bool_)
        self._seeds: Sequence[int | None] = [None] * self.num_envs

    def reset(self, *, seed: Seeds = None, options: Options = None) -> tuple[Any, dict[str, Any]]:
        """Resets the sub-environments and their sums."""
        mask = check_reset_mask(options, self.num_envs)
        options = dict(options) if options else {}  # a copy: Gymnasium removes reset_mask from it
        observations, info = self.env.reset(seed=seed, options=options or None)  # type: ignore[arg-type]
        self._returns[mask], self._lengths[mask], self.paused[mask] = 0.0, 0, False
        self._autoreset.reset(mask)
        seeds = seeds_of_draws(self.env)
        self._seeds = seeds if isinstance(seeds, tuple) else [None] * self.num_envs
        return observations, info

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Steps all sub-environments; calls back for those whose episode has ended."""
        observations, rewards, terminations, truncations, info = self.env.step(actions)
        stepped = self._autoreset.will_step
        self._returns[stepped] += np.asarray(rewards, dtype=np.float64)[stepped]
        self._lengths[stepped] += 1
        self._end(np.logical_or(terminations, truncations), np.asarray(terminations), info)
        return observations, rewards, terminations, truncations, info

    def rollout(
        self, policy: SmallPolicy, noise: Floats, steps: Steps, first: int, last: int
    ) -> tuple[int, dict[str, Any]]:
        """Plays many steps at once, like the environment's ``rollout``; calls back as ``step`` would."""
        stop, info = cast(Any, self.env).rollout(policy, noise, steps, first, last)
        # rewards of reset steps are 0; only the first row can contain them, and only the last row ends episodes
        self._returns = np.add.reduce(np.concatenate([self._returns[None], steps.rewards[first:stop]]), axis=0)
        self._lengths += stop - first - ~self._autoreset.will_step
        self._end(steps.terminated[stop - 1] | steps.truncated[stop - 1], steps.terminated[stop - 1], info)
        return stop, info

    def _end(self, done: Mask, terminated: Mask, info: dict[str, Any]) -> None:
        """Reports the episodes that a step has ended, and resets the sums for the next ones."""
        if done.any():
            self._report(done, terminated, info)
            self._returns[done], self._lengths[done] = 0.0, 0
        self._autoreset.step(done)

    def _report(self, done: Mask, terminated: Mask, info: dict[str, Any]) -> None:
        ended = info.get("final_info", info) if self._autoreset.mode == AutoresetMode.SAME_STEP else info
        params = {key: values for key, values in ended.get("params", {}).items() if not key.startswith("_")}
        for i in np.flatnonzero(done & ~self.paused).tolist():
            self.callback(
                EpisodeRecord(
                    env_index=i,
                    seed=self._seeds[i],
                    draw_index=int(ended["draw_index"][i]) if "draw_index" in ended else -1,
                    params={name: float(values[i]) for name, values in params.items()},
                    episode_return=float(self._returns[i]),
                    length=int(self._lengths[i]),
                    terminated=bool(terminated[i]),
                )
            )


def seeds_of_draws(env: Any) -> Any:
    """The seeds in the keys of draws: those of a ``ResampleParams`` if there is one, or the sub-environments' own."""
    found = (seeds for layer in stack_of(env) if (seeds := getattr(layer, "draw_seeds", None)) is not None)
    return next(found, None) or env.unwrapped.np_random_seed
