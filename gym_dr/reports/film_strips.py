"""Film strips: single episodes of an evaluation, replayed exactly and rendered."""

from __future__ import annotations

import base64
import contextlib
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from gym_dr.errors import ConfigError
from gym_dr.policies.acting import play_batch, with_episode_starts
from gym_dr.policies.captions import Frame
from gym_dr.policies.frozen import FrozenPolicy
from gym_dr.randomization.spec import Randomization
from gym_dr.reports.binning import evenly_spaced
from gym_dr.reports.comparison import Comparison
from gym_dr.reports.page import FilmStrip
from gym_dr.runs.environments import make_env
from gym_dr.training.api import EpisodeStarts
from gym_dr.wrappers.disturbed_space import undisturbed

FRAMES = 12  # of a strip, including the first and the last of the episode
WIDTH = 320  # pixels of a frame
QUALITY = 75  # of WebP; a frame takes 5 to 10 kB
MAX_GROUPS = 6  # with strips, so that a page stays small enough to send


@dataclass(frozen=True, kw_only=True)
class Episode:
    """An episode of an evaluation."""

    policy: FrozenPolicy
    set_name: str
    number: int  # in the set
    episode_return: float


@dataclass(frozen=True, kw_only=True)
class Replay:
    """A replayed episode."""

    frames: list[tuple[str, Frame]]  # caption, picture
    params: dict[str, float]  # its parameter values
    seed: int
    length: int  # steps
    episode_return: float


def film_strips(comparison: Comparison, progress: Callable[[str], None]) -> list[FilmStrip]:
    """Renders a good episode and the worst one of each group; first calls ``progress`` with each strip's title.

    Raises:
        ConfigError: The environment cannot be rendered.
    """
    strips = []
    for index, group in enumerate(comparison.groups[:MAX_GROUPS]):
        for words, episode in zip(("a good episode", "the worst episode"), extremes(comparison, index), strict=True):
            title = f"{group.name}: {words}"
            progress(title)
            strips.append(_film_strip(title, comparison, episode))
    return strips


def extremes(comparison: Comparison, group: int) -> tuple[Episode, Episode]:
    """A group's episode at the 90th percentile of returns, which is good but not exceptional, and its worst."""
    episodes = [
        Episode(policy=policy, set_name=name, number=k, episode_return=float(value))
        for name in comparison.sets
        for policy, returns in zip(comparison.groups[group].policies, comparison.returns(group, name), strict=True)
        for k, value in enumerate(returns)
    ]
    episodes.sort(key=lambda episode: episode.episode_return)
    return episodes[int(0.9 * (len(episodes) - 1))], episodes[0]


def replay(comparison: Comparison, episode: Episode) -> Replay:
    """Replays an episode and renders some of its steps.

    The episodes of a batch share the policy's random numbers, so the whole batch is replayed first. Then the episode's
    actions are repeated in an environment that renders.

    Raises:
        ConfigError: The environment cannot be rendered, or not on this machine.
    """
    actions, params, seed = _actions(comparison, episode)
    policy = episode.policy
    randomization = Randomization(undisturbed(params)) if policy.space is not None else None  # no draws
    with _drawing(policy.env):
        env = make_env(policy.env, randomization, render_mode="rgb_array")
    rendered = set(evenly_spaced(len(actions) + 1, FRAMES).tolist())
    fps = env.metadata.get("render_fps")
    frames: list[tuple[str, Frame]] = []
    total = 0.0
    with contextlib.closing(env):
        env.reset(seed=seed, options={"params": params} if params else None)
        for step in range(len(actions) + 1):
            if step in rendered:
                frames.append((f"step {step}" + (f", {step / fps:.1f} s" if fps else ""), _picture(env, policy.env)))
            if step < len(actions):
                total += float(env.step(actions[step])[1])
    return Replay(frames=frames, params=params, seed=seed, length=len(actions), episode_return=total)


def _actions(comparison: Comparison, episode: Episode) -> tuple[list[Any], dict[str, float], int]:
    """The actions of an episode, its parameter values and its seed."""
    cells = comparison.cells(episode.set_name)
    with contextlib.closing(episode.policy.make_envs(cells.draws)) as envs:
        start = episode.number // envs.num_envs * envs.num_envs  # of its batch
        size = min(envs.num_envs, cells.num_episodes - start)
        index = episode.number - start
        act = with_episode_starts(episode.policy.make(envs))
        taken: list[Any] = []

        def record_action(observations: npt.NDArray[Any], episode_starts: EpisodeStarts) -> npt.NDArray[Any]:
            actions = act(observations, episode_starts)
            taken.append(np.array(actions[index]))
            return actions

        seed = comparison.document["seed"] + start
        params = cells.params(np.arange(start, start + size))
        record = play_batch(record_action, envs, size, seed, params=params)[index]
    return taken[: record.length], dict(record.params), seed + index


def _film_strip(title: str, comparison: Comparison, episode: Episode) -> FilmStrip:
    played = replay(comparison, episode)
    cells = comparison.cells(episode.set_name)
    cell, number = divmod(episode.number, cells.episodes)
    place = f"cell {cell}, episode {number}" if cells.num_cells > 1 else f"episode {number}"
    kind = "Run" if episode.policy.run else "Policy"
    text = (
        f"Return {episode.episode_return:.1f} after {played.length} steps. {comparison.place(episode.set_name)}: "
        f"{place}. {kind} {episode.policy.name}."
    )
    if not np.isclose(played.episode_return, episode.episode_return, rtol=1e-4):
        text += f" The replay returned {played.episode_return:.1f}."
    known = comparison.document["parameters"]
    values = {n: f"{played.params[n]:.4g} {known[n]['unit']}".strip() for n in known if n in played.params}
    frames = [(caption, _data_uri(picture)) for caption, picture in played.frames]
    return FilmStrip(title=title, text=text, facts={"seed": str(played.seed)} | values, frames=frames)


@contextlib.contextmanager
def _drawing(env_id: str) -> Iterator[None]:
    """Raises a ``ConfigError`` in place of whatever the block raises: graphics libraries raise anything."""
    try:
        yield
    except ConfigError:
        raise
    except Exception as error:  # a class may also take no render_mode, or open a window
        raise ConfigError(f"{env_id} cannot be rendered here: {str(error).rstrip('.')}.") from error


def _picture(env: gym.Env[Any, Any], env_id: str) -> Frame:
    with _drawing(env_id):
        picture: Any = env.render()
    if not (isinstance(picture, np.ndarray) and picture.ndim == 3):
        raise ConfigError(f"{env_id} cannot be rendered: render() returns no RGB array.")
    return picture


def _data_uri(picture: Frame) -> str:
    from PIL import Image

    image = Image.fromarray(picture)
    image.thumbnail((WIDTH, WIDTH))
    buffer = io.BytesIO()
    image.save(buffer, "WEBP", quality=QUALITY)
    return "data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode()
