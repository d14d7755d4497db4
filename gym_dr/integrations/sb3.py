"""Stable-Baselines3 on Gymnasium's vector environments, mainly gym_dr's native ones.

Stable-Baselines3 has its own vector environment type, ``VecEnv``, which steps ``gymnasium`` environments one at a time.
This module has a ``VecEnv`` that steps all of them in one call, and a ``make_vec_env`` with the same arguments.
"""

from __future__ import annotations

import importlib
import inspect
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, cast

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import iterate

from gym_dr.arrays import Floats, Mask
from gym_dr.envs.family import ENVIRONMENTS
from gym_dr.envs.stack import stack_of
from gym_dr.errors import ConfigError, warn
from gym_dr.wrappers.base import PARAM_INTERFACE

try:
    from stable_baselines3.common import env_util
    from stable_baselines3.common.monitor import Monitor, ResultsWriter
    from stable_baselines3.common.vec_env import VecEnv
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"gym_dr.integrations.sb3 needs the package {error.name!r}, which is not installed: pip install 'gym-dr[sb3]'",
        name=error.name,
    ) from None

Infos = list[dict[str, Any]]
EnvIndices = int | Iterable[int] | None

_FINAL = frozenset({"final_obs", "final_info"})  # of ended episodes, in SAME_STEP mode
_EPISODE = _FINAL | {"params", "draw_index"}  # only in infos of steps that end an episode
_TRUNCATED = "TimeLimit.truncated"


class GymnasiumVecEnv(VecEnv):
    """A Stable-Baselines3 ``VecEnv`` around a Gymnasium vector environment and its wrappers.

    The info of a finished episode has what ``Monitor`` and ``DummyVecEnv`` add, ``episode`` (``r``, ``l``, ``t``),
    ``terminal_observation`` and ``TimeLimit.truncated``, and everything that the environment reports at the last step,
    such as ``params`` and ``draw_index``. Infos of other steps lack ``params`` and ``draw_index``;
    ``get_attr("params")`` returns the current values at any time.

    ``get_attr``, ``set_attr`` and ``env_method`` refer to the sub-environments if there are any (sync, async), else to
    the vector environment and its wrappers: arrays, lists and tuples over sub-environments are split between them, and
    methods with an argument ``mask`` are called for the chosen ones. So ``env_method("set_params", {...},
    indices=[0])`` does the same everywhere.

    Attributes:
        envs: The vector environment.

    Example:
        >>> import gymnasium as gym, gym_dr
        >>> from stable_baselines3 import PPO
        >>> envs = gym.make_vec("gym_dr/LunarLanderDR-v3", num_envs=16, autoreset_mode="SameStep")
        >>> envs = GymnasiumVecEnv(gym_dr.ResampleParams(envs, rollout_steps=128, every=4))
        >>> model = PPO("MlpPolicy", envs, n_steps=128).learn(100_000)
    """

    def __init__(
        self,
        envs: VectorEnv[Any, Any, Any],
        *,
        monitor_files: Sequence[ResultsWriter] = (),
        info_keywords: Sequence[str] = (),
    ) -> None:
        """Wraps a vector environment.

        Args:
            envs: A vector environment with SAME_STEP or DISABLED autoreset; with DISABLED, this class resets
                sub-environments whose episode has ended.
            monitor_files: A file for each sub-environment's finished episodes; empty for no files.
            info_keywords: Keys of a finished episode's info to copy into its ``episode``, as in ``Monitor``.

        Raises:
            ConfigError: It is not a vector environment, or Stable-Baselines3 cannot learn from it.
        """
        if not isinstance(envs, VectorEnv):
            raise ConfigError(f"Expected a Gymnasium vector environment, as gym.make_vec() returns, got {envs!r}.")
        self._mode = envs.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        if self._mode == AutoresetMode.NEXT_STEP:
            raise ConfigError(
                f"Expected SAME_STEP or DISABLED autoreset, got NEXT_STEP of {envs}: Stable-Baselines3 would learn "
                "from its reset steps. Use gym.make_vec(..., autoreset_mode='SameStep') for a native environment, "
                "vector_kwargs={'autoreset_mode': AutoresetMode.SAME_STEP} for a sync or async one."
            )
        self.envs, self._base = envs, cast(Any, envs.unwrapped)
        self.spec = envs.spec
        self._monitor_files, self._info_keywords = list(monitor_files), tuple(info_keywords)
        self._start = time.time()
        self._actions: Any = None
        self._returns = np.zeros(envs.num_envs)
        self._lengths = np.zeros(envs.num_envs, np.int64)
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)
        self.metadata = envs.metadata

    # ---- episodes ----------------------------------------------------------------------------------------------------

    def reset(self) -> Any:
        """Starts new episodes with the seeds and options set since the last reset."""
        seeds = None if all(seed is None for seed in self._seeds) else self._seeds
        options = self._options[0]
        if any(other != options for other in self._options):
            raise ConfigError(
                "Expected the same options for all sub-environments. Give arrays: {'params': {NAME: [...]}}."
            )
        observations, info = self.envs.reset(seed=seeds, options=dict(options) or None)
        self.reset_infos = rows_of(info, range(self.num_envs))
        self._reset_seeds()
        self._reset_options()
        self._returns[:], self._lengths[:] = 0.0, 0
        return observations

    def step_async(self, actions: npt.NDArray[Any]) -> None:
        """Stores the actions for ``step_wait``."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, Floats, Mask, Infos]:
        """Steps all sub-environments, and resets those whose episode has ended."""
        observations, rewards, terminations, truncations, info = self.envs.step(self._actions)
        dones = np.logical_or(terminations, truncations)
        self._returns += rewards
        self._lengths += 1
        infos: Infos = [{_TRUNCATED: False} for _ in range(self.num_envs)]
        fill_rows(infos, info, range(self.num_envs), _EPISODE)
        if np.count_nonzero(dones):
            if self._mode == AutoresetMode.SAME_STEP:
                last, ended, begun = info["final_obs"], info["final_info"], info
            else:
                last, ended = list(iterate(self.envs.observation_space, observations)), info
                observations, begun = self.envs.reset(options={"reset_mask": dones.copy()})
            chosen = np.flatnonzero(dones).tolist()
            for i, row, reset_info in zip(chosen, rows_of(ended, chosen), rows_of(begun, chosen, _FINAL), strict=True):
                row[_TRUNCATED] = bool(truncations[i]) and not terminations[i]
                row["terminal_observation"] = last[i]
                row["episode"] = self._episode(i, row)
                infos[i], self.reset_infos[i] = row, reset_info
            self._returns[dones], self._lengths[dones] = 0.0, 0
        return observations, np.asarray(rewards).astype(np.float32), dones, infos

    def _episode(self, i: int, info: Mapping[str, Any]) -> dict[str, Any]:
        """The ``episode`` of a finished episode's info, made and written as by ``Monitor``."""
        episode = {
            "r": round(float(self._returns[i]), 6),
            "l": int(self._lengths[i]),
            "t": round(time.time() - self._start, 6),
        }
        episode |= {key: info[key] for key in self._info_keywords}
        if self._monitor_files:
            self._monitor_files[i].write_row(episode)
        return episode

    def close(self) -> None:
        """Closes the vector environment and the monitor files."""
        self.envs.close()
        for file in self._monitor_files:
            file.close()

    def get_images(self) -> Sequence[npt.NDArray[Any] | None]:
        """One frame of each sub-environment; ``render`` tiles them."""
        return list(cast(Any, self.envs.render()))

    # ---- attributes and methods --------------------------------------------------------------------------------------

    def get_attr(self, attr_name: str, indices: EnvIndices = None) -> list[Any]:
        """Gets an attribute of each chosen sub-environment.

        Raises:
            AttributeError: There is no such attribute.
        """
        if attr_name in ("observation_space", "action_space"):  # the vector environment's spaces are batched
            values: Any = [getattr(self.envs, f"single_{attr_name}")] * self.envs.num_envs
        else:
            owner = self._owner(attr_name)
            values = self._base.get_attr(attr_name) if owner is None else self._divide(getattr(owner, attr_name))
        return [values[i] for i in self._chosen(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: EnvIndices = None) -> None:
        """Sets an existing attribute, with its ``set_...`` method if there is one.

        Raises:
            AttributeError: There is no such attribute.
            ConfigError: All sub-environments share the attribute, but only some were chosen.
        """
        owner, chosen = self._owner(attr_name), self._chosen(indices)
        if owner is None:
            values = list(self._base.get_attr(attr_name))
            for i in chosen:
                values[i] = value
            self._base.set_attr(attr_name, values)
        elif hasattr(owner, f"set_{attr_name}"):
            self.env_method(f"set_{attr_name}", value, indices=indices)
        elif self._mask(chosen).all():
            setattr(owner, attr_name, value)
        else:
            raise ConfigError(f"Expected indices=None for {attr_name!r}, which all sub-environments share.")

    def env_method(self, method_name: str, *args: Any, indices: EnvIndices = None, **kwargs: Any) -> list[Any]:
        """Calls a method for the chosen sub-environments; returns a result for each.

        Raises:
            AttributeError: There is no such method.
            ConfigError: The method is ``reset`` or ``step``, or cannot be called for only some sub-environments.
        """
        owner, chosen = self._owner(method_name), self._chosen(indices)
        mask = self._mask(chosen)
        if owner is None and isinstance(self._base, SyncVectorEnv):
            return [self._base.envs[i].get_wrapper_attr(method_name)(*args, **kwargs) for i in chosen]
        method = self._base.call if owner is None else getattr(owner, method_name)
        if owner is not None and "mask" in inspect.signature(method).parameters:
            kwargs["mask"] = mask
        elif not mask.all() or (owner is not None and method_name in ("reset", "step")):
            raise ConfigError(
                f"Expected indices=None and a method other than reset and step, got {method_name!r} of "
                f"{owner or self._base}, which applies to all sub-environments at once."
            )
        result = method(method_name, *args, **kwargs) if owner is None else self._divide(method(*args, **kwargs))
        return [result[i] for i in chosen]

    def env_is_wrapped(self, wrapper_class: type[Any], indices: EnvIndices = None) -> list[bool]:
        """Whether a wrapper is around the chosen sub-environments or all; True for ``Monitor``, which is built in."""
        chosen = self._chosen(indices)
        if wrapper_class is Monitor or any(isinstance(env, wrapper_class) for env in stack_of(self.envs)):
            return [True] * len(chosen)
        if isinstance(self._base, SyncVectorEnv):
            return [env_util.is_wrapped(self._base.envs[i], wrapper_class) for i in chosen]
        return [False] * len(chosen)

    def _owner(self, name: str) -> Any:
        """The owner of an attribute: the vector environment, a wrapper around it, or None for its sub-environments.

        Raises:
            AttributeError: There is no such attribute.
        """
        if name in PARAM_INTERFACE and hasattr(self.envs, name):
            return self.envs
        # a missing attribute would end a worker process
        if hasattr(self._base, "call") and all(self._base.call("has_wrapper_attr", name)):
            return None
        for env in stack_of(self.envs):
            if hasattr(env, name):
                return env
        raise AttributeError(f"Neither {self.envs} nor its sub-environments have an attribute {name!r}.")

    def _divide(self, value: Any) -> list[Any]:
        """Splits a value between sub-environments, or repeats a value without that dimension."""
        if isinstance(value, Mapping) and value and all(self._is_divided(part) for part in value.values()):
            return rows_of(value, range(self.envs.num_envs))
        return list(value) if self._is_divided(value) else [value] * self.envs.num_envs

    def _is_divided(self, value: Any) -> bool:
        return isinstance(value, np.ndarray | list | tuple) and np.shape(value)[:1] == (self.envs.num_envs,)

    def _chosen(self, indices: EnvIndices) -> list[int]:
        return list(range(self.envs.num_envs) if indices is None else self._get_indices(indices))

    def _mask(self, chosen: list[int]) -> Mask:
        mask = np.zeros(self.envs.num_envs, np.bool_)
        mask[chosen] = True
        return mask


def rows_of(info: Mapping[str, Any], envs: Sequence[int], skip: Collection[str] = ()) -> Infos:
    """The infos of sub-environments, one mapping each.

    Args:
        info: Info of a Gymnasium vector environment: arrays ``(num_envs, ...)`` by key, with masks ``_key``.
        envs: Indices of the sub-environments.
        skip: Keys to leave out.
    """
    rows: Infos = [{} for _ in envs]
    fill_rows(rows, info, envs, skip)
    return rows


def fill_rows(rows: Infos, info: Mapping[str, Any], envs: Sequence[int], skip: Collection[str]) -> None:
    """Adds infos of sub-environments to existing rows; see ``rows_of``."""
    for key, values in info.items():
        if key.startswith("_") or key in skip:
            continue
        if isinstance(values, Mapping):
            column: Sequence[Any] = rows_of(values, envs)
        elif isinstance(values, np.ndarray) and values.ndim == 1:
            column = [values.item(i) for i in envs]
        else:
            column = [values[i] for i in envs]
        mask = info.get(f"_{key}")
        for row, i, value in zip(rows, envs, column, strict=True):
            if mask is None or mask[i]:
                row[key] = value


def make_vec_env(
    env_id: str | Callable[..., gym.Env[Any, Any]],
    n_envs: int = 1,
    seed: int | None = None,
    start_index: int = 0,
    monitor_dir: str | None = None,
    wrapper_class: Callable[[gym.Env[Any, Any]], gym.Env[Any, Any]] | None = None,
    env_kwargs: dict[str, Any] | None = None,
    vec_env_cls: type[Any] | None = None,
    vec_env_kwargs: dict[str, Any] | None = None,
    monitor_kwargs: dict[str, Any] | None = None,
    wrapper_kwargs: dict[str, Any] | None = None,
) -> VecEnv:
    """Stable-Baselines3's ``make_vec_env``, with the native vector environment if there is one.

    The episodes are the same: sub-environment i is seeded with ``seed + i``. Ids without a native environment use
    Stable-Baselines3's own function; so do arguments that need single environments, with a warning.

    Args:
        env_id: An id, also of one of our environments that you have registered with other keywords, or a function that
            makes a single environment.
        n_envs: Number of sub-environments.
        seed: Seed of the first reset.
        start_index: Index of the first sub-environment, in the names of monitor files.
        monitor_dir: Folder for files of each sub-environment's finished episodes; None for no files.
        wrapper_class: Wrapper of single environments; rules out native ones.
        env_kwargs: Arguments of the environment: ``randomization``, ``context``, ``num_threads`` (native only), ...
        vec_env_cls: ``VecEnv`` of single environments; rules out native ones.
        vec_env_kwargs: Arguments of ``vec_env_cls``.
        monitor_kwargs: Arguments of ``Monitor``: ``info_keywords`` and ``override_existing``; others need single
            environments.
        wrapper_kwargs: Arguments of ``wrapper_class``.

    Raises:
        ConfigError: An argument is impossible.
        UnknownNameError: A preset, parameter or context is unknown.
        RandomizationError: A range is impossible.
    """
    module, _, name = env_id.rpartition(":") if isinstance(env_id, str) else ("", "", "")
    if module:
        importlib.import_module(module)  # may register the id
    spec, twins = gym.registry.get(name), {env.entry_point: env.vector_entry_point for env in ENVIRONMENTS.values()}
    single: Any = None if spec is None else spec.entry_point
    twin = twins.get(f"{single.__module__}:{single.__qualname__}" if callable(single) else single)
    files = {"info_keywords": (), "override_existing": True, **(monitor_kwargs or {})}
    needs_single = {
        f"gym.register without vector_entry_point={twin!r}": spec is not None and spec.vector_entry_point is None,
        "additional_wrappers": spec is not None and bool(spec.additional_wrappers),
        "wrapper_class": wrapper_class is not None,
        "vec_env_cls": vec_env_cls is not None,
        "vec_env_kwargs": bool(vec_env_kwargs),
        "monitor_kwargs": files.pop("allow_early_resets", True) is not True or bool(files.pop("reset_keywords", ())),
    }
    if spec is None or twin is None or any(needs_single.values()):
        if twin is not None:
            reason = " and ".join(argument for argument, given in needs_single.items() if given)
            warn(
                f"{reason} needs single environments, so {name} is stepped one by one, not natively. To keep it "
                "native, wrap the vector environment: GymnasiumVecEnv(Wrapper(gym.make_vec(...))).",
            )
        return env_util.make_vec_env(
            env_id,
            n_envs,
            seed,
            start_index,
            monitor_dir,
            wrapper_class,
            env_kwargs,
            vec_env_cls,
            vec_env_kwargs,
            monitor_kwargs,
            wrapper_kwargs,
        )
    settings = {"render_mode": "rgb_array", "autoreset_mode": AutoresetMode.SAME_STEP, **(env_kwargs or {})}
    envs = gym.make_vec(str(env_id), n_envs, vectorization_mode="vector_entry_point", **settings)
    keywords = files["info_keywords"]
    header = {"t_start": time.time(), "env_id": name}
    writers = (
        []
        if monitor_dir is None
        else [
            ResultsWriter(os.path.join(monitor_dir, str(rank)), header, keywords, files["override_existing"])
            for rank in range(start_index, start_index + n_envs)
        ]
    )
    venv = GymnasiumVecEnv(envs, monitor_files=writers, info_keywords=keywords)
    if seed is not None:
        venv.action_space.seed(seed + start_index)
    venv.seed(seed)
    return venv
