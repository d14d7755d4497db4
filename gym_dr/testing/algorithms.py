"""What every algorithm promises."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from gym_dr.errors import GymDrError
from gym_dr.policies.frozen import with_episode_starts
from gym_dr.runs.checkpoint import load_newest
from gym_dr.runs.configure import build_config
from gym_dr.runs.folder import RunFolder
from gym_dr.runs.session import RunSession
from gym_dr.testing.playing import assert_same, refused
from gym_dr.training.api import Algorithm

ROUNDS = 4  # of an episode
BANDITS = (DISCRETE, CONTINUOUS) = ("gym_dr_testing/Bandit-v0", "gym_dr_testing/ContinuousBandit-v0")
UNUSABLE = "Blackjack-v1"  # one of Gymnasium's environments; its observations are tuples


class Bandit(gym.Env[Any, Any]):
    """Observes a number, and rewards an action of the same sign with 1."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def __init__(self, continuous: bool = False) -> None:
        """Makes a bandit with two discrete actions, or one between -1 and 1."""
        self.action_space = self.observation_space if continuous else gym.spaces.Discrete(2)
        self.middle = 0.0 if continuous else 0.5

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begins an episode."""
        super().reset(seed=seed)
        self.rounds, self.x = 0, self.np_random.uniform(-1, 1, 1)
        return self.x.astype(np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Plays one round."""
        right = (np.asarray(action).item() - self.middle) * self.x.item() > 0
        self.rounds, self.x = self.rounds + 1, self.np_random.uniform(-1, 1, 1)
        return self.x.astype(np.float32), float(right), self.rounds == ROUNDS, False, {}


for env_id in BANDITS:
    gym.register(env_id, f"{__name__}:Bandit", kwargs={"continuous": env_id == CONTINUOUS})


class CutError(Exception):
    """Stands for anything that ends training early."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class AlgorithmCase:
    """An algorithm, with options that let it solve a ``Bandit`` within seconds."""

    algorithm: Algorithm
    options: Mapping[str, Any]
    bandits: Sequence[str] = BANDITS  # that it can solve; it must refuse the others, whose actions it cannot use
    imitates: AlgorithmCase | None = None  # whose run the option ``teacher`` names

    def train(self, path: Path, env_id: str, cut_at: int | None = None, **options: Any) -> RunFolder:
        """Trains, or resumes an existing run; ``cut_at`` raises an error after that update, before it is saved."""
        if self.imitates is not None:
            taught = path.parent / f"teacher-{env_id.replace('/', '-')}"
            if not taught.exists():
                self.imitates.train(taught, env_id, **options)
            options = {"teacher": str(taught), **options}
        settings = {"env": env_id, "num_envs": 8, "eval_episodes": 0}
        config = build_config(self.algorithm, {**settings, **self.options, **options}, randomization="none")
        resume = path.exists()
        folder = RunFolder.open(path) if resume else RunFolder.create(path, config.to_json(), overwrite=False)

        def report(updates: int, row: Mapping[str, float]) -> None:
            if updates - 1 == cut_at:
                raise CutError

        session = RunSession(folder, config, report, resume=resume)
        with contextlib.closing(session), contextlib.suppress(CutError):
            self.algorithm.train_function()(session, config.options)
        return folder


def rows(path: Path) -> list[dict[str, str]]:
    """The rows of a table, without the column of seconds."""
    with open(path, newline="") as file:
        return [{name: value for name, value in row.items() if name != "seconds"} for row in csv.DictReader(file)]


def its_configuration_is_frozen_and_documented(case: AlgorithmCase, path: Path) -> None:
    config = case.algorithm.config_class()()
    names = [field.name for field in dataclasses.fields(config)]
    assert "updates" in names
    assert case.algorithm.summary
    assert all(field.metadata["help"] for field in dataclasses.fields(config))
    with refused(dataclasses.FrozenInstanceError):
        config.updates = 3
    with refused(GymDrError):
        type(config)(updates=0)


def it_learns_what_is_trivial_and_its_policy_takes_any_number_of_observations(case: AlgorithmCase, path: Path) -> None:
    for i, env_id in enumerate(case.bandits):
        folder = case.train(path / str(i), env_id)
        assert float(rows(folder.metrics)[-1]["return_mean"]) > 0.85 * ROUNDS  # half of them are right by chance
        load = case.algorithm.policy_loader()
        if load is None:
            continue
        config = case.algorithm.config_class()(**case.options)
        with contextlib.closing(gym.make_vec(env_id, 2, vectorization_mode="sync")) as envs:
            policy = with_episode_starts(load(load_newest(folder)["state"], envs, config))
            for count in (1, 200, 3):
                x = np.linspace(-1, 1, count, dtype=np.float32)[:, None]
                actions = policy(x, np.ones(count, np.bool_))
                assert len(actions) == count
                assert all(action in envs.single_action_space for action in actions)


def a_run_that_was_cut_resumes_bit_for_bit(case: AlgorithmCase, path: Path) -> None:
    short = {"updates": 4, "checkpoint_every": 2}
    for i, env_id in enumerate(case.bandits):
        whole = case.train(path / f"whole-{i}", env_id, **short)
        for cut_at in (1, 2):  # before the first checkpoint and after it
            cut = path / f"cut-{i}-{cut_at}"
            case.train(cut, env_id, cut_at=cut_at, **short)
            resumed = case.train(cut, env_id, **short)
            assert rows(resumed.metrics) == rows(whole.metrics)
            assert rows(resumed.draws) == rows(whole.draws)
            assert_same(load_newest(resumed)["state"], load_newest(whole)["state"])


def spaces_that_it_cannot_use_are_refused_before_training(case: AlgorithmCase, path: Path) -> None:
    for i, env_id in enumerate([UNUSABLE, *set(BANDITS).difference(case.bandits)]):
        with refused(GymDrError):
            case.train(path / f"run-{i}", env_id)
        assert not (path / f"run-{i}" / "metrics.csv").exists()


ALGORITHM_CONTRACTS: tuple[Callable[[AlgorithmCase, Path], None], ...] = (
    its_configuration_is_frozen_and_documented,
    it_learns_what_is_trivial_and_its_policy_takes_any_number_of_observations,
    a_run_that_was_cut_resumes_bit_for_bit,
    spaces_that_it_cannot_use_are_refused_before_training,
)
