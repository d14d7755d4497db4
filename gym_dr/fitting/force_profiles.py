"""Force profiles, such as wind, whose phase is unknown: each episode's phase is found by trying all.

A profile adds ``power * strength(phase + t)`` times a direction to step t. With residuals r without it, directions g
and the covariance V of a step, a phase improves the log-likelihood of an episode by
``power * sum(s g' V^-1 r) - power^2 * sum(s^2 g' V^-1 g) / 2``, where s are the strengths of the steps. All episodes
share the power, which is unknown as well.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array
from gym_dr.envs.replay import ForceProfile
from gym_dr.fitting.likelihood import Likelihood, covariance_of_streams
from gym_dr.fitting.noise import guess_noise
from gym_dr.fitting.prior import Prior

_PASSES = 2
_POWERS = 41  # that are tried
_BLOCK = 4096  # phases at a time


def active_profiles(prior: Prior, profiles: Sequence[ForceProfile]) -> list[ForceProfile]:
    """The profiles that act at all: their power is a parameter to find, or known and switched on."""
    return [profile for profile in profiles if _switched_on(prior, profile.power)]


def _switched_on(prior: Prior, name: str) -> bool:
    if name not in prior.names and prior.value(name) == 0.0:
        return False
    needs = prior.space[name].needs
    return not needs or any(prior.value(other) != 0.0 for other in needs)


def find_phases(likelihood: Likelihood, u: Array, profiles: Sequence[ForceProfile]) -> npt.NDArray[np.int64]:
    """The most likely phase of each profile in each episode, at given parameters.

    Args:
        likelihood: Of the logged steps.
        u: Point of the prior.
        profiles: All of the environment's.

    Returns:
        The step of each profile at each logged step, ``(T, profiles)``.
    """
    motion, prior = likelihood.motion, likelihood.prior
    active = active_profiles(prior, profiles)
    calm = {profile.power: 0.0 for profile in profiles}
    phases = np.zeros((len(motion), len(profiles)), np.int64)
    still = likelihood.part(slice(None))
    still.phases, still.forced = phases, calm
    first, moved = still.streams_after(still.path.states, u)
    mean = still.replay.add(first, moved.mean(axis=0))
    residuals = still.replay.difference(still.path.ends, mean)
    simulated = covariance_of_streams(moved)
    noise = guess_noise(still, u, motion.scale, np.ones(len(motion.scale), np.bool_))
    inverse = np.linalg.inv(np.diag(2.0 * noise.measured + noise.process) + (0.0 if simulated is None else simulated))
    directions = {one.power: _direction(still, u, one, calm, profiles, first) for one in active}
    parts = {profile.power: np.zeros_like(residuals) for profile in active}
    for _ in range(_PASSES):
        for profile in active:
            others = sum((part for name, part in parts.items() if name != profile.power), np.zeros_like(residuals))
            direction = directions[profile.power]
            pulled = np.einsum("ti,tij,tj->t", direction, inverse, residuals - others)
            weight = np.einsum("ti,tij,tj->t", direction, inverse, direction)
            steps, power = _best(likelihood, profile, pulled, weight)
            phases[:, profiles.index(profile)] = steps
            parts[profile.power] = power * profile.strength(steps)[:, None] * direction
    return phases


def _direction(
    still: Likelihood,
    u: Array,
    profile: ForceProfile,
    calm: dict[str, float],
    profiles: Sequence[ForceProfile],
    without: Array,
) -> Array:
    """The effect of one unit of a profile's power at full strength in each step, ``(T, n)``."""
    possible = np.arange(profile.low, min(profile.high, profile.low + _BLOCK))
    strengths = profile.strength(possible)
    strongest = int(np.argmax(np.abs(strengths)))
    power = still.prior.space[profile.power].high
    blown = still.part(slice(None))
    blown.phases = np.zeros((len(still.motion), len(profiles)), np.int64)
    blown.phases[:, profiles.index(profile)] = possible[strongest]
    blown.forced = {**calm, profile.power: power}
    moved = still.replay.difference(blown.simulated(still.path.states, u), without)
    return np.asarray(moved / (power * strengths[strongest]))


def _best(
    likelihood: Likelihood, profile: ForceProfile, pulled: Array, weight: Array
) -> tuple[npt.NDArray[np.int64], float]:
    """The phase of each episode, as the profile's step at each row, and the power with which phases explain most."""
    motion, prior = likelihood.motion, likelihood.prior
    starts = np.arange(profile.low, profile.high)
    if profile.power in prior.names:
        ends = prior.alone(profile.power, np.array([0.0, 1.0]))
        powers = np.linspace(float(ends.min()), float(ends.max()), _POWERS)
    else:
        powers = np.array([prior.value(profile.power)])
    episodes = np.unique(motion.episode)
    gains, choices = np.zeros((len(episodes), len(powers))), np.zeros((len(episodes), len(powers)), np.int64)
    for k, episode in enumerate(episodes):
        rows = motion.episode == episode
        slopes, bends = np.zeros(len(starts)), np.zeros(len(starts))
        for first in range(0, len(starts), _BLOCK):
            block = slice(first, first + _BLOCK)
            strengths = profile.strength(starts[block, None] + motion.steps[rows])
            slopes[block], bends[block] = strengths @ pulled[rows], np.square(strengths) @ weight[rows]
        for j, power in enumerate(powers):
            gain = power * slopes - 0.5 * power**2 * bends
            choices[k, j], gains[k, j] = np.argmax(gain), gain.max()
    best = int(np.argmax(gains.sum(axis=0)))
    phase = dict(zip(episodes.tolist(), starts[choices[:, best]].tolist(), strict=True))
    return np.array([phase[e] for e in motion.episode.tolist()]) + motion.steps, float(powers[best])
