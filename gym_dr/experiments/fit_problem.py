"""What a fit is asked: a log, an environment and a prior, checked before anything runs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gym_dr.errors import ConfigError, EnvStateError
from gym_dr.experiments.logs import open_log
from gym_dr.fitting.logs import LoggedEpisode, check_log, resample
from gym_dr.fitting.prior import Prior, make_prior, with_whole_delays
from gym_dr.plugins.loading import load_plugins
from gym_dr.runs.environments import check_env_id
from gym_dr.wording import either

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

    def to_dict(self) -> dict[str, Any]:
        """What is asked, for loggers."""
        return {"env": self.env, "prior": self.prior.randomization.to_dict(), "params": dict(self.prior.known)}

    @property
    def key(self) -> str:
        """A digest of all that decides on the estimate."""
        digest = hashlib.sha256(repr((self.env, self.hold, self.prior.randomization, self.prior.known)).encode())
        digest.update(repr((self.prior.delay, self.prior.delays)).encode())
        for episode in self.episodes:
            digest.update(np.ascontiguousarray(episode.observations).tobytes())
            digest.update(np.ascontiguousarray(episode.actions).tobytes())
            for name in sorted(episode.others):  # some are states
                digest.update(name.encode() + np.ascontiguousarray(episode.others[name]).tobytes())
        return digest.hexdigest()


def open_problem(
    log: Any,
    *,
    env: str,
    randomize: Mapping[str, Any] | None = None,
    randomization: Any = None,
    params: Mapping[str, float] | None = None,
) -> FitProblem:
    """Reads a log and checks it against an environment, before anything runs; arguments as for ``fit``."""
    load_plugins()
    check_env_id(env)
    episodes = open_log(log)
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
    import gymnasium as gym

    try:
        envs: Any = gym.make_vec(env, num_envs=slots, randomization="none")
    except TypeError:
        listing = either("gymdr list envs", "gymnasium.pprint_registry()")
        raise ConfigError(f"{env}: expected an environment with parameters. {listing} shows them.") from None
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
