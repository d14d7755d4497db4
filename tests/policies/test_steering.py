"""Keys and ``steer`` change what a robot's task remembers and its model; MuJoCo's window is not needed for that."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import gym_dr
from gym_dr.errors import ConfigError, UnknownNameError
from gym_dr.evaluation.suite import cells_to_play
from gym_dr.policies import play
from gym_dr.policies.open import open_policy
from gym_dr.policies.play import Steering
from gym_dr.randomization.space import ParamSpace
from tests.envs.mujoco.own_robots import legs
from tests.registered import forgotten_afterwards

OWN, MASS = "tests/Legs-v0", "body_mass:trunk"
UP, DOWN, LEFT = 265, 264, 263


@pytest.fixture
def robot() -> Iterator[str]:
    with forgotten_afterwards():
        gym_dr.register_robot(OWN, **legs.TASK)
        yield OWN


@pytest.fixture
def env(robot: str) -> Any:
    made = gym.make(robot, randomization="none")
    made.reset(seed=1)
    return made


def steered(env: Any, given: Any = None, **more: Any) -> Steering:
    return Steering(env, given or {}, env.get_wrapper_attr("param_space"), **more)


def command(env: Any) -> Any:
    return env.get_wrapper_attr("memory")["command"].tolist()


def test_what_is_held_is_observed_from_the_reset_on_whatever_the_task_draws(env: Any) -> None:
    steered(env, {"command": [0.5]})
    seen = [env.reset(seed=2)[0], *(env.step(np.zeros(2))[0] for _ in range(11))]
    assert {float(observation[2]) for observation in seen} == {0.5}


def test_a_key_goes_a_tenth_of_the_range_and_not_beyond_it(env: Any) -> None:
    held = steered(env, params={})

    def press(*keys: int) -> Any:
        held.pressed.extend(keys)
        held.apply()
        env.step(np.zeros(2))
        return command(env)[0][0]

    assert press() == 0.0
    assert press(UP, UP) == pytest.approx(0.4)
    assert press(DOWN) == pytest.approx(0.2)
    assert press(LEFT) == pytest.approx(0.2)  # a third entry, which this command does not have
    assert press(*[UP] * 9) == 1.0
    assert press(ord(" ")) == 0.0


@pytest.mark.parametrize(
    ("drawn", "part"),
    [({}, 0.1), ({MASS: gym_dr.Rule(gym_dr.Uniform(0.5, 3.5))}, 0.3)],
    ids=["of the nominal value", "of the range that training draws"],
)
def test_a_key_changes_the_model_of_the_running_episode_by_a_tenth(env: Any, drawn: Any, part: float) -> None:
    held, model = steered(env, drawn=drawn, params={MASS: 1.0}), env.unwrapped.model
    before = model.body("trunk").inertia.copy()
    held.pressed.extend([ord("="), UP])
    held.apply()
    assert held.params == {MASS: 1.0 + part}
    assert model.body("trunk").mass[0] == 1.0 + part
    np.testing.assert_allclose(model.body("trunk").inertia, before * (1.0 + part))
    held.pressed.extend([ord("-")] * 20)
    held.apply()
    assert model.body("trunk").mass[0] == env.get_wrapper_attr("param_space")[MASS].low


def test_other_draws_stay_when_a_key_changes_one(robot: str) -> None:
    env = gym.make(robot, randomization={"body_mass:left": (0.2, 0.9)})
    env.reset(seed=1)
    model: Any = env.unwrapped.model  # type: ignore[attr-defined]
    drawn = float(model.body("left").mass[0])
    held = steered(env, params={MASS: 1.0})
    held.pressed.append(ord("="))
    held.apply()
    assert (model.body("left").mass[0], model.body("trunk").mass[0]) == (drawn, 1.1)


@pytest.mark.parametrize("given", [[2.0], [0.1, 0.2], [float("nan")], []], ids=str)
def test_entries_out_of_range_or_of_another_number_are_refused(env: Any, given: Any) -> None:
    with pytest.raises(ConfigError, match="`steer`: expected numbers for command"):
        steered(env, {"command": given})


def test_memory_that_cannot_be_steered_is_refused_with_what_can(env: Any) -> None:
    with pytest.raises(UnknownNameError, match=r"clock.*Known: command"):
        steered(env, {"clock": [0.0]})
    other = gym.make("CartPole-v1")
    with pytest.raises(UnknownNameError, match="command"):
        Steering(other, {"command": [0.0]}, ParamSpace("", []))


def still(observations: Any) -> Any:
    """The policy."""
    return np.zeros((len(observations), 2), np.float32)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The lines of each picture, in a video or a window."""
    lines: list[list[str]] = []
    monkeypatch.setattr(play, "_picture", lambda envs: np.zeros((16, 16, 3), np.uint8))

    def captioned(picture: Any, text: Any) -> Any:
        lines.append(list(text))
        return picture

    monkeypatch.setattr(play, "captioned", captioned)
    return lines


def played(values: dict[str, Any] | None = None, **given: Any) -> list[Any]:
    policy = open_policy(f"{__name__}:still", env=OWN, randomization="none", trust=[__name__])
    cells = cells_to_play(policy, None if values is None else gym_dr.draws(None, **values), 2)
    return list(play.play_policy(policy, cells.draws, seed=1, **given))


def test_a_video_shows_what_is_held(robot: str, shown: list[list[str]], tmp_path: Path) -> None:
    played(video=str(tmp_path / "out.gif"), steer={"command": [0.5]})
    assert {tuple(lines) for lines in shown} == {("command 0.5",)}


def test_a_value_that_keys_changed_holds_in_the_next_episode(
    robot: str, shown: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A window that nobody sees: it presses a key in the middle of the first episode, and is closed at the end."""
    masses: list[float] = []

    @contextlib.contextmanager
    def opened(env: Any, press: Callable[[int], None]) -> Iterator[Any]:
        def show(lines: list[str]) -> bool:
            shown.append(lines)
            masses.append(float(env.model.body("trunk").mass[0]))
            if len(masses) == 5:
                press(ord("="))
                press(UP)
            return len(masses) < 20

        yield show

    monkeypatch.setattr("gym_dr.envs.mujoco.robot_env.RobotEnv.open_viewer", opened)
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr("sys.platform", "linux")
    (first,) = played({MASS: 2.0}, video=None)  # the second episode was not finished
    assert masses == [2.0] * 5 + [2.1] * 15
    assert (first.length, first.params[MASS]) == (12, 2.0)
    assert shown[4] == [f"{MASS} 2 kg", "command 0"]
    assert shown[5] == shown[-1] == [f"{MASS} 2.1 kg", "command 0.2"]
