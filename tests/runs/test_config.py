from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from gym_dr.errors import ConfigError
from gym_dr.runs.config import RunSettings, check_device, differences
from gym_dr.runs.configure import build_config
from gym_dr.training.registry import find_algorithm

A2C = find_algorithm("a2c")


def test_every_setting_is_documented() -> None:
    assert all(field.metadata["help"] for field in dataclasses.fields(RunSettings))


@pytest.mark.parametrize(
    ("name", "value"),
    [("seed", -1), ("num_envs", 0), ("resample_every", -1), ("checkpoint_every", 0), ("eval_episodes", -1)],
)
def test_a_setting_below_its_least_value_is_refused(name: str, value: int) -> None:
    with pytest.raises(ConfigError, match=f"{name}: expected at least {value + 1}, got {value}"):
        RunSettings(**{name: value})


def test_a_reserved_seed_below_zero_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"reserved_seeds: expected at least 0 each, got \(3, -1\)"):
        RunSettings(reserved_seeds=(3, -1))


@pytest.mark.parametrize("randomization", [None, "none", "wide", {"gravity": (-11, -9), "wind_power": "scale:0.5"}])
def test_the_resolved_form_reads_back_equal(randomization: Any, tmp_path: Path) -> None:
    given = {"seed": 7, "num_envs": 3, "hidden_sizes": (8, 4), "gamma": 0.5, "reserved_seeds": (1, 2)}
    config = build_config(A2C, given, randomization=randomization)
    (tmp_path / "config.json").write_text(config.to_json())
    assert build_config(A2C, {}, config=tmp_path / "config.json") == config


def test_differences_from_a_saved_configuration_are_named_and_options_it_did_not_have_are_none() -> None:
    config = build_config(A2C, {"seed": 7})
    saved = config.to_dict()
    assert differences(saved, config) == []
    del saved["a2c"]["normalize_observations"], saved["a2c"]["hidden_sizes"]  # an older version's
    del saved["device"], saved["reserved_seeds"]
    assert differences(saved, config) == []
    edited = build_config(A2C, {"seed": 8, "device": "cuda", "gamma": 0.5})
    assert differences(saved, edited) == [
        "a2c.gamma was 0.996 and is 0.5",
        "device was 'cpu' and is 'cuda'",
        "seed was 7 and is 8",
    ]


def test_options_that_a_saved_sampler_did_not_have_are_no_differences() -> None:
    config = build_config(A2C, {"sampler": "doraemon", "success": 200.0}, randomization="wide")
    saved = config.to_dict()
    del saved["doraemon"]["alpha"]
    assert differences(saved, config) == []
    edited = build_config(A2C, {"sampler": "doraemon", "success": 150.0}, randomization="wide")
    assert differences(saved, edited) == ["doraemon.success was 200.0 and is 150.0"]


def test_a_run_of_a_device_that_is_not_here_can_still_be_read() -> None:
    assert build_config(A2C, {"device": "cuda:99"}).settings.device == "cuda:99"


@pytest.mark.parametrize("device", ["cuda:99", "gpu", "meta", ""])
def test_a_device_that_cannot_train_is_refused(device: str) -> None:
    with pytest.raises(ConfigError, match=f"device: expected cpu, or cuda where there is one, got '{device}'"):
        check_device(device)
