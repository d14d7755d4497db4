"""Logs as data sets of Minari: what is recorded and written is read back, by us and by Minari."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete

import gym_dr
from gym_dr.api.evaluate import record
from gym_dr.errors import ConfigError, LogError
from gym_dr.fitting.log_checks import check_log
from gym_dr.fitting.logs import LoggedEpisode, read_log
from gym_dr.integrations.minari import open_log
from tests.cli.command import gymdr, refused
from tests.wrappers.observed import WIDE, id_of, registered

pytest.importorskip("minari")

import h5py
import minari
from minari.data_collector import EpisodeBuffer

from gym_dr.integrations.minari import read_minari, write_minari

pytestmark = pytest.mark.integration

LANDER = "gym_dr/LunarLanderDR-v3"
SEEN, ACTED = Box(-np.inf, np.inf, (3,), np.float64), Box(-1.0, 1.0, (2,))


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "root"))


def episodes(count: int = 2, **others: Any) -> list[LoggedEpisode]:
    rng = np.random.default_rng(0)
    return read_log(
        [
            {
                "observations": rng.normal(size=(steps + 1, 3)),
                "actions": rng.uniform(-1, 1, (steps, 2)).astype(np.float32),
                "rewards": rng.normal(size=steps),
                "terminations": np.arange(steps) == steps - 1,
                "truncations": np.zeros(steps, bool),
                **others,
            }
            for steps in range(3, 3 + count)
        ]
    )


def write(name: str | Path = "real/arm-v0", given: Any = None, **options: Any) -> Path:
    spaces = {"observation_space": SEEN, "action_space": ACTED}
    return write_minari(name, episodes() if given is None else given, **{**spaces, **options})


def assert_same(found: list[LoggedEpisode], expected: list[LoggedEpisode]) -> None:
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.observations, other.observations)
        np.testing.assert_array_equal(one.actions, other.actions)
        assert (one.time is None) == (other.time is None)
        assert one.others.keys() == other.others.keys()
        for name, values in other.others.items():
            np.testing.assert_array_equal(one.others[name], values, err_msg=name)
            assert one.others[name].dtype == values.dtype, name


def test_what_is_written_is_read_back() -> None:
    texts = np.array([["a", "früh"]] * 4, "U10")
    kept = {"seed": 3, "params/body_mass:foot": 1.5, "draw_index": 2, "note": "windy", "qpos/x": np.zeros((4, 0, 2))}
    given = episodes(1, **kept, texts=texts, time=[0.0, 0.1, 0.2, 0.3])
    found = read_minari(write(given=given))
    np.testing.assert_array_equal(found[0].time, given[0].time)
    widened = {**given[0].others, "texts": texts}
    assert found[0].others["texts"].tolist() == texts.tolist()
    for name in widened.keys() - {"texts"}:
        np.testing.assert_array_equal(found[0].others[name], widened[name], err_msg=name)
    assert found[0].others.keys() == widened.keys()
    assert found[0].source.endswith("arm-v0, episode 0")


def test_a_recording_is_the_same_in_both_formats_and_plays_again_with_minaris_own_interface() -> None:
    asked: Any = {"env": LANDER, "episodes": 3, "progress": False}
    folder = record("random", output="lander/random-v0", **asked)
    record("random", output="npz", format="npz", **asked)
    assert folder == Path("root/lander/random-v0").absolute()
    found = open_log("lander/random-v0")
    assert_same(found, open_log("npz"))
    data = minari.load_dataset("lander/random-v0")
    assert (data.total_episodes, data.total_steps) == (3, sum(map(len, found)))
    assert list(minari.list_local_datasets()) == ["lander/random-v0"]
    env = data.recover_environment()
    (about,) = data.storage.get_episode_metadata([1])
    assert (about["seed"], about["draw_index"]) == (1, 0)
    observation, info = env.reset(seed=about["seed"], options=about["options"])
    assert info["params"]["wind_power"] == about["options"]["params"]["wind_power"]
    for action, expected in zip(data[1].actions, data[1].observations[1:], strict=True):
        observation, *_ = env.step(action)
        np.testing.assert_array_equal(observation, expected)
    assert data[1].terminations[-1]
    assert data[1].infos["state"]["physics"]["streams"].shape == (len(found[1]) + 1, 6)
    check_log(found, env.observation_space, env.action_space)
    env.close()


RULES = {"gravity": gym_dr.Normal(-8, 0.5, low=-9, high=-7), "obs_noise": (0, 0.1), "action_delay": 1}


@pytest.mark.parametrize("randomization", ["none", "wide", RULES], ids=["none", "wide", "rules"])
def test_the_recovered_environment_has_the_recordings_physics_and_disturbances(randomization: Any) -> None:
    record("random", gym_dr.draws(randomization), env=LANDER, episodes=2, output="lander/a-v0", progress=False)
    data = minari.load_dataset("lander/a-v0")
    (about,) = data.storage.get_episode_metadata([1])
    env = data.recover_environment()
    observation, info = env.reset(seed=about["seed"])
    assert info["params"] == about["options"]["params"]
    np.testing.assert_array_equal(observation, data[1].observations[0])
    for action, expected in zip(data[1].actions, data[1].observations[1:], strict=True):
        np.testing.assert_array_equal(env.step(action)[0], expected)
    env.close()


def test_the_command_records_a_data_set_by_id_and_by_path() -> None:
    args = ("record", "--policy", "random", "--env", "gym_dr/HopperDR-v5", "--episodes", "2", "--output")
    assert gymdr(*args, "hopper/a-v0").code == 0
    assert gymdr(*args, "./a-v1").out == "Wrote a-v1\n"
    assert_same(open_log("hopper/a-v0"), open_log("a-v1"))
    assert_same(open_log("a-v1/data"), open_log("a-v1"))
    assert len(minari.MinariDataset("a-v1/data")) == 2
    assert "already exists" in refused(gymdr(*args, "hopper/a-v0"))
    assert "expected a name that ends in a version" in refused(gymdr(*args, "hopper"))
    names = sorted(path.name for path in Path().iterdir())
    assert names == ["a-v1", "root"]


def test_a_data_set_that_minari_has_made_is_read() -> None:
    buffers = [
        EpisodeBuffer(
            seed=seed,
            options={"low": -0.1},
            observations=np.full((4, 3), seed, np.float32),
            actions=np.array([0, 1, 2]),
            rewards=[1.0, 2.0, 3.0],
            terminations=[False, False, True],
            truncations=[False] * 3,
            infos={"qpos": np.zeros((4, 2)), "time": np.arange(4) * 0.1},
        )
        for seed in (4, 5)
    ]
    with pytest.warns(UserWarning, match="None"):
        minari.create_dataset_from_buffers(
            "real/cart-v0", buffers, observation_space=Box(-9, 9, (3,)), action_space=Discrete(3)
        )
    first, second = open_log("real/cart-v0")
    assert second.observations.tolist() == [[5.0] * 3] * 4
    assert second.actions.tolist() == [0, 1, 2]
    assert first.time is not None
    assert first.time.tolist() == (np.arange(4) * 0.1).tolist()
    assert first.others["qpos"].shape == (4, 2)
    assert (first.others["seed"], first.others["options/low"]) == (4, -0.1)


def test_a_failure_leaves_nothing() -> None:
    def broken() -> Any:
        yield episodes()[0]
        raise ValueError("too long")

    with pytest.raises(ValueError, match="too long"):
        write(given=broken())
    assert list(Path("root/real").iterdir()) == []
    with pytest.raises(LogError, match="Expected at least one episode"):
        write(given=[])
    with pytest.raises(ConfigError, match=r"expected a name that ends in a version, as Minari's do, got 'arm'"):
        write("real/arm")
    assert list(Path("root/real").iterdir()) == []


# ---- data of strangers ----


def changed(change: Any) -> str:
    """What reading says of a data set whose file somebody has changed."""
    folder = write()
    with h5py.File(folder / "data" / "main_data.hdf5", "a") as file:
        change(file)
    with pytest.raises(LogError) as refused:
        read_minari(folder)
    shutil.rmtree(folder)
    return str(refused.value)


def test_nothing_leads_out_of_the_file_and_all_fits_into_memory(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["secret"] = np.zeros(4)

    def link(file: Any) -> None:
        file["episode_0/infos/x"] = h5py.ExternalLink("other.h5", "secret")

    def soft(file: Any) -> None:
        file["episode_0/infos/x"] = h5py.SoftLink("/episode_1")

    def cycle(file: Any) -> None:
        file["episode_0/infos/x"] = file["episode_0"]

    def outside(file: Any) -> None:
        file.create_dataset("episode_0/infos/x", (4,), "f8", external=[(str(tmp_path / "other.h5"), 0, 32)])

    def huge(file: Any) -> None:
        file.create_dataset("episode_0/infos/x", (10**7, 10**6), "f8", chunks=True)

    def nothing(file: Any) -> None:
        del file["episode_1"]

    def short(file: Any) -> None:
        del file["episode_1/actions"]
        file["episode_1/actions"] = np.zeros((5, 2))

    assert "'x': expected data, got a link" in changed(link)
    assert "'x': expected data, got a link" in changed(soft)
    assert "something else: RecursionError" in changed(cycle)
    assert "'x': expected data, got what lies in another file" in changed(outside)
    assert "expected a log of at most 8 GiB" in changed(huge)
    assert "something else: KeyError" in changed(nothing)
    assert "episode 1: expected one observation more than actions" in changed(short)


def test_no_environment_is_made_to_read_a_data_set_and_bad_descriptions_are_refused() -> None:
    folder = write()
    path = folder / "data" / "metadata.json"
    whole = json.loads(path.read_text())
    spec = gym.spec(LANDER).to_json().replace("gym_dr.envs.box2d.lunar_lander.env:LunarLanderDR", "nowhere:Boom")
    for changes, message in (
        ({"observation_space": None, "env_spec": spec}, "expected observation_space in metadata.json"),
        ({"total_episodes": 0}, "Expected a log of at least one episode"),
        ({"total_episodes": "2"}, "expected total_episodes in metadata.json"),
        ({"observation_space": "nonsense"}, "something else: JSONDecodeError"),
    ):
        path.write_text(json.dumps({**whole, **changes}))
        with pytest.raises(LogError) as refused:
            read_minari(folder)
        assert message in str(refused.value)
    path.write_text(json.dumps(whole))
    (folder / "data" / "main_data.hdf5").write_bytes(b"no HDF5")
    with pytest.raises(LogError, match="cannot be read"):
        read_minari(folder)


def test_observations_that_are_no_rows_and_missing_data_sets_are_refused() -> None:
    buffer = EpisodeBuffer(
        observations={"a": np.zeros((3, 3))},
        actions=np.zeros((2, 2), np.float32),
        rewards=[0.0, 0.0],
        terminations=[False, True],
        truncations=[False, False],
    )
    with pytest.warns(UserWarning, match="None"):
        minari.create_dataset_from_buffers(
            "real/nested-v0", [buffer], observation_space=Dict({"a": SEEN}), action_space=ACTED
        )
    with pytest.raises(LogError, match=r"Expected an environment whose observations are rows of numbers.* got Dict"):
        read_minari(Path("root/real/nested-v0"))
    with pytest.raises(LogError, match="got nothing of this name"):
        open_log("real/none-v0")


@pytest.mark.parametrize("kind", ["image", "dict", "tuple"])
def test_other_observations_are_recorded_as_they_are(kind: str) -> None:
    given: list[Any] = []

    def look(observations: Any) -> Any:
        given.append(copy.deepcopy(observations))
        return np.full((2, 1), 0.5)

    with registered():
        context = "info" if kind == "image" else "observation"  # which the log does not have
        policy = gym_dr.open_policy(look, env=id_of(kind), randomization=WIDE, context=context)
        folder = record(policy, episodes=2, output="seen/all-v0", progress=False)
    for i, episode in enumerate(minari.load_dataset("seen/all-v0").iterate_episodes()):
        assert len(episode) == 4
        read = episode.observations
        parts: Any = read if isinstance(read, dict) else range(2) if isinstance(read, tuple) else [...]
        for t, observations in enumerate(given[-4:]):
            for part in parts:
                np.testing.assert_array_equal(read[part][t], observations[part][i])
    with pytest.raises(LogError, match="Flatten"):  # in a log for fits
        read_minari(folder)
