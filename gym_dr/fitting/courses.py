"""Influences with a known course and an unknown phase, such as wind: each episode's phase is found by trying all.

An influence adds ``power * strength(phase + t)`` times a direction to what happens in step t. With residuals r without
it, directions g and the covariance V of a step, a phase improves the log-likelihood of an episode by
``power * sum(s g' V^-1 r) - power^2 * sum(s^2 g' V^-1 g) / 2``, for s the strengths of the steps. The power is common
to all episodes, and unknown as well.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array
from gym_dr.envs.replay import Course
from gym_dr.fitting.estimate import Likelihood, guess_sizes, spread_of_streams
from gym_dr.fitting.prior import Prior

_PASSES = 2
_POWERS = 41  # that are tried
_BLOCK = 4096  # phases at a time


def blowing(prior: Prior, courses: Sequence[Course]) -> list[Course]:
    """The courses that act at all: their power is to be found, or known, and switched on."""
    return [course for course in courses if _switched_on(prior, course.power)]


def _switched_on(prior: Prior, name: str) -> bool:
    if name not in prior.names and prior.known.get(name, prior.space[name].nominal) == 0.0:
        return False
    needs = prior.space[name].needs
    return not needs or any(prior.known.get(other, prior.space[other].nominal) != 0.0 for other in needs)


def find_phases(likelihood: Likelihood, u: Array, courses: Sequence[Course]) -> npt.NDArray[np.int64]:
    """The most likely phase of each course in each episode, given other parameters.

    Args:
        likelihood: Of the logged steps.
        u: Point of the prior.
        courses: All of the environment's.

    Returns:
        The step of each course at each logged step, ``(T, courses)``.
    """
    motion, prior = likelihood.motion, likelihood.prior
    active = blowing(prior, courses)
    calm = {course.power: 0.0 for course in courses}
    phases = np.zeros((len(motion), len(courses)), np.int64)
    still = likelihood.part(slice(None))
    still.phases, still.forced = phases, calm
    first, moved = still.streams_after(motion.before, u)
    mean = still.replay.add(first, moved.mean(axis=0))
    residuals = still.replay.difference(motion.after, mean)
    spread = spread_of_streams(moved)
    sizes = guess_sizes(still, residuals, spread)
    inverse = np.linalg.inv(np.diag(2.0 * sizes.measured + sizes.process) + (0.0 if spread is None else spread))
    directions = {c.power: _direction(still, u, c, calm, courses, first) for c in active}
    parts = {course.power: np.zeros_like(residuals) for course in active}
    for _ in range(_PASSES):
        for course in active:
            others = sum((part for name, part in parts.items() if name != course.power), np.zeros_like(residuals))
            direction = directions[course.power]
            pulled = np.einsum("ti,tij,tj->t", direction, inverse, residuals - others)
            weight = np.einsum("ti,tij,tj->t", direction, inverse, direction)
            steps, power = _best(likelihood, course, pulled, weight)
            phases[:, courses.index(course)] = steps
            parts[course.power] = power * course.strength(steps)[:, None] * direction
    return phases


def _direction(
    still: Likelihood,
    u: Array,
    course: Course,
    calm: dict[str, float],
    courses: Sequence[Course],
    without: Array,
) -> Array:
    """What one unit of a course's power at full strength does in each step, ``(T, n)``."""
    possible = np.arange(course.low, min(course.high, course.low + _BLOCK))
    strengths = course.strength(possible)
    strongest = int(np.argmax(np.abs(strengths)))
    power = still.prior.space[course.power].high
    blown = still.part(slice(None))
    blown.phases = np.zeros((len(still.motion), len(courses)), np.int64)
    blown.phases[:, courses.index(course)] = possible[strongest]
    blown.forced = {**calm, course.power: power}
    moved = still.replay.difference(blown.after(still.motion.before, u), without)
    direction: Array = moved / (power * strengths[strongest])
    return direction


def _best(likelihood: Likelihood, course: Course, pulled: Array, weight: Array) -> tuple[npt.NDArray[np.int64], float]:
    """The phase of each episode, as the step at each row, and the power for which phases explain most."""
    motion, prior = likelihood.motion, likelihood.prior
    starts = np.arange(course.low, course.high)
    if course.power in prior.names:
        ends = prior.alone(course.power, np.array([0.0, 1.0]))
        powers = np.linspace(float(ends.min()), float(ends.max()), _POWERS)
    else:
        powers = np.array([prior.known.get(course.power, prior.space[course.power].nominal)])
    episodes = np.unique(motion.episode)
    gains, choices = np.zeros((len(episodes), len(powers))), np.zeros((len(episodes), len(powers)), np.int64)
    for k, episode in enumerate(episodes):
        rows = motion.episode == episode
        slopes, bends = np.zeros(len(starts)), np.zeros(len(starts))
        for first in range(0, len(starts), _BLOCK):
            block = slice(first, first + _BLOCK)
            strengths = course.strength(starts[block, None] + motion.time[rows])
            slopes[block], bends[block] = strengths @ pulled[rows], np.square(strengths) @ weight[rows]
        for j, power in enumerate(powers):
            found = power * slopes - 0.5 * power**2 * bends
            choices[k, j], gains[k, j] = np.argmax(found), found.max()
    best = int(np.argmax(gains.sum(axis=0)))
    phase = dict(zip(episodes.tolist(), starts[choices[:, best]].tolist(), strict=True))
    return np.array([phase[e] for e in motion.episode.tolist()]) + motion.time, float(powers[best])
