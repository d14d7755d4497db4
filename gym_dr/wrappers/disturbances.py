"""What lies between a policy and the physics: noise, bias, delays, lost actions and pushes; of many environments.

One command goes: policy -> delayed by ``action_delay`` steps -> perhaps dropped, so that the one before stays in
force -> noise, clipped to the action space -> environment. One observation goes: environment -> bias and noise ->
delayed by ``obs_delay`` steps -> policy.

How much of each holds for an episode is drawn like any other parameter, keyed by (sub-environment's seed, draw index,
name). The noise of a step is keyed too: the step's number is the upper half of the index word.
"""

from __future__ import annotations

import math
import warnings
from collections import deque
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from gym_dr.errors import InvalidActionError, RandomizationError, RandomizationWarning
from gym_dr.randomization.ahead import DrawsAhead
from gym_dr.randomization.draws import uniforms
from gym_dr.randomization.normal import normal_ppf
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.space import Param, ParamSpace

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]

_LONGEST = 1000  # steps of delay
DISTURBANCES = ParamSpace(
    "disturbances",
    [
        Param(name="obs_noise", nominal=0, low=0, high=math.inf, doc="standard deviation of noise on each observation"),
        Param(
            name="obs_bias", nominal=0, low=0, high=math.inf, doc="standard deviation of an episode's constant error"
        ),
        Param(name="obs_delay", nominal=0, low=0, high=_LONGEST, unit="steps", kind="int", doc="age of observations"),
        Param(name="action_noise", nominal=0, low=0, high=math.inf, doc="standard deviation of noise on each action"),
        Param(name="action_delay", nominal=0, low=0, high=_LONGEST, unit="steps", kind="int", doc="age of actions"),
        Param(name="action_drop", nominal=0, low=0, high=1, doc="probability that an action is lost, at each step"),
        Param(name="push_speed", nominal=0, low=0, high=math.inf, unit="m/s", doc="standard deviation of a push"),
        Param(name="push_probability", nominal=0, low=0, high=1, doc="probability of a push, at each step"),
    ],
)
_STEP = np.int64(32)  # bits of the index word below the number of the step


class Disturbances:
    """The episodes' values and histories of ``num_envs`` sub-environments."""

    def __init__(
        self,
        randomization: Any,
        num_envs: int,
        observations: gym.Space[Any],
        actions: gym.Space[Any],
        obs_scale: npt.ArrayLike,
        push_size: int,
    ) -> None:
        """Checks what is to vary against the spaces of one sub-environment.

        Args:
            randomization: A mapping of names in ``DISTURBANCES`` to distributions, a ``Randomization`` or a path.
            num_envs: Number of sub-environments.
            observations: Of one.
            actions: Of one.
            obs_scale: What ``obs_noise`` and ``obs_bias`` are multiplied by: a number or one for each component.
            push_size: Numbers that a push consists of; 0 where the environment takes none.

        Raises:
            UnknownNameError: There is no such disturbance.
            RandomizationError: A range is impossible, or the environment has nothing to disturb.
        """
        with warnings.catch_warnings():  # whoever asks for noise need not draw none of it
            warnings.simplefilter("ignore", RandomizationWarning)
            self.randomization = resolve(randomization, DISTURBANCES)
        self.space = ParamSpace("disturbances", [DISTURBANCES[name] for name in self.randomization])
        self.num_envs = num_envs
        self.noisy = bool({"obs_noise", "obs_bias"} & self.randomization.keys())
        if self.noisy or "obs_delay" in self.randomization:
            _check_box("obs_noise, obs_bias and obs_delay", "observations", observations)
        if "action_noise" in self.randomization:
            _check_box("action_noise", "actions", actions)
        if not isinstance(actions, gym.spaces.Box | gym.spaces.Discrete):
            raise RandomizationError(f"Expected a Box or Discrete action space, got {actions}.")
        if not isinstance(observations, gym.spaces.Box | gym.spaces.Discrete):
            raise RandomizationError(f"Expected a Box or Discrete observation space, got {observations}.")
        pushes = {"push_speed", "push_probability"} & self.randomization.keys()
        if len(pushes) == 1:
            raise RandomizationError(f"Expected push_speed together with push_probability, got {pushes.pop()} alone.")
        if pushes and push_size == 0:
            raise RandomizationError(
                "push_speed, push_probability: this environment takes no pushes. Those of gym_dr/... ids do, but not "
                "through an AsyncVectorEnv: wrap each sub-environment in Disturb instead."
            )
        self._actions = actions
        self._scale = _check_scale(obs_scale, observations) if self.noisy else np.zeros(0)
        self._push_size = push_size
        self.values = {name: np.full(num_envs, float(param.nominal)) for name, param in DISTURBANCES.items()}
        self._draws = DrawsAhead(self.space, self.randomization, num_envs)
        self._words = np.zeros(num_envs, np.uint64)
        self._age: Indices = np.zeros(num_envs, np.int64)  # steps of the episodes under way
        self._bias: Array = np.zeros((num_envs, self._scale.size))
        self._idle = _idle(actions)
        self._held = np.broadcast_to(self._idle, (num_envs, *self._idle.shape)).copy()  # what acted last, before noise
        self._commands: deque[npt.NDArray[Any]] = deque()  # of the latest steps, the newest last
        self._seen: deque[npt.NDArray[Any]] = deque()  # observations with noise, as commands

    def disturbed_space(self, space: gym.Space[Any]) -> gym.Space[Any]:
        """The space of one sub-environment's observations; noise knows no bounds."""
        if not self.noisy:
            return space
        return gym.spaces.Box(-np.inf, np.inf, space.shape, space.dtype.type)  # type: ignore[union-attr]

    # ---- episodes ----------------------------------------------------------------------------------------------------

    def seed(self, envs: Indices, words: npt.NDArray[np.uint64]) -> None:
        """Starts the draws of some sub-environments anew, keyed by their seed words."""
        self._words[envs] = words
        self._draws.seed(envs, words)

    def begin(self, envs: Indices, exact: Mapping[str, Array]) -> None:
        """Begins episodes: new values, no history.

        Args:
            envs: The sub-environments.
            exact: Checked values in place of draws: name -> shape ``(num_envs,)``.
        """
        if len(envs) == 0:
            return
        self._draws.index[envs] += 1
        drawn = self._draws.current(envs) if len(self.randomization) else np.zeros((len(envs), 0))
        for column, name in enumerate(self.randomization):
            self.values[name][envs] = exact[name][envs] if name in exact else drawn[:, column]
        self._age[envs] = 0
        self._held[envs] = self._idle
        if "obs_bias" in self.randomization:
            index = self._draws.index[envs]
            scores = normal_ppf(uniforms(self._words[envs], index, self._components("obs_bias", self._scale.size)))
            self._bias[envs] = self.values["obs_bias"][envs, None] * self._scale * scores.T

    # ---- actions -----------------------------------------------------------------------------------------------------

    def check_actions(self, actions: Any) -> npt.NDArray[Any]:
        """Actions of all sub-environments as an array.

        Raises:
            InvalidActionError: They have the wrong shape or kind, are not finite or, for choices, out of range.
        """
        array, space = np.asarray(actions), self._actions
        shape = (self.num_envs, *(space.shape or ()))
        kinds = "iu" if isinstance(space, gym.spaces.Discrete) else "fiu"
        if array.shape != shape or array.dtype.kind not in kinds:
            raise InvalidActionError(
                f"Expected actions of shape {shape} from {space}, got shape {array.shape} and dtype {array.dtype}."
            )
        if isinstance(space, gym.spaces.Discrete):
            good = (array >= space.start) & (array < space.start + space.n)
        else:
            good = np.isfinite(array)
        if not good.all():
            raise InvalidActionError(f"Expected actions from {space}, got {array[~good][0]}.")
        return array.astype(space.dtype)

    def act(self, actions: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """What the environment is given for checked actions; changes nothing, ``acted`` does.

        Returns:
            The actions that arrived, and these with noise.
        """
        delay = self.values["action_delay"].astype(np.int64)
        arrived = _lagged([*self._commands, actions], np.minimum(delay, self._age))
        arrived[self._age < delay] = self._idle
        if "action_drop" in self.randomization:
            dropped = self._uniforms(["action_drop"])[0] < self.values["action_drop"]
            arrived[dropped] = self._held[dropped]
        if "action_noise" not in self.randomization:
            return arrived, arrived
        size = math.prod(self._idle.shape)
        scores = normal_ppf(self._uniforms(self._components("action_noise", size))).T.reshape(arrived.shape)
        deviation = self.values["action_noise"].reshape(-1, *(1 for _ in self._idle.shape))
        box: Any = self._actions
        return arrived, np.clip(arrived + deviation * scores, box.low, box.high).astype(box.dtype)

    def acted(self, actions: npt.NDArray[Any], arrived: npt.NDArray[Any]) -> None:
        """Notes the step that was made with what ``act`` gave."""
        self._commands.append(actions)
        _trim(self._commands, self.values["action_delay"])
        self._held = arrived
        self._age += 1

    def pushes(self) -> tuple[Array, Mask]:
        """Changes of velocity before the coming step, shape ``(num_envs, push_size)``, and who is pushed."""
        if "push_speed" not in self.randomization:
            return np.zeros((self.num_envs, self._push_size)), np.zeros(self.num_envs, np.bool_)
        chosen = self._uniforms(["push_probability"])[0] < self.values["push_probability"]
        scores = normal_ppf(self._uniforms(self._components("push_speed", self._push_size))).T
        return self.values["push_speed"][:, None] * scores, chosen

    # ---- observations ------------------------------------------------------------------------------------------------

    def observe(self, observations: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """What the policies see of a step's observations ``(num_envs, ...)``, in a fresh array."""
        self._seen.append(self._sense(observations))
        _trim(self._seen, self.values["obs_delay"])
        return self._look()

    def observe_first(self, observations: npt.NDArray[Any], envs: Indices) -> npt.NDArray[Any]:
        """The same, where some episodes began without a step; of the others nothing is new."""
        if not self._seen:
            self._seen.append(self._sense(observations))
        self._seen[-1][envs] = self._sense(observations)[envs]
        return self._look()

    def _sense(self, observations: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if not self.noisy:
            return observations.copy()
        error = self._bias
        if "obs_noise" in self.randomization:
            scores = normal_ppf(self._uniforms(self._components("obs_noise", self._scale.size))).T
            error = error + self.values["obs_noise"][:, None] * self._scale * scores
        sensed: npt.NDArray[Any] = (observations + error.reshape(observations.shape)).astype(observations.dtype)
        return sensed

    def _look(self) -> npt.NDArray[Any]:
        # before an episode is as old as the delay, its first observation is all there is
        return _lagged(list(self._seen), np.minimum(self.values["obs_delay"].astype(np.int64), self._age))

    def _uniforms(self, names: list[str]) -> Array:
        """Keyed by the episode and its step, shape ``(len(names), num_envs)``."""
        return uniforms(self._words, np.maximum(self._draws.index, 0) | ((self._age + 1) << _STEP), names)

    def _components(self, name: str, count: int) -> list[str]:
        return [f"{name}:{i}" for i in range(count)]


def _lagged(history: list[npt.NDArray[Any]], lags: Indices) -> npt.NDArray[Any]:
    """Row i of the entry that is ``lags[i]`` older than the newest, for each sub-environment i; a fresh array."""
    chosen = history[-1].copy()
    for lag in np.unique(lags[lags > 0]).tolist():
        chosen[lags == lag] = history[-1 - lag][lags == lag]
    return chosen


def _trim(history: deque[npt.NDArray[Any]], delays: Array) -> None:
    """Forgets what no episode under way will ask for; a longer delay comes with a new episode, which has no past."""
    while len(history) > delays.max() + 1:
        history.popleft()


def _idle(space: gym.spaces.Box | gym.spaces.Discrete) -> npt.NDArray[Any]:
    """What acts before the first command arrives: zeros, as far as the bounds allow, or the first choice."""
    if isinstance(space, gym.spaces.Discrete):
        return np.asarray(space.start, space.dtype)
    return np.clip(np.zeros(space.shape, space.dtype), space.low, space.high)


def _check_box(what: str, of: str, space: gym.Space[Any]) -> None:
    if not isinstance(space, gym.spaces.Box) or not np.issubdtype(space.dtype, np.floating):
        raise RandomizationError(f"{what}: expected {of} that are a box of floating-point numbers, got {space}.")


def _check_scale(scale: npt.ArrayLike, space: gym.Space[Any]) -> Array:
    try:
        array = np.asarray(scale, np.float64)
        spread = np.broadcast_to(array, space.shape or ()).reshape(-1).copy()
    except (TypeError, ValueError):
        raise RandomizationError(f"obs_scale: expected a number or shape {space.shape}, got {scale!r}.") from None
    if not (np.isfinite(spread).all() and (spread >= 0).all()):
        raise RandomizationError(f"obs_scale: expected finite numbers >= 0, got {scale!r}.")
    return spread
