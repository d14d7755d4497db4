"""How well parameters predict logged motion, at the horizons that a policy lives on.

A prediction begins in a state that is fitted to a short window of the log, under the same parameters, and goes on from
the end of the window under logged actions. What it is compared with comes after the window.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from gym_dr.arrays import Array, Indices, Mask
from gym_dr.errors import counted, percent
from gym_dr.fitting.likelihood import Likelihood
from gym_dr.fitting.logs import LoggedEpisode
from gym_dr.fitting.motion import LoggedMotion, Path, evenly
from gym_dr.fitting.problem import FitProblem
from gym_dr.fitting.shooting import Shooting, rolled, stretches_of
from gym_dr.randomization.spec import Randomization

LONGEST = 1.0  # s, of what methods are compared by
_HORIZONS = (0.1, 0.5, LONGEST)  # s
_STEP = 0.01  # s that a step counts as, where nobody knows how long it lasts
_WINDOW = 0.1  # s
_WINDOW_ROWS = (5, 50)  # logged steps of a window, at least and at most; as many as the first if all is measured
_SHARE = 0.25  # of a chain, at most, that is a window
_STARTS = 40  # of predictions, at most
_ROUNDS = 3  # of least squares for a first state
_TIED = 0.03  # relative difference of errors that does not count
_BLOCKS, _BLOCK = 5, 200  # blocks of each long episode, and logged steps of one, at least
WHOLE, ONE = "whole episode", "one step"


@dataclass(frozen=True, kw_only=True, eq=False)
class Clock:
    """How long logged steps last."""

    durations: Array  # (T,) s
    known: bool  # otherwise a step of the environment counts as 0.01 s

    def told(self, seconds: float) -> str:
        """A duration, as it is said."""
        return f"{seconds:g} s" if self.known else counted(round(seconds / _STEP), "step")


def clock_of(problem: FitProblem, motion: LoggedMotion) -> Clock:
    """The clock of a log: its times, or the environment's steps."""
    if problem.episodes[0].time is not None:
        return Clock(durations=motion.intervals, known=True)
    step = problem.time_step
    return Clock(durations=motion.holds.astype(np.float64) * (_STEP if step is None else step), known=step is not None)


def in_blocks(episodes: Sequence[LoggedEpisode]) -> list[LoggedEpisode]:
    """Fewer than three episodes as blocks, of which some can be held out, if they are long; otherwise the same."""
    if len(episodes) >= 3 or min(map(len, episodes)) < _BLOCKS * _BLOCK:
        return list(episodes)
    return [part for episode in episodes for part in _blocks(episode)]


def _blocks(episode: LoggedEpisode) -> list[LoggedEpisode]:
    edges, count = np.linspace(0, len(episode), _BLOCKS + 1).astype(np.int64).tolist(), len(episode)

    def part(values: Any, begin: int, end: int) -> Any:
        """Rows of what each step or each observation has."""
        return values[begin : end + len(values) - count] if np.ndim(values) and 0 <= len(values) - count < 2 else values

    return [
        replace(
            episode,
            others={name: part(values, begin, end) for name, values in episode.others.items()},
            known={name: part(values, begin, end) for name, values in episode.known.items()},
            time=None if episode.time is None else part(episode.time, begin, end),
            source=f"{episode.source}, block {number}",
            **{name: part(getattr(episode, name), begin, end) for name in ("observations", "actions", "holds", "gaps")},
        )
        for number, (begin, end) in enumerate(itertools.pairwise(edges))
    ]


def held_out(episodes: int, share: float, rng: np.random.Generator) -> set[int]:
    """Numbers of the episodes to hold out: one of each part of the log, as the system may drift; none of fewer than 3.

    They are random within the parts, since kinds of motion may take turns.

    Args:
        episodes: How many there are.
        share: How many of them to hold out.
        rng: Source of randomness.
    """
    count = int(np.ceil(share * episodes)) if episodes >= 3 else 0
    return {int((k + rng.uniform()) / count * episodes) for k in range(count)}


def prediction_errors(
    likelihood: Likelihood, path: Path, physics: Mapping[str, Array | None], scale: Array, clock: Clock
) -> pd.DataFrame:
    """Errors of predictions, root mean squares over all times up to each horizon.

    Args:
        likelihood: Of the episodes.
        path: Their states, near which those are that predictions begin in.
        physics: name -> point of the prior, ``(parameters,)``; None for nominal parameters.
        scale: Size of each coordinate, ``(n,)``.
        clock: Of the episodes.

    Returns:
        A row for each physics, horizon and coordinate that is measured: ``seconds`` (nan for whole episodes),
        ``error`` in the coordinate's unit, and ``share``, over ``scale``.
    """
    rows, motion = [], likelihood.motion
    size = np.where(motion.seen, scale, likelihood.motion.scale)
    for name, u in physics.items():
        for horizon, seconds, errors in _errors(likelihood, path, u, size, clock):
            for k in np.flatnonzero(motion.seen & np.isfinite(errors)).tolist():
                one, error = motion.coordinates[k], float(errors[k])
                rows.append((name, horizon, seconds, one.name, one.unit, error, error / float(scale[k])))
    columns = ["physics", "horizon", "seconds", "coordinate", "unit", "error", "share"]
    return pd.DataFrame(rows, columns=columns)


def _errors(
    likelihood: Likelihood, path: Path, u: Array | None, scale: Array, clock: Clock
) -> Iterator[tuple[str, float, Array]]:
    """Horizon, seconds, and the error of each coordinate, ``(n,)``, nan where nothing is measured."""
    fixed = copy.copy(likelihood)
    if u is None:
        fixed.prior, u = replace(likelihood.prior, randomization=Randomization({})), np.zeros(0)
    fixed.moving = np.zeros(len(u), np.bool_)
    for whole in (False, True):
        starts, windows, lengths = _flights(likelihood.motion, clock, whole)
        if not len(starts):
            continue
        states = _begun(fixed, path, u, scale, starts, windows)
        after = stretches_of(starts + windows, lengths)
        found = rolled(fixed, after.rows, states, np.repeat(u[None], len(starts), axis=0))
        measured = likelihood.motion.measured[after.rows]
        flat = likelihood.replay.difference(found.reshape(-1, found.shape[-1]), measured.reshape(-1, found.shape[-1]))
        errors, elapsed = flat.reshape(*after.rows.shape, -1), np.cumsum(clock.durations[after.rows], axis=1)
        if whole:
            yield WHOLE, np.nan, _size(errors, after.running)
            continue
        yield ONE, 0.0, _size(errors[:, :1], after.running[:, :1])
        lasting = np.take_along_axis(elapsed, lengths[:, None] - 1, axis=1)
        for seconds in _HORIZONS:
            soon = (elapsed < seconds * (1.0 + 1e-6)) & after.running & (lasting > seconds * (1.0 - 1e-6))
            if soon.any():
                yield clock.told(seconds), seconds, _size(errors, soon)


def _size(errors: Array, counted_ones: Mask) -> Array:
    """The root mean square of errors ``(K, L, n)`` that count, ``(n,)``; nan where none does."""
    kept = counted_ones[:, :, None] & ~np.isnan(errors)
    number = kept.sum(axis=(0, 1))
    squares = np.square(np.where(kept, np.nan_to_num(errors), 0.0)).sum(axis=(0, 1))
    return np.where(number > 0, np.sqrt(squares / np.maximum(number, 1)), np.nan)


def _flights(motion: LoggedMotion, clock: Clock, whole: bool) -> tuple[Indices, Indices, Indices]:
    """First rows of windows, their lengths, and how many rows are predicted after each."""
    usual = float(np.median(clock.durations))
    longest, least = int(np.ceil(1.2 * LONGEST / usual)), _WINDOW_ROWS[0]
    window = least if motion.seen.all() else int(np.clip(round(_WINDOW / usual), *_WINDOW_ROWS))
    found: list[tuple[int, int, int]] = []
    edges = np.append(np.flatnonzero(motion.begins), len(motion)).tolist()
    for begin, end in itertools.pairwise(edges):
        own = max(1, min(window, int(_SHARE * (end - begin))))
        starts = [begin] if whole else range(begin, end, longest)
        left = [(start, own, end - start - own) for start in starts]
        found += [(start, own, rest if whole else min(rest, longest)) for start, own, rest in left if rest > 0]
    rows = np.array(found, np.int64).reshape(-1, 3)
    starts, windows, lengths = rows[evenly(len(rows), min(len(rows), _STARTS))].T
    return starts, windows, lengths


def _begun(likelihood: Likelihood, path: Path, u: Array, scale: Array, starts: Indices, windows: Indices) -> Array:
    """States at the end of windows, ``(K, size)``."""
    over = stretches_of(starts, windows)
    first = path.states[starts]
    if likelihood.replicates == 1:
        _, first, _ = Shooting(likelihood, over, scale, first).least(u, first, _ROUNDS)
    found = rolled(likelihood, over.rows, first, np.repeat(u[None], len(starts), axis=0))
    return np.asarray(found[np.arange(len(starts)), windows - 1])


# ---- what is said ----------------------------------------------------------------------------------------------------


def compared(errors: pd.DataFrame) -> pd.DataFrame:
    """The mean share of each physics at each horizon: a row for each horizon, in order, a column for each physics."""
    table = errors.pivot_table(index="horizon", columns="physics", values="share", aggfunc="mean", sort=False)
    return table.loc[list(dict.fromkeys(errors["horizon"]))]


def chosen_method(errors: pd.DataFrame, methods: Collection[str]) -> str:
    """The method that predicts better over all times up to 1 s, or as far as episodes go; the likelihood if they tie.

    Args:
        errors: See ``prediction_errors``.
        methods: Physics that are methods.
    """
    if len(methods) == 1 or errors.empty:
        return "likelihood" if "likelihood" in methods else "simulation"
    means = compared(errors[errors["horizon"] != WHOLE]).iloc[-1]
    return "simulation" if means["simulation"] < (1.0 - _TIED) * means["likelihood"] else "likelihood"


def prediction_sentences(errors: pd.DataFrame, where: str) -> list[str]:
    """A sentence on how much better fitted than nominal parameters predict, at each horizon.

    Args:
        errors: See ``Fit.replay``.
        where: What was predicted.
    """
    if errors.empty:
        return []
    parts = [
        f"{horizon}: {percent(row['fitted'])} (nominal {percent(row['nominal'])})"
        for horizon, row in compared(errors).iterrows()
    ]
    return [f"Error of predictions of {where}, relative to the motion's standard deviation: {'; '.join(parts)}."]


def choice_sentences(errors: pd.DataFrame, chosen: str, values: Mapping[str, Mapping[str, Array]]) -> list[str]:
    """Which method predicts better at which horizon, and about which parameters the two disagree.

    Args:
        errors: See ``Fit.replay``, in which the physics of the method that was not taken has its name.
        chosen: The method that was taken.
        values: method -> name -> values of all particles.
    """
    if len(values) == 1 or errors.empty:
        return []
    (other,) = (name for name in values if name != chosen)
    better: dict[str, list[str]] = {chosen: [], other: []}
    for horizon, row in compared(errors).iterrows():
        if abs(row["fitted"] - row[other]) > _TIED * max(row["fitted"], row[other]):
            better[chosen if row["fitted"] < row[other] else other].append(str(horizon))
    told = [f"{method} predicts better at {', '.join(where)}" for method, where in better.items() if where]
    sentences = [f"Method: {chosen}. {'; '.join(told).capitalize() or 'Likelihood and simulation predict alike'}."]
    for name, drawn in values[chosen].items():
        (low, high), (least, most) = (np.quantile(one, [0.05, 0.95]) for one in (drawn, values[other][name]))
        if low > most or least > high:
            sentences.append(
                f"The methods disagree about {name}: {low:.4g} to {high:.4g} by {chosen}, {least:.4g} to {most:.4g} by "
                f"{other}. The model lacks something."
            )
    return sentences
