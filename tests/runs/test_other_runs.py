"""Options that name another run: ``init``, to go on from its weights, and ``teacher``, to imitate its policy."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

import gym_dr
from gym_dr.errors import ConfigError, GymDrError, RunFolderError
from gym_dr.runs.checkpoint import load_newest
from gym_dr.runs.configure import build_config, open_run
from gym_dr.runs.folder import RunFolder
from gym_dr.runs.session import RunSession
from gym_dr.training import ppo
from gym_dr.training.actor_critic import restore
from gym_dr.training.registry import find_algorithm
from gym_dr.training.rollout import RolloutCollector
from tests.runs.kill_points import result
from tests.runs.training import train_or_resume

POLE, PENDULUM = "gym_dr/CartPoleDR-v1", "gym_dr/InvertedPendulumDR-v5"  # both with 4 numbers in an observation
SETTINGS: dict[str, Any] = {"env": POLE, "num_envs": 2, "checkpoint_every": 2, "eval_episodes": 0, "seed": 3}
STEPS: dict[str, Any] = {"updates": 3, "rollout_steps": 32, "minibatches": 2}
SMALL: dict[str, Any] = {**STEPS, "hidden_sizes": (8,)}
MEMORY: dict[str, Any] = {"memory": "gru", "memory_size": 4, "sequence_length": 8}
REMEMBERING: dict[str, Any] = {**SMALL, **MEMORY, "critic_context": True}

OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": ("ppo", {**SMALL, "updates": 2}),
    "told": ("ppo", {**SMALL, "context": "observation"}),
    "remembering": ("ppo", REMEMBERING),
    "without normalized rewards": ("ppo", {**SMALL, "normalize_rewards": False}),
    "reinforce": ("reinforce", {"updates": 1, "hidden_sizes": (8,)}),
    "pendulum": ("ppo", {**SMALL, "env": PENDULUM}),
}


def silent(updates: int, row: Mapping[str, float]) -> None:
    pass


def train(path: Path, algorithm: str, cut_at: int | None = None, **given: Any) -> RunFolder:
    """Trains, or resumes the run that is there."""
    config = open_run(path).config if path.exists() else build_config(find_algorithm(algorithm), {**SETTINGS, **given})
    return train_or_resume(path, config, cut_at)


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained runs to go on from or to imitate, and one that was not trained."""
    root = tmp_path_factory.mktemp("others")
    for name, (algorithm, options) in OTHERS.items():
        train(root / name, algorithm, **options)
    config = build_config(find_algorithm("ppo"), {**SETTINGS, **SMALL})
    RunFolder.create(root / "untrained", config.to_json(), overwrite=False)
    return root


# ---- What is refused


@dataclass(frozen=True)
class Refused:
    """Options of a run, without ``init`` and ``teacher`` if they have no name in ``OTHERS``, and the message."""

    algorithm: str
    options: Mapping[str, Any]
    message: str


def init(name: str, message: str, algorithm: str = "ppo", **options: Any) -> Refused:
    return Refused(algorithm, {**SMALL, "init": name, **options}, message)


def teacher(name: str, message: str, **options: Any) -> Refused:
    return Refused("distill", {**SMALL, "teacher": name, **options}, message)


MISTAKES = {
    "no teacher": Refused("distill", SMALL, "teacher: expected a run's folder, got none. Name one: "),
    "no such teacher": teacher("nobody", "nobody: no such run folder"),
    "a folder of runs": teacher(".", "It holds the runs "),
    "a teacher that has learned nothing": teacher("untrained", "has no checkpoint: it has learned nothing yet"),
    "a teacher with memory": teacher("remembering", "has a memory; expected a policy without one"),
    "a teacher without such networks": teacher("reinforce", "expected a run of a2c, ppo or distill"),
    "a teacher with another kind of deviation": teacher(
        "pendulum",
        "has state_dependent_std False, and its student needs the same",
        env=PENDULUM,
        state_dependent_std=True,
    ),
    "a teacher with other observations": teacher(
        "plain",
        f"has observations of shape (4,) ({POLE}), and gym_dr/LunarLanderDR-v3 has (8,)",
        env="gym_dr/LunarLanderDR-v3",
    ),
    "a teacher with other actions": teacher("pendulum", f"has actions Box(-3.0, 3.0, (1,), float32) ({PENDULUM}), and"),
    "a teacher that is told what is not there": teacher(
        "told",
        "observes the draw of force_mag, which CartPole-v1 does not have",
        env="CartPole-v1",
        randomization="none",
    ),
    "misspelled weights": init(
        "ortogonal",
        "expected torch, orthogonal or a run's folder, got 'ortogonal': ortogonal: no such run folder. Did you",
    ),
    "no name of a run": init("", "init: expected torch, orthogonal or a run's folder, got none"),
    "other sizes": init("plain", "has hidden_sizes (8,), and this run (9, 8)", hidden_sizes=(9, 8)),
    "another activation": init("plain", "has activation 'tanh', and this run 'relu'", activation="relu"),
    "another past": init("plain", "has stack_observations 1, and this run 3", stack_observations=3),
    "other sensors": init("plain", "has ignored_sensors (), and this run ('x',)", ignored_sensors=("x",)),
    "a memory more": init("plain", "has memory 'none', and this run 'gru'", **MEMORY),
    "a memory of another size": init(
        "remembering", "has memory_size 4, and this run 5", **{**REMEMBERING, "memory_size": 5}
    ),
    "another critic": init("remembering", "has critic_context True, and this run False", **MEMORY),
    "a critic that observes other draws": init(
        "remembering", "the critic of ", **REMEMBERING, randomize={"length": (0.4, 0.6)}
    ),
    "a policy that observes the draw": init("told", "observes the draw of force_mag, "),
    "other observations": init("plain", "has observations of shape (4,)", env="gym_dr/LunarLanderDR-v3"),
    "other actions": init("plain", "has actions Discrete(2)", env=PENDULUM),
    "observations as they are": init(
        "plain", "has normalize_observations True, and this run False", normalize_observations=False
    ),
    "a spread that the other run has learned": init("plain", "initial_std: has no effect with ", initial_std=0.1),
    "rewards as they are": init("plain", "has normalize_rewards True, and this run False", normalize_rewards=False),
    "what an algorithm cannot do": init(
        "plain",
        "has normalize_rewards True, which this algorithm does not offer",
        algorithm="a2c",
        activation="tanh",
        normalize_observations=True,
    ),
}


def given_by(mistake: Refused, others: Path) -> dict[str, Any]:
    given = {**SETTINGS, **mistake.options}
    for option in ("init", "teacher"):
        if given.get(option) in (*OTHERS, "untrained", "."):
            given[option] = str(others / given[option])
    return given


@pytest.mark.parametrize("name", MISTAKES)
def test_what_does_not_fit_is_refused_in_python_and_leaves_nothing(name: str, others: Path, tmp_path: Path) -> None:
    mistake = MISTAKES[name]
    with pytest.raises(GymDrError) as error:
        gym_dr.train(mistake.algorithm, run_dir=tmp_path / "new", progress=False, **given_by(mistake, others))
    assert mistake.message in str(error.value)
    assert not any(tmp_path.iterdir())


def test_no_name_is_not_the_current_folder(others: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(others / "plain")
    with pytest.raises(ConfigError, match="got none"):
        build_config(find_algorithm("distill"), {**SETTINGS, **SMALL, "teacher": ""})


def test_of_a_folder_with_several_seeds_each_seed_goes_on_from_its_own_run(tmp_path: Path) -> None:
    for seed in (3, 4):
        train(tmp_path / "both" / f"seed-{seed}", "ppo", **SMALL, seed=seed)
    for name, algorithm in (("init", "ppo"), ("teacher", "distill")):
        given = {**SETTINGS, **SMALL, name: str(tmp_path / "both")}
        for seed in (3, 4):
            config = build_config(find_algorithm(algorithm), {**given, "seed": seed})
            assert getattr(config.options, name) == str(tmp_path / "both" / f"seed-{seed}")
        for changes, by_seed in (({"seed": 5}, True), ({}, False)):  # studies and tunings take one run for all seeds
            with pytest.raises(ConfigError, match="It holds the runs seed-3, seed-4"):
                build_config(find_algorithm(algorithm), {**given, **changes}, by_seed=by_seed)


def test_sensors_that_are_ignored_may_be_named_in_any_order(tmp_path: Path) -> None:
    train(tmp_path / "run", "ppo", **SMALL, ignored_sensors=("x", "theta"))
    given = {**SETTINGS, **SMALL, "init": str(tmp_path / "run"), "ignored_sensors": ("theta", "x")}
    assert build_config(find_algorithm("ppo"), given).options.ignored_sensors == ("theta", "x")


def test_a_run_that_would_replace_what_it_goes_on_from_leaves_it(others: Path, tmp_path: Path) -> None:
    shutil.copytree(others / "plain", tmp_path / "run")
    before = result(tmp_path / "run")
    with pytest.raises(ConfigError, match=r"`init`: .*run would be replaced; choose another `run_dir`"):
        gym_dr.train(
            "ppo",
            **SETTINGS,
            **SMALL,
            init=str(tmp_path / "run"),
            run_dir=tmp_path / "run",
            overwrite=True,
            progress=False,
        )
    assert result(tmp_path / "run") == before


# ---- Going on


@pytest.mark.parametrize("name", ["plain", "remembering"])
def test_its_first_rollout_is_played_by_the_other_runs_policy(name: str, others: Path, tmp_path: Path) -> None:
    algorithm, options = OTHERS[name]
    found = []
    for start in ({"init": str(others / name)}, {}):
        config = build_config(find_algorithm(algorithm), {**SETTINGS, **options, **start})
        folder = RunFolder.create(tmp_path / str(len(found)), config.to_json(), overwrite=False)
        with contextlib.closing(RunSession(folder, config, silent, resume=False)) as session:
            envs = session.make_envs(32)
            agent = ppo.make_agent(envs, config.options, 3, "cpu")
            if start:
                restore(agent, session, config.options)
            else:  # the policy as it was saved
                agent.actor.load_state_dict(load_newest(RunFolder(others / name))["state"]["actor"])
            collector = RolloutCollector(envs, 32, "cpu")
            collector.reset(seed=1)
            found.append(collector.collect(agent.behavior))
    for part in ("actions", "log_probs", "observations"):
        assert torch.equal(getattr(found[0], part), getattr(found[1], part)), part


def test_moments_of_observations_and_rewards_go_on(others: Path, tmp_path: Path) -> None:
    run = train(tmp_path / "run", "ppo", **SMALL, init=str(others / "plain"))
    states, steps = [], []
    for folder in (RunFolder(others / "plain"), run):
        checkpoint = load_newest(folder)
        steps.append(checkpoint["session"]["steps"])
        states.append(checkpoint["state"])
    for count in (lambda state: state["actor"]["network.0.count"], lambda state: state["reward_moments"]["count"]):
        assert [count(state).item() for state in states] == [steps[0], sum(steps)]


GOING_ON: dict[str, tuple[str, str, dict[str, Any]]] = {
    "ppo": ("ppo", "plain", {}),
    "ppo with memory": ("ppo", "remembering", {**MEMORY, "critic_context": True, "predict_draw": 0.5}),
    "distill": ("distill", "plain", {}),
    "a2c": (
        "a2c",
        "without normalized rewards",
        {"activation": "tanh", "normalize_observations": True, "reward_scale": 1.0},
    ),
}


@pytest.mark.parametrize("name", GOING_ON)
def test_a_run_that_went_on_from_another_and_was_cut_resumes_bit_for_bit(
    name: str, others: Path, tmp_path: Path
) -> None:
    algorithm, other, options = GOING_ON[name]
    shutil.copytree(others / other, tmp_path / "other")
    given: dict[str, Any] = {**SMALL, **options, "updates": 4, "init": str(tmp_path / "other")}
    if algorithm == "distill":
        given["teacher"] = str(others / "told")
    whole = result(train(tmp_path / "whole", algorithm, **given).path)
    assert whole != result(train(tmp_path / "not", algorithm, **{**given, "init": "orthogonal"}).path)
    for cut_at in (1, 2):  # before the first checkpoint and after it
        train(tmp_path / f"cut-{cut_at}", algorithm, cut_at=cut_at, **given)
    assert result(train(tmp_path / "cut-1", algorithm).path) == whole
    shutil.rmtree(tmp_path / "other")  # which is needed no more
    assert result(train(tmp_path / "cut-2", algorithm).path) == whole


def test_before_its_first_checkpoint_a_run_needs_the_other_one(others: Path, tmp_path: Path) -> None:
    shutil.copytree(others / "plain", tmp_path / "other")
    train(tmp_path / "run", "ppo", cut_at=0, **SMALL, init=str(tmp_path / "other"))
    shutil.rmtree(tmp_path / "other")
    with pytest.raises(RunFolderError, match="other: no such run folder"):
        train(tmp_path / "run", "ppo")


def test_a_relative_path_is_from_where_the_run_was_started(
    others: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(others)
    folder = train(tmp_path / "run", "distill", cut_at=0, **SMALL, teacher="told", init="plain")
    saved = json.loads(folder.config.read_text())["distill"]
    assert (saved["teacher"], saved["init"]) == (str(others / "told"), str(others / "plain"))
    monkeypatch.chdir(tmp_path)
    train(folder.path, "distill")
    assert load_newest(folder)["update"] == SMALL["updates"]


def test_a_configuration_that_names_runs_reads_back_equal(others: Path, tmp_path: Path) -> None:
    distill = find_algorithm("distill")
    given = {**SETTINGS, **SMALL, "teacher": str(others / "told"), "init": str(others / "plain")}
    config = build_config(distill, given)
    (tmp_path / "config.json").write_text(config.to_json())
    assert build_config(distill, {}, config=tmp_path / "config.json") == config
