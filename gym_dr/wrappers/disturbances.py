"""Disturbances between policy and physics, for many environments: noise, delays, losses, failing sensors, pushes.

The path of an action: policy -> delayed by ``action_delay`` steps -> perhaps dropped, so that the previous one acts
again -> gain and noise, clipped to the action space -> environment. The path of an observation: environment -> bias,
offsets and noise -> delayed by ``obs_delay`` steps -> perhaps dropped, whole or in part, so that the previous one is
seen again -> 0 in hidden sensors -> policy. The first observation of an episode is never dropped.

The strength of each disturbance in an episode is drawn like any other parameter, keyed by (sub-environment's seed, draw
index, name). The noise of a step is keyed too: the step's number is the upper half of the index word.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array, Indices, Mask
from gym_dr.envs.vector_arguments import action_check
from gym_dr.errors import RandomizationError
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.sampler import FixedSampler
from gym_dr.randomization.space import Param, ParamSpace
from gym_dr.randomization.table import ParamTable
from gym_dr.wrappers.sensors import DROP, HIDE, OFFSET, SensorMap, sensor_of, sensor_param, sensors_of

_MAX_DELAY = 1000  # steps of delay
_MAX_INTERVAL = 1_000_000  # steps
# places in a push of a floating base, and in a wrench
_SPEEDS = {"push_speed": slice(0, 2), "push_vertical_speed": slice(2, 3), "push_angular_speed": slice(3, 6)}
_WRENCHES = {"wrench_force": slice(0, 3), "wrench_torque": slice(3, 6)}
_NOBODY = np.zeros(0, np.int64), np.zeros((0, 6))
_TIMES = ("push_probability", "push_interval")
PUSHES = ("push_speed", *_TIMES)  # of whatever can be pushed
SCALED = ("action_noise", "action_gain", "action_gain_interval")  # of actions that are numbers
FLOATING = ("push_vertical_speed", "push_angular_speed", *_WRENCHES, "wrench_interval")  # of a floating base


class DisturbanceSpace(ParamSpace):
    """Disturbances; those of single sensors are known without being listed."""

    def sensor_param(self, name: object) -> Param | None:
        """The disturbance of a sensor, such as ``obs_hide:theta``; None for other names."""
        return sensor_param(name)

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or self.sensor_param(name) is not None

    def __getitem__(self, name: str) -> Param:
        return self.sensor_param(name) or super().__getitem__(name)


def _deviation(name: str, unit: str, doc: str, *needs: str) -> Param:
    return Param(name=name, nominal=0, low=0, high=math.inf, unit=unit, doc=f"standard deviation of {doc}", needs=needs)


def _interval(name: str, doc: str, *needs: str) -> Param:
    return Param(name=name, nominal=0, low=0, high=_MAX_INTERVAL, unit="steps", kind="int", doc=doc, needs=needs)


DISTURBANCES = DisturbanceSpace(
    "disturbances",
    [
        Param(name="obs_noise", nominal=0, low=0, high=math.inf, doc="standard deviation of noise on each observation"),
        Param(
            name="obs_bias", nominal=0, low=0, high=math.inf, doc="standard deviation of an episode's constant error"
        ),
        Param(name="obs_delay", nominal=0, low=0, high=_MAX_DELAY, unit="steps", kind="int", doc="age of observations"),
        Param(name=DROP, nominal=0, low=0, high=1, doc="probability that an observation is lost, at each step"),
        Param(name="action_noise", nominal=0, low=0, high=math.inf, doc="standard deviation of noise on each action"),
        Param(name="action_delay", nominal=0, low=0, high=_MAX_DELAY, unit="steps", kind="int", doc="age of actions"),
        Param(name="action_drop", nominal=0, low=0, high=1, doc="probability that an action is lost, at each step"),
        _deviation("action_gain", "", "the relative error of each number of an action"),
        _interval(
            "action_gain_interval", "steps after which errors of actions are drawn again; 0: never", "action_gain"
        ),
        _deviation("push_speed", "m/s", "a push; of a floating base in x and y", *_TIMES),
        _deviation("push_vertical_speed", "m/s", "a push of the floating base upwards or downwards", *_TIMES),
        _deviation("push_angular_speed", "rad/s", "a push of the floating base about each axis", *_TIMES),
        Param(
            name="push_probability",
            nominal=0,
            low=0,
            high=1,
            doc="probability of a push, at each step",
            needs=tuple(_SPEEDS),
        ),
        _interval("push_interval", "steps from one push to the next; 0: no such pushes", *_SPEEDS),
        _deviation("wrench_force", "N", "a force on the floating base, along each axis"),
        _deviation("wrench_torque", "N m", "a torque on the floating base, about each axis"),
        _interval("wrench_interval", "steps after which the wrench is drawn again; 0: never", *_WRENCHES),
    ],
)


class Disturbances:
    """Disturbances of ``num_envs`` sub-environments: the values of their episodes, and histories."""

    def __init__(
        self,
        randomization: Any,
        num_envs: int,
        observations: gym.Space[Any],
        actions: gym.Space[Any],
        obs_scale: npt.ArrayLike,
        push_size: int,
        floats: bool,
        env_id: str = "",
    ) -> None:
        """Checks the disturbances against the spaces of one sub-environment.

        Args:
            randomization: A mapping of names in ``DISTURBANCES`` to distributions, a ``Randomization`` or a path.
            num_envs: Number of sub-environments.
            observations: Observation space of one sub-environment.
            actions: Action space of one sub-environment.
            obs_scale: Factor for ``obs_noise`` and ``obs_bias``: one number, or one for each component.
            push_size: Size of a push; 0 if the environment takes none.
            floats: Whether it has a floating base, which takes wrenches and pushes along and about each axis.
            env_id: The id of the environment, for the names of its sensors; empty if it has none.

        Raises:
            UnknownNameError: There is no such disturbance or sensor.
            RandomizationError: A range is impossible, or the environment does not support a disturbance.
        """
        from gym_dr.compiled import lag  # numba takes half a second to import, and not every program needs it

        self._compiled: Any = lag
        self.randomization = resolve(randomization, DISTURBANCES)
        self._check(observations, actions, push_size, floats)
        sensors = sensors_of(env_id, observations) if any(map(sensor_param, self.randomization)) else None
        self.randomization = self.randomization if sensors is None else sensors.expand(self.randomization)
        self.space = ParamSpace("disturbances", [replace(DISTURBANCES[name], needs=()) for name in self.randomization])
        self.num_envs = num_envs
        self._varying = frozenset(self.randomization)  # names; looked up at each step
        self.sensed = any(name.startswith("obs_") for name in self._varying)
        self._commands = any(name.startswith("action_") for name in self._varying)
        self._observations: Any = observations
        self._actions: Any = actions
        self._checked = action_check(actions, num_envs)
        offsets = [name for name in self.space if name.partition(":")[0] == OFFSET]
        self.noisy = bool(offsets) or not self._varying.isdisjoint({"obs_noise", "obs_bias"})
        self._scale = _check_scale(obs_scale, observations) if self.noisy else np.zeros(0)

        self.table = ParamTable(self.space, FixedSampler(self.space, self.randomization), num_envs)
        self.values = {name: np.full(num_envs, float(param.nominal)) for name, param in DISTURBANCES.items()}
        self.values |= dict(zip(self.table.names, self.table.current, strict=True))  # rows of the table
        self._age: Indices = np.zeros(num_envs, np.int64)  # steps of the current episodes

        self._drops = [name for name in self.table.names if name.partition(":")[0] == DROP]
        self._hides = [name for name in self.table.names if name.partition(":")[0] == HIDE]
        self._offsets = [(name, slice(*sensors.span(sensor_of(name)))) for name in offsets] if sensors else []
        self._push_size = push_size
        speeds = _SPEEDS if floats else {"push_speed": slice(0, push_size)}
        self._speeds = {name: columns for name, columns in speeds.items() if name in self._varying}
        self._wrenches = {name: columns for name, columns in _WRENCHES.items() if name in self._varying}
        self._lay_out_noise()
        self._lay_out_failures(sensors)
        self._initial, low, high = _numbers(actions)
        self._nobody: Mask = np.zeros(num_envs, np.bool_)
        self._everybody: Mask = np.ones(num_envs, np.bool_)
        self._held = np.broadcast_to(self._initial, (num_envs, self._initial.size)).copy()  # last one, before noise
        self._sent = np.zeros((num_envs, 1, self._initial.size), actions.dtype)  # rings, see compiled.lag
        self._seen = np.zeros((num_envs, 1, math.prod(observations.shape or ())), observations.dtype)
        self._actuators = lag.Actuators(
            self._initial, low, high, self._gains, self.values["action_noise"], self._parts["action_noise"]
        )
        self._sensors = lag.Sensors(self._bias, self.values["obs_noise"], self._scale, self._parts["obs_noise"])

    def _check(self, observations: gym.Space[Any], actions: gym.Space[Any], push_size: int, floats: bool) -> None:
        """Raises RandomizationError if the environment does not support a disturbance."""
        if not isinstance(actions, gym.spaces.Box | gym.spaces.Discrete):
            raise RandomizationError(f"Expected a Box or Discrete action space, got {actions}.")
        where = (
            "with a gym_dr/... id or of your own; instead of an AsyncVectorEnv, wrap each sub-environment in Disturb"
        )
        requirements = (
            (
                "obs_",
                is_float_box(observations),
                f"observations in a Box of floating-point numbers, got {observations}",
            ),
            (SCALED, is_float_box(actions), f"actions in a Box of floating-point numbers, got {actions}"),
            (FLOATING, floats, f"a robot with a floating base (a free joint), {where}"),
            (PUSHES, push_size > 0, f"an environment to push, {where}"),
        )
        for names, met, expected in requirements:
            found = [name for name in self.randomization if name.startswith(names)]
            if found and not met:
                raise RandomizationError(f"{', '.join(found)}: expected {expected}.")

    def _lay_out_noise(self) -> None:
        """Names the random numbers of a step and of more than one, and allocates tables for them."""
        from gym_dr.compiled.noise import HeldNoise, KeyedNoise

        numbers = math.prod(self._actions.shape or ())
        pushes = {name: columns.stop - columns.start for name, columns in self._speeds.items()}
        sizes = {"obs_noise": self._scale.size, "action_noise": numbers} | pushes
        sizes = {name: size for name, size in sizes.items() if name in self._varying}
        uniforms = [name for name in ("action_drop", "push_probability") if name in self._varying] + self._drops
        self._keyed = KeyedNoise(_components(sizes), uniforms)
        ends = [*itertools.accumulate([*sizes.values(), *(1 for _ in uniforms)], initial=0)]
        self._noise: Array = np.zeros((ends[-1], self.num_envs))  # of the last observation and the next action
        # name -> its rows; empty if it does not vary
        self._parts = dict.fromkeys(DISTURBANCES, self._noise[:0])
        self._parts |= {name: self._noise[slice(*ends[k : k + 2])] for k, name in enumerate([*sizes, *uniforms])}
        self._gained = HeldNoise(_components({"action_gain": numbers}), self.num_envs)
        self._gains: Array = np.ones((numbers * bool(self._varying & set(SCALED)), self.num_envs))
        self._pulled = HeldNoise(_components(dict.fromkeys(_WRENCHES, 3)), self.num_envs)
        self._biased = HeldNoise(_components({"obs_bias": self._scale.size}), self.num_envs)
        self._bias: Array = np.zeros((self.num_envs, self._scale.size))

    def _lay_out_failures(self, sensors: SensorMap | None) -> None:
        """Finds the numbers of each sensor that may fail, and where its probability or switch is in the table."""
        size = math.prod(self._observations.shape or ())
        spans = {name: (0, size) for name in self._drops if name == DROP}
        spans |= {name: sensors.span(sensor_of(name)) for name in self.table.names if sensors and sensor_param(name)}

        def failures(names: list[str], scores: Array) -> Any:
            first = self.table.names.index(names[0]) if names else 0  # they are sorted, so they lie side by side
            places = np.array([spans[name] for name in names], np.int64).reshape(-1, 2)
            return self._compiled.FailingSensors(places, scores, self.table.current[first : first + len(names)])

        self._failing = bool(self._drops or self._hides)
        self._lost = failures(self._drops, self._noise[len(self._noise) - len(self._drops) :])
        self._hidden = failures(self._hides, np.full((len(self._hides), self.num_envs), 0.5))
        self._readings = np.zeros((self.num_envs, size if self._drops else 0), self._observations.dtype)  # last ones

    def disturbed_space(self, space: gym.Space[Any]) -> gym.Space[Any]:
        """The space of one sub-environment's observations: unbounded with noise, and 0 in it if a sensor may hide."""
        box: Any = space
        if self.noisy:
            return gym.spaces.Box(-np.inf, np.inf, box.shape, box.dtype.type)
        if not self._hides:
            return space
        low, high = box.low.reshape(-1).copy(), box.high.reshape(-1).copy()
        for first, end in self._hidden.spans.tolist():
            low[first:end], high[first:end] = np.minimum(low[first:end], 0), np.maximum(high[first:end], 0)
        return gym.spaces.Box(low.reshape(box.shape), high.reshape(box.shape), box.shape, box.dtype.type)

    # ---- episodes ----------------------------------------------------------------------------------------------------

    def begin(self, envs: Indices, exact: Mapping[str, Array]) -> None:
        """Begins episodes with new values and empty histories.

        Args:
            envs: The sub-environments.
            exact: Checked values that replace draws: name -> shape ``(num_envs,)``.
        """
        if len(envs) == 0:
            return
        self.table.begin(envs, exact)
        if "action_delay" in self._varying:
            self._sent = _deepened(self._sent, self.values["action_delay"], self._age)
        if "obs_delay" in self._varying:
            self._seen = _deepened(self._seen, self.values["obs_delay"], self._age)
        self._age[envs] = 0
        self._held[envs] = self._initial
        for noise in (self._gained, self._pulled, self._biased):
            noise.begin(envs)
        self._bias[envs] = 0.0
        if "obs_bias" in self._varying:
            self._biased.draw(self.table, self._age, 0)
            self._bias[envs] = self.values["obs_bias"][envs, None] * self._scale * self._biased.scores[:, envs].T
        for name, numbers in self._offsets:
            self._bias[envs, numbers] += self.values[name][envs, None]

    # ---- actions -----------------------------------------------------------------------------------------------------

    def act(self, given: Any) -> npt.NDArray[Any]:
        """Turns the actions of all policies into those that the environment gets; call ``acted`` to confirm the step.

        Raises:
            InvalidActionError: They have the wrong shape or type, are not finite or, if discrete, out of range; nothing
                has changed.
        """
        actions = self._checked(given).astype(self._actions.dtype, order="C")
        self._arrived = actions
        if not self._commands:
            return actions
        if "action_gain" in self._varying:
            due = self._gained.draw(self.table, self._age, self.values["action_gain_interval"])
            self._gains[:, due] = 1.0 + self.values["action_gain"][due] * self._gained.scores[:, due]
        arrived, env_actions = np.empty_like(actions), np.empty_like(actions)
        lost = self._nobody
        if "action_drop" in self._varying:
            lost = self._parts["action_drop"][0] < self.values["action_drop"]
        flat = self.num_envs, -1
        sent = self._compiled.History(self._sent, self._age, self.values["action_delay"])
        self._compiled.command(
            sent,
            self._actuators,
            actions.reshape(flat),
            lost,
            self._held,
            arrived.reshape(flat),
            env_actions.reshape(flat),
        )
        self._arrived = arrived
        return env_actions

    def acted(self) -> None:
        """Records a step that was made with the result of ``act``."""
        self._held = self._arrived.reshape(self.num_envs, -1)
        self._age += 1

    def pushes(self, alive: Mask) -> tuple[Indices, Array]:
        """Which of those ``alive`` to push before the next step, and the velocities, shape ``(pushed, push_size)``."""
        if not self._speeds:
            return _NOBODY
        chosen = self._nobody
        if "push_probability" in self._varying:
            chosen = self._parts["push_probability"][0] < self.values["push_probability"]
        if "push_interval" in self._varying:
            interval = np.where(self.values["push_interval"] > 0, self.values["push_interval"], np.inf)
            chosen = chosen | ((self._age > 0) & (self._age % interval == 0))
        envs = np.flatnonzero(chosen & alive)
        velocities = np.zeros((len(envs), self._push_size))
        for name, columns in self._speeds.items() if len(envs) else ():
            velocities[:, columns] = self.values[name][envs, None] * self._parts[name][:, envs].T
        return envs, velocities

    def wrenches(self, alive: Mask) -> tuple[Indices, Array]:
        """Which of those ``alive`` get another wrench before the next step, and forces and torques, ``(pulled, 6)``."""
        if not self._wrenches:
            return _NOBODY
        due = self._pulled.draw(self.table, self._age, self.values["wrench_interval"])
        envs = due[alive[due]]
        wrenches = np.zeros((len(envs), 6))
        for name, columns in self._wrenches.items():
            wrenches[:, columns] = self.values[name][envs, None] * self._pulled.scores[columns, envs].T
        return envs, wrenches

    # ---- observations ------------------------------------------------------------------------------------------------

    def observe(self, observations: Any, fresh: Mask | None = None) -> Any:
        """What the policies see of a step's observations ``(num_envs, ...)``; a new array, or what nothing disturbs.

        Args:
            observations: The undisturbed observations.
            fresh: Shape ``(num_envs,)``, the sub-environments whose episodes began without a step, if any; the others
                have no new observation.
        """
        if len(self._noise):
            self._keyed.draw(self.table.seed_words, self.table.index, self._age + 1, self._noise)
        if not self.sensed:
            return observations
        now = np.array(observations, self._observations.dtype)  # the compiled function takes no other dtype
        visible = np.empty_like(now)
        # before the first reset there is no history
        fresh = self._everybody if fresh is None else fresh | (self.table.index < 0)
        flat = self.num_envs, -1
        seen = self._compiled.History(self._seen, self._age, self.values["obs_delay"])
        self._compiled.sense(seen, self._sensors, now.reshape(flat), fresh, visible.reshape(flat))
        if self._failing:
            self._compiled.fail(self._lost, self._hidden, self._age, fresh, self._readings, visible.reshape(flat))
        return visible


def _components(sizes: Mapping[str, int]) -> list[str]:
    """Names of the random numbers that disturbances use, numbered."""
    return [f"{name}:{i}" for name, size in sizes.items() for i in range(size)]


def _deepened(ring: npt.NDArray[Any], delays: Array, ages: Indices) -> npt.NDArray[Any]:
    """A history ``(num_envs, depth, numbers)`` that covers the delays; the same array if it already does."""
    envs, old, new = np.arange(len(ring)), ring.shape[1], int(delays.max()) + 1
    if new <= old:
        return ring
    deeper = np.zeros((len(ring), new, ring.shape[2]), ring.dtype)
    for lag in range(old):
        age = np.maximum(ages - lag, 0)
        deeper[envs, age % new] = ring[envs, age % old]
    return deeper


def _numbers(space: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    """The numbers of an action before the first one arrives, and their bounds, which discrete actions do not need.

    They are zeros, clipped to the bounds, or the first discrete action.
    """
    if isinstance(space, gym.spaces.Discrete):
        return np.full(1, space.start, space.dtype), np.zeros(1), np.zeros(1)
    low, high = space.low.reshape(-1).copy(), space.high.reshape(-1).copy()
    return np.clip(np.zeros_like(low), low, high), low, high


def is_float_box(space: gym.Space[Any]) -> bool:
    """Whether noise can be added to the elements of a space."""
    return isinstance(space, gym.spaces.Box) and np.issubdtype(space.dtype, np.floating)


def _check_scale(scale: npt.ArrayLike, space: gym.Space[Any]) -> Array:
    try:
        spread = np.broadcast_to(np.asarray(scale, np.float64), space.shape or ()).reshape(-1).copy()
    except (TypeError, ValueError):
        raise RandomizationError(f"obs_scale: expected a number or shape {space.shape}, got {scale!r}.") from None
    if not (np.isfinite(spread).all() and (spread >= 0).all()):
        raise RandomizationError(f"obs_scale: expected finite numbers >= 0, got {scale!r}.")
    return spread
