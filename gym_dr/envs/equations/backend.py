"""The backend of environments whose physics is equations."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Discrete

from gym_dr.arrays import Array, Indices, Mask
from gym_dr.envs.backend import CompiledBackend, EnvState, Outcome
from gym_dr.envs.equations.equations import Bounds, spread_of
from gym_dr.envs.equations.family import family_with
from gym_dr.envs.equations.functions import called
from gym_dr.envs.equations.replay import EquationsLogReplay
from gym_dr.envs.equations.simulation import Simulation
from gym_dr.envs.equations.trial import try_out
from gym_dr.envs.replay import LogReplay
from gym_dr.envs.stepper import threads_for
from gym_dr.errors import EquationsError, located, shortened
from gym_dr.randomization.distributions import Uniform


class EquationsBackend(CompiledBackend):
    """Many environments with the same equations in compiled code.

    Attributes:
        family: Where the equations come from.
        simulation: All of them; made by ``allocate``.
    """

    def __init__(self, equations: str, **keywords: Any) -> None:
        """Tries the equations, and copies the spaces, whose samples each environment draws with its own generator.

        Args:
            equations: The id under which they are registered.
            **keywords: See ``equations_family``.

        Raises:
            UnknownNameError: No equations have this id.
            EquationsError: They cannot be used.
            TypeError: There is no such keyword.
            RandomizationError: A value is impossible.
        """
        self.family = family_with(equations)
        self.equations = self.family.equations
        self.space, self._options = self.family.with_keywords(keywords)
        try_out(self.equations, self.space, self._options, self.family.presets)
        self.observation_space = deepcopy(self.equations.observation_space)
        self.action_space = deepcopy(self.equations.action_space)
        self.metadata = {
            "render_modes": ["rgb_array"] if self.family.render else [],
            "render_fps": self.family.render_fps,
        }
        self._first_choice = int(self.action_space.start) if isinstance(self.action_space, Discrete) else None
        self.push_size = len(self.equations.pushed)
        self.random_steps = bool(self.equations.process_noise)

    def allocate(self, num_envs: int, num_threads: int | None) -> Array:
        self.num_threads = threads_for(num_envs, num_threads)
        self.simulation = Simulation(self.equations, num_envs, self.num_threads)
        self.stepper, self.streams = self.simulation.stepper, self.simulation.streams
        self.observations = self.stepper.buffers.observations
        current: Array
        current, options = np.split(self.simulation.params, [len(self.space)])
        options[:] = np.array(self._options)[:, None]
        return current

    def check_options(self, options: Mapping[str, Any]) -> Bounds | None:
        """Reads bounds of the uniform numbers that begin an episode, if the equations have reset options."""
        if self.family.reset_options is None:
            return None
        start = self.equations.start.values()
        uniform = tuple(spread_of(each) for each in start if isinstance(each, Uniform))
        found: Any = self.family.reset_options(options, uniform)
        good = isinstance(found, tuple) and len(found) == len(uniform)
        if not good or not all(isinstance(pair, tuple) and len(pair) == 2 and pair[0] <= pair[1] for pair in found):
            raise EquationsError(
                f"Equations {self.equations.name!r}: expected reset_options to return {len(uniform)} pairs "
                f"(low, high), got {shortened(found)}."
            )
        given = iter(found)
        return tuple(next(given) if isinstance(each, Uniform) else spread_of(each) for each in start)

    def reset(self, envs: Indices, options: Bounds | None = None) -> None:
        self.simulation.begin(envs, options)

    def set_actions(self, actions: npt.NDArray[Any]) -> None:
        super().set_actions(actions - self._first_choice if self._first_choice else actions)

    def step(self, actions: npt.NDArray[Any], skip: Indices | None = None) -> Outcome:
        with self.simulation.located():
            return super().step(actions)

    def finish(self, envs: Indices) -> Mask | None:
        """Makes the steps again, since only a call from Python passes an error on."""
        with self.simulation.located():
            self.stepper.step()
        return None

    def get_state(self) -> EnvState:
        return self.simulation.get_state()

    def set_state(self, state: Mapping[str, npt.NDArray[Any]], envs: Indices) -> None:
        self.simulation.set_state(state, envs)

    def replay(self) -> LogReplay:
        return EquationsLogReplay(self)

    def push(self, velocities: Array, envs: Indices) -> None:
        self.simulation.push(velocities, envs)

    def render(self, env: int) -> Any:
        """One frame, from the function ``render`` of whoever wrote the equations."""
        draw: Any = self.family.render
        with located(f"Equations {self.equations.name!r}"):
            state = self.equations.state(*self.simulation.state(env).tolist())
            return called(draw, "render", self.simulation.physics(env), state)
