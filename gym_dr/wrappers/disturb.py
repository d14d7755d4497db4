"""Noise, bias, delays, losses, failing sensors and pushes, for one environment and for vector environments."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import batch_space

from gym_dr.arrays import Array, Indices, Mask
from gym_dr.envs.stack import floats, pushed_layer, stack_of
from gym_dr.envs.vector_arguments import Options, Seeds, check_seeds
from gym_dr.errors import RandomizationError
from gym_dr.randomization.presets import presets
from gym_dr.randomization.sampler import seed_word
from gym_dr.randomization.space import ParamSpace, exact_values
from gym_dr.randomization.spec import Randomization
from gym_dr.wrappers.base import ViewWrapper
from gym_dr.wrappers.disturbances import DISTURBANCES, Disturbances
from gym_dr.wrappers.disturbed_space import DisturbedSpace, split
from gym_dr.wrappers.vector_params import spaces_of


class Disturb(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Disturbs the actions and observations of one environment; each reset draws how strongly.

    The parameters are ``obs_noise``, ``obs_bias``, ``obs_delay``, ``obs_drop``, ``action_noise``, ``action_delay``,
    ``action_drop``, ``action_gain``, ``push_speed`` and others, which the guide lists, and of each sensor, such as
    ``theta`` or 2 for the third number of an observation, ``obs_hide:theta``, ``obs_drop:theta`` and
    ``obs_offset:theta``; ``info["params"]`` contains the current values. Observations that nothing disturbs may be
    dictionaries, tuples or images.

    Attributes:
        disturbances: The disturbances that vary, and how.

    Example:
        >>> import gymnasium as gym
        >>> from gym_dr import Disturb, Integer
        >>> env = Disturb(gym.make("CartPole-v1"), {"obs_noise": (0, 0.05), "obs_delay": Integer(0, 2)})
        >>> _, info = env.reset(seed=1)
        >>> sorted(info["params"])
        ['obs_delay', 'obs_noise']
    """

    def __init__(self, env: gym.Env[Any, Any], randomization: Any, obs_scale: npt.ArrayLike = 1.0) -> None:
        """Wraps an environment.

        Args:
            env: Any environment; pushes need a ``gym_dr/...`` one or ``RandomizeMujoco``.
            randomization: A mapping of the names above to distributions, a ``Randomization``, a path to a TOML file, or
                the name of one of the environment's presets, whose disturbances it takes.
            obs_scale: Factor for ``obs_noise`` and ``obs_bias``: one number, or one for each component.

        Raises:
            UnknownNameError: There is no such disturbance or sensor.
            RandomizationError: A range is impossible, or the environment does not support a disturbance.
        """
        gym.Wrapper.__init__(self, env)
        self._pushed: Any = pushed_layer(env)
        pushes = int(getattr(self._pushed, "push_size", 0)), floats(self._pushed)
        self._state = Disturbances(
            _of_preset(randomization, self._pushed),
            1,
            env.observation_space,
            env.action_space,
            obs_scale,
            *pushes,
            _id_of(env),
        )
        self.disturbances = self._state.randomization
        RecordConstructorArgs.__init__(self, randomization=self.disturbances.to_dict(), obs_scale=obs_scale)
        self.observation_space = self._state.disturbed_space(env.observation_space)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins an episode with new values and an empty history.

        Args:
            seed: Restarts the draws.
            options: ``{"params": {name: value}}`` sets exact values for this episode, of the environment and of this
                wrapper.

        Raises:
            RandomizationError: An impossible value in ``options``; nothing has changed.
        """
        exact, rest = _split(options, self._state, self.env.has_wrapper_attr("disturbances"))
        checked = self._state.space.check_vector(exact, 1)
        observation, info = self.env.reset(seed=seed, options=rest)
        if seed is not None or self._state.table.index[0] < 0:  # or it is the first reset
            _seed(self._state, np.zeros(1, np.int64), [self.env.unwrapped.np_random_seed])
        self._state.begin(np.zeros(1, np.int64), checked)
        return self._observe(observation), self._with_params(info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Steps the environment with the action that arrives.

        Raises:
            InvalidActionError: The action is not in the action space; nothing has changed.
        """
        env_actions = self._state.act(np.asarray(action)[None])
        alive = np.ones(1, np.bool_)
        for velocity in self._state.pushes(alive)[1]:
            self._pushed.push(velocity)
        for wrench in self._state.wrenches(alive)[1]:
            self._pushed.apply_wrench(wrench)
        observation, reward, terminated, truncated, info = self.env.step(env_actions[0])
        self._state.acted()
        return self._observe(observation), reward, terminated, truncated, self._with_params(info)

    def _observe(self, observation: Any) -> Any:
        return self._state.observe(np.asarray(observation)[None] if self._state.sensed else [observation])[0]

    def _with_params(self, info: dict[str, Any]) -> dict[str, Any]:
        own = {name: float(values[0]) for name, values in self._state.table.params().items()}
        return {**info, "params": {**info.get("params", {}), **own}}


class DisturbVector(ViewWrapper):
    """Disturbs the actions and observations of a vector environment, like ``Disturb`` around each sub-environment.

    Put it outside ``ResampleParams`` and ``VectorParams``, and inside ``FrameStack``, ``RecordEpisodes`` and
    ``DrawContext``. It makes its own draws at each reset.

    Attributes:
        disturbances: The disturbances that vary, and how.

    Example:
        >>> import gymnasium as gym, gym_dr
        >>> envs = gym.make_vec("gym_dr/HopperDR-v5", num_envs=4)
        >>> envs = gym_dr.DisturbVector(envs, {"action_delay": gym_dr.Integer(0, 3), "push_speed": (0, 1),
        ...                                    "push_probability": 0.01})
        >>> _, info = envs.reset(seed=1)
        >>> info["params"]["action_delay"].shape
        (4,)
        >>> envs.close()
    """

    def __init__(self, env: VectorEnv[Any, Any, Any], randomization: Any, obs_scale: npt.ArrayLike = 1.0) -> None:
        """Wraps a vector environment.

        Args:
            env: Any vector environment; pushes need a native or sync ``gym_dr/...`` one.
            randomization: As for ``Disturb``.
            obs_scale: As for ``Disturb``.

        Raises:
            UnknownNameError: There is no such disturbance or sensor.
            RandomizationError: A range is impossible, or the environment does not support a disturbance.
        """
        super().__init__(env)
        inner: Any = env.unwrapped
        self._sub_envs = [pushed_layer(sub) for sub in inner.envs] if isinstance(inner, SyncVectorEnv) else None
        self._push_to: Any = self._sub_envs[0] if self._sub_envs else inner
        layers = self._sub_envs or [inner]
        sizes = {int(getattr(layer, "push_size", 0)) for layer in layers}
        self._state = Disturbances(
            _of_preset(randomization, layers[0]),
            self.num_envs,
            env.single_observation_space,
            env.single_action_space,
            obs_scale,
            sizes.pop() if len(sizes) == 1 else 0,  # pushes reach all or none
            all(map(floats, layers)),
            _id_of(env) or _id_of(self._push_to),
        )
        self.disturbances = self._state.randomization
        if self._state.sensed:
            self.single_observation_space = self._state.disturbed_space(env.single_observation_space)
            self.observation_space = batch_space(self.single_observation_space, self.num_envs)

    @property
    def param_space(self) -> DisturbedSpace:
        """The environment's parameters, and the disturbances that vary."""
        return DisturbedSpace(self._inner[0], self._state.space.values())

    @property
    def randomization(self) -> Randomization:
        """What varies, in the environment and in this wrapper; without their correlations."""
        return Randomization({**self._inner[1], **self.disturbances})

    @cached_property  # finding them may ask worker processes
    def _inner(self) -> tuple[ParamSpace, Randomization]:
        """The space and the randomization of the wrapped environment; empty for one without parameters."""
        try:
            return spaces_of(self.env)
        except RandomizationError:
            return ParamSpace("parameters", []), Randomization()

    def reset(self, *, seed: Seeds = None, options: Options = None) -> tuple[Any, dict[str, Any]]:
        """Begins episodes with new values and empty histories.

        Args:
            seed: As for the environment.
            options: As for the environment; ``"params"`` may also contain values of this wrapper.

        Raises:
            RandomizationError: An impossible value or mask in ``options``; nothing has changed.
        """
        more = any(isinstance(layer, DisturbVector) for layer in stack_of(self.env))
        exact, rest = _split(options, self._state, more)
        checked, unseeded = self._state.space.check_vector(exact, self.num_envs), ~self._autoreset.begun
        mask, observations, info = self._reset(seed, rest)
        given = np.array([s is not None for s in check_seeds(seed, self.num_envs)])
        if len(envs := np.flatnonzero(mask & (given | unseeded))):
            seeds = self.env.unwrapped.np_random_seed
            known = seeds if isinstance(seeds, tuple | list) else [None] * self.num_envs
            _seed(self._state, envs, [known[i] for i in envs.tolist()])
        return self._view(observations, info, mask, mask, exact=checked)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Steps all sub-environments with the actions that arrive.

        Raises:
            EnvStateError: There was no reset yet, or an episode that ended was not reset (DISABLED).
            InvalidActionError: The actions are not in the action space; nothing has changed.
        """
        self._autoreset.check_step()
        env_actions = self._state.act(actions)
        alive = self._autoreset.will_step  # skips those about to be reset
        self._apply("push", *self._state.pushes(alive))
        self._apply("apply_wrench", *self._state.wrenches(alive))
        return super().step(env_actions)

    def _view(
        self,
        observations: Any,
        info: dict[str, Any],
        reported: Mask | None,
        begun: Mask | None,
        rewards: Array | None = None,
        exact: Mapping[str, Array] = MappingProxyType({}),
    ) -> tuple[Any, dict[str, Any]]:
        if rewards is not None:
            self._state.acted()
        if begun is not None:
            self._state.begin(np.flatnonzero(begun), exact)
        own = self._state.table.info(reported)
        info = {**info, "params": {**info.get("params", {}), **own["params"]}, "_params": own["_params"]}
        return self._state.observe(observations, begun if rewards is None else None), info

    def _apply(self, method: str, envs: Indices, numbers: Array) -> None:
        """Calls ``push`` or ``apply_wrench`` of some sub-environments."""
        if self._sub_envs is not None:
            for i, own in zip(envs.tolist(), numbers, strict=True):
                getattr(self._sub_envs[i], method)(own)
        elif len(envs):
            getattr(self._push_to, method)(numbers, envs)


def _of_preset(randomization: Any, layer: Any) -> Any:
    """The disturbances in a preset of an environment, given by its name; anything else as it is."""
    named = presets(layer.param_space.name) if hasattr(layer, "param_space") else {}
    return (
        split(named[randomization])[1] if isinstance(randomization, str) and randomization in named else randomization
    )


def _id_of(env: Any) -> str:
    """The id that an environment was made from; empty if it has none."""
    spec = getattr(env, "spec", None)
    return "" if spec is None else str(spec.id)


def _split(
    options: Mapping[str, Any] | None, state: Disturbances, more: bool
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Takes the wrapper's own exact values out of ``options``.

    Raises:
        RandomizationError: The options are no mapping. Or a disturbance does not vary here, and no wrapper inside has
            ``more``; the environment would ignore its value.
    """
    params, rest = exact_values(options, state.space), dict(options or {})
    if not isinstance(params, Mapping):
        return {}, rest or None
    rest["params"] = {name: value for name, value in params.items() if name not in state.space}
    for name in rest["params"]:
        if name in DISTURBANCES and not more:
            raise RandomizationError(
                f"Parameter {name!r}: expected a disturbance of this wrapper ({', '.join(state.space) or 'none'}). "
                f"To set another one for an episode, make the wrapper with it: {{{name!r}: 0}}."
            )
    if not rest["params"]:
        del rest["params"]
    return {name: value for name, value in params.items() if name in state.space}, rest or None


def _seed(state: Disturbances, envs: Indices, seeds: list[int | None]) -> None:
    """Keys draws by the environments' seeds; those without one (None or -1 in Gymnasium) get a random seed."""
    known = [s if s is not None and s >= 0 else int(np.random.SeedSequence().generate_state(1)[0]) for s in seeds]
    state.table.seed(envs, np.array([seed_word(s) for s in known], np.uint64))
