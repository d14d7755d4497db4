"""``gym_dr.record``: whole episodes of a policy as a log, with their draws and states."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from gym_dr.envs.vector_arguments import check_whole_number
from gym_dr.evaluation.evaluate import playing
from gym_dr.evaluation.sets import SetLike
from gym_dr.evaluation.suite import cells_to_play
from gym_dr.options import expect, is_whole
from gym_dr.policies.open import EnvLike, PolicyLike, open_policy
from gym_dr.policies.record import check_log, record_policy
from gym_dr.runs.terminal import stop_signals


def record(
    policy: PolicyLike,
    draws: SetLike | None = None,
    *,
    episodes: int,
    output: str | Path,
    format: str = "minari",
    env: EnvLike | None = None,
    seed: int = 0,
    states: bool = True,
    num_threads: int | None = None,
    trust: Collection[str] = (),
    progress: bool = True,
) -> Path:
    """Records whole episodes of a policy as a log, as ``gymdr record`` does.

    Each episode has its own seed, ``seed`` + its number, and so its own draw. Observations are those of the
    environment, with its disturbances but without the draw that a policy may observe; the last one ended the episode.
    Actions are those that the policy chose, within the environment's bounds.

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
        format: "minari" or "npz". See ``gym_dr.integrations.minari.write_minari`` and ``read_log`` for their content.
        env: The environment, as for ``gym_dr.open_policy``; required unless the policy is a run or a file of
            ``Run.export``.
        seed: Seed of the first episode, and of actions that are sampled.
        states: Whether to keep the environment's whole state at each observation, if it offers it: arrays
            ``state/NAME`` (T + 1, ...), whose rows fit ``set_state`` of an environment like it.
        num_threads: As in ``gym_dr.evaluate``.
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
    episodes = check_whole_number("`episodes`", episodes)
    expect(is_whole(seed) and 0 <= seed <= 2**62, "`seed`", "a whole number from 0 to 2**62", seed)
    check_log(output, format)
    opened = open_policy(policy, env=env, stochastic=False, trust=trust)
    cells = cells_to_play(opened, draws, episodes)
    with playing(progress, [cells], "Nothing was written.", num_threads) as display, stop_signals(_stop):
        return record_policy(opened, cells.draws, output, format, states=states, seed=int(seed), display=display)


def _stop(number: int) -> None:
    raise KeyboardInterrupt(number)  # also for SIGTERM, so that nothing half-written remains
