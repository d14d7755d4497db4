"""Policies saved by Stable-Baselines3: reads their metadata without running code, and loads them."""

from __future__ import annotations

import hashlib
import inspect
import json
import pickle
import re
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import VectorEnv

from gym_dr.arrays import Mask
from gym_dr.errors import ConfigError, raised_as
from gym_dr.randomization.context import KEY
from gym_dr.tensors import torch_defaults
from gym_dr.wrappers.context import shown_columns

# observations (N, ...), or a dictionary of such arrays, and episode starts (N,) -> actions (N, ...)
Act = Callable[[Any, Mask], npt.NDArray[Any]]

MAX_PART = 2**26  # bytes of a file's metadata, which are read before the user trusts the file
_NEEDED = ("policy_class", "policy_kwargs", "observation_space", "action_space")  # the entries to unpickle
_PACKAGES = ("stable_baselines3", "sb3_contrib")  # of the extra gym-dr[sb3]
_MARKS = {"cg_max_steps": "TRPO", "clip_range": "PPO", "normalize_advantage": "A2C"}  # attribute -> algorithm

_OBSERVED = (
    " If it was trained with context='observation', add `context='observation'`, and its training randomization or "
    "`context_params`."
)


@dataclass(frozen=True, kw_only=True)
class SavedPolicy:
    """Metadata of a saved policy."""

    path: Path
    statistics: Path | None  # of ``VecNormalize``, beside the file; unopened
    algorithm: str | None  # None if unknown
    seed: int | None
    steps: int | None  # of training
    version: str  # of Stable-Baselines3
    use_sde: bool


def read_saved(path: Path) -> SavedPolicy:
    """Reads the plain-text metadata of a file, without running code from it and without opening any other file.

    Raises:
        ConfigError: The file is not a policy of Stable-Baselines3, or the statistics of ``VecNormalize`` are missing or
            belong to another policy.
    """
    expected = "expected a file from model.save() of Stable-Baselines3, got one that cannot be read as such"
    with raised_as(ConfigError, f"{path}: {expected}"):
        with zipfile.ZipFile(path) as archive:
            data = json.loads(_read_part(archive, "data"))
            version = _read_part(archive, "_stable_baselines3_version").decode().strip()
        module = str(data["policy_class"]["__module__"])
    return SavedPolicy(
        path=path,
        statistics=_statistics(path, data),
        algorithm=_algorithm(module, data),
        seed=data.get("seed"),
        steps=data.get("num_timesteps"),
        version=version,
        use_sde=data.get("use_sde") is True,
    )


def digest_of(saved: SavedPolicy) -> str:
    """Digest of the file and its statistics; both are opened, so both must be trusted."""
    files = [saved.path, *([] if saved.statistics is None else [saved.statistics])]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def load_policy(saved: SavedPolicy, *, stochastic: bool) -> LoadedPolicy:
    """Loads a policy, which may run any code in its files.

    Args:
        saved: From ``read_saved``.
        stochastic: Whether to sample actions instead of taking the most likely one.

    Raises:
        ConfigError: The policy cannot be loaded, most likely because a package is missing, or the statistics are not
            those of a ``VecNormalize``.
    """
    try:
        import stable_baselines3  # noqa: F401
        import torch
        from stable_baselines3.common.save_util import load_from_zip_file

        with zipfile.ZipFile(saved.path) as archive:
            others = dict.fromkeys(key for key in json.loads(archive.read("data")) if key not in _NEEDED)
        with warnings.catch_warnings():  # missing entries raise below
            warnings.simplefilter("ignore")
            data, parameters, _ = load_from_zip_file(saved.path, custom_objects=others, device="cpu")
        policy_class, kwargs, *spaces = ((data or {})[key] for key in _NEEDED)
        kwargs = {key: value for key, value in kwargs.items() if key != "device"}
        more = {"lr_schedule": lambda progress: 0.0, "use_sde": saved.use_sde}  # arguments of some policies
        takes = inspect.signature(policy_class).parameters
        with torch_defaults():
            policy: Any = policy_class(*spaces, **{**{name: more[name] for name in more if name in takes}, **kwargs})
            policy.load_state_dict(parameters["policy"])
        policy.set_training_mode(False)
        if not all(torch.isfinite(weights).all() for weights in policy.parameters()):
            raise ValueError("its weights are not finite")
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        hint = ": pip install 'gym-dr[sb3]'" if package in _PACKAGES else ""
        raise ConfigError(f"{saved.path}: needs the package {package!r}, which is not installed{hint}") from None
    except Exception as error:  # unpickling may raise anything
        raise ConfigError(f"{saved.path}: cannot be loaded: {type(error).__name__}: {error}") from error
    statistics = None if saved.statistics is None else _load_statistics(saved.statistics)
    return LoadedPolicy(saved, policy, statistics, stochastic=stochastic)


class LoadedPolicy:
    """A policy in memory, for any vector environment that fits it."""

    def __init__(self, saved: SavedPolicy, policy: Any, statistics: Any, *, stochastic: bool) -> None:
        """Takes Stable-Baselines3's policy, and its ``VecNormalize`` or None; see ``load_policy``."""
        self.saved, self.policy, self.statistics, self.stochastic = saved, policy, statistics, stochastic

    def frames(self, envs: VectorEnv[Any, Any, Any]) -> int:
        """Number of observations in the policy's ``VecFrameStack``; 1 without it.

        Raises:
            ConfigError: The environments' observations or actions differ from the policy's, or the statistics are for
                other observations.
        """
        trained, actions = self.policy.observation_space, self.policy.action_space
        count = _frames(trained, envs)
        if actions != envs.single_action_space:
            raise ConfigError(f"it was trained on actions {actions}.")
        got = None if self.statistics is None else self.statistics.observation_space.shape
        if got not in (None, trained.shape, envs.single_observation_space.shape):
            raise ConfigError(
                f"{self.saved.statistics}: expected statistics of observations of shape {trained.shape}, got {got}."
            )
        return count

    def make(self, envs: VectorEnv[Any, Any, Any]) -> Act:
        """Makes the policy for a vector environment, and restarts its random numbers.

        Raises:
            ConfigError: The environments' observations or actions differ from the policy's.
        """
        return _Acting(self, envs)


class _Acting:
    """A policy in one vector environment, with its frame stack, LSTM state and random numbers."""

    def __init__(self, loaded: LoadedPolicy, envs: VectorEnv[Any, Any, Any]) -> None:
        frames, self._loaded = loaded.frames(envs), loaded
        self._stack = FrameStack(frames, envs) if frames > 1 else None
        statistics = loaded.statistics
        # VecFrameStack(VecNormalize(...)) has statistics of a single frame, VecNormalize(VecFrameStack(...)) of all
        self._first = (
            statistics is not None and statistics.observation_space.shape == envs.single_observation_space.shape
        )
        self._state: Any = None
        self._num_envs = envs.num_envs
        self.reseed(0)

    def reseed(self, seed: int) -> None:
        """Restarts the random numbers of sampled actions, which have their own generator."""
        import torch

        with torch.random.fork_rng(devices=[]), torch_defaults():
            torch.manual_seed(seed)
            if self._loaded.saved.use_sde and self._loaded.stochastic:
                self._loaded.policy.reset_noise(self._num_envs)
            self._random = torch.get_rng_state()

    def __call__(self, observations: Any, episode_starts: Mask) -> npt.NDArray[Any]:
        """Acts; see ``gym_dr.training.api.PolicyWithMemory``."""
        import torch

        policy, statistics = self._loaded.policy, self._loaded.statistics
        if statistics is not None and self._first:
            observations = statistics.normalize_obs(observations)
        if self._stack is not None:
            observations = self._stack(observations, episode_starts)
        if statistics is not None and not self._first:
            observations = statistics.normalize_obs(observations)
        with torch.random.fork_rng(devices=[]), torch_defaults():
            torch.set_rng_state(self._random)
            actions, self._state = policy.predict(
                observations, self._state, episode_starts, deterministic=not self._loaded.stochastic
            )
            self._random = torch.get_rng_state()
        return np.asarray(actions)


class FrameStack:
    """Stacks flat observations like ``VecFrameStack``: the oldest first, zeros before an episode's start."""

    def __init__(self, frames: int, envs: VectorEnv[Any, Any, Any]) -> None:
        """Makes an empty stack of ``frames`` observations of each sub-environment."""
        single = envs.single_observation_space
        (self._size,) = single.shape or ()
        self._stacked = np.zeros((envs.num_envs, frames * self._size), single.dtype)

    def __call__(self, observations: npt.NDArray[Any], episode_starts: Mask) -> npt.NDArray[Any]:
        """Adds observations ``(N, size)``; returns the stacks ``(N, frames * size)``."""
        self._stacked = np.concatenate([self._stacked[:, self._size :], observations], axis=1)
        self._stacked[episode_starts, : -self._size] = 0.0
        return self._stacked


def _read_part(archive: zipfile.ZipFile, name: str) -> bytes:
    """Reads a part, of at most ``MAX_PART`` bytes, of an untrusted archive.

    Raises:
        ValueError: The part is larger, or its compression does not bound its size.
    """
    with archive.open(name) as file:
        content = file.read(MAX_PART + 1)
    if len(content) > MAX_PART:
        raise ValueError(f"{name!r} is larger than {MAX_PART} bytes")
    return content


def _load_statistics(path: Path) -> Any:
    """Loads a ``VecNormalize``, which may run any code in the file.

    Raises:
        ConfigError: The file holds something else, or cannot be loaded.
    """
    from stable_baselines3.common.vec_env import VecNormalize

    with raised_as(ConfigError, f"{path}: cannot be loaded"):
        found = pickle.loads(path.read_bytes())
    if not isinstance(found, VecNormalize):
        raise ConfigError(
            f"{path}: expected statistics from VecNormalize.save(), got "
            f"{type(found).__module__}.{type(found).__qualname__}."
        )
    return found


def _algorithm(module: str, data: dict[str, Any]) -> str | None:
    """Guesses the algorithm, which files do not name, from the policy's module or the saved attributes."""
    package, _, rest = module.partition(".")
    if package not in _PACKAGES:
        return None
    name = rest.partition(".")[0]
    if rest.startswith("common.recurrent."):
        return "RecurrentPPO"
    return name.upper() if name != "common" else next((_MARKS[key] for key in _MARKS if key in data), None)


def _statistics(path: Path, data: dict[str, Any]) -> Path | None:
    """The statistics of ``VecNormalize`` beside a file, under the names of Stable-Baselines3 and RL Zoo.

    Raises:
        ConfigError: The policy needs statistics and there are none, or the reverse.
    """
    checkpoint = re.fullmatch(r"(.*)_(\d+_steps)", path.stem)  # as CheckpointCallback names them
    own = [f"{path.stem}_vecnormalize.pkl", f"{path.stem}/vecnormalize.pkl"]
    own += [f"{checkpoint[1]}_vecnormalize_{checkpoint[2]}.pkl"] if checkpoint else []
    beside = [path.parent / name for name in (*own, "vecnormalize.pkl", "vec_normalize.pkl")]
    found = next((candidate for candidate in beside if candidate.is_file()), None)
    on_policy = "gae_lambda" in data  # other algorithms always keep an original observation
    trained = data.get("num_timesteps") and "_last_original_obs" in data
    if not (on_policy and trained):
        return found
    normalized = data["_last_original_obs"] is not None
    if normalized and found is None:
        raise ConfigError(
            f"{path}: was trained with VecNormalize and needs its statistics. Save them beside it: "
            f"model.get_vec_normalize_env().save({str(beside[0])!r})"
        )
    if found is not None and not normalized:
        raise ConfigError(
            f"{found}: is beside {path.name}, which was trained without VecNormalize. Move one of them elsewhere."
        )
    return found


def _channels_first(space: gym.Space[Any]) -> gym.Space[Any]:
    """The space as Stable-Baselines3 stores it: it turns images around by itself, in training and in ``predict``."""
    from stable_baselines3.common.preprocessing import is_image_space, is_image_space_channels_first
    from stable_baselines3.common.vec_env import VecTransposeImage

    if isinstance(space, gym.spaces.Dict):
        return gym.spaces.Dict({name: _channels_first(part) for name, part in space.items()})
    return (
        VecTransposeImage.transpose_space(space)
        if is_image_space(space) and not is_image_space_channels_first(space)
        else space
    )


def _frames(trained: gym.Space[Any], envs: VectorEnv[Any, Any, Any]) -> int:
    """Number of the environments' observations in an observation of the policy.

    Raises:
        ConfigError: The number is not whole, the bounds are not those of stacked frames, or images are stacked.
    """
    got, shown = envs.single_observation_space, shown_columns(envs)
    if trained in (got, _channels_first(got)):
        return 1
    if not (isinstance(trained, gym.spaces.Box) and isinstance(got, gym.spaces.Box)):
        hint = _OBSERVED if isinstance(trained, gym.spaces.Dict) and KEY in trained.spaces and not shown else ""
        raise ConfigError(f"it was trained on observations {trained}.{hint}")
    if trained.shape == got.shape:
        return 1
    text = f"it was trained on observations of shape {trained.shape}."
    if len(trained.shape) != 1 or len(got.shape) != 1:
        raise ConfigError(text)
    (size,), (one,) = trained.shape, got.shape
    if size % one == 0:
        count = size // one
        if all(np.array_equal(a, np.repeat(b, count)) for a, b in ((trained.low, got.low), (trained.high, got.high))):
            return count
        text += f" These are {count} times as many numbers, but without the bounds that VecFrameStack gives them."
    if size > one and not shown:
        text += _OBSERVED
    elif shown:
        text += f" Of the {one} numbers of an observation, {shown} are parameters: was it trained with others, or none?"
    raise ConfigError(text)
