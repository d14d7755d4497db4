"""One environment, the only row of its backend, also for sync and async mode: one class for all families."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, cast

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.utils import EzPickle

from gym_dr.arrays import Array
from gym_dr.compiled import pcg64
from gym_dr.envs.backend import CompiledBackend, EnvState, Info
from gym_dr.envs.core import Episodes, fingerprint, warn_diverged
from gym_dr.envs.vector_arguments import check_finite, check_render_mode
from gym_dr.errors import InvalidActionError
from gym_dr.randomization.episode import BuiltEnv
from gym_dr.randomization.space import ParamSpace

_ONLY = np.zeros(1, np.int64)  # index of the only environment


class CompiledEnv(BuiltEnv, gym.Env[Any, Any], EzPickle):
    """One randomized environment, on the backend that a subclass names, with Gymnasium's ``Env`` as another base.

    The first use on a machine compiles its physics, with a message on stderr.
    """

    backend_class: ClassVar[type[CompiledBackend]]
    metadata = {"render_modes": ["rgb_array"], "render_fps": 50}

    def __init__(self, **kwargs: Any) -> None:
        """Builds an environment; see ``BuiltEnv``."""
        super().__init__(**kwargs)
        self._episodes = Episodes(self._backend, self._table, self.context, environment=self._environment)

    def _build(self, *, render_mode: str | None = None, **kwargs: Any) -> ParamSpace:
        self._backend = self.backend_class(**kwargs)
        frames = [mode for mode in self._backend.metadata["render_modes"] if mode != "human"]
        self.metadata = {**self._backend.metadata, "render_modes": frames}
        self.render_mode = check_render_mode(render_mode, frames)
        self.observation_space, self.action_space = self._backend.observation_space, self._backend.action_space
        self._choice = np.zeros(1, np.int64)
        self._environment = fingerprint(self._backend, kwargs)
        return self._backend.space

    def _allocate(self) -> Array | None:
        return self._backend.allocate(1, 1)

    def __getstate__(self) -> dict[str, Any]:
        """As ``BuiltEnv``, and the state: a copy continues the episode, like copies of Gymnasium's environments."""
        return {**super().__getstate__(), "state": self.get_state() if self._begun else None}

    def __setstate__(self, copied: dict[str, Any]) -> None:
        """Makes a copy."""
        super().__setstate__(copied)
        if copied["state"] is not None:
            self.reset(seed=0)
            self.set_state(copied["state"])

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins an episode with new parameters.

        Args:
            seed: Seeds the environment's random numbers, and restarts the sequence of draws.
            options: ``{"params": {name: value}}`` sets exact values for this episode; other options are those of
                Gymnasium's environment.

        Raises:
            UnknownNameError: An unknown parameter in ``options``; nothing has changed.
            RandomizationError: An impossible value in ``options``; nothing has changed.
        """
        others = self._backend.check_options(options if isinstance(options, Mapping) else {})
        self._begin_episode(seed, options)
        self._give_stream()
        self._backend.reset(_ONLY, others)
        observation = self._backend.observe()[0]
        self._take_stream()
        self._show_state()
        return self._visible(observation, _first_row(self._backend.reset_info()))

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Advances the physics by one step; truncates the episode if the simulation diverges.

        Args:
            action: As in Gymnasium.

        Raises:
            EnvStateError: There was no reset yet.
            InvalidActionError: The action is not in the action space.
        """
        backend = self._backend
        actions = self._checked(action)
        self._take_state("step")
        if backend.random_steps:
            self._give_stream()
        outcome = backend.step(actions)
        if backend.random_steps:
            self._take_stream()
        self._show_state()
        observation, info = self._visible(backend.observe()[0], _first_row(outcome.info))
        diverged = outcome.diverged is not None and bool(outcome.diverged[0])
        if diverged:
            info["diverged"] = True
            warn_diverged(type(self).__name__, self.np_random_seed, self.draw_index, self.params)
        return observation, float(outcome.rewards[0]), bool(outcome.terminations[0]), diverged, info

    @property
    def push_size(self) -> int:
        """How many velocities a push has."""
        return self._backend.push_size

    def push(self, velocity: Array) -> None:
        """Changes velocities instantly, like an impact.

        Args:
            velocity: Added to the velocities, m/s or rad/s, shape ``(push_size,)``.

        Raises:
            EnvStateError: There was no reset yet.
            InvalidActionError: The velocity has the wrong shape or type, or is not finite; nothing has changed.
        """
        self._take_state("push")
        self._backend.push(check_finite(velocity, (self.push_size,), "velocities")[None], _ONLY)
        self._show_state()

    def get_state(self) -> EnvState:
        """All that the next steps of this environment depend on, as arrays by name with one row.

        Wrappers, such as Gymnasium's step limit, keep their own state; exact values for the next reset are not
        included.

        Raises:
            EnvStateError: There was no reset yet.
        """
        self._take_state("get_state")
        self._give_stream()
        self._episodes.seeds = [self.np_random_seed]
        return self._episodes.get_state()

    def set_state(self, state: Mapping[str, npt.NDArray[Any]]) -> Any:
        """Continues from a state: the next steps equal, bit for bit, those that followed ``get_state``.

        Args:
            state: From ``get_state`` of an environment with the same id and keywords.

        Returns:
            The observation.

        Raises:
            EnvStateError: There was no reset yet, or the state does not fit; nothing has changed.
            UnknownNameError: The state has a parameter that the environment does not have; nothing has changed.
            RandomizationError: A parameter has an impossible value; nothing has changed.
        """
        self._take_state("set_state")
        self._episodes.set_state(state, _ONLY)
        self._note_values()
        (self._np_random_seed,) = self._episodes.seeds
        self._take_stream()
        self._show_state()
        return self._visible(self._backend.observe()[0], {})[0]

    def render(self) -> Any:
        """A frame; None without a render mode."""
        if self.render_mode is None:
            gym.logger.warn("Expected render_mode='rgb_array' when the environment is made, to call render().")
            return None
        self._take_state("render")
        return self._backend.render(0)

    def close(self) -> None:
        """Ends rendering."""
        self._backend.close()

    def _checked(self, action: Any) -> npt.NDArray[Any]:
        """The action as the actions of the backend's only environment."""
        try:
            if not isinstance(self.action_space, gym.spaces.Discrete):
                return self._episodes.check_actions(np.asarray(action)[None])
            if self.action_space.contains(action):
                self._choice[0] = action
                return self._choice
        except ValueError:  # an InvalidActionError, or numpy's for lists of different lengths
            pass
        raise InvalidActionError(f"Expected an action from {self.action_space}, got {action!r}.")

    def _take_state(self, call: str) -> None:
        """Refuses a call that needs an episode if there is none; a subclass may take over a state that its user set."""
        self._check_begun(call)

    def _show_state(self) -> None:
        """Called when the physics has changed the state, which a subclass may show to its user."""

    def _give_stream(self) -> None:
        """Copies the state of the environment's generator, which a user may have set, to the backend."""
        self._backend.streams[0] = pcg64.pack(self.np_random.bit_generator.state)

    def _take_stream(self) -> None:
        """Copies the state of the backend's generator to the environment."""
        self.np_random.bit_generator.state = cast(Any, pcg64.unpack(self._backend.streams[0]))


def _first_row(info: Info) -> dict[str, Any]:
    return {name: values[0] for name, values in info.items()} if info else {}
