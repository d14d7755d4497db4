"""Searches A2C's hyperparameters with Optuna on the native LunarLander.

Run it with:  python -m benchmarks.search_a2c --trials 40 --steps 5e6 [--storage search.log]
Several processes may share one storage file. Needs the extra gym-dr[bench].

Trials train with seeds that no published figure uses. Their objective is the mean return of the last training episodes;
evaluation seeds are not used.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from gym_dr import EpisodeRecord, RecordEpisodes
from gym_dr.envs.box2d.lunar_lander.params import LUNAR_LANDER
from gym_dr.errors import TrainingError
from gym_dr.randomization.presets import resolve
from gym_dr.runs.environments import make_vector_env
from gym_dr.training.a2c import train
from gym_dr.training.api import seed_for
from gym_dr.training.config import A2CConfig

if TYPE_CHECKING:
    import optuna

SEED = 1001  # of the first trial; each has its own, so that a lucky seed is not selected
REPORTS = 10  # times in a run that Optuna may prune it
WORST = -1000.0  # for a run without episodes or with a loss that is not finite

Progress = Callable[[int, float], None]  # report number, mean return since the previous report


class SearchSession:
    """Implements ``gym_dr.training.api.Session`` without a folder."""

    def __init__(
        self, env_id: str, randomization: str, num_envs: int, seed: int, updates: int, report: Progress
    ) -> None:
        """Prepares one run."""
        self.seed, self.device, self.first_update = seed, "cpu", 0
        self.restored: dict[str, Any] | None = None
        self._env = (env_id, num_envs, "native", resolve(randomization, LUNAR_LANDER))
        self._updates, self._report = updates, report
        self._returns: list[list[float]] = [[] for _ in range(REPORTS)]
        self._stage = 0

    def make_envs(self, rollout_steps: int | None) -> RecordEpisodes:
        """See ``Session``."""
        return RecordEpisodes(make_vector_env(*self._env), self._record)

    def _record(self, record: EpisodeRecord) -> None:
        self._returns[self._stage].append(record.episode_return)

    def segment_seed(self, update: int) -> int | None:
        """See ``Session``."""
        return None if update % 100 else seed_for(self.seed, stream=0, index=update // 100)

    def guard_update(self, update: int) -> contextlib.AbstractContextManager[None]:
        """See ``Session``; an update that fails ends the trial."""
        return contextlib.nullcontext()

    def log(self, update: int, *, steps: int, **metrics: float) -> None:
        """See ``Session``."""
        stage = (update + 1) * REPORTS // self._updates
        if stage > self._stage:
            self._report(stage, self.mean())
            self._stage = min(stage, REPORTS - 1)

    def save(self, update: int, state: Callable[[], Mapping[str, Any]]) -> None:
        """See ``Session``; saves nothing."""

    def mean(self) -> float:
        """Mean return of the current stage's episodes; ``WORST`` if there are none."""
        returns = self._returns[self._stage]
        return float(np.mean(returns)) if returns else WORST


def suggest(trial: optuna.Trial, steps: int) -> tuple[int, A2CConfig]:
    """The search space: the number of environments, and the configuration."""
    num_envs = trial.suggest_categorical("num_envs", [16, 32, 64])
    rollout_steps = trial.suggest_categorical("rollout_steps", [32, 64, 128])
    lr = trial.suggest_float("actor_lr", 5e-4, 5e-3, log=True)
    return num_envs, A2CConfig(
        updates=steps // (num_envs * rollout_steps),
        rollout_steps=rollout_steps,
        minibatches=trial.suggest_categorical("minibatches", [1, 2, 4]),
        gamma=1.0 - trial.suggest_float("1 - gamma", 1e-3, 1e-2, log=True),
        gae_lambda=1.0 - trial.suggest_float("1 - gae_lambda", 0.01, 0.06, log=True),
        entropy_coef=trial.suggest_float("entropy_coef", 1e-3, 3e-2, log=True),
        actor_lr=lr,
        critic_lr=lr * trial.suggest_float("critic_lr / actor_lr", 0.5, 3.0, log=True),
        schedule="linear",
        optimizer=trial.suggest_categorical("optimizer", ["rmsprop", "adam"]),
        optimizer_eps=1e-5,
        hidden_sizes=(64, 64),
        activation=trial.suggest_categorical("activation", ["relu", "tanh"]),
        init="orthogonal",
        reward_scale=trial.suggest_float("reward_scale", 0.02, 0.3, log=True),
        normalize_advantages=True,
        max_grad_norm=0.5,
    )


LEAD = {
    "num_envs": 32,
    "rollout_steps": 64,
    "minibatches": 1,
    "optimizer": "rmsprop",
    "activation": "relu",
    "actor_lr": 2e-3,
    "1 - gamma": 4e-3,
    "1 - gae_lambda": 0.02,
    "entropy_coef": 0.003,
    "critic_lr / actor_lr": 1.0,
    "reward_scale": 0.1,
}
"""The first trial."""


def main() -> None:
    """Searches and prints the best trials."""
    import optuna  # of the extra

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--steps", type=float, default=5e6, help="environment steps per run")
    parser.add_argument("--env", default="gym_dr/LunarLanderDR-v3")
    parser.add_argument("--randomization", default="default")
    parser.add_argument("--storage", help="file that several processes may share, and that a later search continues")
    arguments = parser.parse_args()
    torch.set_num_threads(1)

    def objective(trial: optuna.Trial) -> float:
        num_envs, config = suggest(trial, int(arguments.steps))
        trial.set_user_attr("config", {"num_envs": num_envs, **asdict(config)})

        def report(stage: int, mean: float) -> None:
            trial.report(mean, stage)
            if trial.should_prune():
                raise optuna.TrialPruned

        seed = SEED + trial.number
        session = SearchSession(arguments.env, arguments.randomization, num_envs, seed, config.updates, report)
        try:
            train(session, config)
        except TrainingError:
            return WORST
        return session.mean()

    storage = None
    if arguments.storage:
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend

        storage = JournalStorage(JournalFileBackend(arguments.storage))
    study = optuna.create_study(
        study_name="a2c",
        storage=storage,
        load_if_exists=True,
        direction="maximize",
        sampler=optuna.samplers.TPESampler(multivariate=True, constant_liar=True),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=4),
    )
    if not study.trials:
        study.enqueue_trial(LEAD)
    study.optimize(objective, n_trials=arguments.trials)
    done = [t for t in study.trials if t.value is not None]
    for trial in sorted(done, key=lambda t: -t.value)[:5]:
        print(f"{trial.value:8.1f}  {trial.params}")


if __name__ == "__main__":
    main()
