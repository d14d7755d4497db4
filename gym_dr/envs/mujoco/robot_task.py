"""The task of a custom robot: its functions, tried once and checked at every call."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import mujoco  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array, Mask
from gym_dr.envs.mujoco.engine import DATA_FIELDS, Engine
from gym_dr.envs.mujoco.robot_state import RobotState
from gym_dr.envs.mujoco.robots import Robot
from gym_dr.envs.mujoco.task import Feedback, Rows, Task
from gym_dr.errors import EnvStateError, RobotError, unknown_name

_ALWAYS = ("qpos", "qvel", "ctrl")
_AFTER_CONTACTS = {"cfrc_ext", "cfrc_int", "cacc"}  # computed by mj_rnePostConstraint, which a batch does not call
_PROBES = 3  # simulations that new functions are tried on


class RobotTask(Task):
    """A robot's functions, with checks of their results."""

    def __init__(self, robot: Robot, model: Any, data: Any) -> None:
        """Tries the functions.

        Args:
            robot: The robot, with its functions.
            model: The compiled model; copied, since draws change it.
            data: An ``MjData`` of the model.

        Raises:
            UnknownNameError: A field is not one of ``MjData``.
            RobotError: A function returns a wrong shape or type, or NaN, or mixes simulations.
        """
        for name in robot.fields:
            if name not in DATA_FIELDS:
                raise unknown_name(f"field of MjData for robot {robot.id!r}:", name, DATA_FIELDS)
        self.contact_forces = not _AFTER_CONTACTS.isdisjoint(robot.fields)
        self.robot, self.model = robot, copy.copy(model)
        self.nq, self.nv = int(model.nq), int(model.nv)
        measured = ["sensordata"] if model.nsensordata else []
        self.fields = tuple(dict.fromkeys([*robot.fields, *measured]))
        self._read = tuple(dict.fromkeys((*_ALWAYS, *self.fields)))
        self._try(data)

    def state(self, field: Callable[[str], Array], rows: Rows = slice(None), *, copied: bool = False) -> RobotState:
        """The state of some simulations; ``field`` returns their fields by name."""
        arrays = {name: field(name)[rows] for name in self._read}
        return RobotState(self.model, {name: a.copy() for name, a in arrays.items()} if copied else arrays)

    def first_state(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """The initial state of one episode, ``(nq,)`` and ``(nv,)``."""
        qpos, qvel = self._pair("reset", self.robot.reset(rng, self.model))
        for what, values in (("positions", qpos), ("velocities", qvel)):
            if not np.isfinite(values).all():
                raise self._wrong("reset", f"finite {what}", str(values))
        return qpos, qvel

    def observations(self, state: RobotState) -> Array:
        """Observations ``(n, size)``, a new array."""
        return np.array(self._checked("observe", self.robot.observe(state), (len(state.qpos), self.size)))

    def state_from(self, observations: Array) -> tuple[Array, Array]:
        found: Any = super().state_from(observations)
        if self.robot.state_from is not None:
            found = self.robot.state_from(observations)
        elif not self._shows_state:
            raise EnvStateError(
                f"Robot {self.robot.id!r}: observations do not begin with all positions and velocities. Log qpos, "
                f"shape (T + 1, {self.nq}), and qvel, shape (T + 1, {self.nv}), beside them, or pass state_from to "
                "register_robot."
            )
        qpos, qvel = self._pair("state_from", found, len(observations))
        return qpos.copy(), qvel.copy()

    def rewards(self, before: RobotState, after: RobotState) -> Array:
        """Rewards ``(n,)``, a new array."""
        return np.array(self._checked("reward", self.robot.reward(before, after), (len(after.qpos),)))

    def terminations(self, state: RobotState) -> Mask:
        """Which episodes end, ``(n,)``, a new array."""
        n = len(state.qpos)
        if self.robot.terminated is None:
            return np.zeros(n, np.bool_)
        found = np.asarray(self.robot.terminated(state))
        if found.dtype != np.bool_ or found.shape != (n,):
            raise self._wrong("terminated", f"booleans of shape ({n},)", f"{found.dtype} of shape {found.shape}")
        return found.copy()

    def check(self, qpos: Array, observations: Array, rewards: Array | None = None) -> None:
        """Refuses NaN.

        Raises:
            RobotError: A reward or a number of an observation is NaN.
        """
        if rewards is not None and np.isnan(rewards).any():
            row = int(np.flatnonzero(np.isnan(rewards))[0])
            raise self._wrong("reward", "numbers", f"NaN as sub-environment {row}, at qpos {qpos[row].tolist()}")
        if np.isnan(observations).any():
            row, column = np.argwhere(np.isnan(observations))[0].tolist()
            where = f"number {column} of sub-environment {row}, at qpos {qpos[row].tolist()}"
            raise self._wrong("observe", "numbers", f"NaN as {where}")

    # ---- as the task of a native environment -------------------------------------------------------------------------

    def before(self, engine: Engine) -> RobotState:
        return self.state(engine.field, copied=True)

    def observe(self, engine: Engine, rows: Rows) -> Array:
        return self.observations(self.state(engine.field, rows))

    def outcome(self, engine: Engine, actions: npt.NDArray[Any], before: RobotState) -> Feedback:
        after = self.state(engine.field)
        return self.rewards(before, after), self.terminations(after), {}

    # ---- checks ------------------------------------------------------------------------------------------------------

    def _try(self, data: Any) -> None:
        """Calls each function on one simulation and on several, which gives the size of an observation."""
        firsts = [self.first_state(np.random.default_rng(seed)) for seed in range(_PROBES)]
        again = self.first_state(np.random.default_rng(0))
        if not all(map(np.array_equal, firsts[0], again)):
            drawn = f"{firsts[0]} and then {again}. Draw all random numbers from the generator that it gets"
            raise self._wrong("reset", "the same for generators in the same state", drawn)
        rows: dict[str, list[Array]] = {name: [] for name in self._read}
        for qpos, qvel in firsts:
            mujoco.mj_resetData(self.model, data)
            data.qpos[:], data.qvel[:] = qpos, qvel
            mujoco.mj_forward(self.model, data)
            for name, found in rows.items():
                found.append(np.array(getattr(data, name)))
        mujoco.mj_resetData(self.model, data)
        together = self.state(lambda name: np.stack(rows[name]))
        one = self.state(lambda name: rows[name][0][None])
        observed = np.asarray(self.robot.observe(one))
        if observed.ndim != 2 or len(observed) != 1:
            raise self._wrong("observe", "shape (n, size), (1, size) for one simulation", f"shape {observed.shape}")
        self.size = observed.shape[1]
        whole = np.concatenate([together.qpos, together.qvel], axis=1)
        seen = self.observations(together)[:, : whole.shape[1]]
        self._shows_state = seen.shape == whole.shape and bool(np.allclose(seen, whole))
        calls: dict[str, Callable[[RobotState], Any]] = {
            "observe": self.observations,
            "reward": lambda state: self.rewards(state, state),
            "terminated": self.terminations,
        }
        results = {}
        for name, call in calls.items():
            alone, results[name] = call(one)[0], call(together)
            among = results[name][0]
            if not np.allclose(alone, among, rtol=1e-9, atol=1e-9, equal_nan=True):
                got = f"{alone} for a single simulation and {among} for the same one among {_PROBES}"
                raise self._wrong(name, "rows that depend only on their own simulation", got)
        self.check(together.qpos, results["observe"], results["reward"])

    def _pair(self, name: str, found: Any, *rows: int) -> tuple[Array, Array]:
        """Positions and velocities that a function returns, of ``rows`` simulations, or of one without that axis."""
        shapes = (*rows, self.nq), (*rows, self.nv)
        if not (isinstance(found, tuple) and len(found) == 2):
            raise self._wrong(name, f"a pair of positions {shapes[0]} and velocities {shapes[1]}", repr(found))
        return self._checked(name, found[0], shapes[0]), self._checked(name, found[1], shapes[1])

    def _checked(self, name: str, values: Any, shape: tuple[int, ...]) -> Array:
        """A function's result as floating-point numbers of the given shape."""
        try:
            array = np.asarray(values, np.float64)
        except (TypeError, ValueError):
            raise self._wrong(name, f"numbers of shape {shape}", repr(values)) from None
        if array.shape != shape:
            raise self._wrong(name, f"shape {shape}", f"shape {array.shape}")
        return array

    def _wrong(self, name: str, expected: str, got: str) -> RobotError:
        function = getattr(self.robot, name)
        where = f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', function)}"
        return RobotError(f"Robot {self.robot.id!r}: expected {name} ({where}) to return {expected}, got {got}.")
