from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

import gym_dr
from gym_dr import (
    AdaptParams,
    Choice,
    Correlation,
    DisturbVector,
    DrawContext,
    FrameStack,
    Param,
    Randomization,
    ResampleParams,
    Scale,
    VectorParams,
)
from gym_dr.envs.box2d.lunar_lander.params import LUNAR_LANDER
from gym_dr.errors import ConfigError, RandomizationError
from gym_dr.options import check_fields, is_number, is_whole
from gym_dr.runs.configure import build_config
from gym_dr.training.config import A2CConfig
from gym_dr.training.registry import find_algorithm


def test_whole_numbers_become_floats_and_lists_tuples() -> None:
    checked = check_fields(A2CConfig, {"gamma": 1, "hidden_sizes": [8, 8]})
    assert (checked, type(checked["gamma"])) == ({"gamma": 1.0, "hidden_sizes": (8, 8)}, float)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("updates", 2.0, "int"),
        ("updates", True, "int"),
        ("gamma", "0.9", "float"),
        ("normalize_advantages", 1, "bool"),
        ("hidden_sizes", 8, "a list"),
        ("hidden_sizes", [8, 0.5], "int"),
    ],
)
def test_a_value_of_another_type_is_refused(name: str, value: Any, expected: str) -> None:
    with pytest.raises(ConfigError, match=f"{name}: expected {expected}, got"):
        check_fields(A2CConfig, {name: value})


def test_an_optional_field_takes_none_and_its_type() -> None:
    @dataclass(frozen=True)
    class Config:
        limit: float | None = None

    # local classes have no resolvable hints under postponed evaluation unless they name builtins, as here
    assert check_fields(Config, {"limit": None}) == {"limit": None}
    assert check_fields(Config, {"limit": 1}) == {"limit": 1.0}


# one rule for numbers, wherever a user gives one

LANDER = "gym_dr/LunarLanderDR-v3"
FORMS: dict[str, Callable[[Any], Any]] = {
    "numpy": lambda number: np.asarray(number)[()],
    "array": np.array,
    "tensor": lambda number: torch.tensor(number, dtype=torch.float64 if isinstance(number, float) else None),
}


def drawn(env: Any) -> Any:
    return env.reset(seed=1)[1]["params"]


def sync(**keywords: Any) -> Any:
    return VectorParams(gym.vector.SyncVectorEnv([lambda: gym.make(LANDER, **keywords)] * 2))


DOORS: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "keywords, single": lambda f: drawn(gym.make(LANDER, enable_wind=f(True), gravity=f(-3.0), wind_power=f(3))),
    "keywords, sync": lambda f: drawn(sync(enable_wind=f(True), gravity=f(-3.0))),
    "keywords, native": lambda f: drawn(gym.make_vec(LANDER, f(2), enable_wind=f(True), gravity=f(-3.0))),
    "keywords, equations": lambda f: drawn(gym.make_vec("gym_dr/PendulumDR-v1", 2, g=f(9.0), max_episode_steps=f(9))),
    "keywords, robot": lambda f: gym.make_vec(
        "gym_dr/InvertedPendulumDR-v5", 2, reset_noise_scale=f(0.02), num_threads=f(1)
    ).reset(seed=[f(3), f(4)])[0],
    "context_params": lambda f: gym.make(
        LANDER, context="observation", context_params={"gravity": (f(-9.0), f(-2))}
    ).reset(seed=1)[0],
    "set_params": lambda f: (envs := gym.make_vec(LANDER, 2)).set_params({"gravity": f(-3.0)}) or drawn(envs),
    "options": lambda f: gym.make_vec("gym_dr/CartPoleDR-v1", 2).reset(
        seed=f(1), options={"params": {"gravity": f(9.0)}, "low": f(-0.01), "high": f(0.01)}
    ),
    "rules": lambda f: Randomization(
        {"a": f(True), "b": (f(-3.0), f(-2)), "c": Scale(f(0.5)), "d": Choice([f(0.1), f(0.2)]), "e": f([1.0, 2.0])}
    ),
    "correlation": lambda f: Correlation(("a", "b"), ((f(1.0), f(0.5)), (f(0.5), f(1)))),
    "Param": lambda f: Param(name="a", nominal=f(1.0), low=f(0), high=f(2.0)),
    "ResampleParams": lambda f: ResampleParams(gym.make_vec(LANDER, 2), rollout_steps=f(4), every=f(2)).interval,
    "AdaptParams": lambda f: AdaptParams(
        gym.make_vec(LANDER, 2), "adr", every=f(4), success=f(100.0), bound_episodes=f(3), widen_at=f(0.8)
    ).state(),
    "DrawContext": lambda f: DrawContext(gym.make_vec(LANDER, 2), "observation", span=f(0.25)).reset(seed=1)[0],
    "FrameStack": lambda f: FrameStack(gym.make_vec(LANDER, 2), stack_observations=f(2)).reset(seed=1)[0],
    "DisturbVector": lambda f: drawn(DisturbVector(gym.make_vec(LANDER, 2), {"obs_noise": f(0.1)}, f(2.0))),
    "sets": lambda f: [
        cells.to_dict()
        for one in (gym_dr.draws(gravity=f(-3.0)), gym_dr.grid(gravity=(f(-3.0), f(-2), f(3)), episodes=f(2)))
        for cells in one.cells(LUNAR_LANDER, {}, None)
    ],
    "train": lambda f: build_config(
        find_algorithm("ppo"),
        {"updates": f(3), "lr": f(1), "gamma": f(0.5), "normalize_advantages": f(False), "hidden_sizes": (f(8),)},
        randomize={"gravity": f(-3.0)},
    ).to_json(),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_numbers_of_numpy_and_torch_count_as_pythons(door: Callable[..., Any], form: Callable[[Any], Any]) -> None:
    left, right = door(form), door(lambda number: number)
    assert repr(left) == repr(right)


def test_numbers_of_numpy_count_in_a_training_and_an_evaluation(tmp_path: Path) -> None:
    run = gym_dr.train(
        "a2c",
        env="gym_dr/CartPoleDR-v1",
        run_dir=tmp_path,
        num_envs=np.int64(2),
        rollout_steps=np.array(4),
        total_steps=np.int64(16),
        seed=np.int32(3),
        progress=False,
    )
    assert len(run.metrics) == 2
    found = gym_dr.evaluate(run, episodes=np.int64(2), success=np.float32(9.0), progress=False)
    assert set(found.episodes["set"]) == {"nominal", "training"}


@pytest.mark.parametrize("value", [np.ma.masked, np.array(1j), np.array("3"), np.array([3, 3])], ids=repr)
def test_what_holds_no_number_does_not_count_as_one(value: Any) -> None:
    assert not is_number(value)
    assert not is_whole(value)


@pytest.mark.parametrize("seeds", [np.array([1, 1]), [np.array(1), torch.tensor(1)]], ids=["array", "list"])
def test_seeds_of_numpy_and_torch_are_compared_as_numbers(tmp_path: Path, seeds: Any) -> None:
    with pytest.raises(ConfigError, match="seeds"):
        gym_dr.train("a2c", env="gym_dr/CartPoleDR-v1", run_dir=tmp_path / "runs", seeds=seeds, progress=False)


def test_a_tensor_that_requires_gradients_is_refused() -> None:
    with pytest.raises(RandomizationError, match="gravity"):
        LUNAR_LANDER.check({"gravity": torch.tensor(-3.0, requires_grad=True)})
