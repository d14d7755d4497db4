"""Environments of custom robots: one decision process, for a single simulation as well as for many."""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import mujoco  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt
from gymnasium.envs.mujoco.mujoco_env import MujocoEnv
from gymnasium.spaces import Box
from gymnasium.utils import EzPickle
from mujoco import batch as mujoco_batch

from gym_dr.arrays import Array, Indices, Mask
from gym_dr.envs.backend import Outcome
from gym_dr.envs.family import ENVIRONMENTS
from gym_dr.envs.mujoco import mdp
from gym_dr.envs.mujoco.backend import MujocoBackend
from gym_dr.envs.mujoco.engine import Engine
from gym_dr.envs.mujoco.env import RandomizedMujoco
from gym_dr.envs.mujoco.robots import ROBOTS, Robot
from gym_dr.envs.mujoco.space import ModelSpace, model_space
from gym_dr.envs.mujoco.stock import quiet_compiler
from gym_dr.envs.vector import NativeVectorEnv
from gym_dr.errors import EnvStateError, RandomizationWarning, RobotError, located, unknown_name
from gym_dr.randomization.presets import resolve

_ALWAYS = ("qpos", "qvel", "ctrl")
_AFTER_CONTACTS = {"cfrc_ext", "cfrc_int", "cacc"}  # computed by mj_rnePostConstraint, which a batch does not call
_PROBES = 3  # simulations that new functions are tried on


class RobotState:
    """n simulations at one time, as a robot's functions see them; arrays are read-only.

    After a step, quantities that MuJoCo derives (``xpos``, sensors, ...) belong to the beginning of the last simulation
    step, as in Gymnasium's environments; ``qpos`` and ``qvel`` belong to its end.

    Attributes:
        model: The ``MjModel`` with nominal values: ``state.model.site("tip").id``.
        qpos: ``(n, nq)``.
        qvel: ``(n, nv)``.
        ctrl: ``(n, nu)``, the actions of the last step; 0 after a reset.
        sensordata: ``(n, nsensordata)``.
    """

    qpos: Array
    qvel: Array
    ctrl: Array
    sensordata: Array

    def __init__(self, model: Any, arrays: dict[str, Array]) -> None:
        """Stores the fields.

        Args:
            model: See the class.
            arrays: Fields of ``MjData`` by name, each ``(n, ...)``.
        """
        self.model = model
        self._names = tuple(arrays)
        for name, array in arrays.items():
            view = array.view()
            view.flags.writeable = False
            setattr(self, name, view)

    def sensor(self, name: str) -> Array:
        """The output of a sensor, ``(n, dimension of the sensor)``."""
        sensor = self.model.sensor(name)
        return self.sensordata[:, sensor.adr[0] : sensor.adr[0] + sensor.dim[0]]

    def __getattr__(self, name: str) -> Array:
        """A field that was not requested.

        Raises:
            AttributeError: Always; the message says how to request it.
        """
        hint = f"; add it with register_robot(..., fields=[{name!r}])" if name in mujoco_batch.DATA_FIELDS else ""
        known = ", ".join(("model", *self.__dict__.get("_names", ())))
        raise AttributeError(f"The state has {known}, but not {name!r}{hint}.")


class RobotMdp(mdp.Mdp):
    """A robot's functions, with checks of their results."""

    def __init__(self, robot: Robot, model: Any, data: Any) -> None:
        """Tries the functions.

        Args:
            robot: The robot, with its functions.
            model: The compiled model; copied, since draws change it.
            data: An ``MjData`` of the model.

        Raises:
            UnknownNameError: A field is not one of ``MjData``.
            RobotError: A function returns a wrong shape or type, or NaN, or mixes simulations; or a scalar field was
                requested together with contact forces.
        """
        for name in robot.fields:
            if name not in mujoco_batch.DATA_FIELDS:
                raise unknown_name(f"field of MjData for robot {robot.id!r}:", name, mujoco_batch.DATA_FIELDS)
        self.contact_forces = not _AFTER_CONTACTS.isdisjoint(robot.fields)
        numbers = [name for name in robot.fields if np.ndim(getattr(data, name)) == 0]
        if self.contact_forces and numbers:
            forces = ", ".join(sorted(_AFTER_CONTACTS.intersection(robot.fields)))
            raise RobotError(f"Robot {robot.id!r}: expected only arrays beside {forces}, got {numbers[0]}.")
        self.robot, self.model = robot, copy.copy(model)
        self.nq, self.nv = int(model.nq), int(model.nv)
        measured = ["sensordata"] if model.nsensordata else []
        self.fields = tuple(dict.fromkeys([*robot.fields, *measured]))
        self.size = self._try(data)

    def state(self, field: Callable[[str], Array], rows: mdp.Rows = slice(None), *, copied: bool = False) -> RobotState:
        """The state of some simulations; ``field`` returns their fields by name."""
        arrays = {name: field(name)[rows] for name in dict.fromkeys((*_ALWAYS, *self.fields))}
        return RobotState(self.model, {name: a.copy() for name, a in arrays.items()} if copied else arrays)

    def first_state(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """The initial state of one episode, ``(nq,)`` and ``(nv,)``."""
        found: Any = self.robot.reset(rng, self.model)
        if not (isinstance(found, tuple) and len(found) == 2):
            raise self._wrong("reset", f"a pair of positions ({self.nq},) and velocities ({self.nv},)", repr(found))
        qpos, qvel = (self._checked("reset", x, (n,)) for x, n in zip(found, (self.nq, self.nv), strict=True))
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
        if not (isinstance(found, tuple) and len(found) == 2):
            raise self._wrong("state_from", f"a pair of positions (n, {self.nq}) and velocities", repr(found))
        sizes = zip(found, (self.nq, self.nv), strict=True)
        qpos, qvel = (np.array(self._checked("state_from", x, (len(observations), size))) for x, size in sizes)
        return qpos, qvel

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

    def check_numbers(self, name: str, values: npt.NDArray[Any], qpos: Array) -> None:
        """Refuses NaN.

        Args:
            name: The function that returned the values.
            values: ``(n, ...)``.
            qpos: Positions of their simulations, ``(n, nq)``.

        Raises:
            RobotError: A value is NaN.
        """
        if not np.isnan(values).any():
            return
        row, *column = np.argwhere(np.isnan(values))[0].tolist()
        place = f"number {column[0]} of sub-environment {row}" if column else f"sub-environment {row}"
        raise self._wrong(name, "numbers", f"NaN as {place}, at qpos {qpos[row].tolist()}")

    # ---- as the Mdp of a native environment --------------------------------------------------------------------------

    def first_states(self, rngs: Sequence[np.random.Generator]) -> tuple[Array, Array]:
        states = [self.first_state(rng) for rng in rngs]
        return np.stack([qpos for qpos, _ in states]), np.stack([qvel for _, qvel in states])

    def before(self, engine: Engine) -> RobotState:
        return self.state(lambda name: _of_engine(engine, name), copied=True)

    def observe(self, engine: Engine, rows: mdp.Rows) -> Array:
        return self.observations(self.state(lambda name: _of_engine(engine, name), rows))

    def outcome(self, engine: Engine, actions: npt.NDArray[Any], before: RobotState) -> mdp.Feedback:
        after = self.state(lambda name: _of_engine(engine, name))
        return self.rewards(before, after), self.terminations(after), {}

    # ---- checks ------------------------------------------------------------------------------------------------------

    def _try(self, data: Any) -> int:
        """Calls each function on one simulation and on several; returns the number of observations."""
        firsts = [self.first_state(np.random.default_rng(seed)) for seed in range(_PROBES)]
        again = self.first_state(np.random.default_rng(0))
        if not all(map(np.array_equal, firsts[0], again)):
            drawn = f"{firsts[0]} and then {again}. Draw all random numbers from the generator that it gets"
            raise self._wrong("reset", "the same for generators in the same state", drawn)
        rows: dict[str, list[Array]] = {name: [] for name in dict.fromkeys((*_ALWAYS, *self.fields))}
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
        for name, alone, all_of_them in (
            ("observe", self.observations(one), self.observations(together)),
            ("reward", self.rewards(one, one), self.rewards(together, together)),
            ("terminated", self.terminations(one), self.terminations(together)),
        ):
            self.check_numbers(name, all_of_them, together.qpos)
            if not np.allclose(alone[0], all_of_them[0], rtol=1e-9, atol=1e-9):
                among = f"{alone[0]} for a single simulation and {all_of_them[0]} for the same one among {_PROBES}"
                raise self._wrong(name, "rows that depend only on their own simulation", among)
        return self.size

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


def _of_engine(engine: Engine, name: str) -> Array:
    array: Array = getattr(engine, name) if name in _ALWAYS else engine.field(name)
    return array


class RobotEnv(MujocoEnv, EzPickle):
    """One robot with nominal values, like Gymnasium's own environments."""

    metadata = {"render_modes": ["human", "rgb_array", "depth_array", "rgbd_tuple"]}

    def __init__(self, robot: str, **kwargs: Any) -> None:
        """Compiles the model and tries the functions.

        Args:
            robot: The robot's id.
            **kwargs: Keywords of ``MujocoEnv``: ``render_mode``, ``width``, ``height``, ``camera_name``, ...

        Raises:
            UnknownNameError: There is no such robot, a field is not one of ``MjData``, or the model has no parameter
                that a preset names.
            RobotError: The model cannot be compiled or driven, or a function returns invalid values.
            RandomizationError: A preset of the robot does not fit the model, as for UnknownNameError.
        """
        chosen = ROBOTS.get(robot)
        self.space_name = robot
        with _compiling(chosen):
            super().__init__(str(chosen.model), chosen.frame_skip, None, **kwargs)
        _check_model(robot, self.model, kwargs.get("camera_name"))
        _check_presets(chosen, self.model)
        self.metadata = {**self.metadata, "render_fps": int(np.round(1.0 / self.dt))}
        self.mdp = RobotMdp(chosen, self.model, self.data)
        self.observation_space = Box(-np.inf, np.inf, (self.mdp.size,), np.float64)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        before = self.mdp.state(self._field, copied=True)
        self.do_simulation(action, self.frame_skip)
        after = self.mdp.state(self._field)
        observations, rewards = self.mdp.observations(after), self.mdp.rewards(before, after)
        self.mdp.check_numbers("reward", rewards, after.qpos)
        self.mdp.check_numbers("observe", observations, after.qpos)
        return observations[0], float(rewards[0]), bool(self.mdp.terminations(after)[0]), False, {}

    def reset_model(self) -> Any:
        cast(Any, self).set_state(*self.mdp.first_state(self.np_random))
        state = self.mdp.state(self._field)
        observations = self.mdp.observations(state)
        self.mdp.check_numbers("observe", observations, state.qpos)
        return observations[0]

    def _field(self, name: str) -> Array:
        return np.asarray(getattr(self.data, name))[None]


def _check_model(robot: str, model: Any, camera: str | None) -> None:
    """Refuses a model without joints or actuators, or with an actuator that has no range.

    Raises:
        RobotError: The model is refused.
        UnknownNameError: The model has no such camera.
    """
    for number, what in ((model.njnt, "joint"), (model.nu, "actuator")):
        if not number:
            raise RobotError(f"Robot {robot!r}: expected a model with at least one {what}, got none.")
    free = [i for i in range(model.nu) if not model.actuator_ctrllimited[i]]
    if free:
        names = ", ".join(model.actuator(i).name or f"number {i}" for i in free)
        raise RobotError(
            f"Robot {robot!r}: expected a ctrlrange for each actuator, which sets the bounds of actions, got none for "
            f"{names}."
        )
    cameras = [model.camera(i).name for i in range(model.ncam)]
    if camera is not None and camera not in cameras:
        raise unknown_name(f"camera of robot {robot!r}:", camera, cameras)


def _check_presets(robot: Robot, model: Any) -> None:
    """Refuses presets that do not fit the model, which is not loaded yet when a robot is registered.

    Raises:
        UnknownNameError: A preset names a parameter that the model does not have.
        RandomizationError: A range is impossible.
    """
    space = model_space(robot.id, model)
    for name, randomization in robot.presets.items():
        with located(f"Robot {robot.id!r}: preset {name!r}"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RandomizationWarning)  # whoever uses the preset is warned
            resolve(randomization, space)


def space_of(env_id: str) -> ModelSpace:
    """What may vary in a robot, which is checked as an environment checks it.

    Raises:
        UnknownNameError: A field is not one of ``MjData``, or the model has no such camera or parameter of a preset.
        RobotError: The model cannot be compiled or driven, or a function returns invalid values.
        RandomizationError: A preset of the robot does not fit the model.
    """
    robot = ROBOTS.get(env_id)
    with _compiling(robot), quiet_compiler():
        model = mujoco.MjModel.from_xml_path(str(robot.model))
    _check_model(env_id, model, ENVIRONMENTS.get(env_id).kwargs.get("camera_name"))
    _check_presets(robot, model)
    RobotMdp(robot, model, mujoco.MjData(model))
    return model_space(env_id, model)


@contextlib.contextmanager
def _compiling(robot: Robot) -> Iterator[None]:
    """Raises RobotError if MuJoCo cannot compile the robot's model in the block."""
    try:
        yield
    except ValueError as error:  # MuJoCo's
        raise RobotError(f"Robot {robot.id!r}: {robot.model} cannot be compiled: {error}") from None


class RobotDR(RandomizedMujoco, RobotEnv):
    """A robot with randomized physics."""


class RobotBackend(MujocoBackend):
    """Many simulations of a robot."""

    mdp: RobotMdp

    def _make_stock(self, name: str, **kwargs: Any) -> tuple[RobotEnv, RobotMdp]:
        stock = RobotEnv(name, **kwargs)
        return stock, stock.mdp

    def reset(self, envs: Indices, options: Any = None) -> None:
        super().reset(envs, options)
        self.mdp.check_numbers("observe", self.observations, self.engine.qpos)

    def step(self, actions: npt.NDArray[Any], skip: Indices | None = None) -> Outcome:
        outcome = super().step(actions, skip)
        self.mdp.check_numbers("reward", outcome.rewards, self.engine.qpos)
        self.mdp.check_numbers("observe", self.observations, self.engine.qpos)
        return outcome


class RobotVectorEnv(NativeVectorEnv):
    """Many copies of a robot with randomized physics."""

    def _make_backend(self, render_mode: str | None, robot: str = "", **kwargs: Any) -> RobotBackend:
        return RobotBackend(robot, render_mode=render_mode, **kwargs)
