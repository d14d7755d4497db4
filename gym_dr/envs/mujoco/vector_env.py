"""The native vector environment: checks what it is given, steps the engine, and lays the results out.

What a sync vector environment of the same id does with the same seeds, actions and parameters, it does too.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from gym_dr.compiled.threads import usable_threads
from gym_dr.envs.mujoco.editor import ModelFields
from gym_dr.envs.mujoco.engine import BatchEngine, Engine, OwnDataEngine
from gym_dr.envs.mujoco.episode import check_action, pushed_dofs, quiet_compiler, warn_diverged
from gym_dr.envs.mujoco.episodes import EpisodeTable
from gym_dr.envs.mujoco.info import Info, merge_info, spread_params
from gym_dr.envs.mujoco.space import model_space
from gym_dr.envs.mujoco.tasks import Task
from gym_dr.envs.vector_arguments import (
    check_autoreset_mode,
    check_mask,
    check_reset_mask,
    check_seeds,
    check_whole_number,
)
from gym_dr.errors import ConfigError, EnvStateError
from gym_dr.randomization.context import Context
from gym_dr.randomization.draws import seed_word
from gym_dr.randomization.presets import resolve

if TYPE_CHECKING:  # numba is heavy
    from gym_dr.compiled.policy import SmallPolicy
    from gym_dr.compiled.steps import Steps

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]
Result = tuple[Array, Array, Mask, Mask, dict[str, Any]]


class _Reset(NamedTuple):
    """A checked call of ``reset``."""

    mask: Mask
    seeds: list[int | None]
    exact: dict[str, Array]


class _Outcome(NamedTuple):
    """What a step led to."""

    rewards: Array
    terminations: Mask
    truncations: Mask
    info: Info  # of the sub-environments that did not reset
    resetting: Mask  # those that did


class MujocoVectorEnv(VectorEnv[Array, npt.NDArray[Any], npt.NDArray[Any]]):
    """Many MuJoCo environments with randomized models, stepped together on a thread pool.

    ``params`` and ``info["params"]`` report the randomized parameters and those set by hand.

    Example:
        >>> import gymnasium as gym, gym_dr
        >>> envs = gym.make_vec("gym_dr/HopperDR-v5", num_envs=8)
        >>> observations, info = envs.reset(seed=42)
        >>> observations.shape, info["params"]["body_mass:torso"].shape
        ((8, 11), (8,))
        >>> envs.close()
    """

    env_class: type[Any]  # Gymnasium's class, which checks and keeps the constructor's keywords
    task_class: type[Task]
    space_name: str  # what presets are filed under

    def __init__(
        self,
        num_envs: int,
        *,
        randomization: Any = "default",
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
        num_threads: int | None = None,
        context: str = "info",
        context_params: Any = None,
        **kwargs: Any,
    ) -> None:
        """Builds the environments.

        Args:
            num_envs: Number of sub-environments.
            randomization: A preset ("default", "wide", "none", "random", "extreme"), a mapping of names to
                distributions, a ``Randomization`` or a path to a TOML file.
            autoreset_mode: NEXT_STEP, SAME_STEP or DISABLED, as Gymnasium defines them.
            max_episode_steps: Steps after which an episode is truncated; None for never.
            render_mode: None, or one of Gymnasium's but "human".
            num_threads: Threads to use; None for one a processor.
            context: Who may see the draw: "hidden" (nobody), "info", or "observation" (also the policy: appended to the
                observation, in [-1, 1]).
            context_params: Which parameters the observation shows, as names or as name -> (low, high); None for all
                that vary.
            **kwargs: Those of Gymnasium's class: ``xml_file``, ``frame_skip``, ``reset_noise_scale``, ...

        Raises:
            ConfigError: An argument is impossible.
            UnknownNameError: A preset, body, geom, context or other name is unknown.
            RandomizationError: A range is impossible.
        """
        super().__init__()
        self.num_envs = check_whole_number("num_envs", num_envs)
        self._max_steps = (
            None if max_episode_steps is None else check_whole_number("max_episode_steps", max_episode_steps)
        )
        threads = usable_threads() if num_threads is None else check_whole_number("num_threads", num_threads)
        self.num_threads = min(threads, self.num_envs)
        self._mode = check_autoreset_mode(autoreset_mode)
        if render_mode == "human":
            raise ConfigError("Expected a render_mode that gives frames, such as 'rgb_array', got 'human'.")
        with quiet_compiler():
            self._template = self.env_class(render_mode=render_mode, **kwargs)
        model = self._template.model
        try:
            space = model_space(self.space_name, model)
            self.randomization = resolve(randomization, space)
            self.context = Context(context, context_params, space, self.randomization)
            self.single_observation_space = self.context.extend_space(self._template.observation_space)
        except Exception:
            self._template.close()
            raise
        self.param_space = space.reporting(self.randomization)
        self.render_mode = render_mode
        self.metadata = {**self._template.metadata, "autoreset_mode": self._mode}
        self.single_action_space = self._template.action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

        self._task = self.task_class(self._template)
        engine = OwnDataEngine if self._task.contact_forces else BatchEngine
        self._engine: Engine = engine(model, self.num_envs, self.num_threads, self._task.fields)
        self._table = EpisodeTable(self.param_space, self.randomization, self.num_envs)
        self._nominal = copy.copy(model)  # drawing changes the template's model
        self._model_fields = ModelFields(self.param_space, self._nominal, ())
        self._all: Indices = np.arange(self.num_envs)
        self._seeds: list[int | None] = [None] * self.num_envs
        self._rngs: list[Any] = [None] * self.num_envs
        # the latest, without context
        self._observations: Array = np.zeros((self.num_envs, *(self._template.observation_space.shape or ())))
        self._elapsed: Indices = np.zeros(self.num_envs, np.int64)
        self._done: Mask = np.zeros(self.num_envs, np.bool_)  # ended with the last step and not reset since
        self._begun = False  # whether every sub-environment has an episode

    @property
    def params(self) -> dict[str, Array]:
        """The values in force, of what is randomized or was set by hand: name -> ``(num_envs,)``; a copy."""
        return self._table.params()

    @property
    def draw_index(self) -> Indices:
        """Which draw is in force in each sub-environment, shape ``(num_envs,)``; -1 before its first reset."""
        return self._table.draws.index.copy()

    @property
    def np_random_seed(self) -> tuple[int | None, ...]:  # type: ignore[override]  # as SyncVectorEnv
        """The seed of each sub-environment; None before its first reset."""
        return tuple(self._seeds)

    @property  # type: ignore[misc]
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]  # as SyncVectorEnv
        """The generator of each sub-environment, which its resets draw from; None before its first reset."""
        return tuple(self._rngs)

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
        self._table.pin(arrays, chosen)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begins new episodes.

        Args:
            seed: An integer gives sub-environment i ``seed + i``; a sequence gives each its own.
            options: ``{"params": {name: number or array (num_envs,)}}`` gives exact values for the episodes that
                begin; ``"reset_mask"``, shape ``(num_envs,)`` bool, resets only some.

        Returns:
            Observations of shape ``(num_envs, size)`` float64, and info.

        Raises:
            EnvStateError: The environment is closed.
            UnknownNameError: An unknown parameter in ``options``; nothing has changed then.
            RandomizationError: An impossible seed, mask or value; nothing has changed then.
        """
        self._check_open()
        call = self._check_reset(seed, options)
        envs = np.flatnonzero(call.mask)
        self._seed(envs, call.seeds)
        self._begin(envs, call.exact)
        self._observations[envs] = self._task.observe(self._engine, envs)
        self._done[envs] = False
        self._begun = self._begun or bool((self._table.draws.index >= 0).all())
        info = merge_info([(self._task.reset_info(self._engine), call.mask)])
        return self._observe(), self.context.told(self._with_params(info, call.mask))

    def step(self, actions: npt.NDArray[Any]) -> Result:
        """Advances every sub-environment, or resets it if its mode says so.

        Args:
            actions: Shape ``(num_envs, nu)``, finite; MuJoCo clips them to the control range. Those of sub-environments
                that reset in this step (NEXT_STEP) have no effect.

        Returns:
            Observations ``(num_envs, size)`` float64, rewards ``(num_envs,)`` float64, terminations and truncations
            ``(num_envs,)`` bool, info; all fresh arrays.

        Raises:
            EnvStateError: Closed, not reset yet, or an episode that ended was not reset (DISABLED).
            InvalidActionError: The actions are not such; nothing has changed then.
        """
        self._check_step(actions)
        return self._finish(*self._advance(np.asarray(actions)))

    @property
    def plays(self) -> bool:
        """Whether ``play`` can be used."""
        return self._mode == AutoresetMode.NEXT_STEP

    def play(
        self, policy: SmallPolicy, noise: npt.NDArray[np.float32], steps: Steps, first: int, last: int
    ) -> tuple[int, dict[str, Any]]:
        """Many steps in one call, for trainers: what ``step`` does with the actions of a small policy.

        Goes on until an episode ends, so that ``info`` is made for the last row only, and wrappers need look at no
        other. NEXT_STEP autoreset.

        Args:
            policy: Chooses the actions.
            noise: Shape ``(T, num_envs, nu)`` float32, what the policy samples by.
            steps: Rows from ``first`` on are filled; ``observations[first]`` is where to go on from.
            first: The first row to play.
            last: The row after the last one to play at most.

        Returns:
            The row after the last one played, and info as of the last step.

        Raises:
            EnvStateError: Closed, not reset yet, or made for another autoreset mode.
            InvalidActionError: The policy's actions are not finite; they were not applied.
        """
        from gym_dr.compiled.policy import act

        if not self.plays:
            raise EnvStateError("Expected NEXT_STEP autoreset for play().")
        choose = cast(Any, act)
        actions = np.zeros(self.action_space.shape or (), np.float32)
        for t in range(first, last):
            choose(policy, steps.observations[t], noise[t], steps.choices[t], steps.raw_actions[t], actions)
            self._check_step(actions)
            outcome = self._advance(actions)
            steps.rewards[t], steps.terminated[t], steps.truncated[t] = outcome[:3]
            steps.observations[t + 1] = self._observations
            ended = bool((steps.terminated[t] | steps.truncated[t]).any())
            if ended or t == last - 1:
                break
            self._done = np.zeros_like(self._done)
        return t + 1, self._finish(*outcome)[4]

    def render(self) -> tuple[Any, ...] | None:
        """Draws every sub-environment.

        Returns:
            One frame for each, or None without a render mode.

        Raises:
            EnvStateError: Closed or not reset yet.
        """
        self._check_open()
        if self.render_mode is None:
            return None
        if not self._begun:
            raise EnvStateError("Expected reset() before render().")
        return tuple(self._draw(i) for i in range(self.num_envs))

    def close_extras(self, **kwargs: Any) -> None:
        """Ends threads and gives the memory of the simulations back."""
        if hasattr(self, "_engine"):
            self._engine.close()
            self._template.close()

    # ---- checks, before anything is changed -------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self.closed:
            raise EnvStateError("The vector environment is closed.")

    def _check_step(self, actions: Any) -> None:
        self._check_open()
        if not self._begun:
            raise EnvStateError("Expected reset() of every sub-environment before step().")
        check_action(actions, (self.num_envs, *(self.single_action_space.shape or ())))
        if self._mode == AutoresetMode.DISABLED and self._done.any():
            raise EnvStateError(
                "Expected reset(options={'reset_mask': ...}) of the sub-environments whose episode ended before "
                f"step(): {np.flatnonzero(self._done).tolist()[:10]}."
            )

    def _check_reset(self, seed: Any, options: dict[str, Any] | None) -> _Reset:
        """Checks the arguments of ``reset``; takes ``reset_mask`` out of ``options`` as Gymnasium does."""
        mask = check_reset_mask(options, self.num_envs)
        options = {} if options is None else options
        values = options.get("params")
        exact = {} if values is None else self.param_space.check_vector(values, self.num_envs)
        seeds = check_seeds(seed, self.num_envs)
        options.pop("reset_mask", None)
        return _Reset(mask, seeds, exact)

    # ---- steps ----------------------------------------------------------------------------------------------------

    def _advance(self, actions: npt.NDArray[Any]) -> _Outcome:
        """Steps or resets every sub-environment; what is to be told of it follows in ``_finish``."""
        engine, task = self._engine, self._task
        resetting = self._done
        some_reset = bool(resetting.any())
        before = task.before(engine)
        engine.ctrl[:] = actions
        engine.step(np.flatnonzero(~resetting) if some_reset else None, self._template.frame_skip)
        self._elapsed += 1
        if some_reset:
            self._begin(np.flatnonzero(resetting), {})
        with np.errstate(over="ignore"):  # a huge action costs infinitely much, as in Gymnasium's environments
            rewards, terminations, step_info = task.outcome(engine, actions, before)
        observations = task.observe(engine, slice(None))
        limit = np.inf if self._max_steps is None else self._max_steps
        truncations = self._elapsed >= limit
        if some_reset:
            rewards[resetting], terminations[resetting] = 0.0, False
        if engine.diverged.any():
            self._end_diverged(observations, rewards, terminations, truncations)
        self._observations = observations
        return _Outcome(rewards, terminations, truncations, step_info, resetting)

    # ---- episodes ---------------------------------------------------------------------------------------------------

    def _seed(self, envs: Indices, seeds: list[int | None]) -> None:
        """Seeds sub-environments that were given a seed, or that never had one."""
        given = [i for i in envs.tolist() if seeds[i] is not None or self._seeds[i] is None]
        for i in given:
            self._rngs[i], self._seeds[i] = seeding.np_random(seeds[i])
        words = np.array([seed_word(self._seeds[i] or 0) for i in given], dtype=np.uint64)
        self._table.draws.seed(np.array(given, np.int64), words)

    def _begin(self, envs: Indices, exact: dict[str, Array]) -> None:
        """Makes the draws of episodes that begin, edits their models and puts them at their first state."""
        self._table.begin(envs, exact)
        names = tuple(self._table.names)
        if names != self._model_fields.names:
            self._model_fields = ModelFields(self.param_space, self._nominal, names)
        if names:
            self._engine.write(self._model_fields(self._table.values[envs]), envs)
        self._engine.start(envs, *self._task.first_states([self._rngs[i] for i in envs.tolist()]))
        self._elapsed[envs] = 0

    def _end_diverged(self, observations: Array, rewards: Array, terminations: Mask, truncations: Mask) -> None:
        """Truncates the episodes whose simulation diverged, with the observation before it and no reward."""
        diverged = self._engine.diverged
        observations[diverged] = self._observations[diverged]
        rewards[diverged] = 0.0
        terminations[diverged] = False
        truncations[diverged] = True

    def _finish(
        self, rewards: Array, terminations: Mask, truncations: Mask, step_info: Info, resetting: Mask
    ) -> Result:
        """Collects ``info``, and begins the next episodes in SAME_STEP mode."""
        diverged = self._engine.diverged.copy()
        done = terminations | truncations
        ended: dict[str, Any] = {}
        begun = resetting
        if self._mode == AutoresetMode.SAME_STEP:
            if done.any():
                ended = self._restart(done, step_info, diverged)
                begun, diverged = done, np.zeros_like(diverged)
        else:
            self._done = done
        pieces: list[tuple[Info, Mask]] = [(step_info, ~begun), ({"diverged": diverged}, diverged)]
        if begun.any():
            pieces.insert(1, (self._task.reset_info(self._engine), begun))
        info = self._with_params({**ended, **merge_info(pieces)}, np.ones(self.num_envs, np.bool_))
        # after all is in place, since a warning may be made an exception
        for i in np.flatnonzero(self._engine.diverged).tolist():
            params = {name: float(values[i]) for name, values in self._diverged_params(ended).items()}
            index = ended.get("final_info", info)["draw_index"]
            warn_diverged(f"Sub-environment {i}", self._seeds[i], int(index[i]), params)
        return self._observe(), rewards, terminations, truncations, self.context.told(info)

    def _diverged_params(self, ended: dict[str, Any]) -> dict[str, Array]:
        """The values of the episodes that the step ended or went on with."""
        if "final_info" not in ended:
            return self._table.params()
        return {name: values for name, values in ended["final_info"]["params"].items() if not name.startswith("_")}

    def _restart(self, done: Mask, step_info: Info, diverged: Mask) -> dict[str, Any]:
        """SAME_STEP: keeps the last observations and info of ended episodes and begins new ones."""
        envs = np.flatnonzero(done)
        final = np.full(self.num_envs, None, dtype=object)
        observations = self._observe()
        for i in envs.tolist():
            final[i] = observations[i].copy()
        info = merge_info([(step_info, done), ({"diverged": diverged}, diverged)])
        ended: dict[str, Any] = {"final_obs": final, "_final_obs": done.copy(), "_final_info": done.copy()}
        ended["final_info"] = self._with_params(info, done)
        self._begin(envs, {})
        self._observations[envs] = self._task.observe(self._engine, envs)
        return ended

    @property
    def push_size(self) -> int:
        """How many numbers ``push`` takes for each: 2 (x and y) where the robot floats freely, else 1."""
        return len(pushed_dofs(self._nominal))

    def push(self, velocities: Array, envs: Indices) -> None:
        """Changes the velocity of roots (of the first joint where there is none), as a blow would.

        Args:
            velocities: What is added, m/s or rad/s, shape ``(len(envs), push_size)``.
            envs: The sub-environments that are pushed, each once.

        Raises:
            EnvStateError: The environment is closed.
        """
        self._check_open()
        self._engine.push(envs, pushed_dofs(self._nominal), velocities)

    def _observe(self) -> Array:
        """The latest observations, in a fresh array."""
        return (
            self.context.extend(self._observations, self.params) if self.context.ranges else self._observations.copy()
        )

    def _with_params(self, info: dict[str, Any], mask: Mask) -> dict[str, Any]:
        """Adds the values in force and the draw indices, as the sub-environments in ``mask`` tell them."""
        return {**info, **spread_params(self._table.names, self._table.values, self._table.draws.index, mask)}

    def _draw(self, env: int) -> Any:
        """One frame, drawn by Gymnasium's renderer from a copy of the simulation."""
        import mujoco  # type: ignore[import-untyped]

        template = self._template
        self._engine.snapshot(env, template.model, template.data)
        mujoco.mj_forward(template.model, template.data)
        return template.render()
