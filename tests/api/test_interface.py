"""The Python interface: the same results as the command line, as objects."""

from __future__ import annotations

import contextlib
import copy
import json
import pickle
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

import gym_dr
from gym_dr import Run, Runs, Uniform
from gym_dr.api.run import aggregate_runs
from gym_dr.compiled.processors import usable_threads
from gym_dr.envs.classic_control import cart_pole
from gym_dr.errors import (
    CheckpointError,
    ConfigError,
    GymDrError,
    Interrupted,
    PluginError,
    RunFolderError,
    UnknownNameError,
)
from gym_dr.options import option
from gym_dr.policies.frozen import play_batch
from gym_dr.randomization.space import LOG_COLUMNS
from gym_dr.runs.configure import option_names
from gym_dr.runs.session import RunSession
from gym_dr.training.api import Algorithm
from tests.cli import command

TINY: dict[str, Any] = {"updates": 2, "num_envs": 2, "rollout_steps": 8, "eval_episodes": 0, "progress": False}


def metrics_of(folder: Path) -> list[str]:
    """Rows without the seconds, which are the last column."""
    return [row.rpartition(",")[0] for row in (folder / "metrics.csv").read_text().splitlines()]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    path = tmp_path_factory.mktemp("interface") / "run"
    trained = gym_dr.train("a2c", run_dir=path, **{**TINY, "eval_episodes": 2, "rollout_steps": 128})
    assert isinstance(trained, Run)
    return trained


# train


def test_keywords_give_the_run_that_options_give(tmp_path: Path) -> None:
    made = gym_dr.train(
        "a2c", run_dir=tmp_path / "python", seed=3, randomize={"gravity": Uniform(-11, -9)}, hidden_sizes=[8, 4], **TINY
    )
    command.train(tmp_path / "gymdr", "--seed", "3", "--randomize", "gravity=uniform:-11:-9", "--hidden-sizes", "8,4")
    configs = [json.loads((tmp_path / name / "config.json").read_text()) for name in ("python", "gymdr")]
    assert configs[0] == configs[1]
    assert metrics_of(made.path) == metrics_of(tmp_path / "gymdr")


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"gama": 0.9}, UnknownNameError, "Unknown setting 'gama'. Did you mean 'gamma'?"),
        ({"total_timesteps": 100}, UnknownNameError, "Did you mean 'total_steps'?"),
        ({"total_steps": 100}, ConfigError, "Expected `updates` or `total_steps`, got both"),
        ({"overwrit": True}, UnknownNameError, "Did you mean 'overwrite'?"),
        ({"seed": "1"}, ConfigError, "seed: expected int, got '1'"),
        ({"seed": 1, "seeds": [1, 2]}, ConfigError, "Expected `seed` or `seeds`, got both"),
        ({"seeds": []}, ConfigError, "`seeds`: expected distinct seeds, got none"),
        ({"workers": 2}, ConfigError, "`workers`: expected with `seeds`"),
        ({"num_threads": 0}, ConfigError, "Expected `num_threads` to be a whole number above 0, got 0"),
        (
            {"num_threads": "2", "seeds": [1]},
            ConfigError,
            "Expected `num_threads` to be a whole number above 0, got '2'",
        ),
        ({"torch_threads": 0}, ConfigError, "torch_threads: expected at least 1, got 0"),
    ],
    ids=str,
)
def test_a_mistake_is_refused_and_leaves_no_folder(
    keywords: dict[str, Any], error: type[GymDrError], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error) as caught:
        gym_dr.train("a2c", run_dir=tmp_path / "run", **{**TINY, **keywords})
    assert message in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_without_progress_nothing_is_printed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    steps = {name: value for name, value in TINY.items() if name != "updates"}
    run = gym_dr.train("a2c", run_dir=tmp_path / "run", total_steps=17, **steps)
    assert isinstance(run, Run)
    assert list(run.metrics["update"]) == [0, 1]  # of 16 steps
    assert run.evaluation is None
    assert capfd.readouterr() == ("", "")


def test_a_training_uses_one_thread_and_leaves_the_program_its_own(tmp_path: Path) -> None:
    def threads() -> set[int]:
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    seen: list[set[int]] = []
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with threadpool_limits(2, user_api="blas"):
            gym_dr.train("a2c", run_dir=tmp_path / "run", callback=lambda row: seen.append(threads()), **TINY)
            assert seen == [{1}, {1}]
            assert threads() == {2}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_run_does_not_depend_on_its_number_of_threads_and_does_not_record_it(tmp_path: Path) -> None:
    options: dict[str, Any] = {**TINY, "num_envs": 4, "env": "gym_dr/HopperDR-v5", "eval_episodes": 2}
    seen: dict[int, list[int]] = {1: [], 3: []}
    for count, used in seen.items():
        watch = partial(lambda used, row: used.append(usable_threads()), used)
        gym_dr.train(
            "ppo", run_dir=tmp_path / f"{count}" / "run", num_threads=count, callback=watch, minibatches=2, **options
        )
        assert used == [count] * options["updates"]
    one, three = tmp_path / "1/run", tmp_path / "3/run"
    assert metrics_of(one) == metrics_of(three)
    for name in ("config.json", "actor.pt", "critic.pt", "draws.csv", "evaluation/episodes.csv"):
        assert (one / name).read_bytes() == (three / name).read_bytes()
    sorted((three / "checkpoints").iterdir())[-1].unlink()
    again: Any = gym_dr.load_run(three)
    again.resume(num_threads=2, progress=False)
    assert (one / "actor.pt").read_bytes() == (three / "actor.pt").read_bytes()


def test_torch_has_the_threads_of_the_configuration_while_a_run_trains_and_one_while_it_is_evaluated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def play(*args: Any, **kwargs: Any) -> Any:
        seen.append(torch.get_num_threads())
        return play_batch(*args, **kwargs)

    monkeypatch.setattr("gym_dr.evaluation.evaluate.play_batch", play)
    before = torch.get_num_threads()
    options: dict[str, Any] = {**TINY, "torch_threads": 2, "eval_episodes": 1}
    run: Any = gym_dr.train(
        "a2c", run_dir=tmp_path / "run", callback=lambda row: seen.append(torch.get_num_threads()), **options
    )
    assert seen == [2, 2, 1, 1]  # two updates, two sets
    assert torch.get_num_threads() == before
    assert run.config.settings.torch_threads == 2
    config = run.folder.config
    config.write_text(config.read_text().replace('"torch_threads": 2', '"torch_threads": 1'))
    with pytest.raises(CheckpointError, match="torch_threads was 2 and is 1"):
        gym_dr.load_run(tmp_path / "run").resume(progress=False)


def test_an_option_of_an_algorithm_may_not_hide_one_of_every_run() -> None:
    from dataclasses import make_dataclass

    config = make_dataclass(
        "Config", [("updates", int, option(1, "")), ("seed", int, option(1, "")), ("config", str, option("", ""))]
    )
    algorithm = Algorithm(name="greedy", summary="", config=config, train=lambda session, config: None)
    with pytest.raises(PluginError, match="'greedy': every run already has an option config, seed"):
        option_names(algorithm)


@pytest.mark.parametrize("through", [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_runs_their_results_and_policies_can_be_copied_and_pickled(
    run: Run, through: Callable[[Any], Any], tmp_path: Path
) -> None:
    observations = np.random.default_rng(1).normal(size=(50, 8)).astype(np.float32)
    evaluation: Any = run.evaluation
    copied, again = through(run), through(evaluation)
    assert copied.path == run.path
    assert again.episodes.equals(evaluation.episodes)
    policy = run.policy()
    twin = through(policy)
    assert (twin(observations) == policy(observations)).all()  # each has its own random numbers
    opened = gym_dr.open_policy(run)
    assert gym_dr.evaluate(
        [through(opened)], sets=["random"], episodes=2, output=tmp_path / "a", progress=False
    ).episodes.equals(
        gym_dr.evaluate([opened], sets=["random"], episodes=2, output=tmp_path / "b", progress=False).episodes
    )


def stay(observations: Any) -> Any:
    return np.zeros(len(observations), np.int64)


@pytest.mark.parametrize("given", ["random", stay])
def test_opened_policies_that_are_no_runs_can_be_pickled(given: Any) -> None:
    env_id = "gym_dr/CartPoleDR-v1"
    opened = gym_dr.open_policy(given, env=env_id)
    copied = pickle.loads(pickle.dumps(opened))
    assert (copied.name, copied.digest) == (opened.name, opened.digest)
    with contextlib.closing(gym.make_vec(env_id, 3)) as envs:
        observations, starts = envs.reset(seed=1)[0], np.ones(3, np.bool_)
        assert copied.make(envs)(observations, starts).shape == (3,)


# an interrupt


def test_an_interrupted_training_says_how_to_go_on_and_resumes_to_the_same_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = gym_dr.train("a2c", run_dir=tmp_path / "whole", checkpoint_every=1, **TINY)
    save = RunSession.save

    def interrupted(self: RunSession, update: int, state: Any) -> None:
        save(self, update, state)
        if update == 0:
            signal.raise_signal(signal.SIGINT)  # which is looked at after the update under way

    with monkeypatch.context() as patch:
        patch.setattr(RunSession, "save", interrupted)
        with pytest.raises(Interrupted, match=r"2 of 2 updates made .*gymdr resume") as caught:
            gym_dr.train("a2c", run_dir=tmp_path / "cut", checkpoint_every=1, **TINY)
    assert isinstance(caught.value, KeyboardInterrupt)
    again = gym_dr.load_run(tmp_path / "cut").resume(progress=False)
    assert metrics_of(again.path) == metrics_of(whole.path)


# runs


def test_a_run_has_its_tables(run: Run) -> None:
    assert list(run.metrics["update"]) == [0, 1]
    assert {"return", "gravity"} <= set(run.draws)
    assert repr(run) == f"Run({str(run.path)!r}: a2c on gym_dr/LunarLanderDR-v3, seed 1)"
    assert run.evaluation is not None
    assert run.evaluation.sets[0].name == "nominal"


def test_no_parameter_takes_the_place_of_a_column_in_the_tables(tmp_path: Path) -> None:
    """CartPole has a parameter named length."""
    settings: dict[str, Any] = {"updates": 1, "rollout_steps": 64, "num_envs": 2, "eval_episodes": 2, "progress": False}
    run = gym_dr.train("a2c", env="gym_dr/CartPoleDR-v1", run_dir=tmp_path / "run", **settings)
    assert isinstance(run, Run)
    assert run.evaluation is not None
    for table in (run.draws, run.evaluation.episodes):
        names = list(table)
        others = [name for name in names if name not in cart_pole.SPACE]
        assert set(others) <= LOG_COLUMNS
        assert {"length", "steps"} <= set(names)
        assert len(set(names)) == len(names)
        assert (table["steps"] == table["return"]).all()  # a reward of 1 a step


def test_a_loaded_run_is_the_trained_one_and_its_policy_acts(run: Run) -> None:
    loaded = gym_dr.load_run(run.path)
    assert isinstance(loaded, Run)
    assert (loaded.config, loaded.algorithm) == (run.config, "a2c")
    envs = gym.make_vec("gym_dr/LunarLanderDR-v3", num_envs=3)
    observations, _ = envs.reset(seed=1)
    assert np.asarray(loaded.policy()(observations)).shape == (3,)
    envs.close()


REMEMBERING = "lander_memory"


def test_the_deterministic_policy_with_memory_is_a_function_of_what_it_saw() -> None:
    run = gym_dr.load_run(gym_dr.pretrained(REMEMBERING))
    assert isinstance(run, Run)
    act = run.policy(deterministic=True)
    envs = gym.make_vec(run.config.settings.env, num_envs=16)
    observations, _ = envs.reset(seed=1)
    starts = np.ones(16, np.bool_)
    actions = act(observations, starts)
    assert envs.action_space.contains(actions)
    act(-observations, ~starts)
    np.testing.assert_array_equal(act(observations, starts), actions)
    envs.close()


@pytest.mark.parametrize("name", ["lander", "hopper"])
def test_the_deterministic_policy_is_a_function_of_the_observation(name: str) -> None:
    run = gym_dr.load_run(gym_dr.pretrained(name))
    assert isinstance(run, Run)
    act = run.policy(deterministic=True)
    envs = gym.make_vec(run.config.settings.env, num_envs=16)
    observations, _ = envs.reset(seed=1)
    actions = act(observations)
    assert envs.action_space.contains(actions)
    np.testing.assert_array_equal(act(observations), actions)
    alone = [act(one) for one in observations]
    assert envs.single_action_space.contains(alone[0])
    np.testing.assert_allclose(alone, actions, rtol=1e-5, atol=1e-5)
    envs.close()


def test_a_policy_that_observes_the_draw_says_how_to_show_it(tmp_path: Path) -> None:
    shown = {"gravity": (-11, -9), "lander_density": (4, 6)}
    run = gym_dr.train("a2c", run_dir=tmp_path / "run", context="observation", randomize=shown, **TINY)
    assert isinstance(run, Run)
    act = run.policy(deterministic=True)
    envs = gym.make_vec("gym_dr/LunarLanderDR-v3", num_envs=3, randomization="wide")
    observations, _ = envs.reset(seed=1)
    with pytest.raises(
        ConfigError, match=r"shape \(10,\) or \(N, 10\), got \(3, 8\)\. .* DrawContext for run.config.context_ranges"
    ):
        act(observations)
    observations, _ = gym_dr.DrawContext(envs, "observation", run.config.context_ranges, span=0.25).reset(seed=1)
    assert act(observations).shape == (3,)
    envs.close()


def test_a_folder_of_seeds_is_several_runs(tmp_path: Path) -> None:
    for seed in (1, 2):
        gym_dr.train("a2c", run_dir=tmp_path / f"seeds/seed-{seed}", seed=seed, **TINY)
    runs = gym_dr.load_run(tmp_path / "seeds")
    assert isinstance(runs, Runs)
    assert [one.config.settings.seed for one in runs] == [1, 2]
    assert sorted(runs.metrics["seed"].unique()) == [1, 2]
    assert repr(runs) == f"Runs({str(tmp_path / 'seeds')!r}: seed-1, seed-2)"
    with pytest.raises(RunFolderError, match=r"holds no summary of its runs\. Continue with: gymdr resume"):
        _ = runs.summary
    assert '<th scope="row">seed-2</th>' in runs._repr_html_()
    aggregate_runs([one.folder for one in runs], runs.path)
    assert '<th scope="col">IQM</th>' in runs._repr_html_()


# evaluate and report


def test_an_evaluation_has_data_frames(run: Run, tmp_path: Path) -> None:
    found = gym_dr.evaluate(run, gym_dr.grid(gravity=(-12, -2, 3)), episodes=2, output=tmp_path / "out", progress=False)
    assert list(found.episodes.groupby("set").size().items()) == [("grid", 6), ("nominal", 2), ("training", 2)]
    summary = found.summary.set_index(["policy", "set", "statistic"])
    row = summary.loc[("run", "grid", "mean")]
    assert row["value"] == pytest.approx(found.returns("grid").mean())
    assert row["low"] <= row["value"] <= row["high"]


def test_a_run_without_a_checkpoint_is_not_evaluated(tmp_path: Path) -> None:
    trained = gym_dr.train("a2c", run_dir=tmp_path / "run", **TINY)
    assert isinstance(trained, Run)
    for path in trained.folder.checkpoints.iterdir():
        path.unlink()
    with pytest.raises(CheckpointError):
        gym_dr.evaluate(trained, progress=False)


def test_folders_are_named_after_what_is_trained_and_never_taken_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place = Path("runs/LunarLanderDR-v3")
    asked: list[dict[str, Any]] = [{}, {}, {"seed": 3, "randomize": {"gravity": (-11, -9)}}, {"randomization": "none"}]
    made = [gym_dr.train("a2c", **TINY, **more).path for more in asked]
    names = ["a2c-default-seed1", "a2c-default-seed1-2", "a2c-own-seed3", "a2c-none-seed1"]
    assert made == [place / name for name in names]
