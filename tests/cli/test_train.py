from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from gym_dr.runs.folder import RunFolder
from gym_dr.runs.session import RunSession
from gym_dr.training.config import A2CConfig
from tests.cli.command import gymdr, refused, train
from tests.registered import forgotten_afterwards

STEPS = ["--num-envs", "2", "--rollout-steps", "8", "--eval-episodes", "0"]  # 16 steps an update


def config_of(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "config.json").read_text())
    return content


def test_a_run_leaves_a_complete_folder(tmp_path: Path) -> None:
    result = train(tmp_path / "run", "--rollout-steps", "128", "--eval-episodes", "2")
    assert result.code == 0
    names = {path.name for path in (tmp_path / "run").iterdir()}
    pictures = {"training.png", "evaluation"}
    data = {"config.json", "command.txt", "metrics.csv", "draws.csv", "checkpoints", "actor.pt", "critic.pt"}
    assert names == {*data, *pictures, ".lock"}


def test_without_a_terminal_progress_is_plain_lines(tmp_path: Path) -> None:
    err = train(tmp_path / "run").err
    assert [line.partition(",")[0] for line in err.splitlines()] == [
        "a2c seed 1: update 1/2",
        "a2c seed 1: update 2/2",
    ]
    assert "no episode yet" in err
    assert "\r" not in err


def test_the_command_line_beats_the_file_and_the_file_the_defaults(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("seed = 5\nnum_envs = 3\ncheckpoint_every = 7\n[a2c]\ngamma = 0.5\nupdates = 9\n")
    train(tmp_path / "run", "--config", tmp_path / "c.toml", "--seed", "6")
    config = config_of(tmp_path / "run")
    # TINY itself gives num_envs and updates on the command line
    assert (config["seed"], config["num_envs"], config["a2c"]["updates"]) == (6, 2, 2)
    assert (config["checkpoint_every"], config["a2c"]["gamma"]) == (7, 0.5)
    assert (config["resample_every"], config["a2c"]["gae_lambda"]) == (0, A2CConfig().gae_lambda)


def test_the_resolved_configuration_makes_the_same_run_again(tmp_path: Path) -> None:
    train(tmp_path / "one", "--seed", "3", "--randomize", "gravity=uniform:-11:-9", "--hidden-sizes", "8,4")
    gymdr("train", "a2c", "--config", tmp_path / "one/config.json", "--run-dir", tmp_path / "two")
    assert config_of(tmp_path / "two") == config_of(tmp_path / "one")
    losses = [
        [row.rpartition(",")[0] for row in (tmp_path / name / "metrics.csv").read_text().splitlines()]
        for name in ("one", "two")
    ]
    assert losses[0] == losses[1]


def randomization_of(folder: Path, *args: str | Path) -> dict[str, Any]:
    result = train(folder, "--updates", "1", *args)
    assert result.code == 0, result.err
    found: dict[str, Any] = config_of(folder)["randomization"]
    return found


def test_a_parameter_turns_its_switch_on(tmp_path: Path) -> None:
    train(tmp_path / "run", "--updates", "1", "--randomize", "wind_power=uniform:0:20")
    assert config_of(tmp_path / "run")["randomization"]["enable_wind"] == {"distribution": "constant", "value": 1.0}


def test_randomize_is_put_over_a_preset(tmp_path: Path) -> None:
    found = randomization_of(tmp_path / "run", "--randomization", "default", "--randomize", "gravity=-9")
    assert found["gravity"] == {"distribution": "constant", "value": -9.0}
    assert set(found) == {"gravity", "enable_wind", "wind_power", "turbulence_power"}


def test_a_preset_on_the_command_line_replaces_that_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text("lander_density = [4, 6]\n")
    (tmp_path / "c.toml").write_text('randomization = "r.toml"\n')  # beside it
    assert set(randomization_of(tmp_path / "a", "--config", tmp_path / "c.toml")) == {"lander_density"}
    replaced = randomization_of(tmp_path / "b", "--config", tmp_path / "c.toml", "--randomization", "none")
    assert replaced == {}


def test_rules_of_a_file_are_put_over_its_preset_as_in_a_study(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('randomization = "default"\n[randomize]\ngravity = -9\n')
    found = randomization_of(tmp_path / "a", "--config", tmp_path / "c.toml")
    assert found["gravity"] == {"distribution": "constant", "value": -9.0}
    assert set(found) == {"gravity", "enable_wind", "wind_power", "turbulence_power"}


def test_rules_of_a_file_alone_vary_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("randomize = { gravity = [-11, -9] }\n")
    assert set(randomization_of(tmp_path / "a", "--config", tmp_path / "c.toml")) == {"gravity"}


def test_options_replace_the_rules_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('randomization = "default"\nrandomize = { gravity = -9, lander_density = 6 }\n')
    found = randomization_of(tmp_path / "a", "--config", tmp_path / "c.toml", "--randomize", "gravity=-8")
    assert found["gravity"]["value"] == -8.0
    assert "lander_density" not in found
    assert randomization_of(tmp_path / "b", "--config", tmp_path / "c.toml", "--randomization", "none") == {}


def test_rules_in_the_configuration_of_a_run_are_refused(tmp_path: Path) -> None:
    train(tmp_path / "run", "--updates", "1")
    config = config_of(tmp_path / "run") | {"randomize": {"gravity": -9}}
    (tmp_path / "run/config.json").write_text(json.dumps(config))
    assert "randomize: expected" in refused(gymdr("resume", tmp_path / "run"))


def test_the_next_commands_work_as_printed_also_for_a_module_to_trust(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_cart.py").write_text(
        "import gymnasium as gym\n"
        'gym.register("Own-v0", "gymnasium.envs.classic_control:CartPoleEnv", max_episode_steps=9)\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    with forgotten_afterwards():
        out = train(tmp_path / "a run", "--env", "own_cart:Own-v0", "--randomization", "none").out
        (evaluation,) = re.findall(r"gymdr (evaluate .*?)(?:,| or |\n)", out)
        monkeypatch.delitem(sys.modules, "own_cart")
        assert gymdr(*shlex.split(evaluation), "--episodes", "1").code == 0


def test_a_range_of_seeds_trains_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr("gym_dr.cli.train.train", lambda *_, seeds, **__: asked.append(seeds))
    monkeypatch.setattr("gym_dr.cli.train.show_training", lambda trained: None)
    train(tmp_path / "run", "--seeds", "1-3,7")
    assert asked == [(1, 2, 3, 7)]


def test_an_environment_without_parameters_trains(tmp_path: Path) -> None:
    assert train(tmp_path / "run", "--env", "CartPole-v1", "--randomization", "none").code == 0
    assert config_of(tmp_path / "run")["randomization"] == {}
    again = gymdr("train", "a2c", "--config", tmp_path / "run" / "config.json", "--run-dir", tmp_path / "again")
    assert again.code == 0  # its configuration says "none" too


def test_an_environment_without_parameters_does_not_train_in_silence(tmp_path: Path) -> None:
    message = refused(train(tmp_path / "run", "--env", "CartPole-v1"))
    assert "Use gym_dr/CartPoleDR-v1" in message
    assert not (tmp_path / "run").exists()


def test_ctrl_c_says_how_to_go_on_and_exits_with_130(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save = RunSession.save

    def interrupted(self: RunSession, update: int, state: Any) -> None:
        save(self, update, state)
        if update == 0:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(RunSession, "save", interrupted)
        result = train(tmp_path / "run", "--checkpoint-every", "1")
    assert result.code == 130
    assert f"gymdr resume {tmp_path / 'run'}" in result.err
    assert gymdr("resume", tmp_path / "run").code == 0
    assert len((tmp_path / "run/metrics.csv").read_text().splitlines()) == 3


@pytest.mark.slow  # its sibling is that of a killed process in test_launch.py
def test_resuming_a_folder_of_seeds_ends_every_run_in_it(tmp_path: Path) -> None:
    train(tmp_path / "runs", "--seeds", "1,2")
    complete = (tmp_path / "runs/seed-2/actor.pt").read_bytes()
    folder = RunFolder(tmp_path / "runs/seed-2")
    for path in (folder.metrics, *folder.weights, *folder.checkpoints.iterdir()):
        path.unlink()
    assert gymdr("resume", tmp_path / "runs").code == 0
    assert (tmp_path / "runs/seed-2/actor.pt").read_bytes() == complete


def test_a_run_trained_on_another_device_can_be_evaluated_but_not_resumed_here(tmp_path: Path) -> None:
    train(tmp_path / "run")
    config = tmp_path / "run/config.json"
    config.write_text(config.read_text().replace('"device": "cpu"', '"device": "cuda:99"'))
    assert gymdr("evaluate", tmp_path / "run", "--episodes", "2").code == 0
    assert "got 'cuda:99'" in refused(gymdr("resume", tmp_path / "run"))


@pytest.mark.parametrize(("steps", "updates"), [(33, 3), (1, 1)])
def test_total_steps_are_rounded_up_to_whole_updates(tmp_path: Path, steps: int, updates: int) -> None:
    result = gymdr("train", "a2c", *STEPS, "--total-steps", str(steps), "--run-dir", tmp_path / "run")
    assert result.code == 0, result.err
    assert config_of(tmp_path / "run")["a2c"]["updates"] == updates
    assert len((tmp_path / "run/metrics.csv").read_text().splitlines()) == updates + 1


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("a2c", "--total-steps", "32", "--updates", "2"), "Expected --updates or --total-steps, got both"),
        (("a2c", "--total-steps", "0"), "--total-steps: expected a whole number of at least 1, got 0"),
        (("reinforce", "--total-steps", "32"), "got reinforce, whose updates take complete episodes. Use --updates"),
    ],
    ids=str,
)
def test_steps_that_cannot_be_are_refused(tmp_path: Path, args: tuple[str, ...], expected: str) -> None:
    assert expected in refused(gymdr("train", *args, "--run-dir", tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_a_seed_on_which_options_were_tuned_is_refused_before_a_folder_is_made(tmp_path: Path) -> None:
    (tmp_path / "best.toml").write_text("reserved_seeds = [1001, 1002]")
    best = ("--config", tmp_path / "best.toml")
    message = refused(train(tmp_path / "run", *best, "--seed", "1002"))
    assert message == (
        "--seed: expected seeds on which no options were tuned, got 1002. Use others than reserved_seeds: 1001, 1002."
    )
    assert "got 1001." in refused(gymdr("train", "a2c", *best, "--seeds", "7,1001", "--run-dir", tmp_path / "runs"))
    assert not (tmp_path / "run").exists()
    assert not (tmp_path / "runs").exists()
    assert train(tmp_path / "run", *best, "--seed", "1").code == 0
    assert config_of(tmp_path / "run")["reserved_seeds"] == [1001, 1002]


def test_a_training_ends_with_the_next_commands_as_one_would_type_them(tmp_path: Path) -> None:
    last = train(tmp_path / "my run").out.splitlines()[-1]
    commands = [shlex.split(text) for text in re.split(r", | or ", last.removeprefix("Next: "))]
    assert [(words[0], *words[2:]) for words in commands] == [("gymdr", str(tmp_path / "my run"))] * 3
    assert gymdr(*commands[0][1:], "--episodes", "1").code == 0
