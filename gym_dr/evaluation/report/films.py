"""Film strips: single episodes of an evaluation, played again exactly and drawn."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from gym_dr.errors import ConfigError
from gym_dr.evaluation.policies import RunPolicy
from gym_dr.evaluation.protocol import play_wave
from gym_dr.evaluation.report.compared import Compared
from gym_dr.evaluation.report.page import Film
from gym_dr.evaluation.report.tables import where
from gym_dr.randomization.spec import Randomization
from gym_dr.runs.environments import make_env
from gym_dr.wrappers.disturbed_space import at_rest

FRAMES = 12  # of a strip, the first and the last of the episode among them
SEEN = 80  # pictures that they are chosen from
STILL = 0.4  # weight of time against that of change in the choice
WIDTH = 320  # pixels of a frame
QUALITY = 75  # of WebP; some 5 kB a frame of LunarLander, 10 kB of MuJoCo's
MOST_GROUPS = 6  # that have strips, so that a page stays small enough to send around

Frame = npt.NDArray[np.uint8]  # (height, width, 3)


@dataclass(frozen=True, kw_only=True)
class Episode:
    """Where an episode is in an evaluation."""

    policy: RunPolicy
    set_name: str
    number: int  # in the set
    episode_return: float


@dataclass(frozen=True, kw_only=True)
class Replay:
    """An episode that was played again."""

    frames: list[tuple[str, Frame]]  # when, and what is seen
    params: dict[str, float]  # values in force
    seed: int
    length: int  # steps
    episode_return: float


def films(compared: Compared, progress: Callable[[str], None]) -> list[Film]:
    """The best and the worst episode of each group of runs.

    Args:
        compared: The evaluation.
        progress: Told what is being drawn.

    Raises:
        ConfigError: The environment cannot be drawn.
    """
    made = []
    for group in range(min(MOST_GROUPS, len(compared.groups))):
        best, worst = extremes(compared, group)
        for words, episode in (("a good episode", best), ("the worst episode", worst)):
            title = f"{compared.groups[group].name}: {words}"
            progress(title)
            made.append(_film(title, compared, episode))
    return made


def extremes(compared: Compared, group: int) -> tuple[Episode, Episode]:
    """A group's episode at the 90th percentile of returns, which is good but no stroke of luck, and its worst."""
    found = []
    for name in compared.sets:
        returns = compared.returns(group, name)
        for run, policy in enumerate(compared.groups[group].policies):
            found += [
                Episode(policy=policy, set_name=name, number=k, episode_return=float(value))
                for k, value in enumerate(returns[run])
            ]
    found.sort(key=lambda episode: episode.episode_return)
    return found[int(0.9 * (len(found) - 1))], found[0]


def replay(compared: Compared, episode: Episode) -> Replay:
    """Plays an episode again and draws some of its steps.

    A policy's random numbers are those of all episodes that were played at the same time, so these are played again
    first; the actions of the one that is wanted are then taken in an environment that draws.

    Raises:
        ConfigError: The environment has no pictures, or cannot make them on this machine.
    """
    actions, params, seed = _actions(compared, episode)
    policy = episode.policy
    # values are given, none drawn
    randomization = None if policy.config.randomization is None else Randomization(at_rest(params))
    env = make_env(policy.env, randomization, render_mode="rgb_array")
    seen = set(np.unique(np.linspace(0, len(actions), min(SEEN, len(actions) + 1)).round().astype(int)).tolist())
    fps = env.metadata.get("render_fps")
    frames: list[tuple[str, Frame]] = []
    total = 0.0
    try:
        env.reset(seed=seed, options={"params": params} if params else None)
        for step in range(len(actions) + 1):
            if step in seen:
                frames.append((f"step {step}" + (f", {step / fps:.1f} s" if fps else ""), _picture(env)))
            if step < len(actions):
                total += float(env.step(actions[step])[1])
    finally:
        env.close()
    frames = [frames[i] for i in telling([picture for _, picture in frames])]
    return Replay(frames=frames, params=params, seed=seed, length=len(actions), episode_return=total)


def telling(pictures: Sequence[Frame]) -> list[int]:
    """Chooses at most ``FRAMES`` pictures, the first and the last among them, more of them where more changes.

    A policy may fail within a second and then lie still, or out of sight, for a minute.
    """
    small = np.stack([picture[::8, ::8].astype(np.float64) for picture in pictures])
    change = np.abs(np.diff(small, axis=0)).mean(axis=(1, 2, 3))
    along = np.concatenate([[0.0], np.cumsum(change)])
    along /= max(along[-1], 1e-9)
    along += STILL * np.linspace(0, 1, len(pictures))
    wanted = np.linspace(0, along[-1], FRAMES)
    chosen: list[int] = np.unique(np.abs(along[None] - wanted[:, None]).argmin(axis=1)).tolist()
    return chosen


def _actions(compared: Compared, episode: Episode) -> tuple[list[Any], dict[str, float], int]:
    """The actions of an episode, its values in force and its seed."""
    cells = compared.evaluation.cell_set(episode.set_name)
    envs = episode.policy.make_envs(cells)
    try:
        start = episode.number // envs.num_envs * envs.num_envs  # of those that were played at the same time
        playing = min(envs.num_envs, cells.total - start)
        index = episode.number - start
        act = episode.policy.make(envs)
        taken: list[Any] = []

        def remember(observations: npt.NDArray[Any]) -> npt.NDArray[Any]:
            actions = act(observations)
            taken.append(np.array(actions[index]))
            return actions

        seed = compared.document["seed"] + start
        params = cells.params(np.arange(start, start + playing))
        record = play_wave(remember, envs, playing, seed, params=params)[index]
    finally:
        envs.close()
    return taken[: record.length], dict(record.params), seed + index


def _film(title: str, compared: Compared, episode: Episode) -> Film:
    played = replay(compared, episode)
    entry = compared.set_entry(episode.set_name)
    cell, number = divmod(episode.number, entry["episodes"])
    place = f"cell {cell}, episode {number}" if entry["cells"] > 1 else f"episode {number}"
    text = f"Return {episode.episode_return:.1f} after {played.length} steps. {where(compared, episode.set_name)}: "
    text += f"{place}. Run {episode.policy.name}."
    if not np.isclose(played.episode_return, episode.episode_return, rtol=1e-4):
        text += f" Played again to be drawn it returned {played.episode_return:.1f}."
    known = compared.document["parameters"]
    values = {n: f"{played.params[n]:.4g} {known[n]['unit']}".strip() for n in known if n in played.params}
    frames = [(caption, _data_uri(picture)) for caption, picture in played.frames]
    return Film(title=title, text=text, facts={"seed": str(played.seed)} | values, frames=frames)


def _picture(env: gym.Env[Any, Any]) -> Frame:
    try:
        picture = env.render()
    except Exception as error:  # whatever a graphics library raises where there is no display
        mujoco = hasattr(env.unwrapped, "mujoco_renderer")
        way_out = " MuJoCo needs a display, or MUJOCO_GL=egl and libEGL." if mujoco else ""
        text = str(error).rstrip(".")
        raise ConfigError(f"The environment cannot be drawn on this machine: {text}.{way_out}") from error
    if not (isinstance(picture, np.ndarray) and picture.ndim == 3):
        raise ConfigError("The environment cannot be drawn: it gives no pictures.")
    return picture


def _data_uri(picture: Frame) -> str:
    from PIL import Image

    image = Image.fromarray(picture)
    image.thumbnail((WIDTH, WIDTH))
    buffer = io.BytesIO()
    image.save(buffer, "WEBP", quality=QUALITY)
    return "data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode()
