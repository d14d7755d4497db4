"""The task of a custom robot: its functions, tried once and checked at every call, and what it remembers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import mujoco  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array, Indices, Mask, Words
from gym_dr.envs.backend import EnvState, Info, put_under
from gym_dr.envs.mirror import MirrorMap, mirror_map
from gym_dr.envs.mujoco.engine import DATA_FIELDS, Engine, reset_data
from gym_dr.envs.mujoco.robot_state import RobotState
from gym_dr.envs.mujoco.robots import Robot
from gym_dr.envs.mujoco.task import Feedback, Rows, Task
from gym_dr.errors import EnvStateError, RobotError, located, unknown_name
from gym_dr.randomization.keyed import KeyedRandom
from gym_dr.randomization.sampler import seed_word

_ALWAYS = ("qpos", "qvel", "ctrl")
_AFTER_CONTACTS = {"cfrc_ext", "cfrc_int", "cacc"}  # computed by mj_rnePostConstraint, which a batch does not call
_PROBES = 3  # simulations that new functions are tried on
_ALL = slice(None)


class RobotTask(Task):
    """A robot's functions, with checks of their results.

    Attributes:
        parts: Name -> numbers of each part of an observation; "observation" if ``observe`` returns an array.
        mirror: How observations and actions change when left and right change places; None if the robot does not tell.
        action_size: Numbers of an action.
        critic_size: Numbers that the critic alone observes.
        memory: What the task remembers: name -> ``(N, *shape)``.
    """

    parts: Mapping[str, int]
    words: Words  # (N,) seed words of the sub-environments
    episode: Indices  # (N,) numbers of their episodes since they were seeded
    steps: Indices  # (N,) steps of these
    action: Array  # (N, action_size) of the last step

    def __init__(self, robot: Robot, model: Any, data: Any) -> None:
        """Tries the functions.

        Args:
            robot: The robot, with its functions.
            model: The compiled model; copied, since draws change it.
            data: An ``MjData`` of the model.

        Raises:
            UnknownNameError: A field is not one of ``MjData``, or the model has no such keyframe.
            RobotError: A function returns a wrong shape or type, or NaN, or mixes simulations.
        """
        for name in robot.fields:
            if name not in DATA_FIELDS:
                raise unknown_name(f"field of MjData for robot {robot.id!r}:", name, DATA_FIELDS)
        self.contact_forces = not _AFTER_CONTACTS.isdisjoint(robot.fields)
        self.robot, self.model = robot, copy.copy(model)
        self.nq, self.nv = int(model.nq), int(model.nv)
        self.parameters = tuple(param.name for param in robot.parameters)
        self.action_size = int(model.nu) if robot.action_size is None else robot.action_size
        self.dt = float(model.opt.timestep) * robot.frame_skip
        if robot.keyframe is not None:
            keyframes = [model.key(k).name for k in range(model.nkey)]
            if robot.keyframe not in keyframes:
                raise unknown_name(f"keyframe of robot {robot.id!r}:", robot.keyframe, keyframes)
            self.keyframe = keyframes.index(robot.keyframe)
        measured = ["sensordata"] if model.nsensordata else []
        self.fields = tuple(dict.fromkeys([*robot.fields, *measured]))
        self._read = tuple(dict.fromkeys((*_ALWAYS, *self.fields)))
        reset_data(self.model, data, self.keyframe)
        self._home = {name: np.array(getattr(data, name)) for name in _ALWAYS}
        self.critic_size = 0
        self.allocate(_PROBES)
        self._try(data)
        self.mirror: MirrorMap | None = None
        if robot.mirror is not None:
            with located(f"Robot {robot.id!r}"):
                self.mirror = mirror_map(robot.mirror, self.parts, self.action_size)

    def allocate(self, num_envs: int) -> None:
        self.memory = {name: np.zeros((num_envs, *shape)) for name, shape in self.robot.memory.items()}
        self._params = {param.name: np.full(num_envs, param.nominal) for param in self.robot.parameters}
        self.action = np.zeros((num_envs, self.action_size))
        self.words, self.episode = np.zeros(num_envs, np.uint64), np.full(num_envs, -1, np.int64)
        self.steps = np.zeros(num_envs, np.int64)
        self._critic = np.zeros((num_envs, self.critic_size))

    def state(
        self, field: Callable[[str], Array], rows: Rows = _ALL, *, copied: bool = False, writable: bool = False
    ) -> RobotState:
        """The state of some simulations; ``field`` returns the fields of all by name."""
        arrays = {name: field(name)[rows] for name in self._read}
        return self._state({n: a.copy() for n, a in arrays.items()} if copied else arrays, rows, writable)

    def _state(self, arrays: Mapping[str, Array], rows: Rows, writable: bool = False) -> RobotState:
        memory, params = ({name: a[rows] for name, a in own.items()} for own in (self.memory, self._params))
        # a copy of the actions, which the next step overwrites
        return RobotState(self.model, self.dt, arrays, self.action[rows].copy(), memory, params, writable=writable)

    # ---- as the task of environments, whose simulations are an engine ------------------------------------------------

    def seed(self, envs: Sequence[int], seeds: Sequence[int]) -> None:
        self.words[list(envs)], self.episode[list(envs)] = [seed_word(seed) for seed in seeds], -1

    def begin(
        self, engine: Engine, envs: Indices, rngs: Sequence[np.random.Generator], drawn: Mapping[str, Array]
    ) -> None:
        self._take(drawn, envs)
        self.episode[envs] += 1
        engine.start(envs, *self.first_states_of(envs))
        self._see(engine, envs)

    def first_states_of(self, envs: Indices) -> tuple[Array, Array]:
        """Begins the next episodes of some simulations: positions ``(n, nq)`` and velocities ``(n, nv)``."""
        self.steps[envs], self.action[envs] = 0, 0.0
        for values in self.memory.values():
            values[envs] = 0.0
        home = {name: np.repeat(values[None], len(envs), axis=0) for name, values in self._home.items()}
        state = self._state(home, envs, writable=True)
        found = self._pair("reset", self.robot.reset(state, self._random(envs)), len(envs))
        self._remember(state, envs)
        for what, values in zip(("positions", "velocities"), found, strict=True):
            if not np.isfinite(values).all():
                raise self._wrong("reset", f"finite {what}", str(values))
        return found

    def before(self, engine: Engine) -> RobotState:
        return self.state(engine.field, copied=True)

    def advance(self, engine: Engine, actions: npt.NDArray[Any], envs: Indices | None, substeps: int) -> None:
        rows = _ALL if envs is None else envs
        self.action[rows] = actions[rows]
        if self.robot.action is None:
            super().advance(engine, actions, envs, substeps)
            return
        calls, each = (substeps, 1) if self.robot.substep_action else (1, substeps)
        diverged = np.zeros(len(self.steps), np.bool_)
        for _ in range(calls):
            engine.ctrl[rows] = self._numbers("action", self.state(engine.field, rows))
            engine.step(envs, each)
            diverged |= engine.diverged
        engine.diverged[:] = diverged

    def observe(self, engine: Engine, rows: Rows) -> Array:
        return self.observations(self.state(engine.field, rows))

    def outcome(self, engine: Engine, actions: npt.NDArray[Any], before: RobotState) -> Feedback:
        after = self.state(engine.field)
        terms = self.rewards(before, after)
        info = {f"reward_{name}": values for name, values in terms.items() if name}
        return sum(terms.values(), np.zeros(len(after.qpos))), self.terminations(after), info

    def finish(self, engine: Engine, envs: Indices | None) -> Info:
        rows = np.arange(len(self.steps)) if envs is None else envs
        self.steps[rows] += 1
        if self.robot.update is not None:
            state = self.state(engine.field, rows, writable=True)
            self.robot.update(state, self._random(rows))
            self._remember(state, rows)
        self._see(engine, rows)
        return self.reset_info(engine)

    def reset_info(self, engine: Engine) -> Info:
        return {} if self.robot.critic is None else {"critic": self._critic.copy()}

    def get_state(self) -> EnvState:
        return {name: values.copy() for name, values in self._kept().items()}

    def set_state(self, state: Mapping[str, npt.NDArray[Any]], envs: Indices, drawn: Mapping[str, Array]) -> None:
        self._take(drawn, envs)
        for name, values in self._kept().items():
            values[envs] = state[name][envs]

    def _kept(self) -> EnvState:
        """The arrays of a state, not copied."""
        own = {"word": self.words, "episode": self.episode, "step": self.steps, "action": self.action}
        return {**own, **put_under("memory", self.memory)}

    def _random(self, envs: Indices) -> KeyedRandom:
        return KeyedRandom(self.words[envs], self.episode[envs], self.steps[envs])

    def _take(self, drawn: Mapping[str, Array], envs: Indices) -> None:
        """Sets the task's own parameters in some simulations; nan and what is not given are nominal."""
        for param in self.robot.parameters:
            values = drawn.get(param.name, np.full(len(envs), np.nan))
            self._params[param.name][envs] = np.where(np.isnan(values), param.nominal, values)

    def _remember(self, state: RobotState, envs: Indices) -> None:
        """Keeps what a function has written into the memory of a state."""
        for name, values in state.memory.items():
            if not np.isfinite(values).all():
                raise RobotError(f"Robot {self.robot.id!r}: expected finite numbers in memory {name!r}, got {values}.")
            self.memory[name][envs] = values

    def _see(self, engine: Engine, envs: Indices) -> None:
        """Observes for the critic."""
        if self.robot.critic is not None:
            self._critic[envs] = self._numbers("critic", self.state(engine.field, envs))

    # ---- calls of the functions, with checks -------------------------------------------------------------------------

    def observations(self, state: RobotState) -> Array:
        """Observations ``(n, size)``, a new array."""
        n, found = len(state.qpos), self.robot.observe(state)
        if isinstance(found, Mapping):
            try:
                found = np.concatenate([np.reshape(part, (n, -1)) for part in found.values()], axis=1)
            except ValueError as error:
                raise self._wrong("observe", f"parts of {n} rows", f"others: {error}") from None
        return np.array(self._checked("observe", found, (n, self.size)))

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

    def rewards(self, before: RobotState, after: RobotState) -> dict[str, Array]:
        """The terms of rewards by name, each ``(n,)``, new arrays; "" for a reward without terms."""
        found = self.robot.reward(before, after)
        terms = found if isinstance(found, Mapping) else {"": found}
        return {name: np.array(self._checked("reward", term, (len(after.qpos),))) for name, term in terms.items()}

    def terminations(self, state: RobotState) -> Mask:
        """Which episodes end, ``(n,)``, a new array."""
        n = len(state.qpos)
        if self.robot.terminated is None:
            return np.zeros(n, np.bool_)
        found = np.asarray(self.robot.terminated(state))
        if found.dtype != np.bool_ or found.shape != (n,):
            raise self._wrong("terminated", f"booleans of shape ({n},)", f"{found.dtype} of shape {found.shape}")
        return found.copy()

    def _numbers(self, name: str, state: RobotState) -> Array:
        """What the function ``action`` or ``critic`` returns, ``(n, size)``."""
        size = self.model.nu if name == "action" else self.critic_size
        found = self._checked(name, getattr(self.robot, name)(state), (len(state.qpos), size))
        if np.isnan(found).any():
            raise self._wrong(name, "numbers", f"NaN, at qpos {state.qpos.tolist()}")
        return found

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

    def _try(self, data: Any) -> None:
        """Calls each function on one simulation and on several, which gives the size of an observation."""
        everyone, first = np.arange(_PROBES), np.arange(1)
        self.seed(range(_PROBES), range(_PROBES))
        firsts = self.first_states_of(everyone)
        remembered = {name: values.copy() for name, values in self.memory.items()}
        again = self.first_states_of(first)
        kept = all(np.array_equal(remembered[name][0], values[0]) for name, values in self.memory.items())
        if not (kept and all(np.array_equal(a[0], b[0]) for a, b in zip(firsts, again, strict=True))):
            drawn = f"{firsts[0][0]} and then {again[0][0]}. Draw all random numbers from the rng that it gets, by name"
            raise self._wrong("reset", "the same for the same seed, episode and step, alone or among others", drawn)
        rows: dict[str, list[Array]] = {name: [] for name in self._read}
        for qpos, qvel in zip(*firsts, strict=True):
            reset_data(self.model, data, self.keyframe)
            data.qpos[:], data.qvel[:] = qpos, qvel
            mujoco.mj_forward(self.model, data)
            for name, found in rows.items():
                found.append(np.array(getattr(data, name)))
        mujoco.mj_resetData(self.model, data)
        fields = {name: np.stack(found) for name, found in rows.items()}
        together, one = (self.state(fields.__getitem__, rows) for rows in (everyone, first))
        seen = self.robot.observe(one)
        if not isinstance(seen, Mapping):
            if np.ndim(seen) != 2 or len(seen) != 1:
                shape = f"shape {np.shape(seen)}"
                raise self._wrong("observe", "shape (n, size), (1, size) for one simulation, or parts by name", shape)
            seen = {"observation": seen}
        self.parts = {name: int(np.size(part)) for name, part in seen.items()}
        self.size = sum(self.parts.values())
        self.critic_size = 0 if self.robot.critic is None else int(np.size(self.robot.critic(one)))
        whole = np.concatenate([together.qpos, together.qvel], axis=1)
        shown = self.observations(together)[:, : whole.shape[1]]
        self._shows_state = shown.shape == whole.shape and bool(np.allclose(shown, whole))
        calls: dict[str, Callable[[RobotState], Any]] = {
            "observe": self.observations,
            "reward": lambda state: sum(self.rewards(state, state).values()),
            "terminated": self.terminations,
            **({} if self.robot.action is None else {"action": partial(self._numbers, "action")}),
            **({} if self.robot.critic is None else {"critic": partial(self._numbers, "critic")}),
            **({} if self.robot.update is None else {"update": lambda state: self._updated(fields, len(state.qpos))}),
        }
        results = {}
        for name, call in calls.items():
            alone, results[name] = call(one)[0], call(together)
            among = results[name][0]
            if not np.allclose(alone, among, rtol=1e-9, atol=1e-9, equal_nan=True):
                got = f"{alone} for a single simulation and {among} for the same one among {_PROBES}"
                raise self._wrong(name, "rows that depend only on their own simulation", got)
        self.check(together.qpos, results["observe"], results["reward"])

    def _updated(self, fields: Mapping[str, Array], count: int) -> Array:
        """What the memory of the first ``count`` simulations would be after ``update``, ``(count, numbers)``."""
        rows = np.arange(count)
        state = self.state(fields.__getitem__, rows, writable=True)
        self.robot.update(state, self._random(rows))  # type: ignore[misc]  # there is one
        return np.concatenate([np.zeros((count, 0)), *(a.reshape(count, -1) for a in state.memory.values())], axis=1)

    def _pair(self, name: str, found: Any, rows: int) -> tuple[Array, Array]:
        """Positions and velocities that a function returns, of ``rows`` simulations."""
        shapes = (rows, self.nq), (rows, self.nv)
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
