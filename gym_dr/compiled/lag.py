"""Late, lost, hidden and noisy actions and observations of many sub-environments, in compiled code.

Histories are ring buffers of shape ``(N, depth, numbers)``: an episode's entry for step ``age`` is at ``age % depth``.
The depth must exceed the longest delay. A new episode starts at age 0, so it never reads entries of the previous one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from gym_dr.arrays import Array
from gym_dr.compiled.cache import cache_on_disk
from gym_dr.compiled.flags import ENTRY

Values = npt.NDArray[Any]  # of the space's own dtype


class History(NamedTuple):
    """Actions sent or observations made in the last steps, and their delays."""

    ring: Values  # (N, depth, numbers)
    ages: npt.NDArray[np.int64]  # (N,) steps of the current episodes
    delays: Array  # (N,) steps, whole numbers


class Actuators(NamedTuple):
    """Disturbances of actions other than delays."""

    initial: Values  # (A,) applied until the first action arrives
    low: Values  # (A,) bounds, to which noisy actions are clipped
    high: Values  # (A,)
    gains: Array  # (A, N) factors; no rows without gains and noise
    stds: Array  # (N,) standard deviations of noise
    scores: Array  # (A, N) standard normal numbers; no rows without noise


class Sensors(NamedTuple):
    """Disturbances of observations other than delays."""

    bias: Array  # (N, O) of the current episodes; no columns without bias and noise
    stds: Array  # (N,) standard deviations of noise
    scale: Array  # (O,) factors of the noise
    scores: Array  # (O, N) standard normal numbers; no rows without noise


class FailingSensors(NamedTuple):
    """Sensors that may fail, and whether they do."""

    spans: npt.NDArray[np.int64]  # (S, 2) index of the first number of each sensor, and one after the last
    scores: Array  # (S, N) a sensor fails where its score is below its limit
    limits: Array  # (S, N)


@njit(**ENTRY)
def command(history, actuators, actions, lost, held, arrived, env_actions):
    """Fills ``arrived`` with the delayed ``actions`` (N, A), and ``env_actions`` with these after gains and noise.

    Where an action is ``lost`` (N,), the ``held`` one (N, A) acts again.
    """
    sent, ages, delays = history
    initial, low, high, gains, stds, scores = actuators
    depth = sent.shape[1]
    for i in range(actions.shape[0]):
        age, lag = ages[i], int(delays[i])
        for j in range(actions.shape[1]):
            sent[i, age % depth, j] = actions[i, j]
            arrived[i, j] = sent[i, (age - lag) % depth, j] if lag <= age else initial[j]
            if lost[i]:
                arrived[i, j] = held[i, j]
            env_actions[i, j] = arrived[i, j]
            if gains.shape[0] > 0:
                applied = arrived[i, j] * gains[j, i]
                if scores.shape[0] > 0:
                    applied += stds[i] * scores[j, i]
                env_actions[i, j] = min(max(applied, low[j]), high[j])


@njit(**ENTRY)
def sense(history, sensors, observations, fresh, visible):
    """Fills ``visible`` (N, O) from ``observations`` (N, O) where they are ``fresh`` (N,); elsewhere nothing changes.

    Until an episode is as old as its delay, its first observation stays visible.
    """
    seen, ages, delays = history
    bias, stds, scale, scores = sensors
    depth = seen.shape[1]
    for i in range(observations.shape[0]):
        age = ages[i]
        past = age - min(age, int(delays[i]))
        for j in range(observations.shape[1]):
            if fresh[i]:
                seen[i, age % depth, j] = observations[i, j]
                if bias.shape[1] > 0:
                    error = bias[i, j]
                    if scores.shape[0] > 0:
                        error += stds[i] * scale[j] * scores[j, i]
                    seen[i, age % depth, j] = observations[i, j] + error
            visible[i, j] = seen[i, past % depth, j]


@njit(**ENTRY)
def fail(lost, hidden, ages, fresh, readings, visible):
    """Replaces numbers in ``visible`` (N, O): those that are lost by the last that arrived, then hidden ones by 0.

    Nothing is lost in the first observation of an episode. Where observations are not ``fresh`` (N,), the last ones
    stay. ``readings`` (N, O) are updated; they are only used if something can be lost.
    """
    for i in range(visible.shape[0]):
        if lost.spans.shape[0] > 0:
            for k in range(lost.spans.shape[0]):
                if fresh[i] and ages[i] > 0 and lost.scores[k, i] < lost.limits[k, i]:
                    for j in range(lost.spans[k, 0], lost.spans[k, 1]):
                        visible[i, j] = readings[i, j]
            for j in range(visible.shape[1]):
                if not fresh[i]:
                    visible[i, j] = readings[i, j]
                readings[i, j] = visible[i, j]
        for k in range(hidden.spans.shape[0]):
            if hidden.scores[k, i] < hidden.limits[k, i]:
                for j in range(hidden.spans[k, 0], hidden.spans[k, 1]):
                    visible[i, j] = 0


cache_on_disk(command, "delays of actions")
cache_on_disk(sense, "delays of observations")
cache_on_disk(fail, "sensors that fail")
