"""Plays episodes of a policy, or by hand, in a window or into a video."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import gymnasium as gym
import numpy as np
from gymnasium.vector import VectorEnv

from gym_dr.envs.families import DEFAULT_ENV
from gym_dr.envs.family import ENVIRONMENTS
from gym_dr.errors import ConfigError, RunFolderError, as_path
from gym_dr.paths import temporary_beside
from gym_dr.policies.acting import drive
from gym_dr.policies.captions import Frame, caption_of, captioned
from gym_dr.policies.draws import Draws
from gym_dr.policies.frozen import FrozenPolicy
from gym_dr.policies.steering import Steering
from gym_dr.randomization.sampler import EpisodeRecord
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization
from gym_dr.registry import needs
from gym_dr.runs.durable import check_output
from gym_dr.runs.environments import check_env_id, make_env, space_of
from gym_dr.wrappers.disturbed_space import undisturbed
from gym_dr.wrappers.record import RecordEpisodes


def play_policy(
    policy: FrozenPolicy,
    draws: Draws,
    *,
    seed: int,
    video: str | None,
    steer: Mapping[str, Sequence[float]] | None = None,
) -> Iterator[EpisodeRecord]:
    """Plays a policy in a window, or into a video that ends in .mp4 or .gif.

    Drawn and given values are shown in a corner of the video. The window of a robot is MuJoCo's viewer, where keys
    steer it and change the parameters with given values.

    Args:
        policy: The policy.
        draws: The draws to play, and the number of episodes.
        seed: Seed of the first episode, which determines the draws.
        video: File to write; None for a window.
        steer: What a task's memory holds, in a window at first: name -> its entries.

    Yields:
        Each finished episode; the video is complete when the iteration ends.

    Raises:
        ConfigError: The video format is unknown or needs a missing package, or there is no display.
        RunFolderError: The video cannot be written.
    """
    if video is not None:
        _check_video(video)
    else:
        _check_display("write a video with `video=FILE.gif` instead")
    played: list[EpisodeRecord] = []
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*HumanRendering")  # Gymnasium's window for environments without one
        made = policy.make_envs(draws, render_mode="human" if video is None else "rgb_array")
    envs = RecordEpisodes(made, played.append)
    space, fps = policy.space or ParamSpace("", []), int(envs.metadata.get("render_fps", 30))
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.closing(envs))
        (single,) = cast(Any, envs.unwrapped).envs
        # MuJoCo's viewer, which needs mjpython on macOS
        viewed = (
            video is None
            and hasattr(single.unwrapped, "open_viewer")
            and (sys.platform != "darwin" or "MJPYTHON_BIN" in os.environ)
        )
        first = {name: float(values[0]) for name, values in draws.values.items()} if viewed else None
        if viewed:
            single.unwrapped.render_mode = None  # no second window
        steering = Steering(single, steer or {}, space, policy.randomization, first)
        add_frame = stack.enter_context(open_video(video, fps))
        show = stack.enter_context(single.unwrapped.open_viewer(steering.pressed.append)) if viewed else None
        act = policy.make(envs)
        for episode in range(draws.episodes):
            params = {name: values[episode] for name, values in draws.values.items()} | steering.params
            options = {"params": params} if params else None
            for moment in drive(act, envs, seed=seed if episode == 0 else None, options=options):
                steering.apply()
                drawn = {name: values[0] for name, values in moment.info.get("params", {}).items()}
                lines = [*caption_of(draws.names, drawn | steering.params, space), *steering.held()]
                if show is None:
                    add_frame(_picture(envs), lines)
                elif not show(lines):
                    return
                if len(played) > episode:
                    break
            yield played[-1]


class _Chosen(gym.Wrapper[Any, Any, Any, Any]):
    """Plays episodes with given values, and writes these and the draw into pictures."""

    def __init__(self, env: gym.Env[Any, Any], params: Mapping[str, float], space: ParamSpace) -> None:
        super().__init__(env)
        self._params, self._space = dict(params), space
        drawn = env.get_wrapper_attr("randomization") if env.has_wrapper_attr("randomization") else ()
        self._shown = dict.fromkeys((*params, *drawn))
        self._lines: list[str] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        chosen = {"params": self._params} if self._params else {}
        observation, info = self.env.reset(seed=seed, options={**(options or {}), **chosen} or None)
        self._lines = caption_of(self._shown, info.get("params", {}), self._space)
        return observation, info

    def render(self) -> Any:
        return captioned(self.env.render(), self._lines)


def play_by_hand(
    env_id: str,
    seed: int,
    randomization: Randomization | None = None,
    params: Mapping[str, float] | None = None,
) -> None:
    """Lets the user play with the arrow keys until the window is closed.

    Args:
        env_id: Id of the environment.
        seed: Seed of the first episode.
        randomization: The distribution; None for the id's default.
        params: name -> value, checked; replaces a draw.

    Raises:
        UnknownNameError: There is no such environment.
        ConfigError: There are no keys for the environment's actions, or there is no display.
    """
    check_env_id(env_id)
    _check_display("playing by hand needs one")
    exact = dict(params or {})
    if randomization is not None:  # and the disturbances with given values
        randomization = Randomization({**undisturbed(exact), **randomization}, correlation=randomization.correlation)
    with contextlib.closing(make_env(env_id, randomization, render_mode="rgb_array")) as env:
        keys = _key_codes(env)
        with warnings.catch_warnings():  # Gymnasium asks matplotlib for a window toolkit, which play() does not need
            warnings.simplefilter("ignore")
            from gymnasium.utils.play import play

        noop = keys.pop((), np.zeros(env.action_space.shape or (), env.action_space.dtype))
        chosen = _Chosen(env, exact, space_of(env) or ParamSpace("", []))
        play(chosen, keys_to_action=keys, noop=noop, seed=seed, zoom=1.5)


@contextlib.contextmanager
def open_video(video: str | None, fps: int) -> Iterator[Callable[..., None]]:
    """Opens an MP4 or GIF file, by its suffix, and yields a function that adds a frame, if there is a video.

    The function takes a frame and the lines of its caption. The file gets its name when it is complete.

    Raises:
        RunFolderError: The file cannot be written.
    """
    if video is None:
        yield lambda frame, caption=(): None
        return
    import imageio.v2 as imageio  # heavy; its v3 interface cannot write frame by frame

    gif = as_path(video).suffix == ".gif"
    # GIF delays are in hundredths of a second, and players slow down delays below two
    every = max(1, round(fps / 25)) if gif else 1
    options = (
        {"duration": 1000 * every / fps, "loop": 0} if gif else {"fps": fps, "codec": "libx264", "macro_block_size": 2}
    )
    frames = 0
    temporary = temporary_beside(as_path(video), as_path(video).suffix)
    try:
        temporary.touch(exist_ok=False)  # before anything is played: imageio may open it later
        writer: Any  # imageio declares the common base of readers and writers
        with imageio.get_writer(temporary, mode="I", **options) as writer:

            def add_frame(frame: Frame, caption: Sequence[str] = ()) -> None:
                nonlocal frames
                if frames % every == 0:
                    writer.append_data(captioned(frame, caption))
                frames += 1

            yield add_frame
        os.replace(temporary, as_path(video))
    except OSError as error:
        raise RunFolderError(f"{video}: the video cannot be written: {error.strerror or error}.") from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _picture(envs: VectorEnv[Any, Any, Any]) -> Any:
    """The frame of the only sub-environment; None with a window."""
    return (envs.render() or [None])[0]


def _check_display(instead: str) -> None:
    if sys.platform == "linux" and not os.environ.keys() & {"DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"}:
        raise ConfigError(f"There is no display to open a window on; {instead}.")


def _check_video(video: str) -> None:
    check_output(as_path(video))
    suffix = as_path(video).suffix
    if suffix not in (".mp4", ".gif"):
        raise ConfigError(f"`video`: expected a file that ends in .mp4 or .gif, got {video!r}.")
    if suffix == ".mp4":
        needs("`video`: MP4, unlike GIF,", "video", "imageio_ffmpeg")


def arrow_keys(env: gym.Env[Any, Any]) -> dict[tuple[str, ...], Any]:
    """Arrow keys -> actions: those of the environment's family, else left and right for the first and last action.

    With three actions, no key means the middle one. Empty if the environment cannot be played by hand.
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
