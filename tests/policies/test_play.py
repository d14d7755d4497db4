from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import imageio.v3 as imageio
import numpy as np
import pygame
import pytest

from gym_dr.errors import ConfigError, GymDrError, RunFolderError
from gym_dr.evaluation.suite import cells_to_play
from gym_dr.policies import play
from gym_dr.policies.open import open_runs
from gym_dr.randomization.sampler import EpisodeRecord
from gym_dr.runs.configure import open_run
from tests.policies.tiny_run import train_tiny_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A policy and its training draws."""
    run = train_tiny_run(tmp_path_factory.mktemp("play") / "run", "--env", "gym_dr/CartPoleDR-v1")  # short episodes
    (policy,) = open_runs([open_run(str(run))])
    return policy, cells_to_play(policy, None, 1).draws


# imageio's MP4 reader, which only this test uses, leaves its pipes to the garbage collector
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", ["out.gif", "out.mp4"])
def test_a_video_of_the_policy_is_written(run: Any, tmp_path: Path, name: str) -> None:
    episodes = list(play.play_policy(*run, seed=3, video=str(tmp_path / name)))
    frames = imageio.imread(tmp_path / name)
    total = sum(episode.length for episode in episodes)
    # GIF shows every second frame of 50 a second
    assert len(frames) == pytest.approx(total / 2 if name == "out.gif" else total, abs=2)
    assert frames.shape[1:] == (400, 600, 3)
    assert frames[0].std() > 10  # not blank


def test_the_seed_decides_draws_and_episodes(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        play, "_picture", lambda envs: np.zeros((16, 16, 3), np.uint8)
    )  # drawing takes most of the time

    def played(seed: int) -> list[EpisodeRecord]:
        return list(play.play_policy(run[0], replace(run[1], episodes=2), seed=seed, video=str(tmp_path / "out.gif")))

    episodes = played(3)
    assert episodes == played(3) != played(4)
    assert episodes[0].params["gravity"] != episodes[1].params["gravity"]


def test_a_video_may_lie_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    with play.open_video("~/out.gif", 50) as show:
        show(np.zeros((16, 16, 3), np.uint8))
    assert [path.name for path in tmp_path.iterdir()] == ["out.gif"]


def test_a_window_shows_the_policy(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # SDL's dummy driver stands in for a display, at which nobody watches
    monkeypatch.setattr(pygame.time, "Clock", lambda: SimpleNamespace(tick=lambda fps: 0))
    episodes = list(play.play_policy(*run, seed=3, video=None))
    assert episodes[0].length > 10


def test_without_a_display_a_window_is_refused(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    with pytest.raises(ConfigError, match=r"`video=FILE\.gif`"):
        list(play.play_policy(*run, seed=0, video=None))
    with pytest.raises(ConfigError, match="no display"):
        play.play_by_hand("gym_dr/LunarLanderDR-v3", seed=0)


@pytest.mark.parametrize(
    ("video", "message"),
    [("out.avi", "ends in .mp4 or .gif"), ("no/where/out.gif", "cannot be written: No such file")],
)
def test_impossible_videos_are_refused_before_anything_is_played(
    run: Any, video: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(GymDrError, match=message):
        next(play.play_policy(*run, seed=0, video=str(tmp_path / video)))


def test_a_video_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "out.gif").mkdir()
    with pytest.raises(RunFolderError, match=r"out\.gif"), play.open_video(str(tmp_path / "out.gif"), 50) as show:
        show(np.zeros((4, 4, 3), dtype=np.uint8))
    assert [path.name for path in tmp_path.iterdir()] == ["out.gif"]


def test_an_old_video_stays_until_the_new_one_is_complete(tmp_path: Path) -> None:
    video = tmp_path / "out.gif"
    video.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), play.open_video(str(video), 50) as show:
        show(np.zeros((4, 4, 1 // 0)))
    assert video.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["out.gif"]


@pytest.mark.parametrize(
    ("env_id", "key", "action", "without"),
    [
        ("gym_dr/LunarLanderDR-v3", pygame.K_UP, 2, 0),
        ("gym_dr/LunarLanderContinuousDR-v3", pygame.K_RIGHT, [0.0, 1.0], [0.0, 0.0]),
        ("gym_dr/MountainCarDR-v0", pygame.K_RIGHT, 2, 1),
        ("gym_dr/PendulumDR-v1", pygame.K_RIGHT, [-2.0], [0.0]),
        ("CartPole-v1", pygame.K_RIGHT, 1, 0),
    ],
)
def test_arrow_keys_fly(env_id: str, key: int, action: Any, without: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Real key events through pygame: press, hold for some steps, close the window."""
    actions: list[Any] = []
    original = gym.wrappers.TimeLimit.step

    def spy(self: Any, chosen: Any) -> Any:
        actions.append(np.asarray(chosen).tolist())
        if len(actions) == 1:
            pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=key))
        if len(actions) == 6:
            pygame.event.post(pygame.event.Event(pygame.QUIT))
        return original(self, chosen)

    monkeypatch.setattr(gym.wrappers.TimeLimit, "step", spy)
    play.play_by_hand(env_id, seed=1)
    assert actions[0] == without
    assert actions[2:6] == [action] * 4


def test_an_environment_without_known_keys_is_refused() -> None:
    with pytest.raises(ConfigError, match="no keys"):
        play.play_by_hand("Pendulum-v1", seed=0)
