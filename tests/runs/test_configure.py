from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gym_dr.envs.family import FAMILIES, family_of
from gym_dr.errors import ConfigError, GymDrError, UnknownNameError
from gym_dr.randomization.spec import Randomization
from gym_dr.runs.config import RunSettings
from gym_dr.runs.configure import build_config, family_defaults, open_run
from gym_dr.runs.folder import RunFolder
from gym_dr.training.registry import find_algorithm
from tests.envs.equations.swing import register
from tests.registered import forgotten_afterwards

A2C = find_algorithm("a2c")


@pytest.mark.parametrize("randomization", ["none", {}, Randomization()])
def test_an_environment_without_parameters_trains_only_if_nothing_is_to_be_drawn(randomization: Any) -> None:
    assert build_config(A2C, {"env": "CartPole-v1"}, randomization=randomization).randomization is None
    for wanted in (None, "default", {"length": (0.3, 0.7)}):
        with pytest.raises(ConfigError, match=r"CartPole-v1 has no parameters.* Use gym_dr/CartPoleDR-v1, or"):
            build_config(A2C, {"env": "CartPole-v1"}, randomization=wanted)


@pytest.mark.parametrize("env_id", [family.ids[0].id for family in FAMILIES.values() if family.defaults])
def test_a_familys_defaults_stand_between_the_algorithms_and_the_users(
    env_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gym_dr.runs.configure._with_runs", lambda config, *_, **__: config)  # no teacher is needed
    family = family_of(env_id)
    assert family is not None
    for name, defaults in family.defaults.items():
        algorithm = find_algorithm(name)
        config = build_config(algorithm, {"env": env_id})
        values = {**vars(config.settings), **vars(config.options)}
        assert {key: values[key] for key in defaults} == defaults
        given = build_config(algorithm, {"env": env_id, "num_envs": 3, "gamma": 0.5})
        assert (given.settings.num_envs, given.options.gamma) == (3, 0.5)


def test_what_a_family_sets_today_does_not_change_runs_that_were_saved_before(tmp_path: Path) -> None:
    config = build_config(find_algorithm("ppo"), {"env": "gym_dr/AntDR-v5"})
    path = RunFolder.create(tmp_path / "run", config.to_json(), overwrite=False).config
    saved = json.loads(path.read_text())
    assert saved["ppo"].pop("target_kl") == family_defaults(find_algorithm("ppo"), "gym_dr/AntDR-v5")["target_kl"] > 0
    path.write_text(json.dumps(saved))  # an older version's
    assert open_run(path.parent).config.options.target_kl == 0


def test_impossible_defaults_of_an_environment_name_it() -> None:
    with forgotten_afterwards():
        for defaults, message in (({"lrr": 1}, "Unknown setting 'lrr'. Did you mean 'lr'"), ({"lr": "x"}, "lr: .*'x'")):
            register(defaults={"ppo": defaults})
            with pytest.raises(GymDrError, match=rf"^Defaults of tests/Swing-v0 for ppo: {message}"):
                build_config(find_algorithm("ppo"), {"env": "tests/Swing-v0"})
            build_config(A2C, {"env": "tests/Swing-v0"})


def test_ant_without_normalized_observations_needs_no_other_option() -> None:
    options = build_config(find_algorithm("ppo"), {"env": "gym_dr/AntDR-v5", "normalize_observations": False}).options
    assert options.ignored_sensors == ()


def test_sensors_to_ignore_are_checked_before_a_run_begins() -> None:
    ppo = find_algorithm("ppo")
    with pytest.raises(ConfigError, match=r"ignored_sensors: .* use `normalize_observations=True`"):
        build_config(ppo, {"ignored_sensors": ("vx",), "normalize_observations": False})
    with pytest.raises(UnknownNameError, match=r"^ignored_sensors: .*'speed'"):
        build_config(ppo, {"ignored_sensors": ("speed",)})


def test_what_a_user_gives_wins_over_a_file_which_wins_over_family_algorithm_and_defaults(tmp_path: Path) -> None:
    ppo, env_id = find_algorithm("ppo"), "gym_dr/LunarLanderDR-v3"
    family = family_defaults(ppo, env_id)
    assert {"num_envs", "updates", "gamma"} <= family.keys()
    (tmp_path / "c.toml").write_text("seed = 5\n[ppo]\ngamma = 0.5\nlr = 0.1\n")
    config = build_config(ppo, {"env": env_id, "gamma": 0.25}, config=tmp_path / "c.toml")
    plain = build_config(ppo, {"env": "CartPole-v1"}, randomization="none")
    assert (config.options.gamma, config.options.lr, config.settings.seed) == (0.25, 0.1, 5)
    assert (config.options.updates, config.settings.num_envs) == (family["updates"], family["num_envs"])
    assert config.options.clip_range == ppo.config_class().clip_range  # that nobody gives
    assert plain.settings.num_envs == ppo.num_envs != RunSettings.num_envs


def test_each_minibatch_of_a_memory_gets_a_sequence() -> None:
    given = {"memory": "gru", "num_envs": 4, "rollout_steps": 64, "sequence_length": 32}
    assert build_config(A2C, {**given, "minibatches": 8}).options.minibatches == 8
    with pytest.raises(ConfigError, match="minibatches"):
        build_config(A2C, {**given, "minibatches": 9})


@pytest.mark.parametrize("env_id", ["CartPole-v1", "gym_dr/CartPoleDR-v1"])
@pytest.mark.parametrize("given", [{"critic_context": True}, {"memory": "gru", "predict_draw": 1.0}])
def test_draws_to_observe_or_predict_need_a_randomization(env_id: str, given: dict[str, Any]) -> None:
    name = next(name for name in given if name != "memory")
    with pytest.raises(ConfigError, match=rf"^{name}: expected a randomization, so that there are draws to"):
        build_config(A2C, {"env": env_id, **given}, randomization="none")


@pytest.mark.parametrize("env_id", ["gym_dr/CartPoleDR-v1", "CartPole-v1"])
def test_options_of_continuous_actions_are_refused_for_discrete_ones(env_id: str) -> None:
    given: dict[str, Any] = {"env": env_id, "initial_std": 0.3, "state_dependent_std": True}
    with pytest.raises(ConfigError, match=rf"state_dependent_std, initial_std: has no effect on {env_id}, whose act"):
        build_config(find_algorithm("ppo"), given, randomization="none")
    defaults = {"initial_std": 0.5, "state_dependent_std": False}
    build_config(find_algorithm("ppo"), given | defaults, randomization="none")
    build_config(find_algorithm("ppo"), given | {"env": "gym_dr/PendulumDR-v1"})


def test_the_file_of_a_run_with_discrete_actions_makes_the_same_run_again(tmp_path: Path) -> None:
    config = build_config(find_algorithm("ppo"), {"env": "gym_dr/CartPoleDR-v1"})
    assert config.options.initial_std == 1.0  # of all classic control, where the default is 0.5
    (tmp_path / "config.json").write_text(config.to_json())
    assert build_config(find_algorithm("ppo"), {}, config=tmp_path / "config.json") == config


def test_each_minibatch_of_ppo_has_two_steps_since_the_advantage_of_one_would_be_scaled_to_0() -> None:
    ppo, given = find_algorithm("ppo"), {"num_envs": 2, "rollout_steps": 8}
    assert build_config(ppo, {**given, "minibatches": 8}).options.minibatches == 8
    unscaled = {"minibatches": 16, "normalize_advantages": False}
    assert build_config(ppo, {**given, **unscaled}).options.minibatches == 16
    with pytest.raises(ConfigError, match="minibatches"):
        build_config(ppo, {**given, "minibatches": 9})
