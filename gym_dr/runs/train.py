"""Trains one run."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping

from gym_dr.compiled.processors import using_threads
from gym_dr.envs.vector_arguments import check_whole_number
from gym_dr.errors import Interrupted, InvalidActionError, LostRunError, PluginError, TrainingError, raised_as
from gym_dr.runs.config import OpenedRun
from gym_dr.runs.session import EndedEarly, RunLoggers, RunSession, TrainingCallback
from gym_dr.runs.terminal import Display, Progress, StopRequest, stop_signals


@contextlib.contextmanager
def working_on(run: OpenedRun, stop: StopRequest, *, new: bool, num_threads: int | None = None) -> Iterator[RunLoggers]:
    """Locks a run's folder, limits threads, handles signals, and yields the run's loggers, which it closes.

    Args:
        run: The run.
        stop: Set by signals, unless the caller handles them.
        new: Whether every logger must open; loggers of a resumed run may fail.
        num_threads: See ``limited_threads``.

    Raises:
        ConfigError: The number of threads is impossible.
        BusyFolderError: Another process writes into the folder.
    """
    import torch  # heavy

    with (
        limited_threads(num_threads, run.config.settings.torch_threads),
        torch.inference_mode(False),
        torch.enable_grad(),  # the caller may have turned them off
        run.folder.locked(),
        stop_signals(stop),
        contextlib.closing(RunLoggers(run.folder, run.config, required=new)) as loggers,
    ):
        yield loggers


@contextlib.contextmanager
def limited_threads(num_threads: int | None = None, torch_threads: int = 1) -> Iterator[None]:
    """Limits threads in the block.

    Args:
        num_threads: Of native environments and compiled learners, whose results do not depend on it; None for as many
            as there are processors, or as a surrounding block has.
        torch_threads: Of torch, whose sums depend on it. More than one slow small networks down, most of all beside
            busy programs. Products of matrices in compiled code have one.

    Raises:
        ConfigError: ``num_threads`` is not a whole number above 0.
    """
    import scipy.linalg  # noqa: F401  heavy; numba uses its products, and only loaded libraries are limited
    import torch
    from threadpoolctl import threadpool_limits

    threads = None if num_threads is None else check_whole_number("`num_threads`", num_threads)
    before = torch.get_num_threads()
    torch.set_num_threads(torch_threads)
    try:
        with using_threads(threads), threadpool_limits(1, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(before)


def train_run(
    run: OpenedRun,
    stop: StopRequest,
    loggers: RunLoggers,
    *,
    resume: bool,
    display: Display = "bar",
    callback: TrainingCallback | None = None,
) -> None:
    """Trains a run whose folder holds its configuration, until its last update, the callback or a signal ends it.

    The first signal stops it after the current update, the second at once.

    Args:
        run: The run.
        stop: The one of ``working_on``.
        loggers: From ``working_on``.
        resume: Whether to resume from the newest checkpoint, if there is one.
        display: How to show progress.
        callback: See ``gym_dr.train``.

    Raises:
        PluginError: The algorithm's function cannot be imported, or a logger cannot be opened.
        CheckpointError: There is nothing usable to resume from.
        LostRunError: A worker process of async environments died.
        TrainingError: Training cannot continue.
        Interrupted: A signal stopped the run; the message says how to continue.
    """
    folder, config, algorithm = run.folder, run.config, run.algorithm
    with raised_as(PluginError, f"Algorithm {algorithm.name!r}: {algorithm.train!r} cannot be imported"):
        train = algorithm.train_function()
    title, total = f"{algorithm.name} seed {config.settings.seed}", config.options.updates
    with Progress("update", display) as progress:

        def report(updates: int, row: Mapping[str, float]) -> None:
            mean = row["return_mean"]
            result = "no episode yet" if math.isnan(mean) else f"return {mean:.1f}"
            progress(title, updates, total, steps=row["steps"], result=result)

        session = RunSession(
            folder,
            config,
            report,
            resume=resume,
            check_stop=stop.check,
            callback=callback,
            loggers=loggers,
        )
        progress(title, session.first_update, total)
        try:
            train(session, config.options)
        except (TrainingError, InvalidActionError) as error:
            raise TrainingError(f"Update {session.updates_made}: {error} {session.last_good()}") from error
        except EndedEarly:
            progress.note(
                f"{title}: the callback ended the run after {session.updates_made} of {total} updates. Train the "
                f"others with: gymdr resume {folder.path}"
            )
        except KeyboardInterrupt as stopped:
            raise Interrupted(
                f"Stopped with {session.updates_made} of {total} updates made and {session.updates_saved} saved. "
                f"Continue, to the same result as without the stop, with: gymdr resume {folder.path}",
                *stopped.args[-1:],
            ) from None
        except (EOFError, ConnectionError) as error:  # of the pipe to a process of an async vector environment
            raise LostRunError(f"A worker process died. Continue with: gymdr resume {folder.path}") from error
        finally:
            session.close()
