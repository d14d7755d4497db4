"""The native classic control environments: compiled physics behind the shared vector environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, cast

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array, Indices
from gym_dr.compiled.pcg64 import generator, seeded
from gym_dr.envs.backend import Backend, Outcome, Rollout
from gym_dr.envs.classic_control.env import ClassicControl, class_named
from gym_dr.envs.classic_control.family import TASKS
from gym_dr.envs.equations.equations import Bounds
from gym_dr.envs.equations.physics import Physics
from gym_dr.envs.native import NativeVectorEnv
from gym_dr.envs.stock import class_of
from gym_dr.envs.vector_arguments import check_choices, check_numbers
from gym_dr.randomization.table import ParamTable


class ClassicControlBackend(Backend):
    """Many environments of one task in compiled code, on one thread.

    Attributes:
        template: A single environment, which provides the spaces and renders.
        physics: All environments.
    """

    def __init__(self, template: ClassicControl) -> None:
        """Takes everything but the number of environments from a single one."""
        self.template = template
        self.space = template.param_space
        self.observation_space = template.observation_space
        self.action_space = template.action_space
        self.metadata = template.metadata
        self.push_size = template.push_size
        self._discrete = isinstance(template.action_space, gym.spaces.Discrete)
        self.physics: Physics | Any = None

    def allocate(self, num_envs: int, num_threads: int | None) -> Array:
        numbers = 0 if self._discrete else cast(Any, self.action_space).shape[0]
        self.observations = np.zeros((num_envs, *cast(Any, self.observation_space).shape), np.float32)
        self.physics = Physics(self.template.task, self.observations, numbers=numbers)
        memory: Array
        memory, options = np.split(self.physics.params, [len(self.space)])
        options[:] = np.array(self.template.options)[:, None]
        return memory

    @property
    def rollout(self) -> Rollout:
        """See ``Backend.rollout``."""
        played: Rollout = self.physics.rollout
        return played

    def check_actions(self, actions: Any) -> npt.NDArray[Any]:
        num_envs, space = self.physics.num_envs, cast(Any, self.action_space)
        if self._discrete:
            return check_choices(actions, (num_envs,), 0, space.n)
        return check_numbers(actions, (num_envs, *space.shape))

    def seed(self, envs: Sequence[int], seeds: Sequence[int]) -> None:
        for i, seed in zip(envs, seeds, strict=True):
            self.physics.streams[i] = seeded(seed)

    def generators(self) -> tuple[np.random.Generator, ...]:
        """See ``Backend.generators``; drawing from them changes nothing."""
        return tuple(map(generator, self.physics.streams))

    def check_options(self, options: Mapping[str, Any]) -> Bounds:
        return self.template.task.bounds(options, self.template.task.start)

    def reset(self, envs: Indices, table: ParamTable, options: Bounds | None = None) -> None:
        self.physics.begin(envs, options)
        self.physics.exchange.fresh[envs] = 0

    def begin(self, envs: Indices) -> None:
        self.physics.begin(envs)

    def step(self, actions: npt.NDArray[Any], begun: Indices | None, table: ParamTable) -> Outcome:
        physics, exchange = self.physics, self.physics.exchange
        if self._discrete:
            exchange.choices[:] = actions
        else:
            exchange.numbers[:] = actions
        if begun is not None:
            self.begin(begun)
        physics.step()
        return Outcome(exchange.rewards.copy(), exchange.terminations.copy(), {})

    def push(self, velocities: Array, envs: Indices) -> None:
        self.physics.push(velocities, envs)

    def render(self, env: int) -> Any:
        """One frame, drawn by Gymnasium's class."""
        params = dict(zip(self.space, self.physics.params[:, env].tolist(), strict=False))
        self.template.show(self.physics.state(env), {**params, **self.physics.values(env)})
        return self.template.render()

    def close(self) -> None:
        self.template.close()


class ClassicControlVectorEnv(NativeVectorEnv):
    """Many classic control environments; also takes the keywords of Gymnasium's class."""

    single_class: type[ClassicControl]

    def _make_backend(self, render_mode: str | None, **kwargs: Any) -> ClassicControlBackend:
        return ClassicControlBackend(self.single_class(randomization="none", render_mode=render_mode, **kwargs))


@cache
def __getattr__(name: str) -> Any:
    """The class of a vector environment, such as ``CartPoleVectorEnv``, made on demand."""
    return class_of(
        name, "VectorEnv", __name__, TASKS, lambda env: ((ClassicControlVectorEnv,), {"single_class": class_named(env)})
    )
