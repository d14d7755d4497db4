"""A run knows what registered its environment, and nothing of that runs without consent."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path

import pytest

from gym_dr import api
from gym_dr.errors import ConfigError
from gym_dr.runs.environments import check_source, import_source, source_of
from tests.cli.command import gymdr, refused
from tests.registered import forgotten_afterwards
from tests.runs.test_launch import training_of

# drawing takes longer than all else
HELPER = "from gym_dr.api import run\nrun.plot_training = lambda _, path: path.touch()\n"
HELPER += "SIZES = {'num_envs': 2, 'updates': 2, 'rollout_steps': 8, 'hidden_sizes': (8,), 'eval_episodes': 0}\n"
PROGRAM = """
from pathlib import Path

import gymnasium as gym
from gymnasium.envs.classic_control import CartPoleEnv

import gym_dr
from sizes import SIZES


class Mine(CartPoleEnv):
    pass


gym.register("Mine-v0", Mine, max_episode_steps=20)
(Path(__file__).parent / "ran").touch()

if __name__ == "__main__":
    options = {"env": "Mine-v0", "randomization": {}, **SIZES}
    gym_dr.train("a2c", run_dir="one", seed=1, progress=False, **options)
    gym_dr.train("a2c", run_dir="several", seeds=[1], progress=False, **options)
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that has registered an environment, and has trained on it."""
    folder = tmp_path_factory.mktemp("program")
    (folder / "mine.py").write_text(PROGRAM)
    (folder / "sizes.py").write_text(HELPER)
    main = types.ModuleType("__main__")
    main.__file__ = str(folder / "mine.py")
    with pytest.MonkeyPatch.context() as patch, forgotten_afterwards():
        patch.chdir(folder)
        patch.syspath_prepend(folder)
        patch.setitem(sys.modules, "__main__", main)  # as if this process had been started with the program
        patch.setattr(api.run, "plot_training", api.run.plot_training)  # which the program replaces
        exec(PROGRAM, vars(main))
    (folder / "ran").unlink()
    return folder / "mine.py"


def test_a_seed_in_a_process_of_its_own_runs_the_program_that_registered_its_environment(program: Path) -> None:
    one, several = program.parent / "one", program.parent / "several" / "seed-1"
    assert training_of(one) == training_of(several)


def test_a_run_names_the_file_that_registered_its_environment_and_runs_it_only_with_consent(program: Path) -> None:
    run = program.parent / "one"
    assert json.loads((run / "config.json").read_text())["registered_by"] == str(program)
    with forgotten_afterwards():
        message = refused(gymdr("resume", run))
        assert f"--trust {program}" in message
        assert not (program.parent / "ran").exists()
        beside = refused(gymdr("resume", run, "--trust", program.parent / "sizes.py"))
        assert f"--trust {program}" in beside
        before = training_of(run)
        assert gymdr("resume", run, "--trust", program).code == 0
        assert training_of(run) == before
        assert gymdr("resume", run).code == 0  # registered now
    sys.path.remove(str(program.parent))
    sys.modules.pop(str(program))


def test_an_environment_of_a_file_trains_and_is_evaluated_with_consent(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(program.parent)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    budget = ("--updates", 1, "--rollout-steps", 8, "--num-envs", 2, "--hidden-sizes", 8, "--randomization", "none")
    with forgotten_afterwards():
        assert gymdr("train", "a2c", "--env", "mine.py:Mine-v0", *budget, "--run-dir", "of_file").code == 0
        del sys.modules["mine.py"]
    with forgotten_afterwards():
        assert "--trust mine.py" in refused(gymdr("evaluate", "of_file", "--episodes", 1))
        assert gymdr("evaluate", "of_file", "--episodes", 1, "--trust", "mine.py").code == 0
        del sys.modules["mine.py"]
    sys.modules.pop("sizes")


def test_a_module_that_registered_an_environment_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine_too.py").write_text(PROGRAM.replace("Mine-v0", "Mine-v1"))
    (tmp_path / "sizes.py").write_text(HELPER)
    monkeypatch.syspath_prepend(str(tmp_path))
    with forgotten_afterwards():
        with pytest.raises(ConfigError, match=r"'mine_too' must be imported.*trust=\['mine_too'\]"):
            check_source("Mine-v1", (), "mine_too")
        assert not (tmp_path / "ran").exists()
        check_source("Mine-v1", ["mine_too"], "mine_too")
        assert source_of("Mine-v1") == "mine_too"
        check_source("Mine-v1", (), "os.path")
        with pytest.raises(ConfigError, match="mine_too does not register 'Other-v0'"):
            check_source("Other-v0", (), "mine_too")
    sys.modules.pop("mine_too")
    sys.modules.pop("sizes")


@pytest.mark.parametrize("env_id", ["gym_dr/CartPoleDR-v1", "CartPole-v1", "gym_dr:gym_dr/LunarLanderDR-v3"])
def test_environments_that_are_always_there_name_nothing(env_id: str) -> None:
    assert source_of(env_id) == ""


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("import no_such_package", "ModuleNotFoundError: No module named 'no_such_package'"),
        ("from math import no_such_name", "ImportError: cannot import name 'no_such_name'"),
        ("open('no_such_file')", "FileNotFoundError: "),
        ("int('three')", "ValueError: "),
        ("1 +", "SyntaxError: "),
    ],
)
def test_what_fails_inside_a_module_is_told_with_its_place(line: str, cause: str, tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text(f"x = 1\n{line}\n")
    with pytest.raises(ConfigError, match=rf"fails\.py' fails with {cause}.*fails\.py:2\."):
        import_source("Mine-v0", str(tmp_path / "fails.py"))


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone.py")
    with pytest.raises(ConfigError, match=r"gone.py' cannot be imported"):
        check_source("Gone-v0", [gone], gone)
    with pytest.raises(ConfigError, match="expected a module or a file, got 3"):
        check_source("Gone-v0", [gone], 3)
