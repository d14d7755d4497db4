"""``gym_dr.record``: whole episodes of a policy as a log, with their draws and states."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from gym_dr.envs.stack import stack_of
from gym_dr.envs.vector_arguments import check_whole_number
from gym_dr.errors import ConfigError, EnvStateError, check_known
from gym_dr.evaluation.sets import SetLike, cells_to_play
from gym_dr.fitting.archives import SUFFIX, check_new, new_folder
from gym_dr.fitting.log_checks import check_spaces
from gym_dr.fitting.logs import LoggedEpisode
from gym_dr.integrations import minari
from gym_dr.runs.progress import Progress
from gym_dr.runs.stopping import explain_interrupt, stop_signals
from gym_dr.training.api import PolicyWithMemory, seed_for
from gym_dr.wrappers.context import DrawContext
from gym_dr.wrappers.past import ObservePast

if TYPE_CHECKING:
    from gym_dr.evaluation.cells import CellSet
    from gym_dr.policies.acting import Moment
    from gym_dr.policies.frozen import FrozenPolicy
    from gym_dr.policies.open import PolicyLike
    from gym_dr.randomization.sampler import EpisodeRecord

FORMATS = ("minari", "npz")

_TOGETHER = 16  # episodes that are played at once; their states are kept until the last one ends


def record(
    policy: PolicyLike,
    draws: SetLike | None = None,
    *,
    episodes: int,
    output: str | Path,
    format: str = "minari",
    env: str | None = None,
    seed: int = 0,
    states: bool = True,
    trust: Collection[str] = (),
    progress: bool = True,
) -> Path:
    """Records whole episodes of a policy as a log, as ``gymdr record`` does.

    Each episode has its own seed, ``seed`` + its number, and so its own draw. Observations are those of the
    environment, with its disturbances but without the draw that a policy may observe; the last one is the one that
    ended the episode. Actions are those that the policy chose, within the environment's bounds.

    Example:
        >>> gym_dr.record("runs/first", episodes=20, output="lander/first-v0")  # then minari.load_dataset(...)
        >>> gym_dr.record("random", env="gym_dr/CartPoleDR-v1", episodes=5, output="logs", format="npz")

    Args:
        policy: What ``gym_dr.open_policy`` opens, here with its most likely actions, or a policy that it has opened.
        draws: What to play: ``gym_dr.draws(...)`` or what that takes, such as the name of a preset. None for the
            policy's training draws; unknown ones are those of the preset "default".
        episodes: How many.
        output: Where to write; must not exist. With "npz" a folder, in which each episode is a file. With "minari" the
            id of a data set, such as "lander/first-v0", in Minari's own folder, or the path of its folder, which begins
            with ``/``, ``.`` or ``~`` or is a ``Path``; its name ends in a version.
        format: "minari" or "npz". See ``gym_dr.integrations.minari.write_minari`` and ``read_log`` for what they hold.
        env: Id of the environment; required if the policy neither is a run nor a file of ``Run.export``.
        seed: Seed of the first episode, and of actions that are sampled.
        states: Whether to keep the environment's whole state at each observation, if it offers it: arrays
            ``state/NAME`` (T + 1, ...), whose rows fit ``set_state`` of an environment like it.
        trust: See ``gym_dr.open_policy``.
        progress: Whether to show progress.

    Returns:
        The folder of the log.

    Raises:
        ConfigError: The policy or an option cannot be used, or Minari is not installed.
        LogError: The output exists already or cannot be written, or episodes of the environment cannot be logged.
        RunFolderError: There is no run at a path.
        UnknownNameError: The environment, a parameter, preset or format is unknown.
        RandomizationError: A value is out of bounds.
        InvalidActionError: The policy's actions do not fit the environment.
        Interrupted: A signal stopped it; nothing was written.
    """
    from gym_dr.policies.open import open_policy
    from gym_dr.runs.train import one_thread  # heavy

    check_known("format", format, FORMATS)
    check_whole_number("`episodes`", episodes)
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed <= 2**62:
        raise ConfigError(f"Expected `seed` to be a whole number from 0 to 2**62, got {seed!r}.")
    (minari.check_place if format == "minari" else _check_folder)(output)
    with one_thread(), Progress("episode", "bar" if progress else "nothing") as display:
        opened = open_policy(policy, env=env, stochastic=False, trust=trust)
        cells = cells_to_play(opened, draws, min(episodes, _TOGETHER))
        for note in cells.notes:
            display.note(note)
        with explain_interrupt("Stopped. Nothing was written."), stop_signals(_stop):
            player = _Player(policy=opened, cells=cells, states=states, display=display)
            try:
                return player.write(output, format, episodes, int(seed))
            finally:
                player.envs.close()


def _stop(number: int) -> None:
    raise KeyboardInterrupt(number)  # also for SIGTERM, so that nothing half-written remains


def _check_folder(output: str | Path) -> None:
    check_new(Path(output))


class _Player:
    """Plays episodes of a policy in batches."""

    def __init__(self, *, policy: FrozenPolicy, cells: CellSet, states: bool, display: Progress) -> None:
        self._policy, self._cells, self._display = policy, cells, display
        self.envs = envs = policy.make_envs(cells)
        # the policy's environment may show it the past and the draw, at the end of the observation
        self._inner: Any = next(layer for layer in stack_of(envs) if not isinstance(layer, ObservePast | DrawContext))
        self._states = states
        try:
            check_spaces(self._inner.single_observation_space, self._inner.single_action_space)
        except BaseException:
            self.envs.close()
            raise

    def write(self, output: str | Path, format: str, episodes: int, seed: int) -> Path:
        """Plays episodes and writes them; returns the folder of the log."""
        played, policy = self._play(episodes, seed), self._policy
        if format == "minari":
            return minari.write_minari(
                output,
                played,
                observation_space=self._inner.single_observation_space,
                action_space=self._inner.single_action_space,
                env=policy.env,
                policy=str(policy.record.get("algorithm") or policy.name),
                description=f"{episodes} episodes of {policy.name} on {policy.env}, recorded by gym_dr.",
            )
        digits = max(3, len(str(episodes - 1)))
        with new_folder(Path(output)) as folder:
            for number, episode in enumerate(played):
                with open(folder / f"{number:0{digits}}{SUFFIX}", "xb") as file:
                    np.savez_compressed(file, **_arrays(episode))
        return Path(output)

    def _play(self, episodes: int, seed: int) -> Iterator[LoggedEpisode]:
        from gym_dr.evaluation.protocol import play_batch  # heavy

        title = f"{self._policy.name} on {self._policy.env}"
        for first in range(0, episodes, self.envs.num_envs):
            count = min(self.envs.num_envs, episodes - first)
            self._display(title, first, episodes)
            trace = _Trace(self._inner.single_observation_space.shape[0], self._state)
            act, params = self._actor(seed + first), self._cells.params(np.zeros(count, np.int64))
            for record in play_batch(act, self.envs, count, seed + first, params=params, on_step=trace.add):
                yield trace.episode(record, seed + first, f"episode {first + record.env_index}")
        self._display(title, episodes, episodes)

    def _actor(self, seed: int) -> PolicyWithMemory:
        from gym_dr.policies.actions import checked  # heavy

        made = self._policy.make(self.envs)
        if (reseed := getattr(made, "reseed", None)) is not None:  # of one that samples actions
            # random actions of an episode depend on its seed alone
            reseed(seed if self._policy.record["kind"] == "random" else seed_for(seed, stream=2, index=2))
        return checked(made, self.envs, self._policy.source, self._policy.env)

    def _state(self) -> dict[str, npt.NDArray[Any]]:
        """The state of all sub-environments; empty if it is not wanted or not offered."""
        state: dict[str, npt.NDArray[Any]] = {}
        try:
            state = cast(Any, self.envs.unwrapped).get_state() if self._states else {}
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


def _arrays(episode: LoggedEpisode) -> dict[str, Any]:
    return {"observations": episode.observations, "actions": episode.actions, **episode.others}
