"""Runs with samplers that learn: what they log, and which are refused before anything is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gym_dr
from gym_dr.errors import ConfigError, RandomizationError, UnknownNameError
from gym_dr.randomization.sampler import seed_word
from gym_dr.randomization.space import LOG_COLUMNS
from gym_dr.runs.checkpoint import load_newest
from gym_dr.runs.configure import build_config
from gym_dr.runs.environments import param_space_of
from gym_dr.runs.folder import RunFolder
from gym_dr.testing.algorithms import rows
from gym_dr.training.registry import ALGORITHMS
from tests.runs.kill_points import repr_exactly
from tests.runs.training import train_or_resume

LANDER, PENDULUM, CART_POLE = "gym_dr/LunarLanderDR-v3", "gym_dr/InvertedPendulumDR-v5", "gym_dr/CartPoleDR-v1"
BOX = {"gravity": (-11.5, -5.0), "enable_wind": True, "wind_power": (0.0, 15.0)}

# every sampler learns within a few rollouts of short episodes, whose return is their length
OPTIONS: dict[str, dict[str, Any]] = {
    "adr": {"success": 5.0, "cohort": 12, "bound_episodes": 2, "widen_at": 0.3, "narrow_at": 0.1},
    "doraemon": {"success": 5.0, "cohort": 18, "alpha": 0.3},
    "spdl": {"success": 5.0, "cohort": 18, "context": "observation"},
}


def config(sampler: str, randomization: Any = BOX, algorithm: str = "a2c", **settings: Any) -> Any:
    given = {"env": LANDER, "sampler": sampler, **settings}
    return build_config(ALGORITHMS.get(algorithm), given, randomization=randomization)


@pytest.mark.parametrize("box", [{"gravity": -9.0}, {"obs_noise": (0.0, 0.1)}])  # which a wrapper draws
def test_a_box_that_cannot_be_learned_is_refused_before_training(box: Any) -> None:
    with pytest.raises(RandomizationError, match="a parameter that varies"):
        config("adr", box)


def test_draws_cannot_both_follow_the_policy_and_stay_for_some_rollouts() -> None:
    with pytest.raises(
        ConfigError, match="resample_every: expected 0 with sampler adr, which draws at each reset, got 2"
    ):
        config("adr", resample_every=2)


def train(path: Path, sampler: str, cut_at: int | None = None, **changes: Any) -> RunFolder:
    """Trains, or goes on where there is a run already."""
    settings = {"env": PENDULUM, "num_envs": 6, "checkpoint_every": 3, "sampler": sampler, "eval_episodes": 0}
    given = {**settings, "updates": 7, "rollout_steps": 25, "hidden_sizes": (8,), **OPTIONS[sampler], **changes}
    return train_or_resume(path, build_config(ALGORITHMS.get("a2c"), given, randomization="wide"), cut_at)


def content(folder: RunFolder) -> Any:
    """All that must not depend on how a run came to its end."""
    newest = load_newest(folder)
    del newest["session"]["seconds"]
    return rows(folder.metrics), rows(folder.draws), rows(folder.sampler), repr_exactly(newest)


@pytest.mark.parametrize("sampler", OPTIONS)
def test_a_run_that_was_cut_resumes_bit_for_bit_and_its_record_repeats_every_draw(sampler: str, tmp_path: Path) -> None:
    whole = train(tmp_path / "whole", sampler)
    assert len({row["version"] for row in rows(whole.draws)}) > 1
    assert rows(whole.sampler)
    train(tmp_path / "cut", sampler, cut_at=4)  # after the first checkpoint
    assert content(train(tmp_path / "cut", sampler)) == content(whole)
    run: Any = gym_dr.load_run(whole.path)
    sampler_of_run = run.sampler  # read from the newest checkpoint each time it is asked for
    assert set(rows(whole.draws)[0]) <= LOG_COLUMNS | set(param_space_of(PENDULUM) or ())
    for row in rows(whole.draws):
        key = np.array([seed_word(int(row["seed"]))], np.uint64), np.array([int(row["draw_index"])])
        drawn = sampler_of_run.draw(*key, int(row["version"]))
        assert {name: float(row[name]) for name in drawn} == {name: float(values[0]) for name, values in drawn.items()}


def test_compiled_stepped_and_async_trainings_are_the_same(tmp_path: Path) -> None:
    kinds = [
        train(tmp_path / kind, "doraemon", env=CART_POLE, vectorization=kind, checkpoint_every=10)
        for kind in ("native", "sync", "async")
    ]
    native, *others = [(rows(folder.metrics), rows(folder.draws), rows(folder.sampler)) for folder in kinds]
    assert len({row["version"] for row in native[1]}) > 1
    assert others == [native, native]


def test_the_configuration_holds_the_samplers_options_and_reads_back_equal(tmp_path: Path) -> None:
    algorithm = ALGORITHMS.get("a2c")
    given = {"alpha": 0.7, "start": {"gravity": "uniform:-10:-9"}}
    made = build_config(algorithm, {"sampler": "doraemon", **given}, randomization=BOX)
    (tmp_path / "config.json").write_text(made.to_json())
    assert build_config(algorithm, {}, config=tmp_path / "config.json") == made
    assert (made.sampler_options.alpha, made.sampler_options.cohort) == (0.7, 100)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ('sampler = "doraemon"\n[doraemon]\nalfa = 0.5', UnknownNameError, "Did you mean 'alpha'"),
        ('sampler = "doraemon"\n[doraemon]\nstart = 5', ConfigError, "start: expected str"),
        ('sampler = "doraemon"\nalpha = 0.5', ConfigError, r"alpha: expected in the table \[doraemon\]"),
        ("[doraemon]\nalpha = 0.5", ConfigError, r"\[doraemon\]: expected with sampler = 'doraemon', got 'uniform'"),
        ('sampler = "doremon"', UnknownNameError, "Did you mean 'doraemon'"),
        ('sampler = "adr"\n[adr]\nstart = "defalt"', UnknownNameError, "Did you mean 'default'"),
    ],
)
def test_a_file_with_impossible_options_of_a_sampler_is_refused(
    text: str, error: type[Exception], message: str, tmp_path: Path
) -> None:
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(error, match=message):
        build_config(ALGORITHMS.get("a2c"), {}, config=tmp_path / "a.toml")


def test_a_keyword_may_choose_another_sampler_than_the_file_whose_options_are_left_out_then(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('sampler = "doraemon"\n[doraemon]\nkl_bound = 0.5\n')
    algorithm = ALGORITHMS.get("a2c")

    def resolved(**given: Any) -> Any:
        return build_config(algorithm, given, config=tmp_path / "a.toml", randomization=BOX).sampler_options

    assert (resolved().kl_bound, resolved(kl_bound=0.2).kl_bound, resolved(alpha=0.2).kl_bound) == (0.5, 0.2, 0.5)
    assert resolved(sampler="spdl").kl_bound == 0.05
    with pytest.raises(ConfigError, match="alpha: expected with sampler doraemon, got spdl"):
        resolved(sampler="spdl", alpha=0.5)
    with pytest.raises(UnknownNameError, match="Did you mean 'alpha'"):
        resolved(alfa=0.5)
