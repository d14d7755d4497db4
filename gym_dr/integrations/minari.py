"""Opens logs in any form, and reads and writes data sets of Minari (https://minari.farama.org) in its HDF5 format.

A data set may be untrusted, so it is checked before Minari opens it: its environment is not made, no link leads out of
its file, and it fits into memory.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.envs.registration import EnvSpec

from gym_dr.errors import ConfigError, LogError, as_path, located, needs, shortened
from gym_dr.fitting.archives import check_size, new_folder, readable
from gym_dr.fitting.log_checks import check_spaces
from gym_dr.fitting.logs import EXPECTED, LoggedEpisode, read_log
from gym_dr.options import flattened

DATA, METADATA, MAIN = "data", "metadata.json", "main_data.hdf5"  # Minari's names
MAX_METADATA = 2**24  # bytes to read
_ID = re.compile(r"(?:[\w-]+/)*[\w-]+-v[0-9]+")
_ROOT = "MINARI_DATASETS_PATH"  # Minari's environment variable
_OWN = ("id", "total_steps")  # Minari's own metadata of each episode
_PARAMS = "params"
_ARRAYS = ("observations", "actions")
_EXPECTED = "a data set of Minari"


def open_log(source: Any) -> list[LoggedEpisode]:
    """Opens a log: what ``read_log`` reads, data sets of Minari, or a list of these.

    Args:
        source: See ``gym_dr.fitting.logs.read_log``; a text may also be the path of a data set of Minari, or its id in
            Minari's folder if there is no file or folder of this name.

    Returns:
        The episodes, at least one, checked.

    Raises:
        LogError: There is no such log, it is damaged or inconsistent, or names a file twice.
        ConfigError: It is a data set of Minari, which is not installed.
    """
    _check_once(list(log_paths(source)))
    return read_log(_read(source))


def log_paths(source: Any) -> Iterator[Path]:
    """The files and folders that a log names, links resolved; for a data set of Minari, its folder."""
    if isinstance(source, Sequence) and not isinstance(source, str | bytes):
        for one in source:
            yield from log_paths(one)
    elif isinstance(source, str | os.PathLike):
        path = as_path(source)
        found = find_dataset(path) or path
        if found.exists():
            yield Path(os.path.realpath(found))


def _check_once(paths: Sequence[Path]) -> None:
    """Raises LogError if a file would be read twice, by its name or through its folder."""
    for path, count in Counter(paths).items():
        if count > 1 or path.parent in paths:
            got = "it twice" if count > 1 else "the file and its folder"
            raise LogError(f"{path}: expected each log once, got {got}.")


def _read(source: Any) -> Any:
    """The source, with data sets of Minari replaced by their episodes."""
    if isinstance(source, Sequence) and not isinstance(source, str | bytes):
        return [_read(one) for one in source]
    if not isinstance(source, str | os.PathLike):
        return source
    path = as_path(source)
    if (found := find_dataset(path)) is not None:
        return read_minari(found)
    if not path.exists():
        raise LogError(
            f"{path}: expected {EXPECTED}, or a data set of Minari, its folder or its id in {root()}; got nothing of "
            "this name."
        )
    return path


def check_installed() -> None:
    """Checks that Minari and its HDF5 format are installed.

    Raises:
        ConfigError: A package is missing.
    """
    needs("A data set of Minari", "minari", "minari", "h5py")


def root() -> Path:
    """The folder in which Minari looks for data sets."""
    return Path(os.environ.get(_ROOT) or Path.home() / ".minari" / "datasets")


def is_dataset(path: Path) -> bool:
    """Whether a folder is a data set of Minari."""
    return (path / DATA / METADATA).is_file()


def find_dataset(name: str | Path) -> Path | None:
    """The folder of a data set, by its path or its id in ``root``; None if there is none."""
    text = os.fspath(name)
    path = root() / text if _ID.fullmatch(text) and not Path(text).exists() else as_path(text)
    if path.name == DATA and is_dataset(path.parent):
        return path.parent
    return path if is_dataset(path) else None


def place_of(name: str | Path) -> tuple[Path, str]:
    """Where to write a data set, and its id: its path inside ``root``, or elsewhere the name of its folder.

    Args:
        name: An id such as "lander/random-v0", for a place in ``root``, or a path: a ``Path``, or a text that begins
            with ``/``, ``.`` or ``~``.

    Raises:
        ConfigError: The name does not end in a version.
    """
    text = os.fspath(name)
    path = root() / text if isinstance(name, str) and _ID.fullmatch(text) else as_path(text)
    top, whole = root().absolute(), path.absolute()
    found = whole.relative_to(top).as_posix() if whole.is_relative_to(top) else path.name
    if _ID.fullmatch(found) is None:
        raise ConfigError(
            f"{text}: expected a name that ends in a version, as Minari's do, got {path.name!r}. Call it, for example, "
            f"{path.name}-v0."
        )
    return path, found


# ---- reading ---------------------------------------------------------------------------------------------------------


def read_minari(path: Path) -> list[LoggedEpisode]:
    """Reads a data set of Minari as a log.

    Args:
        path: Its folder, as ``find_dataset`` gives it.

    Returns:
        Its episodes. ``others`` has ``rewards``, ``terminations`` and ``truncations``, everything in ``infos`` (nested
        names are joined by ``/``), and numbers and texts of the episode's metadata: ``seed``, and ``params/NAME`` from
        ``options["params"]``. An array ``time`` in ``infos`` is the time.

    Raises:
        ConfigError: Minari is not installed.
        LogError: The data set is damaged or has another form, or does not fit into memory.
    """
    check_installed()
    metadata = _read_metadata(path)
    with readable(path, _EXPECTED):
        _check_file(path / DATA / MAIN, str(path))
        storage = importlib.import_module("minari.dataset.minari_storage").MinariStorage.read(path / DATA)
    with located(path):
        check_spaces(storage.observation_space, storage.action_space)
    indices = range(int(metadata["total_episodes"]))
    with readable(path, _EXPECTED):
        pairs = zip(storage.get_episodes(indices), storage.get_episode_metadata(indices), strict=True)
        found = [_episode(*pair, f"{path}, episode {i}") for i, pair in enumerate(pairs)]
    return read_log(found)


def _episode(episode: Mapping[str, Any], about: Mapping[str, Any], source: str) -> LoggedEpisode:
    """A data set's entries for an episode, which ``read_log`` will check."""
    found = {
        name: value
        for name, value in flattened(about, "/").items()
        if name not in _OWN and type(value).__name__ not in ("NoneType", "Empty")  # HDF5 holds Empty for nothing
    }
    options = f"options/{_PARAMS}/"
    found = {name.replace(options, f"{_PARAMS}/", 1): np.asarray(values) for name, values in found.items()}
    found |= {name: _decoded(values) for name, values in flattened(episode["infos"] or {}, "/").items()}
    found |= {name: np.asarray(values) for name, values in episode.items() if name not in ("id", "infos", *_ARRAYS)}
    time = found.pop("time", None)
    return LoggedEpisode(
        observations=episode["observations"], actions=episode["actions"], time=time, others=found, source=source
    )


def _decoded(values: Any) -> npt.NDArray[Any]:
    """Bytes as texts."""
    array = np.asarray(values)
    if array.dtype.kind == "S":
        return np.char.decode(array, "utf-8").astype(f"U{array.dtype.itemsize}")
    if array.dtype == object:  # texts of different lengths
        texts = [value.decode() if isinstance(value, bytes) else str(value) for value in array.reshape(-1)]
        return np.array(texts).reshape(array.shape)
    return array


def _read_metadata(path: Path) -> dict[str, Any]:
    """The metadata of a data set, with its spaces, so that Minari does not make its environment."""
    with readable(path, _EXPECTED):
        if (path / DATA / METADATA).stat().st_size > MAX_METADATA:
            raise LogError(f"{path}: expected at most {MAX_METADATA:,} bytes of {METADATA}.")
        metadata: dict[str, Any] = json.loads((path / DATA / METADATA).read_text(encoding="utf-8"))
        for name, kind in (("observation_space", str), ("action_space", str), ("total_episodes", int)):
            if not isinstance(got := metadata.get(name), kind):
                raise LogError(
                    f"{path}: expected {name} in {METADATA}, got {shortened(got)}. Write the data set again."
                )
    return metadata


def _check_file(path: Path, place: str) -> None:
    """Checks that nothing in an HDF5 file leads out of the file, and that the content fits into memory."""
    h5py: Any = importlib.import_module("h5py")

    def needed(group: Any) -> int:
        total = 0
        for name in group:
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                raise LogError(f"{place}: {shortened(name)}: expected data, got a link. Copy its target into the file.")
            one = group[name]
            if isinstance(one, h5py.Group):
                total += needed(one)
            elif one.external or one.is_virtual:
                raise LogError(f"{place}: {shortened(name)}: expected data, got what lies in another file.")
            else:
                total += one.size * (one.dtype.itemsize + 8)
        return total

    with h5py.File(path, "r") as file:
        check_size(needed(file), place)


# ---- writing ---------------------------------------------------------------------------------------------------------


def write_minari(
    name: str | Path,
    episodes: Iterable[LoggedEpisode],
    *,
    observation_space: gym.Space[Any],
    action_space: gym.Space[Any],
    env: EnvSpec | None = None,
    policy: str = "",
    description: str = "",
    author: str = "",
) -> Path:
    """Writes episodes as a data set of Minari, whole or not at all.

    Of ``others``, ``rewards`` (T,) are the rewards, NaN if there are none; ``terminations`` and ``truncations`` (T,)
    say where the episode ended; without both, its last step is a truncation. ``seed`` and ``params/NAME`` become the
    episode's seed and ``options["params"]``, with which ``reset(seed=..., options=...)`` begins it again. Other single
    values become metadata. All other arrays, and the time, become ``infos``.

    Args:
        name: The id or path of the data set; see ``place_of``.
        episodes: At least one; they are written one by one.
        observation_space: Of a single environment.
        action_space: Of a single environment.
        env: Spec of a single environment, with which Minari can make it again; left out if it holds objects.
        policy: The policy, as Minari's algorithm.
        description: A description of the data set.
        author: The author.

    Returns:
        Its folder.

    Raises:
        ConfigError: Minari is not installed, or the name has no version.
        LogError: The folder exists already or cannot be written, there are no episodes, or they have another form.
    """
    check_installed()
    path, dataset_id = place_of(name)
    check_spaces(observation_space, action_space, nested=True)
    about = {
        "dataset_id": dataset_id,
        "minari_version": importlib.import_module("minari").__version__,
        "algorithm_name": policy,
        "description": description,
        "author": {author} if author else None,
        "requirements": ["gym-dr"],
    }
    with new_folder(path) as folder:
        storage = importlib.import_module("minari.dataset.minari_storage").MinariStorage.new(
            (folder / DATA).absolute(),  # Minari 0.5 does not find files below a relative path
            observation_space=observation_space,
            action_space=action_space,
            env_spec=env if env is not None and _is_text(env) else None,
            data_format="hdf5",
        )
        storage.update_metadata({key: value for key, value in about.items() if value})
        _write_episodes(storage, episodes, observation_space, action_space)
    return path


def _write_episodes(
    storage: Any,
    episodes: Iterable[LoggedEpisode],
    observation_space: gym.Space[Any],
    action_space: gym.Space[Any],
) -> None:
    buffer: Callable[..., Any] = importlib.import_module("minari.data_collector").EpisodeBuffer
    count = 0
    for count, episode in enumerate(episodes, 1):
        others = dict(episode.others)
        rewards = others.pop("rewards", np.full(len(episode), np.nan))
        never, last = np.zeros(len(episode), np.bool_), np.arange(len(episode)) == len(episode) - 1
        terminations = others.pop("terminations", never).astype(np.bool_)
        truncations = others.pop("truncations", never if terminations.any() else last).astype(np.bool_)
        seed = others.pop("seed", None)
        single = {name: values.item() for name, values in others.items() if values.ndim == 0}
        params = {name: single.pop(name) for name in list(single) if name.startswith(f"{_PARAMS}/")}
        infos = {name: _encoded(values) for name, values in others.items() if values.ndim}
        observations = episode.observations
        if isinstance(observations, np.ndarray):
            observations = observations.astype(observation_space.dtype)
        written = buffer(
            id=count - 1,
            seed=None if seed is None else int(seed),
            options={_PARAMS: {name.partition("/")[2]: value for name, value in params.items()}} if params else None,
            observations=observations,
            actions=episode.actions.astype(action_space.dtype),
            rewards=np.asarray(rewards, np.float64),
            terminations=terminations,
            truncations=truncations,
            infos=_nested(infos if episode.time is None else {**infos, "time": episode.time}),
        )
        storage.update_episodes([written])
        if single:
            storage.update_episode_metadata([single], [count - 1])
    if not count:
        raise LogError("Expected at least one episode to write, got none.")


def _is_text(spec: EnvSpec) -> bool:
    """Whether a spec can be written: functions and other objects of a user's cannot."""
    with contextlib.suppress(TypeError, ValueError):
        return bool(spec.to_json())
    return False


def _encoded(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Texts as bytes of a fixed length, which HDF5 can hold."""
    if values.dtype.kind != "U":
        return values
    encoded = np.char.encode(values, "utf-8")
    return encoded.astype(f"S{max(encoded.dtype.itemsize, values.dtype.itemsize // 4)}")  # not narrower than the texts


def _nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse of ``flattened``."""
    found: dict[str, Any] = {}
    for name, values in flat.items():
        *groups, last = name.split("/")
        inner = found
        for group in groups:
            inner = inner.setdefault(group, {})
        inner[last] = values
    return found
