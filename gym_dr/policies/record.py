"""Records whole episodes of a policy as a log, with their draws and states."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from gym_dr.envs.stack import stack_of
from gym_dr.errors import EnvStateError, check_known
from gym_dr.fitting.archives import SUFFIX, check_new, new_folder
from gym_dr.fitting.log_checks import check_spaces
from gym_dr.fitting.logs import LoggedEpisode
from gym_dr.integrations import minari
from gym_dr.policies.acting import Moment, play_batch
from gym_dr.policies.actions import checked
from gym_dr.policies.draws import Draws
from gym_dr.policies.frozen import FrozenPolicy
from gym_dr.randomization.sampler import EpisodeRecord
from gym_dr.runs.progress import Progress
from gym_dr.training.api import PolicyWithMemory, seed_for
from gym_dr.wrappers.context import DrawContext
from gym_dr.wrappers.frame_stack import FrameStack

FORMATS = ("minari", "npz")
TOGETHER = 16  # episodes that are played at once; their states are kept until the last one ends


@dataclass(frozen=True, kw_only=True)
class Log:
    """A log to write."""

    output: str | Path  # a folder, or a data set of Minari
    format: str  # one of FORMATS
    states: bool  # whether to keep the environment's state at each observation

    def check(self) -> None:
        """Checks that it can be written.

        Raises:
            UnknownNameError: The format is unknown.
            ConfigError: Minari is not installed, or the name of the data set has no version.
            LogError: It exists already, or there is no folder for it.
        """
        check_known("format", self.format, FORMATS)
        if self.format == "minari":
            minari.check_place(self.output)
        else:
            check_new(Path(self.output))


def record_policy(policy: FrozenPolicy, draws: Draws, log: Log, *, seed: int, display: Progress) -> Path:
    """Plays episodes of a policy and writes them, whole or not at all.

    Args:
        policy: The policy.
        draws: What to play, and how many episodes.
        log: Where and how to write.
        seed: Of the first episode, and of actions that are sampled.
        display: Shows progress.

    Returns:
        The folder of the log.

    Raises:
        LogError: The log cannot be written, or episodes of the environment cannot be logged.
        InvalidActionError: The policy's actions do not fit the environment.
    """
    with contextlib.closing(_Recorder(policy, draws, log.states, display)) as recorder:
        observations, actions = recorder.env.single_observation_space, recorder.env.single_action_space
        check_spaces(observations, actions)
        played = recorder.episodes(seed)
        if log.format == "minari":
            return minari.write_minari(
                log.output,
                played,
                observation_space=observations,
                action_space=actions,
                env=policy.env,
                policy=str(policy.record.get("algorithm") or policy.name),
                description=f"{draws.episodes} episodes of {policy.name} on {policy.env}, recorded by gym_dr.",
            )
        digits = max(3, len(str(draws.episodes - 1)))
        with new_folder(Path(log.output)) as folder:
            for number, one in enumerate(played):
                with open(folder / f"{number:0{digits}}{SUFFIX}", "xb") as file:
                    np.savez_compressed(
                        file, observations=one.observations, actions=one.actions, **cast(Any, one.others)
                    )
        return Path(log.output)


class _Recorder:
    """Plays episodes of a policy in batches."""

    def __init__(self, policy: FrozenPolicy, draws: Draws, states: bool, display: Progress) -> None:
        self._policy, self._draws, self._states, self._display = policy, draws, states, display
        self._envs = policy.make_envs(draws, together=TOGETHER)
        # without what the policy observes besides, at the end of the observation
        self.env: Any = next(env for env in stack_of(self._envs) if not isinstance(env, FrameStack | DrawContext))

    def close(self) -> None:
        self._envs.close()

    def episodes(self, seed: int) -> Iterator[LoggedEpisode]:
        """Plays the episodes; ``seed`` is that of the first one."""
        title, total = f"{self._policy.name} on {self._policy.env}", self._draws.episodes
        for first in range(0, total, self._envs.num_envs):
            self._display(title, first, total)
            trace = _Trace(self.env.single_observation_space.shape[0], self._state)
            act = self._act(seed + first)
            for record in play_batch(act, self._envs, self._draws, seed=seed, first=first, on_step=trace.add):
                yield trace.episode(record, seed + first, f"episode {first + record.env_index}")
        self._display(title, total, total)

    def _act(self, seed: int) -> PolicyWithMemory:
        made = self._policy.make(self._envs)
        if (reseed := getattr(made, "reseed", None)) is not None:  # of one that samples actions
            # random actions of an episode depend on its seed alone
            reseed(seed if self._policy.record["kind"] == "random" else seed_for(seed, stream=2, index=2))
        return checked(made, self._envs, self._policy.source, self._policy.env)

    def _state(self) -> dict[str, npt.NDArray[Any]]:
        """The state of all sub-environments; empty if it is not wanted or not offered."""
        state: dict[str, npt.NDArray[Any]] = {}
        try:
            state = cast(Any, self._envs.unwrapped).get_state() if self._states else {}
        except (AttributeError, EnvStateError):
            self._states = False
            self._display.note(f"{self._policy.env} does not offer its state; the log has none.")
        return state


class _Trace:
    """All that a batch of N sub-environments shows, step by step."""

    def __init__(self, width: int, state: Callable[[], dict[str, npt.NDArray[Any]]]) -> None:
        self._width, self._state = width, state  # numbers of the environment's own observation
        self._observations: list[npt.NDArray[Any]] = []
        self._states: list[dict[str, npt.NDArray[Any]]] = []
        self._steps: list[Moment] = []

    def add(self, moment: Moment) -> None:
        self._observations.append(np.array(moment.observations[:, : self._width]))
        self._states.append(self._state())
        if moment.actions is not None:  # not the reset
            self._steps.append(moment)

    def episode(self, record: EpisodeRecord, seed: int, source: str) -> LoggedEpisode:
        """An episode that has ended; ``seed`` is that of sub-environment 0."""
        i, length = record.env_index, record.length
        others = {
            name: np.stack([getattr(moment, name)[i] for moment in self._steps[:length]])
            for name in ("rewards", "terminations", "truncations")
        }
        others["seed"] = np.asarray(seed + i)
        others |= {f"params/{name}": np.asarray(value, np.float64) for name, value in record.params.items()}
        if record.draw_index >= 0:
            others["draw_index"] = np.asarray(record.draw_index, np.int64)
        for name, values in self._states[0].items():
            rows = [state[name][i] for state in self._states[: length + 1]]
            others[f"state/{name}"] = np.array(rows, values.dtype)
        actions = np.stack([moment.actions[i] for moment in self._steps[:length] if moment.actions is not None])
        return LoggedEpisode(
            observations=np.stack([row[i] for row in self._observations[: length + 1]]).astype(np.float64),
            actions=actions.astype(np.float64 if actions.dtype.kind == "f" else np.int64),
            others=others,
            source=source,
        )
