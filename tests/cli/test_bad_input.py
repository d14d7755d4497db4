"""A user's mistake ends with one message, exit code 2, no traceback, and nothing written."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.cli.command import files, gymdr, refused, train


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["trian", "a2c"], "Unknown command 'trian'. Did you mean 'train'?"),
        (["train", "a2d"], "Unknown algorithm 'a2d'. Did you mean 'a2c'?"),
        (["train", "a2c", "--updats", "3"], "'--updats'. Did you mean '--updates'?"),
        (["params", "gym_dr/LunarLandrDR-v3"], "'gym_dr/LunarLandrDR-v3'. Did you mean 'gym_dr/LunarLanderDR-v3'?"),
        (["params", "gym_dr/CartPoleDR-v1", "weight"], "matches weight"),
        (["params", "CartPole-v1"], "CartPole-v1 has no parameters to randomize"),
        (["list", "plugin"], "'plugin' is not one of 'envs', 'algorithms', 'samplers', 'loggers', 'plugins'"),
        (["play", "gym_dr/LunarLanderDR-v3"], "play it with gymdr play --human"),
        (["play", "lander"], "--pretrained lander"),
        (["evaluate", "landr"], "Did you mean 'lander'?"),
        (["play", "LunarLander"], "Did you mean 'gym_dr/LunarLanderDR-v3'?"),
        (["train", "a2c", "--lr", "0.1"], "'--actor-lr' or '--critic-lr'"),
        (["train", "ppo", "--actor-lr", "0.1"], "'--lr'"),
        (["train", "ppo", "--learning-rate", "0.1"], "'--lr'"),
        (["play", "--human", "FrozenLake-v1"], "There are no keys"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_unknown_word_is_refused_with_the_nearest_known_one(args: list[str], expected: str) -> None:
    assert expected in refused(gymdr(*args))


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--env", "gym_dr/LunarLanderDR-v2"], "Did you mean 'gym_dr/LunarLanderDR-v3'?"),
        (["--env", "no_such_module:Foo-v1"], "module 'no_such_module' cannot be imported"),
        (["--env", ".relative:CartPole-v1"], "module '.relative' cannot be imported"),
        (["--env", "GymV21Environment-v0"], "'GymV21Environment-v0' cannot be made: To use the gym compat"),
        (["--env", "FrozenLake-v1", "--randomization", "none"], "Expected observations in a Box of one dimension"),
        (["--env", "CartPole-v1"], "Use gym_dr/CartPoleDR-v1, or train it as it is, with --randomization none"),
        (["--env", "CartPole-v1", "--randomize", "gravity=-9"], "CartPole-v1 has no parameters"),
        (["--env", "CartPole-v1", "--resample-every", "2"], "CartPole-v1 has no parameters"),
        (["--randomize", "gravty=-9"], "'gravty'. Did you mean 'gravity'?"),
        (["--randomize", "gravity="], "expected NAME=DISTRIBUTION"),
        (["--randomize", "gravity=unifrom:-12:-2"], "'unifrom'. Did you mean 'uniform'?"),
        (["--randomize", "gravity=uniform:-2:-12"], "'gravity': Uniform(-2.0, -12.0): expected low < high"),
        (["--randomize", "gravity=uniform:-20:-2"], "'gravity': expected a value from -12 to 0 m/s^2, got Uniform(-20"),
        (["--randomize", "gravity=uniform:-12"], "expected uniform:LOW:HIGH"),
        (["--randomize", "gravity=-11,-5"], "expected LOW:HIGH such as -11:-5"),
        (["--randomize", "gravity=normal:-9:1"], "Give the distribution bounds"),
        (["--randomize", "gravity=nan"], "expected a number"),
        (["--randomize", "gravity=-9", "--randomize", "gravity=-8"], "parameter 'gravity' is given twice"),
        (["--randomization", "wid"], "'wid'. Did you mean 'wide'?"),
        (["--randomization", "no_such_file.toml"], "no_such_file.toml: cannot be read"),
        (["--vectorization", "synk"], "'synk'. Did you mean 'sync'?"),
        (["--env", "Acrobot-v1", "--vectorization", "native"], "Acrobot-v1 has no native vector environment"),
        (["--device", "gpu"], "device: expected cpu, or cuda where there is one, got 'gpu'"),
        (["--num-envs", "0"], "num_envs: expected at least 1, got 0"),
        (["--num-envs", "two"], "'two' is not a valid integer"),
        (["--seed", "-1"], "seed: expected at least 0, got -1"),
        (["--seeds", "1,1"], "expected distinct seeds"),
        (["--seeds", "1,x"], "expected numbers separated by commas"),
        (["--seeds", "5-1"], "expected numbers separated by commas"),
        (["--reserved-seeds", "0-999999999"], "expected numbers separated by commas"),
        (["--hidden-sizes", "8-9"], "expected numbers separated by commas"),
        (["--seed", "1", "--seeds", "1,2"], "Expected --seed or --seeds, got both"),
        (["--gamma", "nan"], "gamma: expected between 0 and 1, got nan"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_impossible_option_is_refused_and_leaves_no_folder(args: list[str], expected: str, tmp_path: Path) -> None:
    assert expected in refused(train(tmp_path / "run", *args))
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has what the test says is missing")
def test_cuda_is_refused_where_there_is_none(tmp_path: Path) -> None:
    assert "expected cpu, or cuda where there is one, got 'cuda'" in refused(
        train(tmp_path / "run", "--device", "cuda")
    )


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("empty.toml", b"# updates = 3\n", "empty.toml: expected settings, got an empty file"),
        ("bad.toml", b"a = [", "bad.toml: is not a valid TOML file"),
        ("bad.json", b"{", "bad.json: is not a valid JSON file"),
        ("latin.toml", b"# \xff\nnum_envs = 2\n", "latin.toml: is not a valid TOML file"),
        ("type.toml", b'num_envs = "x"\n', "type.toml: num_envs: expected int, got 'x'"),
        ("key.toml", b"num_env = 3\n", "key.toml: Unknown setting 'num_env'. Did you mean 'num_envs'?"),
        ("table.toml", b"[a2x]\nupdates = 3\n", "table.toml: Unknown setting 'a2x'. Did you mean 'a2c'?"),
        ("outside.toml", b"gamma = 0.9\n", "outside.toml: gamma: expected in the table [a2c]"),
        ("other.toml", b'algorithm = "ppo"\n', "other.toml: is for algorithm 'ppo', not 'a2c'"),
        ("range.toml", b"[a2c]\ngae_lambda = 7\n", "gae_lambda: expected between 0 and 1, got 7.0"),
        ("param.toml", b"[randomization]\ngravty = -9\n", "'gravty'. Did you mean 'gravity'?"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.count(".") == 1 and " " not in value else "",
)
def test_an_impossible_config_file_is_refused_by_name(name: str, content: bytes, expected: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    assert expected in refused(train(tmp_path / "run", "--config", tmp_path / name))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("command", ["resume", "evaluate", "plot", "play", "export", "report"])
def test_a_name_that_is_too_long_gets_no_traceback(command: str, tmp_path: Path) -> None:
    assert "x" * 300 in refused(gymdr(command, "x" * 300, *(["--output", "a.onnx"] if command == "export" else [])))


def test_a_missing_config_file_is_named(tmp_path: Path) -> None:
    message = refused(train(tmp_path / "run", "--config", tmp_path / "none.toml"))
    assert message == f"{tmp_path / 'none.toml'}: cannot be read: No such file or directory."


@pytest.mark.parametrize("command", ["resume", "evaluate", "plot", "play"])
def test_every_command_on_runs_names_a_folder_that_is_missing_or_none_of_a_run(command: str, tmp_path: Path) -> None:
    assert refused(gymdr(command, tmp_path / "none")) == f"{tmp_path / 'none'}: no such run folder."
    assert "is not a run folder: it has no config.json" in refused(gymdr(command, tmp_path))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "run"
    assert train(folder).code == 0
    return folder


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """A run that a test may change."""
    return Path(shutil.copytree(trained, tmp_path / "run"))


def test_a_run_is_not_replaced_unless_told_to(run: Path, tmp_path: Path) -> None:
    before = files(tmp_path)
    assert "already exists. Continue it with gymdr resume" in refused(train(run))
    assert files(tmp_path) == before


def test_overwrite_replaces_a_run(run: Path) -> None:
    assert train(run, "--seed", "2", "--overwrite").code == 0
    assert b'"seed": 2' in (run / "config.json").read_bytes()
    assert len((run / "metrics.csv").read_text().splitlines()) == 3


@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]])
@pytest.mark.parametrize("name", ["notes.txt", "config.json"])
def test_a_foreign_folder_is_never_touched(name: str, overwrite: list[str], tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / name).write_text('{"model_type": "somebody else\'s"}')
    before = files(tmp_path)
    message = refused(train(tmp_path / "work", *overwrite))
    assert message == f"{tmp_path / 'work'}: already exists and is not a run folder. Choose another --run-dir."
    assert files(tmp_path) == before


def test_a_file_in_the_place_of_the_folder_is_never_touched(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("mine")
    assert "is not a run folder" in refused(train(tmp_path / "run", "--overwrite"))
    assert (tmp_path / "run").read_text() == "mine"
    # a file in the place of a parent folder fails for every user; permissions do not stop root
    assert f"{tmp_path / 'run/below'}: cannot be" in refused(train(tmp_path / "run/below"))


def test_a_folder_of_several_seeds_is_not_replaced_by_one_run(tmp_path: Path) -> None:
    for seed in ("1", "2"):
        train(tmp_path / "runs" / f"seed-{seed}", "--seed", seed, "--updates", "1")
    before = files(tmp_path)
    assert "already exists" in refused(train(tmp_path / "runs", "--overwrite"))
    assert files(tmp_path) == before


def test_settings_that_only_training_can_refuse_delete_no_run_of_another_seed(tmp_path: Path) -> None:
    train(tmp_path / "runs/seed-3", "--seed", "3", "--updates", "1")
    refused(train(tmp_path / "runs", "--seeds", "1,2", "--env", "FrozenLake-v1", "--randomization", "none"))
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["seed-3"]


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="permissions do not stop root")
def test_a_read_only_folder_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    try:
        assert f"{tmp_path / 'run'}: cannot be written: Permission denied." in refused(train(tmp_path / "run"))
    finally:
        tmp_path.chmod(0o755)


def test_metrics_that_are_not_a_table_are_named(run: Path) -> None:
    (run / "metrics.csv").write_text("garbage\nmore\n")
    assert "metrics.csv: expected columns update" in refused(gymdr("plot", run))
    assert "metrics.csv: was not written by a run" in refused(gymdr("resume", run))


@pytest.mark.parametrize("new", ["update,steps,return_mean\n1,", "x,", "3,"])
def test_metrics_with_a_second_header_or_a_cell_that_is_no_number_are_named(new: str, run: Path) -> None:
    (run / "metrics.csv").write_text((run / "metrics.csv").read_text().replace("\n1,", f"\n{new}"))
    before = files(run)
    for command in ("plot", "resume"):
        assert refused(gymdr(command, run)).startswith(f"{run / 'metrics.csv'}: ")
    assert files(run) == before


@pytest.mark.parametrize("command", ["train", "evaluate", "fit"])
def test_a_randomization_without_rules_is_refused(command: str, run: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.toml").write_text("# gravity = [-12, -6]\n")
    np.savez(tmp_path / "log.npz", observations=np.zeros((3, 8)), actions=np.zeros(2, int))
    given = {"train": ["a2c"], "evaluate": [run], "fit": [tmp_path / "log.npz", "--env", "gym_dr/LunarLanderDR-v3"]}
    message = refused(gymdr(command, *given[command], "--randomization", tmp_path / "empty.toml"))
    assert message.startswith(f"{tmp_path / 'empty.toml'}: ")


def test_a_run_of_an_environment_that_is_gone_says_which(run: Path) -> None:
    config = run / "config.json"
    config.write_text(config.read_text().replace("LunarLanderDR-v3", "LunarLanderDR-v9"))
    assert f"{config}: Unknown environment 'gym_dr/LunarLanderDR-v9'" in refused(gymdr("evaluate", run))


def test_re_draws_that_checkpoints_would_cancel_are_refused(tmp_path: Path) -> None:
    message = refused(train(tmp_path / "run", "--resample-every", "200", "--checkpoint-every", "100"))
    assert "resample_every: expected at most checkpoint_every (100)" in message
