"""One sub-environment in a separate process: the code that runs there, and the parent's end of the pipe."""

from __future__ import annotations

import contextlib
import multiprocessing
import pickle
import signal
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector.utils import CloudpickleWrapper

from gym_dr.errors import GymDrError

CLOSE_SECONDS = 5.0  # time for workers to close their environments before they are killed

EnvFn = Callable[[], gym.Env[Any, Any]]


class Fault(Exception):  # noqa: N818  not the caller's error: it becomes a WorkerError or a restart
    """A worker cannot continue; the reason is a phrase that follows its name."""

    def __init__(self, reason: str, *, alive: bool = False, trace: str = "") -> None:
        """Stores the reason, whether the process can still close its environment, and the process's traceback."""
        super().__init__(reason)
        self.alive, self.trace = alive, trace


class Worker:
    """The parent's side of one sub-environment's process.

    Every request has a number that its answer repeats, so that a late answer to an abandoned request (after Ctrl-C,
    say) is not mistaken for the answer to the next one.
    """

    def __init__(self, env_fn: EnvFn) -> None:
        """Starts the process; errors during startup surface in the answer to the first request."""
        context = multiprocessing.get_context()
        self._pipe, theirs = context.Pipe()
        # Gymnasium's wrapper makes lambdas picklable where processes are not forked
        args = (self._pipe, theirs, CloudpickleWrapper(env_fn))
        # every start method's context has this class, though their common base does not declare it
        self._process: Any = context.Process(target=_serve, args=args, daemon=True)
        self._process.start()
        theirs.close()
        self._number = 0

    @property
    def pid(self) -> int:
        """Process id."""
        return int(self._process.pid)

    def send(self, command: str, *args: Any) -> None:
        """Sends a request; a dead worker is detected by ``receive``."""
        self._number += 1
        with contextlib.suppress(OSError):  # the process has ended
            self._pipe.send((self._number, command, args))

    def receive(self, deadline: float, timeout: float) -> Any:
        """Waits for the answer to the latest request.

        Args:
            deadline: Time to wait until, as in ``time.monotonic``.
            timeout: Seconds that the worker had in total, for the message.

        Raises:
            Fault: The worker died, raised an error, or did not answer in time.
            Exception: The error with which the environment refused the request; the worker continues.
        """
        number, outcome = -1, ""
        value: Any = None
        while number != self._number and outcome != "raised":
            try:
                answered = self._pipe.poll(max(0.0, deadline - time.monotonic()))
                number, outcome, value = self._pipe.recv() if answered else (self._number, "silent", None)
            except (EOFError, OSError):
                raise Fault(self._ending()) from None
            except Exception as error:  # an answer that this process cannot unpickle
                raise Fault(f"sent an answer that cannot be read ({error!r})") from error
        if outcome == "silent":
            raise Fault(f"did not answer within {timeout:g} s")
        if outcome == "raised":
            raise Fault(f"raised {value.strip().splitlines()[-1]}", alive=True, trace=value)
        if outcome == "refused":
            raise value
        return value

    def _ending(self) -> str:
        self._process.join(1.0)
        code = self._process.exitcode
        if code is None:
            return "closed its pipe"
        if code >= 0:
            return f"ended with exit code {code}"
        return "was killed by " + next((known.name for known in signal.Signals if known == -code), f"signal {-code}")


def stop(workers: Iterable[Worker], seconds: float = CLOSE_SECONDS) -> None:
    """Ends and reaps processes; kills those that do not close their environments in time.

    Args:
        workers: Healthy, hung or dead; they cannot be used afterwards.
        seconds: Time for all of them together.
    """
    workers = list(workers)
    if seconds > 0.0:
        for worker in workers:
            worker.send("close")
    deadline = time.monotonic() + seconds
    for worker in workers:
        worker._process.join(max(0.0, deadline - time.monotonic()))
    for worker in workers:
        worker._process.kill()
        worker._process.join()
        worker._process.close()
        worker._pipe.close()


def _serve(parents: Any, pipe: Any, env_fn: EnvFn) -> None:
    """Runs in the process: answers requests until the parent sends ``close`` or exits."""
    # Ctrl-C reaches every process in the terminal: the parent decides, and its handlers must not run here
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    parents.close()
    env: gym.Env[Any, Any] | None = None
    try:
        env = env_fn()
        while True:
            number, command, args = pipe.recv()
            if command == "close":
                break
            _answer(pipe, number, env, command, args)
    except (EOFError, BrokenPipeError):
        pass  # the parent is gone
    except Exception:
        pipe.send((0, "raised", traceback.format_exc()))
    finally:
        if env is not None:
            env.close()


def _answer(pipe: Any, number: int, env: gym.Env[Any, Any], command: str, args: tuple[Any, ...]) -> None:
    try:
        answer = (number, "done", _COMMANDS[command](env, *args))
    except Exception as error:
        # the caller can correct a bad request, and our own errors are raised before anything has changed
        asked = command in ("call", "set") or (command == "reset" and isinstance(error, GymDrError))
        if asked and _can_be_sent(error):
            answer = (number, "refused", error)
        else:
            answer = (number, "raised", traceback.format_exc())
    try:
        pipe.send(answer)
    except BrokenPipeError:
        raise  # the parent is gone
    except Exception:  # the answer cannot be pickled; nothing was sent
        pipe.send((number, "raised", traceback.format_exc()))


def _can_be_sent(error: Exception) -> bool:
    try:
        return type(pickle.loads(pickle.dumps(error))) is type(error)
    except Exception:  # copying an unknown exception may do anything
        return False


def _call(env: gym.Env[Any, Any], name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    attribute = env.get_wrapper_attr(name)
    return attribute(*args, **kwargs) if callable(attribute) else attribute


def _restore(
    env: gym.Env[Any, Any], seed: int | None, draw_index: int | None, restarts: int, attributes: Mapping[str, Any]
) -> None:
    """Prepares a new environment to replace a lost one: the next reset uses the draw after ``draw_index``.

    The old generator is lost. Terrain and noise come from one keyed by the seed and the number of restarts since; the
    seed alone would repeat the first episodes.
    """
    if seed is not None:
        env.reset(seed=seed)
    for name, value in attributes.items():
        env.set_wrapper_attr(name, value)
    if seed is not None:
        env.np_random = np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, restarts))))
    if draw_index is not None:
        env.set_wrapper_attr("draw_index", draw_index)


_COMMANDS: Mapping[str, Callable[..., Any]] = {
    "ready": lambda env: None,  # the environment is made
    "reset": lambda env, seed, options: env.reset(seed=seed, options=options),
    "step": lambda env, action: env.step(action),
    "call": _call,
    "set": lambda env, name, value: env.set_wrapper_attr(name, value),
    "restore": _restore,
}
