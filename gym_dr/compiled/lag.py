"""Late, lost and noisy actions and observations of many sub-environments, in compiled code.

Histories are rings of shape ``(N, depth, numbers)``: what an episode had at its step ``age`` is in place
``age % depth``. So a new episode, which begins at age 0, never meets the one before it, and the depth must exceed the
longest delay.
"""

# mypy: allow-untyped-defs, allow-untyped-calls
# numba infers the types of compiled functions; annotations would say nothing that it checks.

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from numba import njit

from gym_dr.compiled.cache import keep

# fastmath stays off: contraction and reassociation would change the last bit
_ENTRY: Final[dict[str, Any]] = {"nogil": True, "error_model": "numpy"}


@njit(**_ENTRY)
def command(actions, sent, ages, delays, idle, lost, held, deviations, scores, low, high, arrived, applied):
    """What arrives of ``actions`` (N, A), and what is applied: that with noise, clipped to ``low`` and ``high`` (A,).

    ``sent`` is the ring of actions and ``delays`` (N,) are whole numbers in float64. ``idle`` (A,) acts until the first
    action arrives, and what was ``held`` (N, A) where an action is ``lost`` (N,). ``scores`` (A, N) are standard normal
    numbers, or have no rows for no noise.
    """
    depth = sent.shape[1]
    for i in range(actions.shape[0]):
        age, lag = ages[i], int(delays[i])
        for j in range(actions.shape[1]):
            sent[i, age % depth, j] = actions[i, j]
            arrived[i, j] = sent[i, (age - lag) % depth, j] if lag <= age else idle[j]
            if lost[i]:
                arrived[i, j] = held[i, j]
            applied[i, j] = arrived[i, j]
            if scores.shape[0] > 0:
                applied[i, j] = min(max(arrived[i, j] + deviations[i] * scores[j, i], low[j]), high[j])


@njit(**_ENTRY)
def sense(observations, fresh, seen, ages, delays, bias, deviations, scale, scores, shown):
    """What is shown of ``observations`` (N, O) where they are ``fresh`` (N,); elsewhere nothing is new.

    ``seen`` is the ring of what was sensed: observations plus ``bias`` (N, O) and noise, of the standard ``deviations``
    (N,) times ``scale`` (O,) and the standard normal numbers ``scores`` (O, N). ``bias`` has no columns where there is
    neither, and ``scores`` no rows where there is no noise. Before an episode is as old as its delay, its first
    observation is all there is.
    """
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
            shown[i, j] = seen[i, past % depth, j]


SOURCES = [Path(__file__)]
"""What the machine code follows from."""

keep(command, "command", SOURCES, "delays of actions (about 1 s)")
keep(sense, "sense", SOURCES, "delays of observations (about 1 s)")
