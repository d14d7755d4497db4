"""The native vector environment, with arrays in and out: one class for all families.

With the same seeds, actions and parameters it behaves like a sync vector environment with the same id.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, NoReturn, ParamSpec, TypeVar

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from gym_dr.arrays import Array, Floats, Indices, Mask, Words
from gym_dr.envs.backend import Backend, EnvState, Info, Outcome
from gym_dr.envs.core import NO_LIMIT, Episodes, Step, fingerprint, warn_diverged
from gym_dr.envs.played import Played
from gym_dr.envs.replay import LogReplay
from gym_dr.envs.vector_arguments import (
    Options,
    Seeds,
    check_autoreset_mode,
    check_finite,
    check_indices,
    check_mask,
    check_memory,
    check_render_mode,
    check_reset_mask,
    check_seeds,
    check_whole_number,
)
from gym_dr.errors import EnvStateError
from gym_dr.options import plain
from gym_dr.randomization.context import Context
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.sampler import FixedSampler, ParamSampler
from gym_dr.randomization.space import checked_values, exact_values
from gym_dr.randomization.table import ParamTable

if TYPE_CHECKING:  # numba is heavy
    from gym_dr.compiled.policy import SmallPolicy
    from gym_dr.compiled.steps import Steps

P = ParamSpec("P")
T = TypeVar("T")
Result = tuple[npt.NDArray[Any], Array, Mask, Mask, dict[str, Any]]


def _alone(method: Callable[Concatenate[NativeVectorEnv, P], T]) -> Callable[Concatenate[NativeVectorEnv, P], T]:
    """A method that refuses calls of a closed environment, and all while one of another thread is running.

    Compiled code of two threads that write to the same arrays could end the process. Python changes threads and handles
    interrupts at calls and loops, not between the question and ``[0] = True``. A lock would take ten times as long.
    """

    @functools.wraps(method)
    def call(self: NativeVectorEnv, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if self.closed or self._running[0]:
            self._refuse()
        try:
            self._running[0] = True
            return method(self, *args, **kwargs)
        finally:
            self._running[0] = False

    return call


class NativeVectorEnv(VectorEnv[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]):
    """Many randomized environments of one family, stepped together, on a backend that a subclass names.

    A subclass also names Gymnasium's ``VectorEnv`` as a base: skrl reads the modules of direct bases.

    Example:
        >>> import gymnasium as gym, gym_dr
        >>> envs = gym.make_vec("gym_dr/LunarLanderDR-v3", num_envs=8)
        >>> observations, info = envs.reset(seed=42)
        >>> observations.shape, info["params"]["gravity"].shape
        ((8, 8), (8,))
        >>> envs.close()
    """

    backend_class: ClassVar[type[Backend]]

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
        """Builds the environments. Some families compile on first use on a machine, with a message on stderr.

        Args:
            num_envs: Number of sub-environments.
            randomization: A preset ("default", "wide", "none", "random", "extreme"), a mapping of names to
                distributions, a ``Randomization`` or a path to a TOML file.
            autoreset_mode: NEXT_STEP, SAME_STEP or DISABLED, as Gymnasium defines them.
            max_episode_steps: Steps after which an episode is truncated; -1 for never. None for the id's own limit in
                ``gymnasium.make_vec``, and for never without it.
            render_mode: None, or one of the environment's modes that return frames, such as "rgb_array".
            num_threads: Largest number of threads, on which results do not depend; None for one per processor.
            context: Who may see the draw: "hidden" (nobody), "info", or "observation" (also the policy: appended to the
                observation, in [-1, 1]).
            context_params: Which parameters the observation shows, as names or as name -> (low, high); None for all
                that vary.
            **kwargs: The family's own keywords, those of Gymnasium's environment.

        Raises:
            ConfigError: An argument is impossible.
            UnknownNameError: A preset, parameter or context is unknown.
            RandomizationError: A range is impossible.
        """
        super().__init__()
        self._running = [False]  # whether a call is, see ``_alone``
        self.num_envs = check_whole_number("num_envs", num_envs)
        unlimited = max_episode_steps is None or max_episode_steps == -1  # -1 as in Gymnasium
        max_steps = NO_LIMIT if unlimited else check_whole_number("max_episode_steps", max_episode_steps)
        threads = None if num_threads is None else check_whole_number("num_threads", num_threads)
        mode = check_autoreset_mode(autoreset_mode)
        kwargs = {name: plain(value) for name, value in kwargs.items()}
        self._backend = self._make_backend(render_mode, **kwargs)
        try:
            frames = [mode for mode in self._backend.metadata["render_modes"] if mode != "human"]
            self.render_mode = check_render_mode(render_mode, frames)
            space = self._backend.space
            self.randomization = resolve(randomization, space)
            self.context = Context(context, context_params, space, self.randomization)
            self.single_observation_space = self.context.extend_space(self._backend.observation_space)
            self.param_space = space.reporting(self.randomization)
            numbers = 6 * len(self.param_space.nominal) + 2 * int(np.prod(self._backend.observation_space.shape or 0))
            check_memory(self.num_envs, 8 * numbers + 600 + self._backend.bytes_each)  # 600 are Python's
            current = self._backend.allocate(self.num_envs, threads)
        except BaseException:
            self._backend.close()
            raise
        sampler = FixedSampler(self.param_space, self.randomization)
        self._table = ParamTable(self.param_space, sampler, self.num_envs, current)
        self._episodes = Episodes(
            self._backend,
            self._table,
            self.context,
            mode=mode,
            max_steps=max_steps,
            environment=fingerprint(self._backend, kwargs, mode.value),
        )
        self.autoreset_mode = mode  # as in Gymnasium's; TorchRL reads it
        self.metadata = {**self._backend.metadata, "render_modes": frames, "autoreset_mode": mode}
        self.single_action_space = self._backend.action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def _make_backend(self, render_mode: str | None, **kwargs: Any) -> Backend:
        """Makes a ``backend_class``; a subclass may choose another class, or use the render mode."""
        return self.backend_class(**kwargs)

    def __setattr__(self, name: str, value: Any) -> None:
        """Sets an attribute; the name of a parameter pins it, see ``set_params``."""
        if name in getattr(self, "param_space", ()) and not hasattr(self, name):
            self.set_params({name: value})
            return
        super().__setattr__(name, value)
        if name == "spec" and getattr(value, "kwargs", {}).get("max_episode_steps", 0) is None:  # in make_vec
            self._episodes.max_steps = value.max_episode_steps or NO_LIMIT

    # ---- parameters --------------------------------------------------------------------------------------------------

    @property
    def params(self) -> dict[str, Array]:
        """Current values of parameters that are randomized or set by hand: name -> ``(num_envs,)``; a copy."""
        return self._table.params()

    @property
    def pinned(self) -> dict[str, Array]:
        """Values pinned by ``set_params``: name -> ``(num_envs,)``, nan in sub-environments where it is not pinned."""
        return self._table.pinned

    @property
    def draw_index(self) -> Indices:
        """The current draw index of each sub-environment, shape ``(num_envs,)``; -1 before its first reset."""
        return self._table.index.copy()

    @property
    def sampler(self) -> ParamSampler:
        """The sampler that makes the draws."""
        return self._table.sampler

    def set_sampler(self, sampler: ParamSampler) -> None:
        """Replaces the sampler, from each sub-environment's next reset on.

        Set a sampler that learns again after each update, so that worker processes get the new version.

        Raises:
            RandomizationError: Its support is not the environment's randomization.
        """
        self._table.sampler = sampler

    def set_params(self, values: Mapping[str, Any] | None, mask: Mask | None = None) -> None:
        """Pins parameters from each sub-environment's next reset on, in place of draws.

        A parameter turns on the switch that it needs, unless the switch is drawn or set by hand.

        Args:
            values: name -> number or array of shape ``(num_envs,)``; earlier pins stay. None removes all pins, so that
                all parameters are drawn again.
            mask: Shape ``(num_envs,)`` bool, the sub-environments to pin them in; None for all.

        Raises:
            UnknownNameError: There is no such parameter; nothing has changed.
            RandomizationError: A value or the mask is impossible, or a parameter would have no effect; nothing has
                changed.
        """
        envs = np.flatnonzero(check_mask(mask, self.num_envs))
        self._table.pin(None if values is None else self._checked(values), envs)

    def _checked(self, values: Any) -> dict[str, Array]:
        return checked_values(values, self.num_envs, self.param_space, self.randomization, self.pinned)

    def hold_draws(self, seed_words: Words, index: Indices) -> None:
        """Uses the draws with these keys from each sub-environment's next reset on, until others are held.

        Args:
            seed_words: Shape ``(num_envs,)``; seeding no longer changes them.
            index: Draw indices, shape ``(num_envs,)``.

        Raises:
            RandomizationError: One of them has another shape; nothing has changed.
        """
        self._table.hold_draws(seed_words, index)

    # ---- Gymnasium's interface ---------------------------------------------------------------------------------------

    @property
    def num_threads(self) -> int:
        """How many threads share the sub-environments at most; steps that are short for the number use fewer."""
        return self._backend.num_threads

    @property
    def np_random_seed(self) -> tuple[int | None, ...]:  # type: ignore[override]  # as SyncVectorEnv
        """The seed of each sub-environment; None before its first reset."""
        return tuple(self._episodes.seeds)

    @property  # type: ignore[misc]  # as SyncVectorEnv
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """Generators in the state of each sub-environment's random stream."""
        return self._backend.generators()

    @_alone
    def reset(self, *, seed: Seeds = None, options: Options = None) -> tuple[npt.NDArray[Any], dict[str, Any]]:
        """Begins new episodes.

        Args:
            seed: An integer gives sub-environment i ``seed + i``; a sequence gives each its own.
            options: ``{"params": {name: number or array (num_envs,)}}`` sets exact values for the new episodes;
                ``"reset_mask"``, shape ``(num_envs,)`` bool, resets only some sub-environments. Other options are those
                of Gymnasium's environment, such as "low" and "high" for the initial states of classic control.

        Returns:
            Observations of shape ``(num_envs, size)``, and info.

        Raises:
            EnvStateError: The environment is closed.
            UnknownNameError: An unknown parameter in ``options``; nothing has changed.
            RandomizationError: An impossible seed, mask or value; nothing has changed.
        """
        mask = check_reset_mask(options, self.num_envs)
        seeds = check_seeds(seed, self.num_envs)
        values = exact_values(options, self.param_space)
        exact = {} if values is None else self._checked(values)
        self._episodes.reset(mask, seeds, exact, self._backend.check_options(options or {}))
        told = None if mask.all() else mask
        observations = self._episodes.observe()
        return observations, self._with_params(merge_info([(self._backend.reset_info(), mask)]), self._table.info(told))

    def step(self, actions: npt.NDArray[Any]) -> Result:
        """Steps every sub-environment, or resets it if the autoreset mode requires it.

        Args:
            actions: Discrete ones, shape ``(num_envs,)``, or finite numbers, shape ``(num_envs, size)``, which are
                clipped to the bounds as in Gymnasium. Those of sub-environments that reset in this step (NEXT_STEP) are
                ignored.

        Returns:
            Observations ``(num_envs, size)``, rewards ``(num_envs,)`` float64, terminations and truncations
            ``(num_envs,)`` bool, and info; all new arrays.

        Raises:
            EnvStateError: Closed, not reset yet, or an episode that ended was not reset (DISABLED).
            InvalidActionError: The actions have the wrong shape or type, are not finite, or are not in the space;
                nothing has changed.
        """
        if self.closed or self._running[0]:
            self._refuse()
        try:  # as in ``_alone``, which takes longer
            self._running[0] = True
            episodes = self._episodes
            episodes.autoreset.check_step()
            step = episodes.step(episodes.check_actions(actions))
            return (
                episodes.observe() if step.seen is None else episodes.visible(step.seen[0]),
                step.outcome.rewards,
                step.outcome.terminations,
                step.truncations,
                self._info(step),
            )
        finally:
            self._running[0] = False

    @_alone
    def render(self, indices: Sequence[int] | None = None) -> tuple[Any, ...] | None:
        """Renders sub-environments.

        Args:
            indices: Which ones; None for all.

        Returns:
            One frame for each, or None without a render mode.

        Raises:
            EnvStateError: Closed or not reset yet.
            InvalidActionError: There is no such sub-environment, or one is named twice.
        """
        chosen = range(self.num_envs) if indices is None else check_indices(indices, self.num_envs).tolist()
        if self.render_mode is None:
            gym.logger.warn("Expected render_mode='rgb_array' when the environment is made, to call render().")
            return None
        self._episodes.autoreset.check_begun("render")
        return tuple(self._backend.render(i) for i in chosen)

    def close_extras(self, **kwargs: Any) -> None:
        """Ends threads and frees memory."""
        if hasattr(self, "_episodes"):  # not if its construction failed
            _alone(lambda envs: envs._episodes.close())(self)

    # ---- beyond Gymnasium --------------------------------------------------------------------------------------------

    @property
    def push_size(self) -> int:
        """How many velocities a push of one sub-environment has."""
        return self._backend.push_size

    @_alone
    def push(self, velocities: Array, envs: Indices) -> None:
        """Changes velocities instantly, like an impact.

        Args:
            velocities: Added to the velocities, m/s or rad/s, shape ``(len(envs), push_size)``.
            envs: The sub-environments to push, each once.

        Raises:
            EnvStateError: Closed or not reset yet.
            InvalidActionError: The velocities have the wrong shape or type, or are not finite, or there is no such
                sub-environment; nothing has changed.
        """
        self._episodes.autoreset.check_begun("push")
        chosen = check_indices(envs, self.num_envs)
        self._backend.push(check_finite(velocities, (len(chosen), self.push_size), "velocities"), chosen)

    @_alone
    def apply_wrench(self, wrenches: Array, envs: Indices) -> None:
        """Lets a force and a torque act on the floating base, until others do or the episode ends.

        Args:
            wrenches: Force (N) and torque (N m) along and about x, y and z of the world, shape ``(len(envs), 6)``.
            envs: The sub-environments, each once.

        Raises:
            EnvStateError: Closed or not reset yet, or there is no floating base.
            InvalidActionError: The wrenches have the wrong shape or type, or are not finite, or there is no such
                sub-environment; nothing has changed.
        """
        self._episodes.autoreset.check_begun("apply_wrench")
        if not self.param_space.floats:
            raise EnvStateError("Expected a robot with a floating base, on which a wrench can act.")
        chosen = check_indices(envs, self.num_envs)
        self._backend.apply_wrench(check_finite(wrenches, (len(chosen), 6), "wrenches"), chosen)

    @_alone
    def get_state(self) -> EnvState:
        """All that the next steps depend on, as arrays by name with ``num_envs`` rows.

        These are physics, random streams, draws and pins, elapsed steps and pending resets. A sampler that learns and
        the number of threads are not included.

        Raises:
            EnvStateError: The environment is closed, or its physics does not support states.
        """
        return self._episodes.get_state()

    @_alone
    def set_state(self, state: Mapping[str, npt.NDArray[Any]], mask: Mask | None = None) -> npt.NDArray[Any]:
        """Continues from a state: the next steps equal, bit for bit, those that followed ``get_state``.

        Args:
            state: From ``get_state`` of an environment with the same id, keywords and number of sub-environments; rows
                may be in another order.
            mask: Shape ``(num_envs,)`` bool, the sub-environments to restore; None for all. The others stay.

        Returns:
            The observations ``(num_envs, size)``.

        Raises:
            EnvStateError: The environment is closed, its physics does not support states, or the state does not fit;
                nothing has changed.
            UnknownNameError: The state has a parameter that the environment does not have; nothing has changed.
            RandomizationError: The mask has another shape, or a parameter an impossible value; nothing has changed.
        """
        self._episodes.set_state(state, np.flatnonzero(check_mask(mask, self.num_envs)))
        return self._episodes.observe()

    @_alone
    def replay(self) -> LogReplay:
        """Takes over all sub-environments to replay logged motion; step them through the result only.

        Raises:
            EnvStateError: The environment is closed, or its physics does not support replay.
        """
        replay = self._backend.replay()
        replay.envs = self
        return replay

    @property
    def supports_rollout(self) -> bool:
        """Whether ``rollout`` can be used; use ``stack.supports`` if there may be wrappers."""
        return self.autoreset_mode == AutoresetMode.NEXT_STEP

    @_alone
    def rollout(self, policy: SmallPolicy, noise: Floats, steps: Steps, first: int, last: int) -> Played:
        """Plays many steps in one call, for trainers: like ``step`` with the actions of a small policy.

        Requires NEXT_STEP autoreset. All episodes that begin have draws of the sampler's version at the start.

        Args:
            policy: Chooses the actions.
            noise: Random numbers for the policy, shape ``(T, num_envs, numbers)`` float32.
            steps: Filled from row ``first`` on; ``observations[first]`` are the current observations.
            first: The first row to play.
            last: The row after the last one to play.

        Returns:
            The steps, which are rows of ``steps``, and the draws of their episodes.

        Raises:
            EnvStateError: Closed, not reset yet, or another autoreset mode.
            InvalidActionError: The policy's actions are not finite; they were not applied.
        """
        self._episodes.autoreset.check_begun("rollout")
        if not self.supports_rollout:
            raise EnvStateError(f"Expected NEXT_STEP autoreset for rollout(), got {self.autoreset_mode.value}.")
        step, played = self._episodes.rollout(policy, noise, steps, first, last)
        return played._replace(info=self._info(step))

    def _refuse(self) -> NoReturn:
        """Raises EnvStateError, since the environment is closed or another call is running."""
        busy = "Expected one call at a time, got one while another is running. Make an environment for each thread."
        raise EnvStateError("The vector environment is closed." if self.closed else busy)

    def __reduce__(self) -> NoReturn:
        """Refuses copies and pickles, which would share or lose compiled code and threads.

        Raises:
            EnvStateError: Always.
        """
        raise EnvStateError(
            "A native environment cannot be copied or pickled. Make another one with the same arguments, and continue "
            "there with set_state(envs.get_state())."
        )

    # ---- info --------------------------------------------------------------------------------------------------------

    def _info(self, step: Step) -> dict[str, Any]:
        """``info`` of a step; warns of simulations that diverged."""
        outcome, begun = step.outcome, step.begun
        report: dict[str, Any] = {}
        if outcome.info or begun is not None or outcome.diverged is not None:  # every microsecond counts
            report = self._report(outcome, np.ones(self.num_envs, np.bool_) if begun is None else ~begun, begun)
        now = self._table.info() if step.seen is None else self._table.laid_out(*step.seen[1:])
        info = self._with_params(report, now)
        if step.final_observations is not None and step.final_params is not None and begun is not None:  # SAME_STEP
            final = np.full(self.num_envs, None, dtype=object)
            for i in begun.nonzero()[0].tolist():
                final[i] = step.final_observations[i].copy()
            final_info = self._with_params(self._report(outcome, begun, None), step.final_params)
            info |= {"final_obs": final, "_final_obs": begun.copy(), "final_info": final_info, "_final_info": begun}
        for divergence in step.divergences:  # last, since a warning may be turned into an exception
            warn_diverged(*divergence)
        return info

    def _report(self, outcome: Outcome, stepped: Mask, begun: Mask | None) -> dict[str, Any]:
        """What the physics reports for sub-environments that were ``stepped``, and for those whose episode began."""
        pieces = [(outcome.info, stepped)]
        if begun is not None:
            pieces.append((self._backend.reset_info(), begun))
        if outcome.diverged is not None:
            pieces.append(({"diverged": outcome.diverged}, outcome.diverged & stepped))
        return merge_info(pieces)

    def _with_params(self, info: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
        """Adds values and draw indices, unless they are hidden."""
        return self.context.visible_info({**info, **params} if info else params)


def merge_info(pieces: Sequence[tuple[Info, Mask]]) -> dict[str, Any]:
    """Merges the reports of different sub-environments, in the layout of Gymnasium's vector environments.

    Every key ``k`` has an array, 0 where a sub-environment did not report it, and a mask ``_k`` of those that did.

    Args:
        pieces: Arrays ``(num_envs, ...)`` by key, with the mask of the sub-environments that report them.
    """
    merged: dict[str, Any] = {}
    for arrays, mask in pieces:
        if not arrays or not mask.any():
            continue
        everyone = bool(mask.all())
        for key, array in arrays.items():
            if everyone:
                merged[key], merged[f"_{key}"] = array, mask.copy()
                continue
            if key not in merged:
                merged[key], merged[f"_{key}"] = np.zeros_like(array), np.zeros_like(mask)
            merged[key][mask] = array[mask]
            merged[f"_{key}"] |= mask
    return merged
