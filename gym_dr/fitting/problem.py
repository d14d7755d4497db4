"""What a fit is asked: a log, an environment and a prior, checked before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from gym_dr.errors import ConfigError, EnvStateError
from gym_dr.fitting.logs import LoggedEpisode, check_log, resample
from gym_dr.fitting.prior import Prior, make_prior, with_whole_delays

if TYPE_CHECKING:  # heavy
    from gym_dr.envs.replay import LogReplay

_SLOTS = 512  # sub-environments, at most


@dataclass(frozen=True, kw_only=True, eq=False)
class FitProblem:
    """A log, an environment and a prior that fit together."""

    env: str
    episodes: Sequence[LoggedEpisode]  # with a step of the environment, or ``hold`` of them, between two rows
    hold: int  # steps of the environment a logged step
    prior: Prior
    replay: LogReplay

    def close(self) -> None:
        """Frees the environment."""
        self.replay.envs.close()


def make_problem(
    episodes: Sequence[LoggedEpisode],
    *,
    env: str,
    randomize: Mapping[str, Any] | None = None,
    randomization: Any = None,
    params: Mapping[str, float] | None = None,
) -> FitProblem:
    """Checks a log against an environment; arguments as for ``gym_dr.fit``."""
    envs = _native(env, min(_SLOTS, max(16, sum(map(len, episodes)))))
    try:
        episodes = check_log(episodes, envs.single_observation_space, envs.single_action_space)
        replay: LogReplay = _replay(envs, env)
        prior = make_prior(envs.unwrapped.param_space, randomize, randomization, params or {})
        episodes, hold = resample(episodes, _time_step(replay, prior))
        prior = with_whole_delays(prior, hold)
    except BaseException:
        envs.close()
        raise
    return FitProblem(env=env, episodes=episodes, hold=hold, prior=prior, replay=replay)


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


def _replay(envs: Any, env: str) -> LogReplay:
    try:
        replay: LogReplay = envs.unwrapped.replay()
    except EnvStateError as error:
        raise ConfigError(f"{env}: a log of it cannot be replayed. {error}") from None
    return replay


def _time_step(replay: LogReplay, prior: Prior) -> float | None:
    """Duration of a step, s, if no parameter to find changes it."""
    step = replay.time_step
    if isinstance(step, str):
        return None if step in prior.names else prior.known.get(step, prior.space[step].nominal)
    return step
