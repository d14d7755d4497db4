"""InvertedPendulum in compiled code; MuJoCo makes the steps that the equations of motion do not cover.

There, a joint is beyond its limit, a parameter adds a force that the equations lack, or the simulation
diverges. Compiled code leaves such a sub-environment unchanged, and MuJoCo continues from there. Every step equals
MuJoCo's to the last digits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array, Indices, Mask
from gym_dr.compiled.play import UNFINISHED
from gym_dr.envs.backend import CompiledBackend, EnvState, Info, Outcome
from gym_dr.envs.equations.simulation import Simulation
from gym_dr.envs.mujoco import inverted_pendulum
from gym_dr.envs.mujoco.backend import MujocoBackend
from gym_dr.envs.mujoco.editor import ModelFields
from gym_dr.envs.mujoco.engine import BatchEngine
from gym_dr.envs.mujoco.fields import field_array
from gym_dr.envs.mujoco.replay import ClosedFormLogReplay
from gym_dr.envs.mujoco.task import Task
from gym_dr.envs.replay import LogReplay
from gym_dr.envs.stepper import threads_for
from gym_dr.envs.vector_arguments import check_finite

_WITHOUT_FORCE = ("geom_", "site_", "cam_", "light_", "mat_")  # fields that change nothing where nothing collides
_WARMSTART = "qacc_warmstart"  # of MjData: where the solver starts


class ClosedFormBackend(CompiledBackend, MujocoBackend):
    """Inverted pendulums in compiled code.

    Attributes:
        simulation: The pendulums.
        engine: MuJoCo's simulations of them, current only where MuJoCo made the latest step; None until needed.
    """

    random_steps, begins = False, True

    def __init__(self, env: Any, task: Task) -> None:
        """As ``MujocoBackend``."""
        super().__init__(env, task)
        self._bounds = ((-self.env._reset_noise_scale, self.env._reset_noise_scale),) * 4
        self.simulation: Simulation | Any = None

    def allocate(self, num_envs: int, num_threads: int | None) -> None:
        self.num_threads = threads_for(num_envs, num_threads)
        self.simulation = Simulation(inverted_pendulum.EQUATIONS, num_envs, self.num_threads)
        self.stepper, self.streams = self.simulation.stepper, self.simulation.streams
        self.observations = self.stepper.buffers.observations
        places = inverted_pendulum.PLACES.values()
        nominal = [field_array(self.nominal, field).reshape(-1)[k] for field, k in places]
        self.simulation.params[:-1] = np.array(nominal)[:, None]
        self._follow(self.model_fields)
        self._stale = np.ones(num_envs, np.bool_)  # sub-environments whose model has changed since MuJoCo got it

    def reset(self, envs: Indices, options: Any = None) -> None:
        self.plan()
        fields = self.model_fields.rows(self.table.current[:, envs].T)
        self.simulation.params[self._rows[:, None], envs] = fields[:, self._columns].T
        self._stale[envs] = True
        self.simulation.begin(envs, self._bounds)

    def plan(self) -> None:
        known = self.model_fields
        super().plan()
        if self.model_fields is not known:
            self._follow(self.model_fields)

    def _follow(self, fields: ModelFields) -> None:
        """Maps the fields that vary to parameters of the equations."""
        places = list(inverted_pendulum.PLACES.values())
        found = [
            (row, fields.places[field].start + k) for row, (field, k) in enumerate(places) if field in fields.places
        ]
        self._rows, self._columns = np.array(found, np.int64).reshape(-1, 2).T
        known = {field for field, _ in places}
        self.simulation.params[-1] = not all(
            field in known or field.startswith(_WITHOUT_FORCE) for field in fields.places
        )

    def step(self, actions: npt.NDArray[Any], skip: Indices | None = None) -> Outcome:
        self.set_actions(actions)
        self.stepper.step()
        held = (self.stepper.buffers.rewards == UNFINISHED).nonzero()[0]
        diverged = self.finish(held) if len(held) else None
        buffers = self.stepper.buffers
        return Outcome(buffers.rewards.copy(), buffers.terminations.copy(), self.report(buffers.rewards), diverged)

    def report(self, rewards: Array) -> Info:
        return {"reward_survive": rewards.astype(np.int64)}

    def push(self, velocities: Array, envs: Indices) -> None:
        self.simulation.push(velocities, envs)

    def get_state(self) -> EnvState:
        return {**self.simulation.get_state(), "params": self.simulation.params.T.copy()}

    def set_state(self, state: Mapping[str, npt.NDArray[Any]], envs: Indices) -> None:
        self.plan()
        self.simulation.set_state(state, envs)
        self.simulation.params[:, envs] = state["params"][envs].T
        self._stale[envs] = True

    def replay(self) -> LogReplay:
        return ClosedFormLogReplay(self)

    def render(self, env: int) -> Any:
        """One frame, drawn by Gymnasium's renderer from a copy of the simulation."""
        self._hand_over(np.array([env]))
        return super().render(env)

    # ---- what MuJoCo does --------------------------------------------------------------------------------------------

    def finish(self, envs: Indices) -> Mask | None:
        """Steps some sub-environments in MuJoCo; those that diverge keep their previous observation."""
        buffers = self.stepper.buffers
        check_finite(buffers.continuous[envs], (len(envs), 1))
        self._hand_over(envs)
        engine = self.engine
        engine.ctrl[envs] = buffers.continuous[envs]
        engine.step(envs, inverted_pendulum.FRAME_SKIP)
        rewards, terminations, _ = self.task.outcome(engine, buffers.continuous, None)
        fine = ~engine.diverged[envs]
        buffers.rewards[envs] = rewards[envs] * fine
        buffers.terminations[envs] = terminations[envs] & fine
        self.observations[envs[fine]] = self.task.observe(engine, envs[fine])
        reached = [engine.qpos[envs], engine.qvel[envs], engine.field(_WARMSTART)[envs]]
        self.simulation.put(envs, np.concatenate(reached, axis=1))
        return None if fine.all() else engine.diverged.copy()

    def _hand_over(self, envs: Indices) -> None:
        """Passes the models and states of some sub-environments to MuJoCo."""
        if self.engine is None:
            fields = (*self.task.fields, _WARMSTART)
            self.engine = BatchEngine(self.nominal, len(self._stale), 1, fields)
        stale = envs[self._stale[envs]]
        if len(stale):
            self.engine.write(self.model_fields(self.table.current[:, stale].T), stale)
            self._stale[stale] = False
        states = self.simulation.states(envs)
        nq, nv = self.nominal.nq, self.nominal.nv
        self.engine.qpos[envs], self.engine.qvel[envs] = states[:, :nq], states[:, nq : nq + nv]
        self.engine.field(_WARMSTART)[envs] = states[:, nq + nv : nq + 2 * nv]
