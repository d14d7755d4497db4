"""Reads logs of episodes of a real or simulated system.

An episode of T actions has T + 1 observations: the first one before the first action, and one after each action.
"""

from __future__ import annotations

import itertools
import os
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array
from gym_dr.errors import LogError, located, shortened
from gym_dr.fitting.archives import KINDS, SUFFIX, archives_in, read_archives
from gym_dr.fitting.dataframes import split_dataframe

OBSERVATIONS, ACTIONS = "observations", "actions"  # arrays of an episode
EXPECTED = (
    f"an {SUFFIX} file, a folder of {SUFFIX} files, a pandas DataFrame, a mapping with observations and actions, or a "
    "list of these"
)

_TIME, _OTHERS = "time", "others"
_Raw = tuple[str, Mapping[str, Any]]  # source, and what it holds by name


@dataclass(frozen=True, kw_only=True, eq=False)
class LoggedEpisode:
    """Observations and actions of one episode of T actions."""

    observations: Array  # (T + 1, n), the first one before the first action
    actions: npt.NDArray[Any]  # (T, m) float64, or (T,) int64 for discrete actions
    time: Array | None = None  # (T + 1,) s, of the observations; None without
    others: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)  # by name: "qpos", "params/gravity"
    source: str = "episode 0"  # begins messages: "flights/003.npz"

    def __len__(self) -> int:
        """T, the number of actions."""
        return len(self.actions)

    def __repr__(self) -> str:
        return f"LoggedEpisode({self.source!r}, {len(self)} steps)"


# ---- reading ---------------------------------------------------------------------------------------------------------


def read_log(source: Any) -> list[LoggedEpisode]:
    """Reads and checks a log.

    Example:
        >>> numpy.savez("flight.npz", observations=observations, actions=actions)  # (T + 1, n) and (T, m)
        >>> episodes = read_log("flight.npz")

    Args:
        source: One of these, or a list of them:

            - a path of an .npz file: one episode with the arrays ``observations`` (T + 1, n) and ``actions`` (T, m) or
              (T,), and optionally ``time`` (T + 1,), in s;
            - a folder of such files, read in the order of their names;
            - a mapping with the same keys, and optionally more arrays in a mapping ``others``, or a ``LoggedEpisode``;
            - a ``pandas.DataFrame`` with a row for each observation and the action that follows it: see
              ``gym_dr.fitting.dataframes.split_dataframe``.

            Arrays with other names are kept in ``others``.

    Returns:
        The episodes, at least one, all with the same numbers of observations and actions. Observations and time are
        float64, actions float64 or int64; all are finite.

    Raises:
        LogError: Something is missing or damaged, does not fit together, or does not fit into memory.
    """
    found = [_episode(parts, place) for place, parts in _raw(source, "", itertools.count())]
    if not found:
        raise LogError(f"Expected a log of at least one episode, got an empty {type(source).__name__}.")
    first = found[0]
    for episode in found:
        shapes = {
            "numbers in each observation": (first.observations.shape[1:], episode.observations.shape[1:]),
            "numbers in each action": (first.actions.shape[1:], episode.actions.shape[1:]),
        }
        for what, (expected, got) in shapes.items():
            if got != expected:
                raise LogError(
                    f"{episode.source}: expected {_width(expected)} {what}, as in {first.source}, got {_width(got)}."
                )
    return found


def _width(shape: tuple[int, ...]) -> str:
    return str(shape[0]) if shape else "a single number instead of a row of"


def _raw(source: Any, place: str, numbers: Iterator[int]) -> Iterator[_Raw]:
    """The content of a source, episode by episode.

    Args:
        source: See ``read_log``.
        place: Name for sources without a name of their own.
        numbers: For episodes without a name.
    """
    pandas = sys.modules.get("pandas")  # whoever has a DataFrame has imported it
    if isinstance(source, LoggedEpisode):
        parts = {OBSERVATIONS: source.observations, ACTIONS: source.actions, _OTHERS: source.others}
        yield source.source, parts | ({} if source.time is None else {_TIME: source.time})
    elif isinstance(source, str | os.PathLike):
        yield from _files(Path(os.fspath(source)))
    elif pandas is not None and isinstance(source, pandas.DataFrame):
        yield from split_dataframe(source, place or "the table")
    elif isinstance(source, Mapping):
        yield f"episode {next(numbers)}", source
    elif isinstance(source, Sequence):
        for i, one in enumerate(source):
            yield from _raw(one, f"table {i}", numbers)
    else:
        raise LogError(f"Expected a log: {EXPECTED}, got {type(source).__name__}: {shortened(source)}.")


def _files(path: Path) -> Iterator[_Raw]:
    try:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
    except (OSError, ValueError) as error:
        raise LogError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    if not is_folder and path.suffix.lower() != SUFFIX:
        raise LogError(
            f"{path}: expected {EXPECTED}, got a file that does not end in {SUFFIX}. Write each episode with "
            f"numpy.savez, or read a table in Python: pandas.read_csv({str(path)!r})."
        )
    paths = archives_in(path) if is_folder else [path]
    yield from zip(map(str, paths), read_archives(paths), strict=True)


def _episode(parts: Mapping[str, Any], place: str) -> LoggedEpisode:
    """Checks one episode."""
    with located(place):
        if missing := [name for name in (OBSERVATIONS, ACTIONS) if name not in parts]:
            listed = ", ".join(map(str, parts)) or "nothing"
            raise LogError(f"expected {OBSERVATIONS} (T + 1, n) and {ACTIONS} (T, m), got no {missing[0]}: {listed}.")
        observations = _numbers(OBSERVATIONS, parts[OBSERVATIONS]).astype(np.float64)
        actions = _numbers(ACTIONS, parts[ACTIONS])
        if observations.ndim != 2 or not observations.shape[1]:
            hint = ", or values[:, None] if each is a single number" if observations.ndim == 1 else ""
            raise LogError(f"{OBSERVATIONS}: expected shape (T + 1, n){hint}, got {observations.shape}.")
        if actions.ndim not in (1, 2) or not all(actions.shape[1:]):
            raise LogError(f"{ACTIONS}: expected shape (T, m), or (T,) for discrete actions, got {actions.shape}.")
        _check_lengths(len(observations), len(actions))
        for name, values in ((OBSERVATIONS, observations), (ACTIONS, actions)):
            _check_finite(name, values)
        given = parts.get(_TIME)
        return LoggedEpisode(
            observations=observations,
            actions=actions,
            time=None if given is None else _time(given, len(observations)),
            others=_others(parts),
            source=place,
        )


def _numbers(name: str, given: Any) -> npt.NDArray[Any]:
    """Whole numbers as int64, others as float64; a new array."""
    try:
        values = np.asarray(given)
    except (ValueError, TypeError, RuntimeError) as error:  # rows of different lengths, or no array at all
        raise LogError(f"{name}: expected an array of numbers, got {shortened(given)}: {error}.") from None
    if values.dtype.kind not in "biuf":
        got = "Python objects, such as rows of different lengths" if values.dtype == object else str(values.dtype)
        raise LogError(f"{name}: expected numbers, got {got}.")
    if values.dtype.kind == "u" and (values > np.iinfo(np.int64).max).any():
        raise LogError(f"{name}: expected numbers below 2**63, got {values.max()}.")
    return values.astype(np.float64 if values.dtype.kind == "f" else np.int64)


def _check_lengths(observed: int, acted: int) -> None:
    """Raises LogError unless there is one observation more than actions, and at least one action."""
    if observed < 2 or acted < 1:
        short = f"got {observed} {OBSERVATIONS} and {acted} {ACTIONS}"
        raise LogError(f"expected at least 2 {OBSERVATIONS} and 1 action, {short}. Leave the episode out.")
    if observed != acted + 1:
        raise LogError(
            f"expected one observation more than {ACTIONS}, the first before the first action and one after each, got "
            f"{observed} {OBSERVATIONS} and {acted} {ACTIONS}."
            + (
                " If observation i was made before action i, leave out the last action; if after it, put the "
                "observation of the start first."
                if observed == acted
                else ""
            )
        )


def _check_finite(name: str, values: npt.NDArray[Any]) -> None:
    if not (finite := np.isfinite(values)).all():
        place = np.argwhere(~finite)[0].tolist()
        column = f", column {place[1]}" if len(place) > 1 else ""
        raise LogError(
            f"{name}: expected finite numbers, got {values[tuple(place)]} in row {place[0]}{column}. Split the episode "
            "there, or fill in the true value."
        )


def _time(given: Any, count: int) -> Array:
    time = _numbers(_TIME, given).astype(np.float64)
    if time.shape != (count,):
        raise LogError(f"{_TIME}: expected shape ({count},), one for each observation, got {time.shape}.")
    _check_finite(_TIME, time)
    if (wrong := np.flatnonzero(np.diff(time) <= 0)).size:
        row = int(wrong[0])
        raise LogError(
            f"{_TIME}: expected increasing times, got {time[row]:.9g} s in row {row} and {time[row + 1]:.9g} s in row "
            f"{row + 1}. Sort the rows, drop repeated ones, or split the episode where the clock was set."
        )
    return time


def _others(parts: Mapping[str, Any]) -> dict[str, npt.NDArray[Any]]:
    """All arrays but observations, actions and time."""
    nested = parts.get(_OTHERS)
    given = {name: parts[name] for name in parts if name not in (OBSERVATIONS, ACTIONS, _TIME)}
    if isinstance(nested, Mapping):
        del given[_OTHERS]
        given |= nested
    found: dict[str, npt.NDArray[Any]] = {}
    for name, value in given.items():
        try:
            found[str(name)] = np.asarray(value)
        except (ValueError, TypeError, RuntimeError) as error:
            raise LogError(f"{name}: expected an array, got {shortened(value)}: {error}.") from None
        if found[str(name)].dtype.kind not in KINDS:
            raise LogError(f"{name}: expected numbers or texts, got {found[str(name)].dtype}. Leave it out.")
    return found
