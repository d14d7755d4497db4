"""Parameters that a log tells: constants of each episode or row, such as a supply voltage or a load."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array
from gym_dr.errors import LogError, located
from gym_dr.fitting.logs import LoggedEpisode
from gym_dr.fitting.sensors import is_of_sensor
from gym_dr.randomization.space import ParamSpace
from gym_dr.wrappers.disturbances import DISTURBANCES

_COLUMN = "params/"


def told_constants(episodes: Sequence[LoggedEpisode], space: ParamSpace, wanted: Collection[str]) -> dict[str, float]:
    """The parameters that a log tells and that are not nominal: name -> value, or nan if it differs within the log.

    Args:
        episodes: The log; its columns ``params/NAME``.
        space: The environment's parameters.
        wanted: Parameters that are to be found, or whose value is given: their columns are not read.

    Raises:
        LogError: A column is missing in some episodes, or holds no possible values.
        UnknownNameError: There is no such parameter.
    """
    columns = {name for episode in episodes for name in episode.others if name.startswith(_COLUMN)}
    names = sorted(name.removeprefix(_COLUMN) for name in columns)
    found = {}
    for name in names:
        if name in DISTURBANCES or name in wanted:
            continue
        if is_of_sensor(name):
            raise LogError(f"{_COLUMN}{name}: expected a parameter of the environment. Set a sensor's with `params`.")
        values = np.concatenate([np.unique(_values(episode, name)) for episode in episodes])
        for end in (values.min(), values.max()):
            space.check({name: float(end)})
        if np.ptp(values) or values[0] != space[name].nominal:
            found[name] = np.nan if np.ptp(values) else float(values[0])
    return found


def with_told(episodes: Sequence[LoggedEpisode], names: Collection[str]) -> list[LoggedEpisode]:
    """The episodes with the values of parameters that differ between or within them as ``known``."""
    return [replace(one, known={**one.known, **{name: _values(one, name) for name in names}}) for one in episodes]


def _values(episode: LoggedEpisode, name: str) -> Array:
    """The values of a parameter in each step, ``(T,)``."""
    column, count = _COLUMN + name, len(episode)
    with located(episode.source):
        if column not in episode.others:
            raise LogError(f"expected {column} in all episodes, as in others, got none.")
        given: npt.NDArray[Any] = episode.others[column]
        if given.dtype.kind not in "biuf" or given.shape not in ((), (1,), (count,), (count + 1,)):
            raise LogError(f"{column}: expected a number, or one for each row, got {given.dtype} of {given.shape}.")
        values = np.broadcast_to(given, count + 1)[:count] if given.size == 1 else given[:count]
        if not np.isfinite(values).all():
            raise LogError(f"{column}: expected finite numbers, got {values[~np.isfinite(values)][0]}.")
        return np.asarray(values, np.float64)
