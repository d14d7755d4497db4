"""The physics of the native MuJoCo environments: many simulations on a thread pool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mujoco  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt
from gymnasium.utils import seeding

from gym_dr.arrays import Array, Indices
from gym_dr.compiled.processors import usable_threads
from gym_dr.envs.backend import Backend, EnvState, Info, Outcome, put_under
from gym_dr.envs.mujoco.camera import draw
from gym_dr.envs.mujoco.editor import ModelFields
from gym_dr.envs.mujoco.engine import Engine, OwnDataEngine, engine_class
from gym_dr.envs.mujoco.reference import base_of
from gym_dr.envs.mujoco.replay import MujocoLogReplay
from gym_dr.envs.mujoco.space import space_of_env
from gym_dr.envs.mujoco.task import Task
from gym_dr.envs.replay import LogReplay
from gym_dr.randomization.table import part_of


class MujocoBackend(Backend):
    """Many simulations of one model, each with its own fields.

    Attributes:
        engine: The simulations.
        env: A single environment, which has the model and the spaces, and renders.
        nominal: Its model with nominal values.
        task: Observations, rewards and ends.
        model_fields: The fields of a model as functions of the parameters that vary or were set by hand.
    """

    def __init__(self, env: Any, task: Task) -> None:
        """Copies the model.

        Args:
            env: A single environment with nominal values, without wrappers.
            task: Its task.
        """
        self.env, self.task = env, task
        self.space = self._model_space = space_of_env(env)
        self.nominal = self._model_space.model  # rendering changes the environment's
        self.observation_space, self.action_space = env.observation_space, env.action_space
        self.metadata = env.metadata
        self._base, self._pushed = base_of(self.nominal)
        self.push_size = len(self._pushed)
        self.model_fields = ModelFields(self._model_space, ())
        self.engine: Engine | Any = None  # made by ``allocate``

    @property
    def bytes_each(self) -> int:
        """See ``Backend.bytes_each``; measured with Hopper, Pusher, Ant and Humanoid."""
        state = int(mujoco.mj_stateSize(self.nominal, mujoco.mjtState.mjSTATE_INTEGRATION.value))
        own = engine_class(self.task.contact_forces) is OwnDataEngine
        return int(2.2 * self.nominal.nbuffer) if own else 2500 + 24 * state  # a model; a state

    def allocate(self, num_envs: int, num_threads: int | None) -> None:
        stages = 4 if self.nominal.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4 else 1
        work = num_envs * self.env.frame_skip * stages * (2.0 + 0.4 * self.nominal.nv)  # microseconds, roughly
        # a thread that sleeps takes about 30 microseconds to wake, and helps if it has as much to do
        self.num_threads = max(1, min(num_threads or usable_threads(), num_envs, int(work / 30.0)))
        kind, model = engine_class(self.task.contact_forces), self.nominal
        self.engine = kind(model, num_envs, self.num_threads, self.task.fields, self.task.keyframe)
        self.task.allocate(num_envs)
        self.observations = np.zeros((num_envs, *self.observation_space.shape))
        self._rngs: list[Any] = [None] * num_envs

    def seed(self, envs: Sequence[int], seeds: Sequence[int]) -> None:
        for i, seed in zip(envs, seeds, strict=True):
            self._rngs[i], _ = seeding.np_random(seed)
        self.task.seed(envs, seeds)

    def generators(self) -> tuple[np.random.Generator, ...]:
        """See ``Backend.generators``; resets draw from these. Elements are None before the first reset."""
        return tuple(self._rngs)

    def reset(self, envs: Indices, options: Any = None) -> None:
        """See ``Backend.reset``; edits the models and sets the initial states."""
        self.plan()
        self.engine.write(self.model_fields(self.table.current[:, envs].T), envs)
        self.task.begin(self.engine, envs, [self._rngs[i] for i in envs.tolist()], self._drawn(envs))
        self.observations[envs] = self.task.observe(self.engine, envs)
        self.task.check(self.engine.qpos, self.observations)

    def step(self, actions: npt.NDArray[Any], skip: Indices | None = None) -> Outcome:
        engine = self.engine
        before = self.task.before(engine)
        stepped = None if skip is None else np.delete(np.arange(len(self._rngs)), skip)
        self.task.advance(engine, actions, stepped, self.env.frame_skip)
        with np.errstate(over="ignore"):  # the cost of a huge action may overflow, as in Gymnasium's environments
            rewards, terminations, info = self.task.outcome(engine, actions, before)
        info |= self.task.finish(engine, stepped)
        observations = self.task.observe(engine, slice(None))
        if skip is not None:
            rewards[skip], terminations[skip] = 0.0, False
        diverged = None
        if engine.diverged.any():  # diverged ones report the previous observation and reward 0
            diverged = engine.diverged.copy()
            observations[diverged] = self.observations[diverged]
            rewards[diverged], terminations[diverged] = 0.0, False
        self.task.check(engine.qpos, observations, rewards)
        self.observations = observations
        return Outcome(rewards, terminations, info, diverged)

    def reset_info(self) -> Info:
        return self.task.reset_info(self.engine)

    def get_state(self) -> EnvState:
        """See ``Backend.get_state``; MuJoCo's states, the fields that rewards and observations read, and generators."""
        from gym_dr.compiled.pcg64 import STREAM, pack  # heavy: numba

        streams = [np.zeros(STREAM, np.uint64) if r is None else pack(r.bit_generator.state) for r in self._rngs]
        outputs = put_under("outputs", {name: self.engine.field(name).copy() for name in self.task.fields})
        own = put_under("task", self.task.get_state())
        return {"state": self.engine.get_state(), **outputs, **own, "streams": np.stack(streams)}

    def set_state(self, state: Mapping[str, npt.NDArray[Any]], envs: Indices) -> None:
        from gym_dr.compiled.pcg64 import generator

        self.plan()
        self.engine.write(self.model_fields(self.table.current[:, envs].T), envs)
        self.engine.set_state(state["state"], part_of("outputs", state), envs)
        self.task.set_state(part_of("task", state), envs, self._drawn(envs))
        for i in envs.tolist():
            self._rngs[i] = generator(state["streams"][i])

    def replay(self) -> LogReplay:
        """See ``Backend.replay``; positions and velocities of the joints."""
        return MujocoLogReplay(self)

    def push(self, velocities: Array, envs: Indices) -> None:
        """Pushes the floating base, or the first joint if there is none."""
        self.engine.push(envs, self._pushed, velocities)

    def apply_wrench(self, wrenches: Array, envs: Indices) -> None:
        """See ``Backend.apply_wrench``; acts at the center of mass of the floating base."""
        self.engine.apply_wrench(envs, self._base, wrenches)

    def render(self, env: int) -> Any:
        """One frame, drawn by Gymnasium's renderer from a copy of the simulation.

        Raises:
            ConfigError: There is no display.
        """
        self.engine.snapshot(env, self.env.model, self.env.data)
        mujoco.mj_forward(self.env.model, self.env.data)
        return draw(self.env)

    def close(self) -> None:
        if self.engine is not None:
            self.engine.close()
        self.engine = None
        self.env.close()

    def _drawn(self, envs: Indices) -> dict[str, Array]:
        """The values of the task's own parameters in some sub-environments, as far as they vary: name -> ``(n,)``."""
        rows = {name: self.table.names.index(name) for name in self.task.parameters if name in self.table.names}
        return {name: self.table.current[row, envs] for name, row in rows.items()}

    def plan(self) -> None:
        """Updates ``model_fields`` if the table's parameters have changed."""
        names = tuple(self.table.names)
        if names != self.model_fields.names:
            self.model_fields = ModelFields(self._model_space, names)
