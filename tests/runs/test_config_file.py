from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from gym_dr.errors import ConfigError, UnknownNameError
from gym_dr.options import option
from gym_dr.runs.configure import build_config, read_config_file
from gym_dr.training.api import Algorithm
from gym_dr.training.registry import find_algorithm

A2C = find_algorithm("a2c")


def test_a_setting_of_the_algorithm_outside_of_its_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("gamma = 0.9\n")
    with pytest.raises(ConfigError, match=r"gamma: expected in the table \[a2c\]"):
        read_config_file(str(tmp_path / "c.toml"), A2C)


def test_a_misspelled_table_is_refused_with_the_right_name(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("[randomisation]\ngravity = -9\n")
    with pytest.raises(UnknownNameError, match="Did you mean 'randomization'"):
        read_config_file(str(tmp_path / "c.toml"), A2C)


def test_total_steps_of_a_file_stand_for_updates_which_are_not_beside_them(tmp_path: Path) -> None:
    ppo, path = find_algorithm("ppo"), tmp_path / "c.toml"
    path.write_text("total_steps = 5000\n[ppo]\nrollout_steps = 200\n")
    assert build_config(ppo, {"num_envs": 5}, config=path).options.updates == 5
    assert build_config(ppo, {"num_envs": 5, "updates": 3}, config=path).options.updates == 3
    path.write_text("total_steps = 5000\n[ppo]\nupdates = 4\n")
    with pytest.raises(ConfigError, match="total_steps"):
        build_config(ppo, {}, config=path)


def test_a_keyword_that_is_no_setting_is_refused_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("seeds = [1, 2]\n")
    with pytest.raises(UnknownNameError, match="give it as `seeds`"):
        read_config_file(str(tmp_path / "c.toml"), A2C)


@dataclass(frozen=True, kw_only=True)
class PickyConfig:
    updates: int = option(1, "updates")

    def __post_init__(self) -> None:
        if self.updates > 5:
            raise ValueError("updates: at most 5")


def test_a_value_that_another_packages_algorithm_refuses_is_a_configuration_error() -> None:
    algorithm = Algorithm(name="picky", summary="", config=PickyConfig, train=lambda session, config: None)
    with pytest.raises(ConfigError, match="picky: updates: at most 5"):
        build_config(algorithm, {"updates": 6})


@dataclass(frozen=True, kw_only=True)
class ChoosyConfig:
    updates: int = option(1, "updates")
    flavor: str = option("plain", "flavor", choices=("plain", "spicy"))
    also: tuple[str, ...] | None = option(None, "other flavors", choices=("plain", "spicy"))


def test_a_value_beyond_the_choices_of_another_packages_algorithm_is_refused_with_the_nearest() -> None:
    algorithm = Algorithm(name="choosy", summary="", config=ChoosyConfig, train=lambda session, config: None)
    assert build_config(algorithm, {"flavor": "spicy"}).options.flavor == "spicy"
    assert build_config(algorithm, {"also": ("plain", "spicy")}).options.also == ("plain", "spicy")
    for given, name in (({"flavor": "spic"}, "flavor"), ({"also": ("plain", "spic")}, "also")):
        with pytest.raises(UnknownNameError, match=rf"Unknown {name} 'spic'\. Did you mean 'spicy'"):
            build_config(algorithm, given)
