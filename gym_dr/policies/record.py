"""Records whole episodes of a policy as a log, with their draws and states."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import concatenate, create_empty_array, iterate

from gym_dr.envs.stack import stack_of
from gym_dr.errors import EnvStateError, as_path, check_known
from gym_dr.fitting.archives import SUFFIX, check_new, new_folder
from gym_dr.fitting.log_checks import check_spaces
from gym_dr.fitting.logs import LoggedEpisode
from gym_dr.integrations import minari
from gym_dr.policies.frozen import Draws, FrozenPolicy, Moment, checked, play_batch
from gym_dr.randomization.sampler import EpisodeRecord
from gym_dr.randomization.spec import Randomization
from gym_dr.runs.environments import make_env
from gym_dr.runs.terminal import Progress
from gym_dr.training.api import seed_for
from gym_dr.wrappers.context import DrawContext
from gym_dr.wrappers.frame_stack import FrameStack

FORMATS = ("minari", "npz")
TOGETHER = 16  # episodes played at once; their states are kept until the last one ends


def check_log(output: str | Path, format: str) -> None:
    """Checks that a log can be written.

    Args:
        output: A folder, or a data set of Minari.
        format: One of ``FORMATS``.

    Raises:
        UnknownNameError: The format is unknown.
        ConfigError: Minari is not installed, or the data set's name has no version.
        LogError: It exists already.
    """
    check_known("format", format, FORMATS)
    if format == "minari":
        minari.check_installed()
    check_new(minari.place_of(output)[0] if format == "minari" else as_path(output))


def record_policy(
    policy: FrozenPolicy,
    draws: Draws,
    output: str | Path,
    format: str,
    *,
    states: bool,
    seed: int,
    display: Progress,
) -> Path:
    """Plays episodes of a policy and writes them, whole or not at all.

    Args:
        policy: The policy.
        draws: The draws to play, and the number of episodes.
        output: See ``check_log``.
        format: See ``check_log``.
        states: Whether to keep the environment's state at each observation.
        seed: Seed of the first episode and of sampled actions.
        display: Shows progress.

    Returns:
        The folder of the log.

    Raises:
        LogError: The log cannot be written, or episodes of the environment cannot be logged.
        InvalidActionError: The policy's actions do not fit the environment.
    """
    with contextlib.closing(policy.make_envs(draws, together=TOGETHER)) as envs:
        # without what the wrappers append for the policy
        inner: Any = next(env for env in stack_of(envs) if not isinstance(env, FrameStack | DrawContext))
        observations, actions = inner.single_observation_space, inner.single_action_space
        check_spaces(observations, actions, nested=format == "minari")
        played = _episodes(policy, envs, draws, inner, seed=seed, states=states, display=display)
        if format == "minari":
            whole = Randomization(  # with disturbances that are only set by hand
                {**draws.randomization, **getattr(inner, "disturbances", {})},
                correlation=draws.randomization.correlation,
            )
            with contextlib.closing(make_env(policy.env, None if policy.space is None else whole)) as env:
                spec = env.spec
            return minari.write_minari(
                output,
                played,
                observation_space=observations,
                action_space=actions,
                env=spec,
                policy=str(policy.record.get("algorithm") or policy.name),
                description=f"{draws.episodes} episodes of {policy.name} on {policy.env}, recorded by gym_dr.",
            )
        digits = max(3, len(str(draws.episodes - 1)))
        with new_folder(as_path(output)) as folder:
            for number, one in enumerate(played):
                arrays: Any = {"observations": one.observations, "actions": one.actions, **one.others}
                with open(folder / f"{number:0{digits}}{SUFFIX}", "xb") as file:
                    np.savez_compressed(file, **arrays)
        return as_path(output)


def _episodes(
    policy: FrozenPolicy,
    envs: VectorEnv[Any, Any, Any],
    draws: Draws,
    inner: VectorEnv[Any, Any, Any],
    *,
    seed: int,
    states: bool,
    display: Progress,
) -> Iterator[LoggedEpisode]:
    """Plays episodes in batches; ``inner`` has the environment's own observations."""
    title = f"{policy.name} on {policy.env}"

    def state() -> dict[str, npt.NDArray[Any]]:
        """The state of all sub-environments; empty if states are not wanted or not offered."""
        nonlocal states
        try:
            found: dict[str, npt.NDArray[Any]] = cast(Any, envs.unwrapped).get_state() if states else {}
        except (AttributeError, EnvStateError):
            states, found = False, {}
            display.note(f"{policy.env} does not offer its state; the log has none.")
        return found

    for first in range(0, draws.episodes, envs.num_envs):
        display(title, first, draws.episodes)
        made = policy.make(envs)
        if (reseed := getattr(made, "reseed", None)) is not None:  # of a policy that samples actions
            # random actions of an episode depend on its seed alone
            begin = seed + first
            reseed(begin if policy.record["kind"] == "random" else seed_for(begin, stream=2, index=2))
        act, trace = checked(made, envs, policy.source, policy.env), _Trace(inner, state)
        for record in play_batch(act, envs, draws, seed=seed, first=first, on_step=trace.add):
            yield trace.episode(record, seed + first, f"episode {first + record.env_index}")
    display(title, draws.episodes, draws.episodes)


class _Trace:
    """All steps of a batch of N sub-environments."""

    def __init__(self, inner: VectorEnv[Any, Any, Any], state: Callable[[], dict[str, npt.NDArray[Any]]]) -> None:
        self._inner, self._state = inner, state  # with the environment's own observations
        self._observations: list[list[Any]] = []  # at each step, of each sub-environment
        self._states: list[dict[str, npt.NDArray[Any]]] = []
        self._steps: list[Moment] = []

    def add(self, moment: Moment) -> None:
        own, shape = copy.deepcopy(moment.observations), self._inner.single_observation_space.shape or ()
        if isinstance(own, np.ndarray):  # of others, ``iterate`` takes the parts that it knows
            own = own[(slice(None), *map(slice, shape))]
        self._observations.append(list(iterate(self._inner.observation_space, own)))
        self._states.append(self._state())
        if moment.actions is not None:  # not the reset
            self._steps.append(moment)

    def episode(self, record: EpisodeRecord, seed: int, source: str) -> LoggedEpisode:
        """A finished episode; ``seed`` is that of sub-environment 0."""
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
        space, observed = self._inner.single_observation_space, [row[i] for row in self._observations[: length + 1]]
        observations: Any = concatenate(space, observed, cast(Any, create_empty_array(space, length + 1)))
        return LoggedEpisode(
            observations=observations.astype(np.float64) if isinstance(observations, np.ndarray) else observations,
            actions=actions.astype(np.float64 if actions.dtype.kind == "f" else np.int64),
            others=others,
            source=source,
        )
