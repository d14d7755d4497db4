"""``gym_dr.fit``: from a log of the real system to a randomization."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gym_dr.errors import ConfigError, LogError, check_known
from gym_dr.experiments.fit_files import FitFiles
from gym_dr.experiments.fit_job import FitJob
from gym_dr.experiments.fit_problem import FitProblem, open_problem
from gym_dr.experiments.logs import log_paths
from gym_dr.experiments.progress import Progress
from gym_dr.fitting.results import Fit
from gym_dr.plugins.loading import load_plugins
from gym_dr.runs.loggers import Loggers, check_loggers
from gym_dr.runs.stopping import explain_interrupt
from gym_dr.wording import counted, spelled

METHODS = ("auto", "least-squares", "particles")


def fit(
    log: Any,
    *,
    env: str,
    randomize: Mapping[str, Any] | None = None,
    randomization: Any = None,
    params: Mapping[str, float] | None = None,
    varies: bool = False,
    method: str = "auto",
    held_out: float = 0.2,
    margin: float = 1.0,
    output: str | Path | None = None,
    seed: int = 0,
    loggers: Sequence[str] = (),
    command: str = "",
    progress: bool = True,
) -> Fit:
    """Finds the ranges of parameters that a log of the real system leaves possible, as ``gymdr fit`` does.

    Example:
        >>> found = gym_dr.fit("flights", env="gym_dr/LunarLanderDR-v3", randomize={"gravity": (-12, -6)})
        >>> run = gym_dr.train("ppo", env="gym_dr/LunarLanderDR-v3", randomization=found.randomization)

    Args:
        log: Episodes, in any form that ``gym_dr.fitting.logs.read_log`` reads, or a data set of Minari.
        env: Id of an environment with a native vector environment.
        randomize: Parameters to find -> their priors; ``action_delay`` or ``obs_delay`` and ``obs_noise`` too.
        randomization: A whole prior instead, a preset or a file; ``randomize`` replaces parts of it.
        params: Parameters that are known not to be nominal: name -> value.
        varies: Whether the system varies between episodes; the result is then the distribution of its parameters.
        method: "least-squares" takes the likelihood to be quadratic around its maximum, "particles" simulates every
            particle; "auto" chooses the latter where the likelihood is not quadratic and it is affordable.
        held_out: Share of the episodes that are not fitted but replayed, from 0 to 0.5.
        margin: How many times wider than the posterior the ranges are, at least 1.
        output: A file to write the randomization to, such as "fitted.toml"; the particles go beside it, into
            "fitted.npz", and the report into "fitted.html". A fit that was killed goes on from where it was. None
            writes nothing.
        seed: Of random numbers.
        loggers: Tools that show the rounds, the posterior and what came out, such as "tensorboard", which writes into
            "fitted.loggers/tensorboard".
        command: The command line, for the report.
        progress: Whether to show progress.

    Raises:
        LogError: The log cannot be used; the message says why.
        ConfigError: An argument is impossible, or the environment cannot replay logs.
        UnknownNameError: An environment, parameter or preset is unknown.
        RandomizationError: A prior is impossible.
        RunFolderError: The output cannot be written.
        Interrupted: A signal stopped it.
    """
    load_plugins()
    check_known("method", method, METHODS)
    _check_number("held_out", "a share of the episodes from 0 to 0.5", held_out, 0.0, 0.5)
    _check_number("margin", "a factor from 1 to 100", margin, 1.0, 100.0)
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ConfigError(f"{spelled('seed')}: expected a whole number of at least 0, got {seed!r}.")
    if not (output is None or isinstance(output, str | os.PathLike)):
        raise ConfigError(f"{spelled('output')}: expected a path, got {output!r}.")
    if not isinstance(env, str):
        raise ConfigError(f"{spelled('env')}: expected the id of an environment, got {env!r}.")
    check_loggers(loggers)
    if loggers and output is None:
        raise ConfigError(f"{spelled('loggers')}: expected with {spelled('output')}, beside which their files go.")
    files = None if output is None else FitFiles(Path(output), set(log_paths(log)))
    began = time.monotonic()
    problem = open_problem(log, env=env, randomize=randomize, randomization=randomization, params=params)
    with (
        contextlib.closing(problem),
        Progress("", "bar" if progress else "nothing") as display,
        explain_interrupt(_go_on(files)),
        contextlib.closing(_open_loggers(loggers, files, problem)) as shown,
    ):
        job = FitJob(
            problem=problem,
            files=files,
            display=display,
            loggers=shown,
            rng=np.random.default_rng(seed),
            varies=varies,
        )
        try:
            found = job.result(method=method, held_out=held_out, margin=margin, began=began)
        except np.linalg.LinAlgError:
            raise LogError(
                f"Expected motion like that of {env}, got one that is too far from any simulation to be compared with "
                "it. Log in the environment's units."
            ) from None
    if files is not None:
        files.write(found, command)
    return found


def _open_loggers(names: Sequence[str], files: FitFiles | None, problem: FitProblem) -> Loggers:
    """Opens loggers for a fit, those of one that goes on with what they have."""
    if files is None:
        return Loggers((), Path(), {}, required=True)
    files.begin(problem.key)
    return Loggers(names, files.loggers, problem.to_dict(), required=True)


def _check_number(name: str, expected: str, value: Any, low: float, high: float) -> None:
    good = isinstance(value, int | float | np.number) and not isinstance(value, bool) and low <= value <= high
    if not good:
        raise ConfigError(f"{spelled(name)}: expected {expected}, got {value!r}.")


def _go_on(files: FitFiles | None) -> str:
    return "Stopped." if files is None else "Stopped. The same command goes on from here."


def check(log: Any, **asked: Any) -> list[str]:
    """Says what can be fitted from a log, before anything runs; arguments as for ``fit``.

    Returns:
        Sentences.
    """
    from gym_dr.fitting.motion import read_motion
    from gym_dr.fitting.simulator import Simulator

    problem = open_problem(log, **asked)
    try:
        prior, replay = problem.prior, problem.replay
        simulator = Simulator(replay, problem.hold)
        middle = prior.params(np.full(len(prior.names), 0.5))
        motion = read_motion(problem.episodes, simulator, middle)
        steps = sum(map(len, problem.episodes))
        found = [
            f"{counted(len(problem.episodes), 'episode')}, {counted(steps, 'step')}; {len(motion):,} can be replayed."
        ]
        found += [f"{counted(count, 'step')} cannot: {reason}." for reason, count in motion.skipped]
        if problem.hold > 1:
            found.append(f"Each logged action acts for {problem.hold} steps of the environment.")
        known = [
            f"{c.name}{f' ({c.unit})' if c.unit else ''}"
            for c, s in zip(motion.coordinates, motion.seen, strict=True)
            if s
        ]
        found.append(f"Compared: {', '.join(known)}.")
        hidden = [c.name for c, s in zip(motion.coordinates, motion.seen, strict=True) if not s]
        if hidden:
            found.append(f"Not observed, followed in simulation: {', '.join(hidden)}.")
        found += [
            f"{name} would keep its prior: {replay.untold[name]}." for name in prior.names if name in replay.untold
        ]
        rest = [name for name in prior.names if name not in replay.untold]
        if rest:
            found.append(f"Parameters to find: {', '.join(rest)}.")
        return found
    finally:
        problem.close()
