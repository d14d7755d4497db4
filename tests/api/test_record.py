"""Recorded episodes: what a log holds, and that its episodes can be played again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
import pytest

import gym_dr
from gym_dr.api.evaluate import record
from gym_dr.errors import ConfigError, LogError, UnknownNameError
from gym_dr.fitting.log_checks import check_log
from gym_dr.fitting.logs import LoggedEpisode
from gym_dr.integrations.minari import open_log
from tests.policies.own_policies import Pulse, brake
from tests.policies.tiny_run import train_tiny_run

LANDER, CART, HOPPER = "gym_dr/LunarLanderDR-v3", "gym_dr/CartPoleDR-v1", "gym_dr/HopperDR-v5"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "first"
    return train_tiny_run(folder, "--randomize", "gravity=uniform:-11:-9", "--context", "observation")


def recorded(policy: Any, output: Path, **options: Any) -> list[LoggedEpisode]:
    asked = {"episodes": 3, "format": "npz", "progress": False, **options}
    return open_log(gym_dr.record(policy, output=output, **asked))


def state_at(episode: LoggedEpisode, row: int) -> dict[str, npt.NDArray[Any]]:
    """The state of one sub-environment at an observation."""
    names = [name for name in episode.others if name.startswith("state/")]
    return {name.removeprefix("state/"): episode.others[name][row : row + 1] for name in names}


def test_an_episode_holds_all_that_was_seen_and_done(tmp_path: Path) -> None:
    episodes = recorded("random", tmp_path / "log", env=LANDER)
    assert [path.name for path in sorted((tmp_path / "log").iterdir())] == ["000.npz", "001.npz", "002.npz"]
    for number, episode in enumerate(episodes):
        steps = len(episode)
        assert episode.observations.shape == (steps + 1, 8)
        ends = episode.others["terminations"] | episode.others["truncations"]
        assert ends.tolist() == [False] * (steps - 1) + [True]
        assert episode.others["rewards"].shape == (steps,)
        assert (episode.others["seed"], episode.others["draw_index"]) == (number, 0)
        assert all(len(episode.others[name]) == steps + 1 for name in episode.others if name.startswith("state/"))
    winds = [float(episode.others["params/wind_power"]) for episode in episodes]
    assert len(set(winds)) == 3  # of the preset default


@pytest.mark.parametrize("env", [LANDER, CART, HOPPER])
def test_an_episode_is_played_again_from_its_seed_and_draw_and_from_each_state(env: str, tmp_path: Path) -> None:
    episode = recorded("random", tmp_path / "log", env=env, seed=5, draws="wide")[1]
    envs: Any = gym.make_vec(env, num_envs=1)
    drawn = {name.removeprefix("params/"): v for name, v in episode.others.items() if name.startswith("params/")}
    observations, _ = envs.reset(seed=int(episode.others["seed"]), options={"params": drawn})
    space: Any = envs.single_action_space
    check_log([episode], envs.single_observation_space, space)
    np.testing.assert_array_equal(observations[0], episode.observations[0])
    for t, action in enumerate(episode.actions):
        if t in (0, len(episode) // 2):
            restored = envs.set_state(state_at(episode, t)) if t else observations
            np.testing.assert_array_equal(restored[0], episode.observations[t])
        observations, rewards, *_ = envs.step(np.array([action], space.dtype))
        np.testing.assert_array_equal(observations[0], episode.observations[t + 1])
        assert rewards[0] == episode.others["rewards"][t]
    envs.close()


def test_a_run_plays_its_training_draws_and_what_it_sees_of_them_is_no_observation(run: Path, tmp_path: Path) -> None:
    episodes = recorded(run, tmp_path / "log")
    gravities = [float(episode.others["params/gravity"]) for episode in episodes]
    assert all(-11 <= gravity <= -9 for gravity in gravities)
    assert len(set(gravities)) == 3
    assert episodes[0].observations.shape[1] == 8


def test_a_run_is_deterministic_unless_it_is_to_be_stochastic(run: Path, tmp_path: Path) -> None:
    likeliest = recorded(run, tmp_path / "a")
    sampled = recorded(gym_dr.open_policy(run), tmp_path / "b")
    assert [len(np.unique(episode.actions)) for episode in likeliest] < [4, 4, 4]
    assert any(len(np.unique(episode.actions)) == 4 for episode in sampled)


def test_sampled_actions_are_new_in_each_batch_and_for_each_seed(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gym_dr.policies.record.TOGETHER", 2)
    policy = gym_dr.open_policy(run)
    log = recorded(policy, tmp_path / "a", episodes=4)
    other = recorded(policy, tmp_path / "b", episodes=4, seed=1000)
    again = recorded(policy, tmp_path / "c", episodes=4)
    steps = min(map(len, [*log, *other]))
    assert steps > 40
    # a hardly trained policy has about the same probabilities everywhere, so the same noise would give the same actions
    for one, two in [(log[0], log[2]), (log[1], log[3]), *zip(log, other, strict=True)]:
        assert (one.actions[:steps] == two.actions[:steps]).mean() < 0.6
    for one, two in zip(log, again, strict=True):
        np.testing.assert_array_equal(one.actions, two.actions)


def test_chosen_physics_replace_the_draws(tmp_path: Path) -> None:
    nominal = recorded(brake, tmp_path / "a", env=LANDER, draws=gym_dr.draws(gravity=-3.0))
    assert {float(episode.others["params/gravity"]) for episode in nominal} == {-3.0}
    drawn = recorded(brake, tmp_path / "b", env=LANDER, draws=gym_dr.draws(gravity=(-4, -3), obs_noise=0.1))
    assert all(-4 <= float(episode.others["params/gravity"]) <= -3 for episode in drawn)
    assert {float(episode.others["params/obs_noise"]) for episode in drawn} == {0.1}
    # the noise is in the log, as a policy sees it
    assert (drawn[0].observations[1:] != drawn[0].others["state/observation"][1:]).any()


def test_a_policy_with_memory_learns_where_episodes_start(tmp_path: Path) -> None:
    (episode, *_) = recorded(Pulse(), tmp_path / "log", env=LANDER)
    assert episode.actions[:7].tolist() == [0, 0, 2, 0, 0, 2, 0]


def test_environments_without_draws_and_states_are_recorded_too(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    episodes = recorded("random", tmp_path / "log", env="CartPole-v1", progress=True)
    assert "CartPole-v1 does not offer its state; the log has none." in capfd.readouterr().err
    assert set(episodes[0].others) == {"rewards", "terminations", "truncations", "seed"}
    without = recorded("random", tmp_path / "b", env=CART, states=False)
    assert not any(name.startswith("state/") for name in without[0].others)


def test_random_actions_fill_their_bounds(tmp_path: Path) -> None:
    episodes = recorded("random", tmp_path / "log", env="gym_dr/PendulumDR-v1")
    actions = np.concatenate([episode.actions for episode in episodes])
    assert -2 <= actions.min() < -1.9
    assert 1.9 < actions.max() <= 2
    assert len(np.unique(actions)) > 500


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"policy": "random", "env": None}, ConfigError, "Expected `env`: only runs"),
        ({"policy": "random", "env": "FrozenLake-v1"}, LogError, "observations are rows of numbers"),
        ({"policy": "random", "env": "gym_dr/Nothing-v0"}, UnknownNameError, "Unknown environment"),
        ({"policy": "random", "format": "csv"}, UnknownNameError, "Unknown format 'csv'"),
        ({"policy": "random", "episodes": 0}, ConfigError, "Expected `episodes` to be a whole number above 0, got 0"),
        ({"policy": "random", "seed": -1}, ConfigError, "expected a whole number from 0 to 2**62, got -1"),
        ({"policy": "random", "draws": gym_dr.draws(gravty=1.0)}, UnknownNameError, "Did you mean 'gravity'"),
        ({"policy": "nowhere", "env": None}, OSError, "nowhere: no such run folder"),
    ],
    ids=str,
)
def test_what_cannot_be_recorded_is_refused_and_nothing_is_written(
    options: dict[str, Any], error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error) as refused:
        record(**{"env": LANDER, "episodes": 1, "format": "npz", "output": tmp_path / "log", **options})
    assert message in str(refused.value)
    assert not list(tmp_path.iterdir())


def test_a_policy_that_fails_midway_leaves_nothing(tmp_path: Path) -> None:
    calls: list[int] = []

    def tired(observations: npt.NDArray[Any]) -> npt.NDArray[Any]:
        calls.append(1)
        if len(calls) > 40:
            raise ValueError("too long")
        return np.zeros(len(observations), np.int64)

    with pytest.raises(ConfigError, match="too long"):
        record(tired, env=LANDER, episodes=2, format="npz", output=tmp_path / "log", progress=False)
    assert not list(tmp_path.iterdir())


def test_logs_of_all_forms_are_opened_and_what_is_none_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    episodes = recorded("random", tmp_path / "log", env=CART)
    for source in (tmp_path / "log" / "000.npz", str(tmp_path / "log"), episodes, [episodes, tmp_path / "log"]):
        assert open_log(source)
    (tmp_path / "log.csv").write_text("observation,action\n1,2\n")
    with pytest.raises(LogError, match=r"read a table in Python: pandas.read_csv\("):
        open_log(tmp_path / "log.csv")
    with pytest.raises(LogError, match=r"or a data set of Minari, its folder or its id in .*minari; got nothing of"):
        open_log("lander/random-v0")
    with pytest.raises(LogError, match="Expected a log of at least one episode"):
        open_log([])


def test_a_log_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    log = record("random", env=CART, output=tmp_path / "log", episodes=2, format="npz", progress=False)
    for twice, got in (([log, str(log)], "it twice"), ([[log / "001.npz"], log], "the file and its folder")):
        with pytest.raises(LogError, match=f"expected each log once, got {got}"):
            open_log(twice)
    assert len(open_log([log / "000.npz", log / "001.npz"])) == 2
