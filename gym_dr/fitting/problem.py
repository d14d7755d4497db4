"""What a fit is asked: a log, an environment and a prior, checked before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from gym_dr.errors import ConfigError, check_known, located
from gym_dr.fitting.clock import in_single_steps, on_clock
from gym_dr.fitting.log_checks import check_log
from gym_dr.fitting.logs import LoggedEpisode
from gym_dr.fitting.prior import Prior, make_prior
from gym_dr.fitting.sensors import is_of_sensor, sensor_params
from gym_dr.fitting.told import told_constants, with_told
from gym_dr.options import check_values, is_number, is_whole
from gym_dr.randomization.space import ParamSpace, StackedSpace
from gym_dr.wrappers.sensors import sensor_of

if TYPE_CHECKING:  # heavy
    from gym_dr.envs.replay import LogReplay

METHODS = ("auto", "likelihood", "simulation")
_SLOTS = 512  # sub-environments, at most


@dataclass(frozen=True, kw_only=True, eq=False)
class Question:
    """What a fit is to find; see ``gym_dr.fit``."""

    env: str
    randomize: Mapping[str, Any] | None = None
    randomization: Any = None
    params: Mapping[str, float] | None = None
    time_step: str | None = None
    average_actions: bool = False


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """How to fit; see ``gym_dr.fit``."""

    varies: tuple[str, ...] = ()
    method: str = "auto"
    held_out: float = 0.2
    margin: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Checks all values.

        Raises:
            ConfigError: One is impossible.
            UnknownNameError: There is no such method.
        """
        check_values(self)
        check_known("method", self.method, METHODS)
        if self.varies and self.method == "simulation":
            raise ConfigError("`method`: expected auto or likelihood with `varies`, got simulation, which shares all.")
        _check_between("held_out", self.held_out, 0.0, 0.5)
        _check_between("margin", self.margin, 1.0, 100.0)
        if not is_whole(self.seed) or self.seed < 0:
            raise ConfigError(f"`seed`: expected a whole number of at least 0, got {self.seed!r}.")


def _check_between(name: str, value: Any, low: float, high: float) -> None:
    if not is_number(value) or not low <= value <= high:
        raise ConfigError(f"`{name}`: expected a number from {low:g} to {high:g}, got {value!r}.")


@dataclass(frozen=True, kw_only=True, eq=False)
class FitProblem:
    """A log, an environment and a prior that fit together."""

    env: str
    episodes: Sequence[LoggedEpisode]
    time_step: float | None  # duration of the environment's steps, s; None if it is not known
    prior: Prior
    replay: LogReplay

    def close(self) -> None:
        """Frees the environment."""
        self.replay.envs.close()


def make_problem(episodes: Sequence[LoggedEpisode], question: Question) -> FitProblem:
    """Checks a log and a question against the environment.

    Raises:
        LogError: The log does not fit the environment.
        EnvStateError: A log of the environment cannot be replayed.
        UnknownNameError: A parameter or preset is unknown.
        RandomizationError: A prior is impossible.
    """
    env = question.env
    envs = _native(env, min(_SLOTS, max(16, sum(map(len, episodes)))))
    try:
        episodes = check_log(episodes, envs.single_observation_space, envs.single_action_space)
        with located(f"{env}: a log of it cannot be replayed"):
            replay: LogReplay = envs.unwrapped.replay()
        own = envs.unwrapped.param_space
        space = StackedSpace(own, ParamSpace(own.name, sensor_params(replay.coordinates)), ())
        known = question.params or {}
        if isinstance(question.randomize, Mapping | None):  # or ``make_prior`` says what it is
            _check_sensors([*(question.randomize or ()), *known], episodes, replay)
        prior = make_prior(space, question.randomize, question.randomization, known)
        told = told_constants(episodes, space, {*prior.names, *prior.known, *known})
        constant = {name: value for name, value in told.items() if np.isfinite(value)}
        if constant:
            prior = make_prior(space, question.randomize, question.randomization, {**constant, **known})
        exact = question.time_step
        if exact is not None and exact in (*prior.names, *told):
            raise ConfigError(f"`time_step`: expected a parameter that neither the fit nor the log sets, got {exact}.")
        per = 1.0 if exact is None else _per_step(replay, prior, exact)
        step = _time_step(replay, prior, told) if exact is None else per * prior.value(exact)
        episodes = on_clock(episodes, step, exact=exact is not None, average_actions=question.average_actions)
        episodes = with_told(episodes, [name for name in told if name not in constant])
        if exact is not None:
            episodes = [_with_steps(episode, exact, per) for episode in episodes]
        if prior.delays:  # which are in steps of the environment
            episodes = list(map(in_single_steps, episodes))
    except BaseException:
        envs.close()
        raise
    return FitProblem(env=env, episodes=episodes, time_step=step, prior=prior, replay=replay)


def _check_sensors(names: Sequence[str], episodes: Sequence[LoggedEpisode], replay: LogReplay) -> None:
    """Raises UnknownNameError for sensors of what the log does not measure."""
    if sensors := [name for name in names if is_of_sensor(name)]:
        states = np.concatenate([replay.read(one.observations, one.others).states for one in episodes])
        seen = np.flatnonzero(replay.seen(~np.isnan(states)).any(axis=0))
        measured = [replay.coordinates[k].name for k in seen.tolist()]
        for name in sensors:
            check_known(
                f"sensor of {name.partition(':')[0]}, a coordinate that the log measures:", sensor_of(name), measured
            )


def _per_step(replay: LogReplay, prior: Prior, name: str) -> float:
    """How many times a step lasts a parameter: 1, or as many as there are steps of the simulation in it."""
    return replay.time_step / prior.space[name].nominal if isinstance(replay.time_step, float) else 1.0


def _with_steps(episode: LoggedEpisode, name: str, per: float) -> LoggedEpisode:
    """An episode in which a parameter is, ``per`` times, the duration of each step."""
    if episode.time is None:
        raise ConfigError(f"`time_step`: expected a log with times, got none in {episode.source}.")
    durations = np.diff(episode.time) / (per * episode.holds)
    return replace(episode, known={**episode.known, name: durations})


def _native(env: str, slots: int) -> Any:
    try:
        envs: Any = gym.make_vec(env, num_envs=slots, randomization="none")
    except TypeError:
        raise ConfigError(f"{env}: expected an environment with parameters. gymdr list envs shows them.") from None
    if not hasattr(envs.unwrapped, "replay"):
        envs.close()
        raise ConfigError(f"{env}: expected an environment with a native vector environment, whose states can be set.")
    envs.reset(seed=0)
    return envs


def _time_step(replay: LogReplay, prior: Prior, told: Mapping[str, float]) -> float | None:
    """Duration of a step, s; None if it is a parameter to find, or differs within the log."""
    step = replay.time_step
    if isinstance(step, str):
        return None if step in prior.names or (step in told and step not in prior.known) else prior.value(step)
    return step
