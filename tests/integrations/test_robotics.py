"""Models and environments that other packages ship: gymnasium-robotics' and dm_control's."""

from __future__ import annotations

import runpy
import sys
import types
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gym_dr import DrawContext, RandomizeMujoco, Scale
from gym_dr.testing.playing import NEXT_STEP, SAME_STEP, assert_same, play
from tests.envs.mujoco.names import assert_same_episodes
from tests.registered import forgotten_afterwards

gymnasium_robotics = pytest.importorskip("gymnasium_robotics")
pytest.importorskip("dm_control")

pytestmark = pytest.mark.integration

EXAMPLES = Path(__file__).parents[2] / "examples"
CUP = "own_robot:mine/BallInCup-v0"
MASSES = {"body_mass:*": Scale((0.5, 2.0)), "dof_damping": Scale((0.5, 2.0))}


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Registers gymnasium-robotics' ids, and has its Fetch compare types of joints as it means to.

    MuJoCo's enumerations are not equal to numpy's integers from the left, which its `in (...)` asks for.
    """
    from gymnasium_robotics.utils import mujoco_utils

    joints = {name: int(kind) for name, kind in mujoco_utils.mujoco.mjtJoint.__members__.items()}
    theirs = types.SimpleNamespace(**{**vars(mujoco_utils.mujoco), "mjtJoint": types.SimpleNamespace(**joints)})
    monkeypatch.setattr(mujoco_utils, "mujoco", theirs)
    monkeypatch.syspath_prepend(EXAMPLES)
    sys.modules.pop("own_robot", None)
    with forgotten_afterwards(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs, of deprecations
        gym.register_envs(gymnasium_robotics)
        yield


@pytest.mark.parametrize("env_id", ["FetchReach-v4", "FetchPickAndPlace-v4", "AdroitHandDoor-v1", "AdroitHandPen-v1"])
def test_each_episode_has_a_model_of_its_own_and_the_nominal_one_comes_back(env_id: str) -> None:
    env = RandomizeMujoco(gym.make(env_id), MASSES)
    model: Any = env.unwrapped.model  # type: ignore[attr-defined]
    nominal = model.body_mass.copy()
    bodies = {name: model.body(name.partition(":")[2]).id for name in env.params if name.startswith("body_mass:")}
    for seed in (3, None):
        _, info = env.reset(seed=seed)
        drawn = [info["params"][name] for name in bodies]
        env.step(env.action_space.sample())
        np.testing.assert_array_equal(model.body_mass[list(bodies.values())], drawn)
    assert (drawn != nominal[list(bodies.values())]).all()
    env.reset(options={"params": {name: env.param_space[name].nominal for name in env.params}})
    np.testing.assert_allclose(model.body_mass, nominal)


@pytest.mark.parametrize("env_id", ["FetchReach-v4", "AdroitHandDoor-v1"])
def test_a_seed_gives_the_same_draws_and_episode(env_id: str) -> None:
    def episode() -> list[Any]:
        env = RandomizeMujoco(gym.make(env_id), MASSES)
        env.action_space.seed(0)
        observation, info = env.reset(seed=7)
        rows = [observation, info["params"]]
        return rows + [env.step(env.action_space.sample())[0] for _ in range(3)]

    for left, right in zip(episode(), episode(), strict=True):
        np.testing.assert_equal(left, right)


@pytest.mark.parametrize("mode", [SAME_STEP, NEXT_STEP])
def test_goals_come_with_the_draw_in_every_way(mode: Any) -> None:
    def reach(**context: Any) -> Any:
        return RandomizeMujoco(gym.make("FetchReach-v4", max_episode_steps=3), MASSES, **context)

    seen = {"context": "observation", "context_params": ["body_mass:robot0:gripper_link"]}
    keyword = gym.vector.SyncVectorEnv([partial(reach, **seen)] * 2, autoreset_mode=mode)
    wrapper = DrawContext(gym.vector.SyncVectorEnv([reach] * 2, autoreset_mode=mode), *seen.values())
    rows = play(keyword)
    assert_same(rows, play(wrapper))
    assert rows[0][0].keys() == {"observation", "achieved_goal", "desired_goal", "context"}


def test_the_example_is_short_and_equal_in_every_mode() -> None:
    assert len((EXAMPLES / "own_robot.py").read_text().splitlines()) <= 80
    sync = gym.make_vec(CUP, 3, vectorization_mode="sync", max_episode_steps=12)
    native = gym.make_vec(CUP, 3, vectorization_mode="vector_entry_point", max_episode_steps=12)
    assert assert_same_episodes(sync, native, 30) >= 6


def test_the_example_trains_and_is_evaluated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(sys, "argv", ["own_robot.py", str(tmp_path / "run"), "2"])
    runpy.run_path(str(EXAMPLES / "own_robot.py"), run_name="__main__")
    assert "nominal" in capsys.readouterr().out
