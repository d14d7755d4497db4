"""Runs with samplers that learn: what they log, and which are refused before anything is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gym_dr
from gym_dr.errors import ConfigError, RandomizationError
from gym_dr.runs.config import build_config
from gym_dr.runs.metrics import whole_rows
from gym_dr.training.registry import ALGORITHMS

LANDER = "gym_dr/LunarLanderDR-v3"
BOX = {"gravity": (-11.5, -5.0), "enable_wind": True, "wind_power": (0.0, 15.0)}


def config(sampler: str, randomization: Any = BOX, env: str = LANDER) -> Any:
    return build_config(ALGORITHMS.get("a2c"), {"env": env, "sampler": sampler}, {}, randomization)


@pytest.mark.parametrize("sampler", ["plr", "robust_plr"])
def test_a_sampler_that_needs_what_no_trainer_has_is_refused(sampler: str) -> None:
    with pytest.raises(ConfigError, match=f"sampler: '{sampler}' needs scores of episodes.*a2c does not offer"):
        config(sampler)


def test_a_box_that_cannot_be_learned_is_refused_before_training() -> None:
    with pytest.raises(RandomizationError, match="a parameter that varies"):
        config("adr", {"gravity": -9.0})


def test_a_run_logs_each_look_of_its_sampler(tmp_path: Path) -> None:
    # 200 episodes of an untrained policy, or a few more, are two cohorts of 100: it crashes, and so the sampler waits
    budget: Any = {"updates": 60, "num_envs": 50, "rollout_steps": 10, "checkpoint_every": 60, "eval_episodes": 0}
    run: Any = gym_dr.train(
        "a2c", env=LANDER, sampler="doraemon", randomization=BOX, run_dir=tmp_path / "run", progress=False, **budget
    )
    first, *rows = whole_rows(run.folder.sampler).splitlines()
    assert first.startswith("update,version,episodes,success_rate,return_mean,did,")
    assert first.endswith("entropy,gravity.a,gravity.b,wind_power.a,wind_power.b")
    assert rows
    assert {row.split(",")[5] for row in rows} == {"waits"}
