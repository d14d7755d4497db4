"""``gym_dr.fit``: from a log of the real system to a randomization."""

from __future__ import annotations

import contextlib
import itertools
import os
import shlex
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gym_dr.errors import ConfigError, LogError, check_known
from gym_dr.fitting.results import Fit
from gym_dr.integrations.logs import log_paths, open_log
from gym_dr.plugins.loading import load_plugins
from gym_dr.randomization.files import randomization_text
from gym_dr.runs.durable import os_errors, write_atomically
from gym_dr.runs.environments import check_env_id
from gym_dr.runs.progress import Progress
from gym_dr.wording import counted

if TYPE_CHECKING:  # heavy
    from gym_dr.fitting.problem import FitProblem

METHODS = ("auto", "least-squares", "particles")
_PARTS = 12  # of a fit, about


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
            "fitted.npz", and the report into "fitted.html". None writes nothing.
        seed: Of random numbers.
        command: The command line, for the report.
        progress: Whether to show progress.

    Raises:
        LogError: The log cannot be used; the message says why.
        ConfigError: An argument is impossible, or the environment cannot replay logs.
        UnknownNameError: An environment, parameter or preset is unknown.
        RandomizationError: A prior is impossible.
        RunFolderError: The output cannot be written.
    """
    check_known("method", method, METHODS)
    _check_between("held_out", held_out, 0.0, 0.5)
    _check_between("margin", margin, 1.0, 100.0)
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise ConfigError(f"`seed`: expected a whole number of at least 0, got {seed!r}.")
    path = None if output is None else Path(output)
    if path is not None:
        _check_output(path, set(log_paths(log)))
    numbers = itertools.count(1)
    problem = open_problem(log, env=env, randomize=randomize, randomization=randomization, params=params)
    with contextlib.closing(problem), Progress("", "bar" if progress else "nothing") as display:
        from gym_dr.fitting.job import FitJob  # heavy

        def tell(text: str) -> None:
            display("Fitting", min(next(numbers), _PARTS - 1), _PARTS, result=text)

        job = FitJob(problem=problem, rng=np.random.default_rng(seed), varies=varies, tell=tell)
        try:
            found = job.result(method=method, held_out=held_out, margin=margin)
        except np.linalg.LinAlgError:
            raise LogError(
                f"Expected motion like that of {env}, got one that is too far from any simulation to be compared with "
                "it. Log in the environment's units."
            ) from None
    if path is not None:
        _write(found, path, command)
    return found


def open_problem(log: Any, *, env: str, **asked: Any) -> FitProblem:
    """Reads a log and checks it against an environment, before anything runs; arguments as for ``fit``."""
    from gym_dr.fitting.problem import make_problem  # heavy

    load_plugins()
    check_env_id(env)
    return make_problem(open_log(log), env=env, **asked)


def check(log: Any, **asked: Any) -> list[str]:
    """Says what can be fitted from a log, before anything runs; arguments as for ``fit``.

    Returns:
        Sentences.
    """
    from gym_dr.fitting.motion import read_motion  # heavy, as the next
    from gym_dr.fitting.simulator import Simulator

    with contextlib.closing(open_problem(log, **asked)) as problem:
        prior, untold = problem.prior, problem.replay.untold
        middle = prior.params(np.full(len(prior.names), 0.5))
        motion = read_motion(problem.episodes, Simulator(problem.replay, problem.hold), middle)
    steps = counted(sum(map(len, problem.episodes)), "step")
    found = [f"{counted(len(problem.episodes), 'episode')}, {steps}; {len(motion):,} can be replayed."]
    found += [f"{counted(count, 'step')} cannot: {reason}." for reason, count in motion.skipped]
    if problem.hold > 1:
        found.append(f"Each logged action acts for {problem.hold} steps of the environment.")
    coordinates = list(zip(motion.coordinates, motion.seen, strict=True))
    compared = [f"{one.name} ({one.unit})" if one.unit else one.name for one, seen in coordinates if seen]
    found.append(f"Compared: {', '.join(compared)}.")
    if hidden := [one.name for one, seen in coordinates if not seen]:
        found.append(f"Not observed, followed in simulation: {', '.join(hidden)}.")
    found += [f"{name} would keep its prior: {untold[name]}." for name in prior.names if name in untold]
    if rest := [name for name in prior.names if name not in untold]:
        found.append(f"Parameters to find: {', '.join(rest)}.")
    return found


def _check_between(name: str, value: Any, low: float, high: float) -> None:
    if not isinstance(value, int | float | np.number) or not low <= value <= high:
        raise ConfigError(f"`{name}`: expected a number from {low:g} to {high:g}, got {value!r}.")


def _files(path: Path) -> tuple[Path, Path, Path]:
    """Of the randomization, the particles and the report."""
    return path, path.with_suffix(".npz"), path.with_suffix(".html")


def _check_output(path: Path, logs: Collection[Path]) -> None:
    """Checks that everything can be written, before anything is fitted.

    Args:
        path: Of the randomization.
        logs: Files and folders of the log, see ``log_paths``.

    Raises:
        ConfigError: The path does not end in .toml, its folder does not exist, or a file would replace one of the log
            or lie between them.
    """
    if path.suffix != ".toml" or not path.parent.is_dir():
        raise ConfigError(f"`output`: expected a file that ends in .toml, in an existing folder, got {str(path)!r}.")
    for file in _files(path):
        place = Path(os.path.realpath(file))
        if place in logs or place.parent in logs:
            raise ConfigError(f"`output`: expected a file that is not part of the log, got {str(file)!r}.")


def _write(found: Fit, path: Path, command: str) -> None:
    """Writes particles, randomization and report.

    Without the packages for reports there is none, and the randomization's comment says so.

    Raises:
        RunFolderError: A file cannot be written.
    """
    from gym_dr.reports.fitting import fit_report  # heavy
    from gym_dr.reports.page import check_installed, write_report

    randomization, particles, page = _files(path)
    columns: dict[str, Any] = {str(name): values.to_numpy() for name, values in found.particles.items()}
    with os_errors(particles):
        np.savez_compressed(particles, **columns)
    comment = [f"Found by: {command}" if command else "Found by gym_dr.fit", *found.findings]
    report = None
    try:
        check_installed()
        train = ["gymdr", "train", "ppo", "--env", found.env, "--randomization", str(path), "--run-dir", "runs/fitted"]
        report = fit_report(found, command, [("Train on what was found", shlex.join(train))])
    except ConfigError as error:
        comment.append(f"There is no report: {error}")
    write_atomically(randomization, randomization_text(found.randomization, "\n".join(comment)).encode())
    if report is not None:
        write_report(report, page)
