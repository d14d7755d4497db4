"""Logs of episodes of a real or simulated system: reads them and checks that they fit an environment.

An episode of T actions has T + 1 observations: the first one before the first action, and one after each action.
"""

from __future__ import annotations

import itertools
import os
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete

from gym_dr.arrays import Array
from gym_dr.errors import LogError, located, shortened
from gym_dr.fitting.archives import KINDS, SUFFIX, archives_in, read_archives
from gym_dr.fitting.tables import split_table

TOLERANCE = 1e-6  # of actions: what rounding to float32 may add
LARGEST = 1e8  # of observations, in the units of any environment

EXPECTED = (
    f"an {SUFFIX} file, a folder of {SUFFIX} files, a pandas DataFrame, a mapping with observations and actions, or a "
    "list of these"
)

_OBSERVATIONS, _ACTIONS, _TIME, _OTHERS = "observations", "actions", "time", "others"
_Raw = tuple[str, Mapping[str, Any]]  # source, and what it holds by name


@dataclass(frozen=True, kw_only=True, eq=False)
class LoggedEpisode:
    """What was observed and done in one episode of T actions."""

    observations: Array  # (T + 1, n), of which the first is before the first action
    actions: npt.NDArray[Any]  # (T, m) float64, or (T,) int64 choices
    time: Array | None = None  # (T + 1,) s, of the observations; None if it was not logged
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
            - a folder of such files, which are read in the order of their names;
            - a mapping with the same keys, in which a mapping ``others`` may hold more, or a ``LoggedEpisode``;
            - a ``pandas.DataFrame`` with a row for each observation and the action that follows it: see
              ``gym_dr.fitting.tables.split_table``.

            Arrays of other names are kept in ``others``.

    Returns:
        The episodes, at least one, all with the same numbers of observations and actions. Observations and time are
        float64, actions float64 or int64; all are finite.

    Raises:
        LogError: Something is missing, damaged, or does not fit together, or does not fit into memory.
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
    """What a source holds, episode by episode.

    Args:
        source: See ``read_log``.
        place: Begins the names of sources that have none of their own.
        numbers: Number episodes without a name.
    """
    pandas = sys.modules.get("pandas")  # whoever has a DataFrame has imported it
    if isinstance(source, LoggedEpisode):
        parts = {_OBSERVATIONS: source.observations, _ACTIONS: source.actions, _OTHERS: source.others}
        yield source.source, parts | ({} if source.time is None else {_TIME: source.time})
    elif isinstance(source, str | os.PathLike):
        yield from _files(Path(os.fspath(source)))
    elif pandas is not None and isinstance(source, pandas.DataFrame):
        yield from split_table(source, place or "the table")
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
        if missing := [name for name in (_OBSERVATIONS, _ACTIONS) if name not in parts]:
            listed = ", ".join(map(str, parts)) or "nothing"
            raise LogError(f"expected {_OBSERVATIONS} (T + 1, n) and {_ACTIONS} (T, m), got no {missing[0]}: {listed}.")
        observations = _numbers(_OBSERVATIONS, parts[_OBSERVATIONS]).astype(np.float64)
        actions = _numbers(_ACTIONS, parts[_ACTIONS])
        if observations.ndim != 2 or not observations.shape[1]:
            hint = ", or values[:, None] if each is a single number" if observations.ndim == 1 else ""
            raise LogError(f"{_OBSERVATIONS}: expected shape (T + 1, n){hint}, got {observations.shape}.")
        if actions.ndim not in (1, 2) or not all(actions.shape[1:]):
            raise LogError(f"{_ACTIONS}: expected shape (T, m), or (T,) for choices, got {actions.shape}.")
        _check_lengths(len(observations), len(actions))
        for name, values in ((_OBSERVATIONS, observations), (_ACTIONS, actions)):
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
    except (ValueError, TypeError, RuntimeError) as error:  # rows of different lengths, or what has no array
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
        short = f"got {observed} {_OBSERVATIONS} and {acted} {_ACTIONS}"
        raise LogError(f"expected at least 2 {_OBSERVATIONS} and 1 action, {short}. Leave the episode out.")
    if observed != acted + 1:
        raise LogError(
            f"expected one observation more than {_ACTIONS}, the first before the first action and one after each, got "
            f"{observed} {_OBSERVATIONS} and {acted} {_ACTIONS}."
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
            "there, or fill the gap with what was true."
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
    """Everything that is no observation, action or time, as arrays."""
    nested = parts.get(_OTHERS)
    given = {name: parts[name] for name in parts if name not in (_OBSERVATIONS, _ACTIONS, _TIME)}
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


# ---- checks against an environment -----------------------------------------------------------------------------------


def check_spaces(observation_space: gym.Space[Any], action_space: gym.Space[Any]) -> None:
    """Checks that an environment's episodes can be logged: observations ``(n,)``, and actions ``(m,)`` or choices.

    Raises:
        LogError: They have another form.
    """
    if not isinstance(observation_space, Box) or len(observation_space.shape) != 1:
        raise LogError(
            f"Expected an environment whose observations are rows of numbers, got {shortened(observation_space)}."
        )
    if not isinstance(action_space, Discrete) and (not isinstance(action_space, Box) or len(action_space.shape) != 1):
        raise LogError(
            f"Expected an environment whose actions are rows of numbers or choices, got {shortened(action_space)}."
        )


def check_log(
    episodes: Sequence[LoggedEpisode], observation_space: gym.Space[Any], action_space: gym.Space[Any]
) -> list[LoggedEpisode]:
    """Checks that a log fits an environment.

    Args:
        episodes: From ``read_log``.
        observation_space: Of a single environment.
        action_space: Of a single environment.

    Returns:
        The same episodes with actions as the environment takes them: float64 ``(T, m)``, within the bounds, or int64
        ``(T,)``. Actions ``(T,)`` for a single number, ``(T, 1)`` for choices and choices as floats are accepted.

    Raises:
        LogError: The environment's episodes cannot be logged, or the log has other observations or actions, or
            observations that are too large for any motion.
    """
    check_spaces(observation_space, action_space)
    width = (observation_space.shape or (0,))[0]
    checked = []
    for episode in episodes:
        with located(episode.source):
            if episode.observations.shape[1] != width:
                raise LogError(
                    f"{_OBSERVATIONS}: expected {width} numbers in each, as the environment observes, got "
                    f"{episode.observations.shape[1]}. Bring the log into the environment's form."
                )
            _check_sizes(episode.observations)
            fit = _check_choices if isinstance(action_space, Discrete) else _check_bounds
            checked.append(replace(episode, actions=fit(episode.actions, action_space)))
    return checked


def _check_sizes(observations: Array) -> None:
    """Raises LogError for numbers with which no simulation can be compared."""
    large = np.argwhere(np.abs(observations) > LARGEST)
    if large.size:
        row, column = large[0].tolist()
        raise LogError(
            f"{_OBSERVATIONS}: expected numbers up to {LARGEST:g}, got {observations[row, column]:g} in row {row}, "
            f"column {column}. Log in the environment's units, and leave out what a sensor shows when it fails."
        )


def _check_choices(actions: npt.NDArray[Any], space: Any) -> npt.NDArray[np.int64]:
    """Choices of a ``Discrete``."""
    if actions.ndim == 2 and actions.shape[1] != 1:
        raise LogError(f"{_ACTIONS}: expected one choice in each step, for {space}, got {actions.shape[1]} numbers.")
    flat = actions.reshape(-1)
    first, last = int(space.start), int(space.start + space.n - 1)
    wrong = np.flatnonzero((flat != np.round(flat)) | (flat < first) | (flat > last))
    if wrong.size:
        raise LogError(
            f"{_ACTIONS}: expected whole numbers from {first} to {last}, got {flat[wrong[0]]:g} in step {wrong[0]}."
        )
    return flat.astype(np.int64)


def _check_bounds(actions: npt.NDArray[Any], space: Any) -> Array:
    """Actions of a ``Box``."""
    rows = actions.reshape(len(actions), -1).astype(np.float64)
    size = space.shape[0]
    if rows.shape[1] != size:
        raise LogError(f"{_ACTIONS}: expected {size} numbers in each step, for {space}, got {rows.shape[1]}.")
    low, high = space.low.astype(np.float64), space.high.astype(np.float64)
    outside = (rows < low - TOLERANCE) | (rows > high + TOLERANCE)
    if outside.any():
        step, column = np.argwhere(outside)[0].tolist()
        raise LogError(
            f"{_ACTIONS}: expected values from {low[column]:g} to {high[column]:g}, got {rows[step, column]:g} in step "
            f"{step}, column {column}. The environment would clip it, or refuse it: if the real system clipped it too, "
            "clip the log; otherwise log actions in the environment's units."
        )
    clipped: Array = np.clip(rows, low, high)
    return clipped


# ---- time ------------------------------------------------------------------------------------------------------------


def resample(
    episodes: Sequence[LoggedEpisode], time_step: float | None, tolerance: float = 0.01
) -> tuple[list[LoggedEpisode], int]:
    """Brings a log to the rate of an environment.

    Args:
        episodes: All with times, or all without; see ``read_log``.
        time_step: Duration of the environment's steps, s; None if it has none.
        tolerance: Relative difference of intervals that counts as none.

    Returns:
        The episodes, and how many steps of the environment each logged action lasts. Without times nothing changes, and
        an action lasts one step. A log that is k times faster than the environment keeps each k-th observation, and
        in ``others`` each k-th row of what has T + 1 or T rows; an incomplete step at the end is left out.

    Raises:
        LogError: Times are missing in some episodes, irregular, or fit no whole number of steps, or an action changes
            within a step of the environment.
    """
    timed = [episode for episode in episodes if episode.time is not None]
    if not timed:
        return list(episodes), 1
    if missing := [episode for episode in episodes if episode.time is None]:
        raise LogError(
            f"{missing[0].source}: expected times, as in {timed[0].source}, got none. Log them in all episodes, or "
            "leave them out in all."
        )
    interval = _interval(timed, tolerance)
    if time_step is None:
        return timed, 1
    every, hold = _whole(time_step / interval, tolerance), _whole(interval / time_step, tolerance)
    if every is not None:
        return (timed if every == 1 else [_thinned(episode, every) for episode in timed]), 1
    if hold is not None:
        return timed, hold
    raise LogError(
        f"{timed[0].source}: expected observations every {time_step:g} s, a step of the environment, or a multiple or "
        f"a whole fraction of it, got one every {interval:g} s. Make the environment with steps of {interval:g} s, or "
        "log at such a rate."
    )


def _whole(ratio: float, tolerance: float) -> int | None:
    """The whole number that a ratio is near to; None if there is none."""
    number = round(ratio)
    return number if number >= 1 and abs(ratio - number) <= tolerance * number else None


def _interval(episodes: Sequence[LoggedEpisode], tolerance: float) -> float:
    """The time between observations, the same in all episodes, s."""
    medians: list[float] = []
    for episode in episodes:
        steps = np.diff(np.asarray(episode.time))
        median = float(np.median(steps))
        worst = int(np.argmax(np.abs(steps - median)))
        if abs(steps[worst] - median) > tolerance * median:
            raise LogError(
                f"{episode.source}: expected observations at a fixed rate, got {steps[worst]:g} s between rows {worst} "
                f"and {worst + 1}, where the median is {median:g} s. Log at a fixed rate, or split the episode at "
                "gaps; if only the clock's stamps jitter and not the sampling, leave out the time."
            )
        if medians and abs(median - medians[0]) > tolerance * medians[0]:
            raise LogError(
                f"{episode.source}: expected an observation every {medians[0]:g} s, as in {episodes[0].source}, got "
                f"one every {median:g} s. Fit logs of different rates one by one, or bring them to one rate."
            )
        medians.append(median)
    return float(np.median(medians))


def _thinned(episode: LoggedEpisode, every: int) -> LoggedEpisode:
    """Each ``every``-th observation of an episode, and the actions between them."""
    count = len(episode) // every
    if not count:
        raise LogError(
            f"{episode.source}: expected at least {every} actions, which last one step of the environment, got "
            f"{len(episode)}. Leave the episode out."
        )
    rows = slice(0, count * every + 1, every)
    steps = episode.actions[: count * every].reshape(count, every, -1)
    changes = np.argwhere(np.abs(steps - steps[:, :1]) > TOLERANCE)
    if changes.size:
        step, part, _ = changes[0].tolist()
        raise LogError(
            f"{episode.source}: {_ACTIONS}: expected the same action in the {every} rows of each step of the "
            f"environment, got a change in row {step * every + part}, within step {step}. Make the environment with "
            "shorter steps, or leave out first rows so that the steps begin where actions change."
        )
    kept = {
        name: values[rows if len(values) == len(episode) + 1 else slice(0, count * every, every)]
        for name, values in episode.others.items()
        if values.ndim and len(values) in (len(episode), len(episode) + 1)
    }
    return replace(
        episode,
        observations=episode.observations[rows],
        actions=episode.actions[: count * every : every],
        time=None if episode.time is None else episode.time[rows],
        others={**episode.others, **kept},
    )
