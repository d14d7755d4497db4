"""``gym_dr.fit``: from a log of the real system to a randomization."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gym_dr.errors import ConfigError, as_path, needs
from gym_dr.fitting.problem import FitOptions, FitProblem, Question, make_problem
from gym_dr.fitting.results import Fit, FitFiles, particle_bytes, randomization_bytes
from gym_dr.integrations.minari import log_paths, open_log
from gym_dr.plugins.loading import load_plugins
from gym_dr.runs.environments import check_env_id
from gym_dr.runs.folder import EMPTY, check_output, write_atomically
from gym_dr.runs.terminal import Progress

_PARTS = 12  # of the progress, about


def fit(
    log: Any,
    *,
    env: str,
    randomize: Mapping[str, Any] | None = None,
    randomization: Any = None,
    params: Mapping[str, float] | None = None,
    time_step: str | None = None,
    average_actions: bool = False,
    varies: Sequence[str] = (),
    method: str = "auto",
    held_out: float = 0.2,
    margin: float = 1.0,
    output: str | Path | None = None,
    seed: int = 0,
    command: str = "",
    progress: bool = True,
) -> Fit:
    """Finds ranges of parameters with which a simulator can explain a log of the real system, as ``gymdr fit`` does.

    Example:
        >>> fitted = gym_dr.fit("flights", env="gym_dr/LunarLanderDR-v3", randomize={"gravity": (-12, -6)})
        >>> run = gym_dr.train("ppo", env="gym_dr/LunarLanderDR-v3", randomization=fitted.randomization)

    Args:
        log: Episodes, in any form that ``gym_dr.fitting.logs.read_log`` reads, or a data set of Minari.
        env: Id of an environment with a native vector environment.
        randomize: Parameters to find -> their priors; also ``obs_noise``, ``action_delay`` or ``obs_delay``, and the
            ``obs_gain:NAME``, ``obs_offset:NAME`` and ``obs_delay:NAME`` of sensors of coordinates.
        randomization: A whole prior: a preset or a file; ``randomize`` replaces rules of it.
        params: Known values that are not nominal: name -> value.
        time_step: The parameter that is the duration of a step: each step lasts as long as the log's times need, at
            most its nominal or known value. Without it, logged intervals take the nearest whole number of steps.
        average_actions: Whether the mean acts where actions of a faster log change within a step of the environment;
            otherwise such a log is refused.
        varies: Parameters that vary between episodes, whose result is then their distribution; the others are shared.
        method: "likelihood" explains each step, with noise in measurements and steps; "simulation" is least squares
            over simulated stretches of about 1 s, for models that err a little everywhere; "auto" does both and takes
            the one that predicts held-out motion better.
        held_out: Share of the episodes, spread over the log, to hold out of the fit and replay as a test, from 0 to
            0.5.
        margin: Factor by which ranges are wider than the posterior, at least 1.
        output: File for the randomization, such as "fitted.toml"; particles and report go to "fitted.npz" and
            "fitted.html" beside it. None writes nothing.
        seed: Seed of random numbers.
        command: The command line, for the report.
        progress: Whether to show progress.

    Raises:
        LogError: The log cannot be used; the message says why.
        ConfigError: An argument is impossible.
        EnvStateError: The environment cannot replay logs.
        UnknownNameError: An environment, parameter or preset is unknown.
        RandomizationError: A prior is impossible.
        RunFolderError: The output cannot be written.
    """
    options = FitOptions(
        varies=(varies,) if isinstance(varies, str) else tuple(varies),
        method=method,
        held_out=held_out,
        margin=margin,
        seed=seed,
    )
    question = Question(
        env=env,
        randomize=randomize,
        randomization=randomization,
        params=params,
        time_step=time_step,
        average_actions=average_actions,
    )
    files = None if output is None else FitFiles(as_path(output))
    if files is not None:
        files.check(set(log_paths(log)))
        for file in (files.randomization, files.particles, files.page):  # beside an earlier fit, its own
            check_output(file, b"" if files.randomization.exists() else EMPTY)
    numbers = itertools.count(1)
    with contextlib.closing(open_problem(log, question)) as problem:
        from gym_dr.fitting.job import FitJob  # heavy

        with Progress("", "bar" if progress else "nothing") as display:

            def tell(text: str) -> None:
                display("Fitting", min(next(numbers), _PARTS - 1), _PARTS, result=text)

            result = FitJob(problem, options, tell).result()
    if files is not None:
        _write(result, files, command)
    return result


def open_problem(log: Any, question: Question) -> FitProblem:
    """Reads a log and checks it and a question against the environment, before anything runs."""
    load_plugins()
    check_env_id(question.env)
    return make_problem(open_log(log), question)


def check(log: Any, question: Question) -> list[str]:
    """What can be fitted from a log, in sentences, before anything is fitted."""
    from gym_dr.fitting.job import preview  # heavy

    with contextlib.closing(open_problem(log, question)) as problem:
        return preview(problem)


def _write(fit: Fit, files: FitFiles, command: str) -> None:
    """Writes particles, randomization and page; a comment replaces the page if packages for reports are missing.

    Raises:
        RunFolderError: A file cannot be written.
    """
    write_atomically(files.particles, particle_bytes(fit))
    try:
        needs("A report", "report", "jinja2", "plotly")
    except ConfigError as error:
        write_atomically(files.randomization, randomization_bytes(fit, command, [f"There is no report: {error}"]))
        return
    from gym_dr.reports.fitting import fit_report  # heavy, as the next
    from gym_dr.reports.page import write_report

    page = fit_report(fit, command, files.randomization)
    write_atomically(files.randomization, randomization_bytes(fit, command))
    write_report(page, files.page)
