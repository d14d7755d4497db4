"""Late, lost and noisy actions and observations of many sub-environments, in compiled code.

Histories are rings of shape ``(N, depth, numbers)``: what an episode had at its step ``age`` is in place
``age % depth``. So a new episode, which begins at age 0, never meets the one before it, and the depth must exceed the
longest delay.
"""

# mypy: allow-untyped-defs, allow-untyped-calls
# numba infers the types of compiled functions; annotations would say nothing that it checks.

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from gym_dr.arrays import Array
from gym_dr.compiled.cache import cache_on_disk
from gym_dr.compiled.options import ENTRY

Values = npt.NDArray[Any]  # of the space's own dtype


class History(NamedTuple):
    """What was sent or sensed in the last steps, and how late it comes."""

    ring: Values  # (N, depth, numbers)
    ages: npt.NDArray[np.int64]  # (N,) steps of the episodes under way
    delays: Array  # (N,) steps, whole numbers


class Actuators(NamedTuple):
    """What becomes of actions beside delays."""

    initial: Values  # (A,) acts until the first action arrives
    low: Values  # (A,) bounds, which noise does not leave
    high: Values  # (A,)
    deviations: Array  # (N,) standard deviations of noise
    scores: Array  # (A, N) standard normal numbers; no rows for no noise


class Sensors(NamedTuple):
    """What becomes of observations beside delays."""

    bias: Array  # (N, O) of the episodes under way; no columns where there is neither bias nor noise
    deviations: Array  # (N,) standard deviations of noise
    scale: Array  # (O,) which they are multiplied by
    scores: Array  # (O, N) standard normal numbers; no rows for no noise


@njit(**ENTRY)
def command(history, actuators, actions, lost, held, arrived, env_actions):
    """What arrives of ``actions`` (N, A), and what the environment takes: that with noise, within the bounds.

    Where an action is ``lost`` (N,), what was ``held`` (N, A) acts on.
    """
    sent, ages, delays = history
    initial, low, high, deviations, scores = actuators
    depth = sent.shape[1]
    for i in range(actions.shape[0]):
        age, lag = ages[i], int(delays[i])
        for j in range(actions.shape[1]):
            sent[i, age % depth, j] = actions[i, j]
            arrived[i, j] = sent[i, (age - lag) % depth, j] if lag <= age else initial[j]
            if lost[i]:
                arrived[i, j] = held[i, j]
            env_actions[i, j] = arrived[i, j]
            if scores.shape[0] > 0:
                env_actions[i, j] = min(max(arrived[i, j] + deviations[i] * scores[j, i], low[j]), high[j])


@njit(**ENTRY)
def sense(history, sensors, observations, fresh, visible):
    """What is ``visible`` (N, O) of ``observations`` (N, O) where they are ``fresh`` (N,); elsewhere nothing is new.

    Before an episode is as old as its delay, its first observation is all there is.
    """
    seen, ages, delays = history
    bias, deviations, scale, scores = sensors
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
                        error += deviations[i] * scale[j] * scores[j, i]
                    seen[i, age % depth, j] = observations[i, j] + error
            visible[i, j] = seen[i, past % depth, j]


cache_on_disk(command, "delays of actions (about 1 s)")
cache_on_disk(sense, "delays of observations (about 1 s)")
