"""Plays episodes of a policy, or by hand, in a window or into a video."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import VectorEnv

from gym_dr.envs.families import DEFAULT_ENV
from gym_dr.envs.family import ENVIRONMENTS
from gym_dr.errors import ConfigError, RunFolderError
from gym_dr.evaluation.acting import drive
from gym_dr.evaluation.policies import FrozenPolicy
from gym_dr.randomization.spec import Randomization
from gym_dr.runs.environments import check_env_id, make_env, make_vector_env
from gym_dr.wording import spelled
from gym_dr.wrappers.record import EpisodeRecord, RecordEpisodes

Frame = npt.NDArray[np.uint8]  # (height, width, 3)


def play_policy(
    policy: FrozenPolicy, randomization: Randomization | None, *, episodes: int, seed: int, video: str | None
) -> Iterator[EpisodeRecord]:
    """Plays a policy on draws of a randomization, in a window or into a video that ends in .mp4 or .gif.

    ``seed``, that of the first episode, determines the draws; environments without parameters have none.

    Yields:
        Each finished episode; the video is complete when the iteration ends.

    Raises:
        ConfigError: The video format is unknown or needs a missing package, or there is no display.
        RunFolderError: The video cannot be written.
    """
    if video is not None:
        _check_video(video)
    else:
        _check_display(f"write a video with {spelled('video', 'FILE.gif')} instead")
    render_mode = "human" if video is None else "rgb_array"
    envs = make_vector_env(policy.env, 1, "sync", randomization, render_mode=render_mode)
    played: list[EpisodeRecord] = []
    envs = RecordEpisodes(policy.wrap(envs, randomization), played.append)
    with contextlib.closing(envs), open_video(video, int(envs.metadata.get("render_fps", 30))) as add_frame:
        act = policy.make(envs)
        for episode in range(episodes):
            for _ in drive(act, envs, seed=seed if episode == 0 else None):
                add_frame(_picture(envs))
                if len(played) > episode:
                    break
            yield played[-1]


def play_by_hand(env_id: str, seed: int) -> None:
    """Lets the user play with the arrow keys until the window is closed.

    Raises:
        UnknownNameError: There is no such environment.
        ConfigError: There are no keys for the environment's actions, or there is no display.
    """
    check_env_id(env_id)
    _check_display("playing by hand needs one")
    env = make_env(env_id, None, render_mode="rgb_array")
    try:
        keys = _key_codes(env)
        with warnings.catch_warnings():  # it asks matplotlib for a window toolkit, which play() does not need
            warnings.simplefilter("ignore")
            from gymnasium.utils.play import play

        noop = keys.pop((), np.zeros(env.action_space.shape or (), env.action_space.dtype))
        play(env, keys_to_action=keys, noop=noop, seed=seed, zoom=1.5)
    finally:
        env.close()


@contextlib.contextmanager
def open_video(video: str | None, fps: int) -> Iterator[Callable[[Any], None]]:
    """Opens an MP4 or GIF file, by its suffix, and yields a function that adds a frame; a no-op without a video.

    Raises:
        RunFolderError: The file cannot be written.
    """
    if video is None:
        yield lambda frame: None
        return
    import imageio.v2 as imageio  # heavy; its v3 interface cannot write frame by frame

    gif = Path(video).suffix == ".gif"
    # GIF delays are in hundredths of a second, and players slow down delays below two
    every = max(1, round(fps / 25)) if gif else 1
    options = (
        {"duration": 1000 * every / fps, "loop": 0} if gif else {"fps": fps, "codec": "libx264", "macro_block_size": 2}
    )
    frames = 0
    try:
        writer: Any  # imageio declares the common base of readers and writers
        with imageio.get_writer(video, mode="I", **options) as writer:

            def add_frame(frame: Frame) -> None:
                nonlocal frames
                if frames % every == 0:
                    writer.append_data(np.asarray(frame))
                frames += 1

            yield add_frame
    except OSError as error:
        raise RunFolderError(f"{video}: the video cannot be written: {error}.") from None


def _picture(envs: VectorEnv[Any, Any, Any]) -> Any:
    """The frame of the only sub-environment; None if there is a window."""
    return (envs.render() or [None])[0]


def _check_display(instead: str) -> None:
    if sys.platform == "linux" and not os.environ.keys() & {"DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"}:
        raise ConfigError(f"There is no display to open a window on; {instead}.")


def _check_video(video: str) -> None:
    suffix = Path(video).suffix
    if suffix not in (".mp4", ".gif"):
        raise ConfigError(f"{spelled('video')}: expected a file that ends in .mp4 or .gif, got {video!r}.")
    if not Path(video).absolute().parent.is_dir():
        raise ConfigError(f"{spelled('video')}: there is no folder {Path(video).parent}.")
    if suffix == ".mp4":
        try:
            import imageio_ffmpeg  # noqa: F401  imageio imports it
        except ImportError:
            raise ConfigError(
                f"{spelled('video')}: MP4 needs 'pip install gym-dr[video]'; GIF works without it."
            ) from None


def arrow_keys(env: gym.Env[Any, Any]) -> dict[tuple[str, ...], Any]:
    """Arrow keys -> actions: those of the environment's family, else left and right for the first and last action.

    With three actions, no key is the middle one. Empty if the environment cannot be played by hand.
    """
    space, name = env.action_space, env.spec.id if env.spec is not None else ""
    actions = dict(ENVIRONMENTS.get(name).keys) if name in ENVIRONMENTS else {}
    if not actions and isinstance(space, gym.spaces.Discrete) and space.n in (2, 3):
        actions = {("left",): int(space.start), ("right",): int(space.start + space.n - 1)}
        actions |= {(): int(space.start + 1)} if space.n == 3 else {}
    return actions


def _key_codes(env: gym.Env[Any, Any]) -> dict[tuple[int, ...], Any]:
    import pygame  # opens no window yet

    space, actions = env.action_space, arrow_keys(env)
    if not actions:
        raise ConfigError(f"There are no keys for the actions {space}; play {DEFAULT_ENV}.")
    codes = {"left": pygame.K_LEFT, "right": pygame.K_RIGHT, "up": pygame.K_UP, "down": pygame.K_DOWN}
    return {tuple(sorted(codes[key] for key in keys)): np.array(act, space.dtype) for keys, act in actions.items()}
