"""A tuning is read as it was meant, or refused with what was expected before anything is trained."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import gym_dr
from gym_dr.errors import ConfigError, GymDrError
from gym_dr.studies.tune_file import read_tuning
from tests.studies.tune_sample import TINY, tiny
from tests.toml_text import toml_text

LR = {"low": 1e-4, "high": 1e-1, "log": True}


def test_params_stand_for_values_of_options_on_reserved_seeds() -> None:
    config = read_tuning(TINY).variant({"lr": 0.01, "hidden_sizes": "[4, 4]", "epochs": 2}).config
    assert (config.options.lr, config.options.hidden_sizes, config.options.epochs) == (0.01, (4, 4), 2)
    assert (config.settings.num_envs, config.options.updates) == (2, 5)
    assert (config.settings.seed, config.settings.reserved_seeds) == (1001, (1001, 1002))
    again = read_tuning(tiny(settings={"reserved_seeds": [7, 1002]}))  # of an earlier tuning
    assert again.variant({}).config.settings.reserved_seeds == (7, 1002, 1001)


def test_the_first_trial_has_the_values_without_a_search_where_it_may() -> None:
    assert read_tuning(TINY).first == {"lr": 0.001, "hidden_sizes": "[8]", "epochs": 1}  # 0.001 is of the family
    outside = {
        "lr": {"low": 1e-6, "high": 1e-5},
        "hidden_sizes": {"choices": [[2], [4]]},
        "epochs": {"low": 1, "high": 2},
    }
    assert read_tuning(tiny(search=outside)).first == {"epochs": 1}


def test_a_file_gives_what_a_mapping_gives(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(toml_text(TINY))
    (tmp_path / "a.json").write_text(json.dumps(TINY))
    expected = read_tuning(TINY).to_dict()
    assert read_tuning(tmp_path / "a.toml").to_dict() == read_tuning(str(tmp_path / "a.json")).to_dict() == expected


def test_values_are_judged_on_training_draws_or_on_those_that_are_named() -> None:
    drawn = {name: read_tuning(tiny(randomization=name)).cells for name in ("none", "wide")}
    assert [cells.name for cells in drawn.values()] == ["nominal", "training"]
    assert drawn["wide"].episodes == 2
    named = read_tuning(tiny(evaluation={"randomization": "wide"})).cells
    assert (named.name, named.episodes, named.randomization) == ("wide", 100, drawn["wide"].randomization)


def test_trials_train_for_equal_budgets() -> None:
    options = {name: value for name, value in TINY["ppo"].items() if name != "updates"}
    search = {"num_envs": {"choices": [2, 4]}, "rollout_steps": {"choices": [16, 32]}}
    tuning = read_tuning(tiny(total_steps=1280, ppo=options, search=search))
    for envs, steps in ((2, 16), (4, 16), (4, 32)):
        config = tuning.variant({"num_envs": envs, "rollout_steps": steps}).config
        assert config.options.updates * envs * steps == 1280
    with pytest.raises(ConfigError, match=r"num_envs, rollout_steps: expected total_steps = ... at the top"):
        read_tuning(tiny(search=search))


def test_trials_draw_random_numbers_of_their_own_which_follow_from_the_seed() -> None:
    def drawn(number: int, **options: Any) -> Any:
        import optuna

        tuning = read_tuning(tiny(optuna={"sampler": {"name": "RandomSampler", **options}}))
        study = optuna.create_study(sampler=tuning.sampler_of(number, 0))
        return study.ask(dict(tuning.search)).params["lr"]

    assert drawn(1) == drawn(1, seed=0)
    assert len({drawn(1), drawn(2), drawn(1, seed=1)}) == 3


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a key": ({"trails": 3}, "Unknown setting 'trails'. Did you mean 'trials'"),
    "an option at the top": ({"updates": 4}, r"updates: expected in the table \[ppo\]"),
    "no seeds": ({"seeds": []}, r"seeds: expected distinct whole numbers of at least 0, such as .*; got \[\]"),
    "no trials": ({"trials": 0}, "trials: expected at least 1"),
    "a seed twice": ({"seeds": [1, 1]}, "seeds: expected distinct whole numbers"),
    "a setting": ({"settings": {"num_env": 2}}, r"Unknown setting 'num_env'. Did you mean 'num_envs'"),
    "options of another algorithm": (
        {"a2c": {"gamma": 0.9}},
        r"\[a2c\]: expected options of an algorithm or sampler that is used",
    ),
    "no search": ({"search": {}}, r"\[search\]: expected options, such as"),
    "an option": ({"search": {"gama": LR}}, r"\[search\]: gama: Unknown option 'gama'. Did you mean 'gamma'"),
    "the budget": ({"search": {"updates": {"low": 1, "high": 2}}}, "Unknown option 'updates'"),
    "a number": ({"search": {"lr": 0.1}}, r"lr: expected { low = ..., high = ... } or { choices = \[...\] }, got 0.1"),
    "no choices": ({"search": {"lr": {"choices": []}}}, r"lr: expected .*, got {'choices': \[\]}: The `choices` must"),
    "halves of whole numbers": (
        {"search": {"epochs": {"low": 1, "high": 2.5}}},
        "epochs: .*: only whole numbers",
    ),
    "an end that is refused": (
        {"search": {"gamma": {"low": 0.9, "high": 1.1}}},
        r"\[search\]: gamma = 1.1: gamma: ",
    ),
    "a choice that is refused": ({"search": {"activation": {"choices": ["relu", "gelu"]}}}, "activation = gelu: "),
    "what does not fit together": (
        {"ppo": {**TINY["ppo"], "memory": "gru"}, "search": {"sequence_length": {"choices": [5, 8]}}},
        r"\[search\]: sequence_length = 5: ",
    ),
    "updates and steps": ({"total_steps": 100}, "Expected updates or total_steps, got both"),
    "a set of episodes": ({"evaluation": {"episode": 3}}, "Unknown key 'episode'. Did you mean 'episodes'"),
    "a part of Optuna": ({"optuna": {"prune": "none"}}, "Did you mean 'pruner'"),
    "no name": ({"optuna": {"pruner": {"n_warmup_steps": 3}}}, 'pruner: expected a name or { name = "...", ... }'),
    "a value of a pruner": (
        {"optuna": {"pruner": {"name": "PercentilePruner", "percentile": 200.0}}},
        r"\[optuna\]: pruner: expected possible options of PercentilePruner: ",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_with_what_was_expected(name: str) -> None:
    change, message = REFUSED[name]
    with pytest.raises(GymDrError, match=message):
        read_tuning(tiny(**change))


def test_a_file_has_no_module_imported_and_no_draws_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(tiny(env="antigravity:My-v0")))
    with pytest.raises(ConfigError, match="antigravity"):
        read_tuning(tmp_path / "a.json")
    (tmp_path / "a.json").write_text(json.dumps(tiny(evaluation={"randomization": "../own.toml"})))
    with pytest.raises(ConfigError, match="beside or below"):
        read_tuning(tmp_path / "a.json")


def test_without_optuna_the_command_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(
        ConfigError, match=r"Tuning needs the package 'optuna', which is not installed: pip install 'gym-dr\[tune\]'"
    ):
        gym_dr.tune(TINY, output="out")
