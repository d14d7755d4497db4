"""Any equations as the physics of environments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Discrete

from gym_dr.arrays import Array, Indices
from gym_dr.envs.backend import CompiledBackend, Outcome, PlayRollout
from gym_dr.envs.equations.equations import Bounds, Equations
from gym_dr.envs.equations.simulation import Simulation
from gym_dr.envs.vector_arguments import check_choices, check_numbers
from gym_dr.errors import ConfigError
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.table import ParamTable


class EquationsBackend(CompiledBackend):
    """Many environments with the same equations in compiled code, on one thread.

    Attributes:
        equations: Their equations.
        simulation: All of them.
    """

    random_steps = False
    metadata: Mapping[str, Any] = {"render_modes": []}
    simulation: Simulation | Any = None  # made by ``allocate``

    def __init__(self, equations: Equations, space: ParamSpace, constants: Sequence[float] = ()) -> None:
        """Copies the spaces, whose samples each environment draws with a generator of its own.

        Args:
            equations: See the class.
            space: Parameters: the first fields of ``equations.params``, in this order.
            constants: Values of its other fields.

        Raises:
            ConfigError: Actions are neither choices from 0 nor one number.
        """
        actions = equations.action_space
        if (actions.start != 0) if isinstance(actions, Discrete) else (actions.shape != (1,)):
            raise ConfigError(
                f"{equations.name}: expected actions that are choices from 0 or one number, got {actions}."
            )
        self.equations, self.space, self._constants = equations, space, constants
        self.observation_space = deepcopy(equations.observation_space)
        self.action_space = deepcopy(equations.action_space)
        self.push_size = len(equations.pushed)

    def allocate(self, num_envs: int, num_threads: int | None) -> Array:
        self.simulation = Simulation(self.equations, num_envs)
        self.streams, self.observations = self.simulation.streams, self.simulation.exchange.observations
        memory: Array
        memory, constants = np.split(self.simulation.params, [len(self.space)])
        constants[:] = np.array(self._constants)[:, None]
        return memory

    @property
    def rollout(self) -> PlayRollout:
        """See ``Backend.rollout``."""
        played: PlayRollout = self.simulation.rollout
        return played

    def check_actions(self, actions: Any) -> npt.NDArray[Any]:
        num_envs, space = self.simulation.num_envs, self.action_space
        if isinstance(space, Discrete):
            return check_choices(actions, (num_envs,), 0, int(space.n))
        return check_numbers(actions, (num_envs, 1))

    def reset(self, envs: Indices, table: ParamTable, options: Bounds | None = None) -> None:
        self.simulation.begin(envs, options)
        self.simulation.exchange.fresh[envs] = 0

    def begin(self, envs: Indices) -> None:
        self.simulation.begin(envs)

    def step(self, actions: npt.NDArray[Any], begun: Indices | None, table: ParamTable) -> Outcome:
        simulation, exchange = self.simulation, self.simulation.exchange
        if actions.ndim == 1:
            exchange.choices[:] = actions
        else:
            exchange.numbers[:] = actions
        if begun is not None:
            self.begin(begun)
        simulation.step()
        return Outcome(exchange.rewards.copy(), exchange.terminations.copy(), {})

    def push(self, velocities: Array, envs: Indices) -> None:
        self.simulation.push(velocities, envs)
