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

from gym_dr.errors import ConfigError, shortened

Act = Callable[[npt.NDArray[Any]], npt.NDArray[Any]]  # observations (N, ...) -> actions (N, ...)

MAX_PART = 2**26  # bytes of a file's metadata, which is read before anybody trusts the file
_NEEDED = ("policy_class", "policy_kwargs", "observation_space", "action_space")  # the entries to unpickle
_MARKS = {"cg_max_steps": "TRPO", "clip_range": "PPO", "normalize_advantage": "A2C"}  # attribute -> its algorithm


@dataclass(frozen=True, kw_only=True)
class SavedPolicy:
    """Metadata of a saved policy."""

    path: Path
    statistics: Path | None  # of ``VecNormalize``, beside the file; not opened yet
    algorithm: str | None  # None if unknown
    seed: int | None
    steps: int | None  # of training
    version: str  # of Stable-Baselines3
    use_sde: bool


def read_saved(path: Path) -> SavedPolicy:
    """Reads the plain-text metadata of a file, without running code from it and without opening any other file.

    Raises:
        ConfigError: It is not a policy of Stable-Baselines3, the policy is recurrent, or the statistics of
            ``VecNormalize`` are missing or do not belong to it.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            data = json.loads(_read_part(archive, "data"))
            version = _read_part(archive, "_stable_baselines3_version").decode().strip()
        module, policy_class = data["policy_class"]["__module__"], data["policy_class"]
        if not isinstance(module, str):
            raise TypeError(f"the module of its policy is {shortened(module)}")
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file.") from None
    except Exception as error:  # a damaged archive may raise anything
        raise ConfigError(
            f"{path}: expected a file from model.save() of Stable-Baselines3, got one that cannot be read as such: "
            f"{type(error).__name__}: {error}"
        ) from None
    if "recurrent" in module or any("lstm" in key for key in (*data, *policy_class)):
        raise ConfigError(
            f"{path}: its policy is recurrent. Expected a policy that takes observations and returns actions, without "
            "memory. Stack observations instead, or evaluate it with its own package."
        )
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
    """Digest of the file and of its statistics; opens both, so both must be trusted."""
    files = [saved.path, *([] if saved.statistics is None else [saved.statistics])]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def load_policy(saved: SavedPolicy, *, stochastic: bool) -> Callable[[VectorEnv[Any, Any, Any]], Act]:
    """Loads a policy, which may run any code in the files.

    Args:
        saved: From ``read_saved``.
        stochastic: Whether to sample actions instead of taking the most likely one.

    Returns:
        A function that makes the policy for a vector environment and restarts its random numbers; it raises
        ``ConfigError`` if the environment's observations or actions differ from the policy's.

    Raises:
        ConfigError: The policy cannot be loaded, most likely because a package that it needs is missing.
    """
    try:
        import stable_baselines3  # noqa: F401
        import torch
        from stable_baselines3.common.save_util import load_from_zip_file
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"{saved.path}: needs the package {error.name!r}, which is not installed: "
            "pip install 'stable-baselines3>=2.9,<3'"
        ) from None
    try:
        with zipfile.ZipFile(saved.path) as archive:
            others = dict.fromkeys(key for key in json.loads(archive.read("data")) if key not in _NEEDED)
        with warnings.catch_warnings():  # missing entries raise below
            warnings.simplefilter("ignore")
            data, parameters, _ = load_from_zip_file(saved.path, custom_objects=others, device="cpu")
        policy_class, kwargs, *spaces = ((data or {})[key] for key in _NEEDED)
        kwargs = {key: value for key, value in kwargs.items() if key != "device"}
        more = {"lr_schedule": lambda progress: 0.0, "use_sde": saved.use_sde}  # arguments of some policies
        takes = inspect.signature(policy_class).parameters
        policy: Any = policy_class(*spaces, **{**{name: more[name] for name in more if name in takes}, **kwargs})
        policy.load_state_dict(parameters["policy"])
        policy.set_training_mode(False)
    except Exception as error:  # unpickling may raise anything
        raise ConfigError(f"{saved.path}: cannot be loaded: {type(error).__name__}: {error}") from error
    statistics = None if saved.statistics is None else _load_statistics(saved.statistics)
    normalize: Act = np.asarray if statistics is None else statistics.normalize_obs
    if statistics is not None and statistics.observation_space.shape != spaces[0].shape:
        raise ConfigError(
            f"{saved.statistics}: expected statistics of observations of shape {spaces[0].shape}, as {saved.path} has, "
            f"got {statistics.observation_space.shape}."
        )

    def make(envs: VectorEnv[Any, Any, Any]) -> Act:
        _check_spaces(spaces[0], spaces[1], envs)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            if saved.use_sde and stochastic:
                policy.reset_noise(envs.num_envs)
            random = [torch.get_rng_state()]  # independent of other random numbers

        def act(observations: npt.NDArray[Any]) -> npt.NDArray[Any]:
            with torch.random.fork_rng(devices=[]):
                torch.set_rng_state(random[0])
                actions, _ = policy.predict(normalize(observations), deterministic=not stochastic)
                random[0] = torch.get_rng_state()
            return np.asarray(actions)

        return act

    return make


def _read_part(archive: zipfile.ZipFile, name: str) -> bytes:
    """Reads a part of an archive that nobody trusts yet, up to ``MAX_PART`` bytes.

    Raises:
        ValueError: It is larger, or compressed in a way whose size cannot be bounded.
    """
    if archive.getinfo(name).compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{name!r} is compressed in an unusual way")
    with archive.open(name) as file:
        content = file.read(MAX_PART + 1)
    if len(content) > MAX_PART:
        raise ValueError(f"{name!r} is larger than {MAX_PART} bytes")
    return content


def _load_statistics(path: Path) -> Any:
    """Loads the ``VecNormalize`` in a file, which may run any code in it.

    Raises:
        ConfigError: It holds something else, or cannot be loaded.
    """
    from stable_baselines3.common.vec_env import VecNormalize

    try:
        found = pickle.loads(path.read_bytes())
        if isinstance(found, VecNormalize):
            found.normalize_obs(np.zeros(found.observation_space.shape, np.float32))  # a damaged one may lack parts
    except Exception as error:  # unpickling may raise anything
        raise ConfigError(f"{path}: cannot be loaded: {type(error).__name__}: {error}") from error
    if not isinstance(found, VecNormalize):
        kind = f"{type(found).__module__}.{type(found).__qualname__}"
        raise ConfigError(f"{path}: expected statistics from VecNormalize.save(), got {kind}.")
    return found


def _algorithm(module: str, data: dict[str, Any]) -> str | None:
    """Guesses the algorithm, which files do not name, from the policy's module or the algorithm's attributes."""
    package, _, rest = module.partition(".")
    if package not in ("stable_baselines3", "sb3_contrib"):
        return None
    name = rest.partition(".")[0]
    return name.upper() if name != "common" else next((_MARKS[key] for key in _MARKS if key in data), None)


def _statistics(path: Path, data: dict[str, Any]) -> Path | None:
    """The statistics of ``VecNormalize`` beside a file, under the names that Stable-Baselines3 and RL Zoo use.

    Raises:
        ConfigError: The policy needs statistics and there are none, or the other way round.
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


def _check_spaces(observations: gym.Space[Any], actions: gym.Space[Any], envs: VectorEnv[Any, Any, Any]) -> None:
    got = envs.single_observation_space
    box = isinstance(observations, gym.spaces.Box) and isinstance(got, gym.spaces.Box)
    if observations.shape != got.shape if box else observations != got:
        text = f"it was trained on observations {f'of shape {observations.shape}' if box else observations}."
        if box and len(observations.shape or ()) == 1 and np.prod(observations.shape or ()) > np.prod(got.shape or ()):
            text += (
                " Policies trained with context='observation' cannot be evaluated: the file does not say which "
                "parameters they observe."
            )
        raise ConfigError(text)
    if actions != envs.single_action_space:
        raise ConfigError(f"it was trained on actions {actions}.")
