"""The vector environment that ``gym.make_vec("gym_dr/LunarLanderDR-v3", num_envs=N)`` gives.

It checks what it is given, calls the physics, and copies out. What a sync vector environment of the same id does with
the same seeds, actions and parameters, it does too, bit for bit.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from gym_dr.compiled.pcg64 import seeded, unpack
from gym_dr.compiled.policy import SmallPolicy
from gym_dr.compiled.steps import Steps
from gym_dr.envs.lunar_lander import constants as lander
from gym_dr.envs.lunar_lander.native.layout import BODIES, BODY, VELOCITY_X, VELOCITY_Y
from gym_dr.envs.lunar_lander.native.parameters import EpisodeParameters
from gym_dr.envs.lunar_lander.native.physics import Physics, bytes_needed
from gym_dr.envs.lunar_lander.params import LUNAR_LANDER
from gym_dr.envs.vector_arguments import (
    check_autoreset_mode,
    check_mask,
    check_reset_mask,
    check_seeds,
    check_whole_number,
)
from gym_dr.errors import ConfigError, EnvStateError, InvalidActionError
from gym_dr.randomization.context import Context
from gym_dr.randomization.draws import seed_word
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization

Observations = npt.NDArray[np.float32]
Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]

# Gymnasium's bounds: position, velocity, angle, angular velocity, legs.
_OBSERVATION_HIGH = np.array([2.5, 2.5, 10.0, 10.0, 2 * math.pi, 10.0, 1.0, 1.0], np.float32)
_OBSERVATION_LOW = np.array([-2.5, -2.5, -10.0, -10.0, -2 * math.pi, -10.0, 0.0, 0.0], np.float32)


class _Reset(NamedTuple):
    """A checked call of ``reset``."""

    mask: Mask
    seeds: list[int | None]
    exact: dict[str, Array]


class LunarLanderVectorEnv(VectorEnv[Observations, npt.NDArray[Any], npt.NDArray[Any]]):
    """Many LunarLanders with randomized physics, stepped together in compiled code.

    Example:
        >>> import gymnasium as gym, gym_dr
        >>> envs = gym.make_vec("gym_dr/LunarLanderDR-v3", num_envs=8)
        >>> observations, info = envs.reset(seed=42)
        >>> observations.shape, info["params"]["gravity"].shape
        ((8, 8), (8,))
        >>> envs.close()
    """

    push_size = 2  # numbers that ``push`` takes for each sub-environment

    def __init__(
        self,
        num_envs: int,
        *,
        continuous: bool = False,
        randomization: Any = "default",
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        max_episode_steps: int | None = 1000,
        render_mode: str | None = None,
        num_threads: int | None = None,
        context: str = "info",
        context_params: Any = None,
    ) -> None:
        """Builds the environments; the first use on a machine compiles them (once, and says so on stderr).

        Args:
            num_envs: Number of sub-environments.
            continuous: Whether actions are two throttles instead of four choices, as in Gymnasium.
            randomization: A preset ("default", "wide", "none", "random", "extreme"), a mapping of names to
                distributions, a ``Randomization`` or a path to a TOML file.
            autoreset_mode: NEXT_STEP, SAME_STEP or DISABLED, as Gymnasium defines them.
            max_episode_steps: Steps after which an episode is truncated; None for never.
            render_mode: None or "rgb_array".
            num_threads: Threads to use; None for one a processor, if there are environments enough.
            context: Who may see the draw: "hidden" (nobody), "info", or "observation" (also the policy: appended to the
                observation, in [-1, 1]).
            context_params: Which parameters the observation shows, as names or as name -> (low, high); None for all
                that vary.

        Raises:
            ConfigError: An argument is impossible, or there is not memory enough.
            UnknownNameError: A preset, parameter or context is unknown.
            RandomizationError: A range is impossible.
        """
        super().__init__()
        self.num_envs = check_whole_number("num_envs", num_envs)
        self._max_steps = (
            None if max_episode_steps is None else check_whole_number("max_episode_steps", max_episode_steps)
        )
        threads = None if num_threads is None else check_whole_number("num_threads", num_threads)
        if render_mode not in (None, "rgb_array"):
            raise ConfigError(f"Expected render_mode None or 'rgb_array', got {render_mode!r}.")
        self._mode = check_autoreset_mode(autoreset_mode)
        self.param_space: ParamSpace = LUNAR_LANDER
        self.randomization: Randomization = resolve(randomization, LUNAR_LANDER)
        self.context = Context(context, context_params, LUNAR_LANDER, self.randomization)
        _check_memory(self.num_envs)

        self.render_mode = render_mode
        self.continuous = bool(continuous)
        self.metadata = {
            "render_modes": ["rgb_array"],
            "render_fps": lander.FPS,
            "autoreset_mode": self._mode,
        }
        self.single_observation_space = self.context.extend_space(gym.spaces.Box(_OBSERVATION_LOW, _OBSERVATION_HIGH))
        self.single_action_space = (
            gym.spaces.Box(-1, +1, (2,), dtype=np.float32) if continuous else gym.spaces.Discrete(4)
        )
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

        self._physics = Physics(self.num_envs, continuous=self.continuous, num_threads=threads)
        self._parameters = EpisodeParameters(LUNAR_LANDER, self.randomization, self._physics.memory.params)
        self._all: Indices = np.arange(self.num_envs)
        self._seeds: list[int | None] = [None] * self.num_envs
        self._begun = False  # whether every sub-environment has an episode
        self._elapsed: Indices = np.zeros(self.num_envs, np.int64)
        self._done: Mask = np.zeros(self.num_envs, np.bool_)  # ended with the last step and not reset since
        self._any_done = False
        self._param_keys = [key for name in self.param_space for key in (name, "_" + name)]  # of info["params"]
        self._canvas: Any = None  # the Box2D environment that draws

    @property
    def params(self) -> dict[str, Array]:
        """The values in force: name -> array of shape ``(num_envs,)``; a copy."""
        table = self._physics.memory.params.T.copy()
        return dict(zip(self.param_space, table, strict=True))

    @property
    def draw_index(self) -> Indices:
        """Which draw is in force in each sub-environment, shape ``(num_envs,)``; -1 before its first reset."""
        return self._parameters.draws.index.copy()

    @property
    def num_threads(self) -> int:
        """How many threads step the sub-environments."""
        return self._physics.threads

    @property
    def plays(self) -> bool:
        """Whether ``play`` can be used: threads share the work of one step, not of many."""
        alone = self._physics.threads == 1 and self._mode == AutoresetMode.NEXT_STEP
        return alone and not self.context.ranges  # the policy is given what the physics observe

    @property
    def np_random_seed(self) -> tuple[int | None, ...]:  # type: ignore[override]  # as SyncVectorEnv
        """The seed of each sub-environment; None before its first reset."""
        return tuple(self._seeds)

    @property  # type: ignore[misc]  # as SyncVectorEnv
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """Generators in the state of each sub-environment's random stream; drawing from them changes nothing."""
        generators = []
        for stream in self._physics.memory.streams:
            bits = np.random.PCG64()
            bits.state = cast(Any, unpack(stream))
            generators.append(np.random.Generator(bits))
        return tuple(generators)

    def set_params(self, values: Mapping[str, Any] | None, mask: Mask | None = None) -> None:
        """Fixes parameters from each sub-environment's next reset on, in place of draws.

        Args:
            values: name -> number or array of shape ``(num_envs,)``; kept beside those set before. None hands all
                parameters back to the draws.
            mask: Shape ``(num_envs,)`` bool, the sub-environments that are meant; None for all.

        Raises:
            UnknownNameError: There is no such parameter; nothing has changed then.
            RandomizationError: A value or the mask is impossible; nothing has changed then.
        """
        chosen = np.flatnonzero(check_mask(mask, self.num_envs))
        arrays = None if values is None else self.param_space.check_vector(values, self.num_envs)
        self._parameters.pin(arrays, chosen)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Any]]:
        """Begins new episodes.

        Args:
            seed: An integer gives sub-environment i ``seed + i``; a sequence gives each its own.
            options: ``{"params": {name: number or array (num_envs,)}}`` gives exact values for the episodes that begin;
                ``"reset_mask"``, shape ``(num_envs,)`` bool, resets only some.

        Returns:
            Observations of shape ``(num_envs, 8)`` float32 (more with context), and info.

        Raises:
            EnvStateError: The environment is closed.
            UnknownNameError: An unknown parameter in ``options``; nothing has changed then.
            RandomizationError: An impossible seed, mask or value; nothing has changed then.
        """
        self._check_open()
        call = self._check_reset(seed, options)
        envs = self._all if call.mask.all() else np.flatnonzero(call.mask)
        self._seed(envs, call.seeds)
        self._begin(envs, call.exact)
        self._physics.step(envs)
        self._elapsed[envs] = 0
        self._done[envs] = False
        self._any_done = bool(self._done.any())
        self._begun = self._begun or bool((self._parameters.draws.index >= 0).all())
        return self._observe(), self._info(None if envs is self._all else call.mask)

    def step(self, actions: npt.NDArray[Any]) -> tuple[Observations, Array, Mask, Mask, dict[str, Any]]:
        """Advances every sub-environment by 1/50 s, or resets it if its mode says so.

        Args:
            actions: Shape ``(num_envs,)`` of whole numbers 0 to 3, or ``(num_envs, 2)`` finite throttles (clipped to
                [-1, 1] as in Gymnasium). Those of sub-environments that reset in this step (NEXT_STEP) have no effect.

        Returns:
            Observations ``(num_envs, 8)`` float32, rewards ``(num_envs,)`` float64, terminations and truncations
            ``(num_envs,)`` bool, info; all fresh arrays.

        Raises:
            EnvStateError: Closed, not reset yet, or an episode that ended was not reset (DISABLED).
            InvalidActionError: The actions are not such; nothing has changed then.
        """
        self._check_open()
        if not self._begun:
            raise EnvStateError("Expected reset() of every sub-environment before step().")
        self._take(actions)
        if self._any_done and self._mode == AutoresetMode.DISABLED:
            raise EnvStateError(
                "Expected reset(options={'reset_mask': ...}) of sub-environments whose episode ended before step(): "
                f"{np.flatnonzero(self._done).tolist()[:10]}."
            )
        memory = self._physics.memory
        self._elapsed += 1
        if self._any_done and self._mode == AutoresetMode.NEXT_STEP:
            self._begin(np.flatnonzero(self._done), {})
            self._elapsed[self._done] = 0
        self._physics.step(self._all)
        terminations = memory.terminations.copy()
        truncations = np.zeros_like(terminations) if self._max_steps is None else self._elapsed >= self._max_steps
        rewards = memory.rewards.copy()
        done = terminations | truncations
        info: dict[str, Any] = {}
        if self._mode == AutoresetMode.SAME_STEP:
            if done.any():
                info = self._restart(done)
        else:
            self._done = done
            self._any_done = bool(done.any())
        info.update(self._info(None))
        return self._observe(), rewards, terminations, truncations, info

    def play(
        self, policy: SmallPolicy, noise: npt.NDArray[np.float32], steps: Steps, first: int, last: int
    ) -> tuple[int, dict[str, Any]]:
        """Many steps in one compiled call, for trainers: what ``step`` does with the actions of a small policy.

        Goes on until an episode ends, so that wrappers need look at the last row only. NEXT_STEP autoreset.

        Args:
            policy: Chooses the actions.
            noise: Shape ``(T, num_envs, numbers)`` float32, what the policy samples by.
            steps: Rows from ``first`` on are filled; ``observations[first]`` is where to go on from.
            first: The first row to play.
            last: The row after the last one to play at most.

        Returns:
            The row after the last one played, and info as of the last step.

        Raises:
            EnvStateError: Closed, not reset yet, or made for several threads or another autoreset mode.
        """
        self._check_open()
        if not self._begun or not self.plays:
            raise EnvStateError(
                "Expected reset() before play(), NEXT_STEP autoreset, num_threads=1 and no context in observations."
            )
        if self._any_done:
            self._begin(np.flatnonzero(self._done), {})
        limit = np.iinfo(np.int64).max if self._max_steps is None else self._max_steps
        stop = self._physics.rollout(policy, noise, steps, self._elapsed, limit, (first, last))
        self._done = steps.terminated[stop - 1] | steps.truncated[stop - 1]
        self._any_done = bool(self._done.any())
        return stop, self._info(None)

    def render(self, indices: Sequence[int] | None = None) -> tuple[Any, ...] | None:
        """Draws sub-environments with Gymnasium's own drawing (without the engines' sparks).

        Args:
            indices: Which ones; None for all.

        Returns:
            One array ``(400, 600, 3)`` uint8 for each, or None without a render mode.

        Raises:
            EnvStateError: Closed or not reset yet.
        """
        self._check_open()
        if self.render_mode is None:
            gym.logger.warn("Expected render_mode='rgb_array' when the environment is made, to call render().")
            return None
        if not self._begun:
            raise EnvStateError("Expected reset() before render().")
        from gym_dr.envs.lunar_lander.native.drawing import Canvas

        if self._canvas is None:
            self._canvas = Canvas()
        chosen = range(self.num_envs) if indices is None else indices
        return tuple(self._canvas.draw(self._physics.memory, int(i)) for i in chosen)

    def close_extras(self, **kwargs: Any) -> None:
        """Ends threads and drawing."""
        if hasattr(self, "_physics"):
            self._physics.close()
            if self._canvas is not None:
                self._canvas.close()

    # ---- checks, before anything is changed ------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self.closed:
            raise EnvStateError("The vector environment is closed.")

    def _check_reset(self, seed: Any, options: dict[str, Any] | None) -> _Reset:
        """Checks the arguments of ``reset``; takes ``reset_mask`` out of ``options`` as Gymnasium does."""
        mask = check_reset_mask(options, self.num_envs)
        options = {} if options is None else options
        values = options.get("params")
        exact = {} if values is None else self.param_space.check_vector(values, self.num_envs)
        seeds = check_seeds(seed, self.num_envs)
        options.pop("reset_mask", None)
        return _Reset(mask, seeds, exact)

    def _take(self, actions: Any) -> None:
        """Checks actions and hands them to the physics."""
        array = np.asarray(actions)
        if self.continuous:
            if array.shape != (self.num_envs, 2) or array.dtype.kind not in "fiu":
                raise InvalidActionError(
                    f"Expected throttles of shape ({self.num_envs}, 2), got shape {array.shape}, dtype {array.dtype}."
                )
            if not np.isfinite(array).all():
                raise InvalidActionError("Expected finite throttles, got nan or infinity.")
            self._physics.throttles[:] = array
            return
        if array.shape != (self.num_envs,) or array.dtype.kind not in "iu":
            raise InvalidActionError(
                f"Expected whole numbers of shape ({self.num_envs},), got shape {array.shape} and dtype {array.dtype}."
            )
        choices = array.astype(np.int64)
        if choices.view(np.uint64).max() > 3:  # as unsigned numbers, negative ones are large
            wrong = array[(array < 0) | (array > 3)][0]
            raise InvalidActionError(f"Expected actions from 0 to 3, got {wrong}.")
        self._physics.choices[:] = choices

    # ---- episodes --------------------------------------------------------------------------------------------------

    def _seed(self, envs: Indices, seeds: list[int | None]) -> None:
        """Seeds sub-environments that were given a seed, or that never had one."""
        given = [i for i in envs.tolist() if seeds[i] is not None or self._seeds[i] is None]
        if not given:
            return
        words = np.empty(len(given), np.uint64)
        for place, i in enumerate(given):
            chosen = seeds[i]
            if chosen is None:
                chosen = cast(int, np.random.SeedSequence().entropy)
            self._seeds[i] = chosen
            words[place] = seed_word(chosen)
            self._physics.memory.streams[i] = seeded(chosen)
        self._parameters.draws.seed(np.array(given, np.int64), words)

    def _begin(self, envs: Indices, exact: dict[str, Array]) -> None:
        """Puts parameters in force for episodes that the next step of the physics begins."""
        self._parameters.begin(envs, exact)
        self._physics.begin(envs)

    def _restart(self, done: Mask) -> dict[str, Any]:
        """SAME_STEP: keeps the last observations and info of ended episodes and begins new ones."""
        envs = np.flatnonzero(done)
        final = np.full(self.num_envs, None, dtype=object)
        observations = self._observe()
        for i in envs.tolist():
            final[i] = observations[i].copy()
        info = {
            "final_obs": final,
            "_final_obs": done.copy(),
            "final_info": self._info(done),
            "_final_info": done.copy(),
        }
        self._begin(envs, {})
        self._physics.step(envs)
        self._elapsed[envs] = 0
        return info

    def push(self, velocities: Array, envs: Indices) -> None:
        """Changes the velocity of hulls and legs at once, as a blow would.

        Args:
            velocities: What is added, m/s, shape ``(len(envs), 2)``.
            envs: The sub-environments that are pushed, each once.

        Raises:
            EnvStateError: Closed or not reset yet.
        """
        self._check_open()
        if not self._begun:
            raise EnvStateError("Expected reset() before push().")
        rows = self._physics.memory.rows
        for body in range(BODIES):
            for axis, place in enumerate((VELOCITY_X, VELOCITY_Y)):
                # rounded once, as where Box2D takes a number from Python
                rows[envs, body * BODY + place] = rows[envs, body * BODY + place] + velocities[:, axis]

    def _observe(self) -> Observations:
        """The latest observations, in a fresh array."""
        observations = self._physics.memory.observations
        return self.context.extend(observations, self.params) if self.context.ranges else observations.copy()

    def _info(self, mask: Mask | None) -> dict[str, Any]:
        """What single environments tell, collected as Gymnasium does: arrays with masks of who told it."""
        names = len(self.param_space)
        table = self._physics.memory.params.T.copy()
        index = self._parameters.draws.index.copy()
        masks = np.ones((names + 2, self.num_envs), np.bool_)
        if mask is not None:
            masks[:] = mask
            table[:, ~mask] = 0.0
            index[~mask] = 0
        rows: list[Any] = [None] * (2 * names)
        rows[::2] = list(table)
        *rows[1::2], params_mask, index_mask = list(masks)
        params = dict(zip(self._param_keys, rows, strict=True))
        return self.context.told(
            {"params": params, "_params": params_mask, "draw_index": index, "_draw_index": index_mask}
        )


def _check_memory(num_envs: int) -> None:
    """Raises ConfigError if so many environments do not fit into the machine's free memory."""
    needed = bytes_needed(num_envs)
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        free = max(free, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2)  # caches can be given up
    except (AttributeError, ValueError, OSError):  # no such question on this system
        free = 2**36
    if needed > free:
        raise ConfigError(
            f"Expected num_envs that fit into memory: {num_envs} need {needed / 2**30:.1f} GiB, "
            f"there are {free / 2**30:.1f} GiB."
        )
