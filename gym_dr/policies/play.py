"""Plays episodes of a policy, or by hand, in a window or into a video."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, cast

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box
from gymnasium.vector import VectorEnv

from gym_dr.arrays import Array
from gym_dr.envs.families import DEFAULT_ENV
from gym_dr.envs.family import ENVIRONMENTS
from gym_dr.errors import ConfigError, RunFolderError, as_path, check_known, needs
from gym_dr.paths import temporary_beside
from gym_dr.policies.frozen import Draws, FrozenPolicy, drive
from gym_dr.randomization.sampler import EpisodeRecord
from gym_dr.randomization.space import ParamSpace, in_effect
from gym_dr.randomization.spec import Randomization, Rule
from gym_dr.runs.environments import check_env_id, make_env, space_of
from gym_dr.runs.folder import check_output
from gym_dr.wrappers.disturbed_space import undisturbed
from gym_dr.wrappers.record import RecordEpisodes

Frame = npt.NDArray[np.uint8]  # (height, width, 3)

MAX_LINES = 8  # of a caption
_HEIGHT = 28  # of a picture, in lines of text
_SMALLEST = 10  # pixels of a line

# GLFW's codes of keys for which MuJoCo's viewer has no use -> an entry of the memory, and which way
_WAYS = {265: (0, 1), 264: (0, -1), ord("7"): (1, 1), ord("9"): (1, -1), 263: (2, 1), 262: (2, -1)}
_ZERO, _CHANGES = ord(" "), {ord("="): 1, ord("-"): -1}
_PARTS = 10  # of a range, of which a key goes one


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


# ---- captions --------------------------------------------------------------------------------------------------------


def caption_of(names: Collection[str], params: Mapping[str, float], space: ParamSpace) -> list[str]:
    """Lines with the values of parameters, as many as fit a picture.

    Args:
        names: The parameters, in the order of the lines; those without a value or an effect are left out.
        params: name -> value.
        space: Their units.
    """
    lines = [f"{name} {params[name]:.4g} {_unit(name, space)}".rstrip() for name in in_effect(names, params, space)]
    left = len(lines) - MAX_LINES
    return lines if left <= 0 else [*lines[: MAX_LINES - 1], f"and {left + 1} more"]


def captioned(picture: Any, lines: Sequence[str]) -> Frame:
    """A copy of a picture with lines of text in its upper left corner, on a shade of gray."""
    from PIL import Image, ImageDraw, ImageFont  # heavy

    image = Image.fromarray(np.asarray(picture))
    size = max(_SMALLEST, image.height // _HEIGHT)
    draw = ImageDraw.Draw(image, "RGBA")
    text, place, font = "\n".join(lines), (size // 2, size // 2), ImageFont.load_default(size)
    if lines:
        left, top, right, bottom = draw.multiline_textbbox(place, text, font=font)
        draw.rectangle((left - 4, top - 4, right + 4, bottom + 4), fill=(0, 0, 0, 140))
        draw.multiline_text(place, text, fill="white", font=font)
    return np.asarray(image)


def _unit(name: str, space: ParamSpace) -> str:
    return space[name].unit if name in space and space[name].kind == "float" else ""


# ---- steering --------------------------------------------------------------------------------------------------------


class Steering:
    """Holds entries of a task's memory, such as its command, and changes the model in a running episode.

    The task may write its memory as it likes: what is held is written again before each observation. The model changes
    at once, in this one environment; the next episode begins with the same value, as one that was set.

    Attributes:
        params: name -> value; keys change the first one.
        pressed: Keys that the next ``apply`` follows; the viewer appends to it in its own thread.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        given: Mapping[str, Sequence[float]],
        space: ParamSpace,
        drawn: Mapping[str, Rule] | None = None,
        params: Mapping[str, float] | None = None,
    ) -> None:
        """Checks the entries.

        Args:
            env: A single environment.
            given: Memory -> its entries, which are held. With keys, all memory that the task lets them drive is held.
            space: Its parameters.
            drawn: Those of the training: a key changes one by a tenth of its range there, or else of its nominal value.
            params: Parameters with given values; None without keys.

        Raises:
            ConfigError: An entry is missing or out of range.
            UnknownNameError: The task has no such memory, or none that can be steered.
        """
        self.params, self.pressed = dict(params or {}), deque[int]()
        self._env, self._space, self._drawn = env, space, drawn or {}
        steer = env.get_wrapper_attr("steer") or {} if env.has_wrapper_attr("steer") else {}
        self._held: dict[str, tuple[Array, Box]] = {}  # memory -> entries (k,), and what they may be
        for name in given if params is None else dict.fromkeys((*given, *steer)):
            check_known(f"memory to steer in {env.spec.id if env.spec else env}:", name, steer)
            low, high = map(np.ravel, steer[name])
            held, box = np.array(given.get(name, np.clip(0.0, low, high)), np.float64), Box(low, high, dtype=np.float64)
            if not box.contains(held):
                raise ConfigError(f"`steer`: expected numbers for {name} in {box}, got {held.tolist()}.")
            self._held[name], cast(Any, env.unwrapped).held[name] = (held, box), held

    def apply(self) -> None:
        """Follows the keys."""
        while self.pressed:
            self._follow(self.pressed.popleft())

    def held(self) -> list[str]:
        """A line for each memory that is held."""
        return [" ".join([name, *(f"{value:.3g}" for value in held)]) for name, (held, _) in self._held.items()]

    def _follow(self, key: int) -> None:
        entry, way = _WAYS.get(key, (0, 0))
        for held, box in self._held.values():
            held[entry : entry + 1] += way * (box.high - box.low)[entry : entry + 1] / _PARTS
            held[:] = np.clip(0.0 if key == _ZERO else held, box.low, box.high)
        for name in [*self.params][: key in _CHANGES]:
            param, rule = self._space[name], self._drawn.get(name)
            low, high = rule.support(param.nominal) if rule else (0.0, abs(param.nominal) or 1.0)
            changed = self.params[name] + _CHANGES[key] * ((high - low) / _PARTS if param.kind == "float" else 1.0)
            self.params[name] = float(np.clip(changed, param.low, param.high))
            self._env.get_wrapper_attr("change")(self.params)
