"""Sub-environments in worker processes that are monitored.

Like Gymnasium's async vector environment, but when a sub-environment fails, the error names it and its draw, no
processes are left behind, and a replacement can continue.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, NoReturn, cast

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

from gym_dr.envs.autoreset import AutoresetState
from gym_dr.envs.vector_arguments import (
    Options,
    Seeds,
    check_actions,
    check_autoreset_mode,
    check_reset_mask,
    check_seeds,
)
from gym_dr.envs.workers.answers import check_form
from gym_dr.envs.workers.worker import CLOSE_SECONDS, EnvFn, Fault, Worker, stop
from gym_dr.errors import ConfigError, EnvStateError, WorkerError, WorkerWarning

MAX_TIMEOUT = 1e6  # seconds; the operating system waits at most 24 days

Request = tuple[Any, ...]  # a command and its arguments


@dataclass
class _Slot:
    """What is known about one sub-environment."""

    worker: Worker
    observation: Any  # the latest one; zeros before the first
    seed: int | None = None  # None before the first reset
    reported: dict[str, Any] = field(default_factory=dict)  # "params" and "draw_index" of the latest info
    lost: bool = False  # its worker was replaced between steps: the next one reports a truncation
    fresh: bool = False  # its worker was replaced and has not made a step since
    restarts: int = 0  # since it was seeded
    attributes: dict[str, Any] = field(default_factory=dict)  # set by set_attr


class WorkerVectorEnv(VectorEnv[Any, Any, Any]):
    """Like Gymnasium's ``AsyncVectorEnv``, but detects, reports and optionally replaces workers that fail.

    A worker fails when it is killed, raises an error, does not answer in time or returns a wrong shape. Then all
    processes are terminated and ``WorkerError`` names the sub-environment, its seed and its draw. With ``restart`` a
    new worker takes its place instead, with a ``WorkerWarning``: the episode ends with a truncated step that has reward
    0, repeats the last observation and sets ``info["worker_restarted"]``. Draws continue as if nothing had happened:
    the next episode has the same seed and the next draw index. The lost random generator is replaced by one derived
    from the seed and the number of restarts since. A worker that fails again before its first step is not replaced.

    Observations travel through pipes, so no shared memory can be left behind.

    Example:
        >>> import gymnasium as gym, gym_dr
        >>> envs = gym_dr.WorkerVectorEnv([lambda: gym.make("gym_dr/LunarLanderDR-v3")] * 2, restart=True)
        >>> _, info = envs.reset(seed=42)
        >>> info["params"]["gravity"].shape
        (2,)
        >>> envs.close()
    """

    def __init__(
        self,
        env_fns: Sequence[EnvFn],
        *,
        timeout: float = 60.0,
        restart: bool = False,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    ) -> None:
        """Starts a process for each constructor.

        Args:
            env_fns: Constructors of the sub-environments, which must have the same spaces.
            timeout: Seconds that a worker may take to answer, or to build its environment.
            restart: Whether to replace failed workers.
            autoreset_mode: NEXT_STEP, SAME_STEP or DISABLED, as Gymnasium defines them.

        Raises:
            ConfigError: An argument is impossible.
            WorkerError: A sub-environment cannot be made.
        """
        super().__init__()
        if not (isinstance(timeout, int | float | np.number) and 0.0 < timeout <= MAX_TIMEOUT):
            raise ConfigError(f"Expected timeout to be above 0 and at most {MAX_TIMEOUT:g} seconds, got {timeout!r}.")
        self.env_fns = list(env_fns)
        if not self.env_fns:
            raise ConfigError("Expected at least one constructor of an environment, got none.")
        self.num_envs = len(self.env_fns)
        self.timeout, self.restart = float(timeout), bool(restart)
        mode = check_autoreset_mode(autoreset_mode)
        template = self.env_fns[0]()
        self.autoreset_mode = mode
        self.metadata = {**template.metadata, "autoreset_mode": mode}
        self.render_mode = template.render_mode
        self.spec = template.spec  # wrappers look up what sensors are called, and the reward threshold
        self.single_observation_space, self.single_action_space = template.observation_space, template.action_space
        template.close()
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._autoreset = AutoresetState(mode, self.num_envs)
        self._pid = os.getpid()
        self._replaced: list[str] = []  # pending warnings
        self._slots: list[_Slot] = []
        nothing = create_empty_array(self.single_observation_space, 1)
        first = next(iter(iterate(batch_space(self.single_observation_space, 1), nothing)))
        for i in range(self.num_envs):
            self._slots.append(_Slot(Worker(self.env_fns[i]), observation=first))
        _, faults, _ = self._exchange(dict.fromkeys(range(self.num_envs), ("ready",)))
        for i, fault in faults.items():
            self._fail(i, fault)
        for name, space in (
            ("observation_space", self.single_observation_space),
            ("action_space", self.single_action_space),
        ):
            others = [i for i, other in enumerate(self.get_attr(name)) if other != space]
            if others:
                self.close(terminate=True)
                raise ConfigError(f"Expected the same {name} everywhere, got another one in sub-environments {others}.")

    # ---- Gymnasium's interface --------------------------------------------------------------------------------------

    @property
    def np_random_seed(self) -> tuple[int | None, ...]:  # type: ignore[override]  # as SyncVectorEnv
        """The seed of each sub-environment; None before its first reset."""
        return tuple(slot.seed for slot in self._slots)

    @property  # type: ignore[misc]
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]  # as SyncVectorEnv
        """Copies of the sub-environments' generators."""
        return self.get_attr("np_random")

    def reset(self, *, seed: Seeds = None, options: Options = None) -> tuple[Any, dict[str, Any]]:
        """Begins new episodes.

        Args:
            seed: An integer gives sub-environment i ``seed + i``; a sequence gives each its own.
            options: Passed to each sub-environment, except ``"reset_mask"``, shape ``(num_envs,)`` bool, which resets
                only some of them.

        Raises:
            EnvStateError: The environment is closed.
            RandomizationError: An impossible seed or mask; nothing has changed.
            WorkerError: A worker failed.
        """
        self._check_open()
        mask = check_reset_mask(options, self.num_envs)
        options = {} if options is None else options
        seeds = check_seeds(seed, self.num_envs)
        options.pop("reset_mask", None)  # as Gymnasium does; its wrappers rely on it
        chosen = np.flatnonzero(mask).tolist()
        answers = self._ask({i: ("reset", seeds[i], options or None) for i in chosen})
        info: dict[str, Any] = {}
        for i in chosen:
            slot = self._slots[i]
            if seeds[i] is not None:
                slot.seed, slot.restarts = seeds[i], 0
            slot.attributes.pop("exact_params", None)  # VectorParams' values for this one episode
            info = self._add_info(info, self._begin(slot, answers[i]), i)
        self._autoreset.reset(mask)
        unknown = [i for i in chosen if self._slots[i].seed is None]
        for i, known in self._ask({i: ("call", "np_random_seed", (), {}) for i in unknown}).items():
            self._slots[i].seed = known if known is not None and known >= 0 else None
        self._announce()
        return self._stack(), info

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Steps every sub-environment, or resets it if the autoreset mode requires it.

        Raises:
            EnvStateError: Closed, not reset yet, or an episode that ended was not reset (DISABLED).
            InvalidActionError: The actions are not in the action space; nothing has changed.
            WorkerError: A worker failed.
        """
        self._check_open()
        rows = list(iterate(self.action_space, check_actions(actions, self.action_space)))
        self._autoreset.check_step()
        will_step = self._autoreset.will_step.tolist()
        requests: dict[int, Request] = {}
        for i, slot in enumerate(self._slots):
            if not will_step[i]:
                requests[i] = ("reset", None, None)
            elif not slot.lost:
                requests[i] = ("step", rows[i])
        answers = self._ask(requests)
        rewards = np.zeros(self.num_envs)
        terminations, truncations = np.zeros(self.num_envs, np.bool_), np.zeros(self.num_envs, np.bool_)
        infos: list[dict[str, Any]] = []
        for i, slot in enumerate(self._slots):
            if slot.lost:
                slot.lost, truncations[i] = False, True
                infos.append({**slot.reported, "worker_restarted": True})
            elif requests[i][0] == "reset":
                infos.append(self._begin(slot, answers[i]))
            else:
                slot.observation, rewards[i], terminations[i], truncations[i], step_info = answers[i]
                slot.fresh = False
                infos.append(self._note(slot, step_info))
        done = terminations | truncations
        if self._autoreset.mode == AutoresetMode.SAME_STEP:
            self._autoreset.done = done  # a worker that fails now has no episode to lose
            self._restart_ended(infos, np.flatnonzero(done).tolist())
        self._autoreset.step(done)
        info: dict[str, Any] = {}
        for i, own in enumerate(infos):
            info = self._add_info(info, own, i)
        self._announce()
        return self._stack(), rewards, terminations, truncations, info

    def render(self) -> tuple[Any, ...] | None:
        """One frame of each sub-environment."""
        return self.call("render")

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Calls a method of every sub-environment, or gets an attribute; raises the error that it raises.

        Raises:
            EnvStateError: The environment is closed.
            WorkerError: A worker failed.
        """
        self._check_open()
        answers = self._ask(dict.fromkeys(range(self.num_envs), ("call", name, args, kwargs)))
        self._announce()
        return tuple(answers[i] for i in range(self.num_envs))

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """An attribute of every sub-environment."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Sets an attribute of every sub-environment and of later replacements.

        Args:
            name: Name of the attribute.
            values: A list or tuple with a value for each; anything else is used for all.

        Raises:
            EnvStateError: The environment is closed.
            ConfigError: The number of values is not the number of sub-environments.
            WorkerError: A worker failed.
        """
        self._check_open()
        each = list(values) if isinstance(values, list | tuple) else [values] * self.num_envs
        if len(each) != self.num_envs:
            raise ConfigError(f"Expected {self.num_envs} values for {name!r}, got {len(each)}.")
        self._ask({i: ("set", name, value) for i, value in enumerate(each)})
        for slot, value in zip(self._slots, each, strict=True):
            slot.attributes[name] = value
        self._announce()

    def close_extras(self, *, terminate: bool = False) -> None:
        """Ends all processes.

        Args:
            terminate: Kill them immediately, without letting them close their environments.
        """
        if getattr(self, "_pid", None) == os.getpid():  # a fork has the pipes too, but does not own the workers
            stop([slot.worker for slot in self._slots], 0.0 if terminate else CLOSE_SECONDS)

    # ---- episodes ---------------------------------------------------------------------------------------------------

    def _begin(self, slot: _Slot, answer: tuple[Any, dict[str, Any]]) -> dict[str, Any]:
        """Records the start of an episode; returns its info."""
        slot.observation, info = answer
        slot.lost = False
        return self._note(slot, info)

    def _note(self, slot: _Slot, info: dict[str, Any]) -> dict[str, Any]:
        slot.reported = {key: info[key] for key in ("params", "draw_index") if key in info}
        return info

    def _restart_ended(self, infos: list[dict[str, Any]], ended: list[int]) -> None:
        """SAME_STEP: begins new episodes where some ended, and puts the final results into their info."""
        final = {i: {"final_obs": self._slots[i].observation, "final_info": infos[i]} for i in ended}
        for i, answer in self._ask(dict.fromkeys(ended, ("reset", None, None))).items():
            infos[i] = {**final[i], **self._begin(self._slots[i], answer)}

    def _stack(self) -> Any:
        """The latest observations as a new batch."""
        out = create_empty_array(self.single_observation_space, self.num_envs)
        rows = [slot.observation for slot in self._slots]
        return deepcopy(concatenate(self.single_observation_space, rows, cast(Any, out)))

    def _announce(self) -> None:
        """Warns about replaced workers; called last, since a warning may be turned into an exception."""
        while self._replaced:
            warnings.warn(self._replaced.pop(0), WorkerWarning, stacklevel=3)

    def _check_open(self) -> None:
        if self.closed:
            raise EnvStateError("The vector environment is closed.")

    # ---- workers ----------------------------------------------------------------------------------------------------

    def _ask(self, requests: Mapping[int, Request]) -> dict[int, Any]:
        """Sends requests and collects the answers by sub-environment.

        Replaces failed workers and repeats their requests, except steps, whose episode is lost.

        Raises:
            WorkerError: A worker failed and cannot be replaced.
            Exception: The first error with which a sub-environment refused its request.
        """
        answers, faults, refused = self._exchange(requests)
        for i, fault in faults.items():
            self._replace(i, fault)
        again = {i: requests[i] for i in faults if requests[i][0] != "step"}
        more, failed, refused_too = self._exchange(again)
        for i, fault in failed.items():
            self._fail(i, fault)
        for error in refused + refused_too:
            raise error
        return {**answers, **more}

    def _exchange(self, requests: Mapping[int, Request]) -> tuple[dict[int, Any], dict[int, Fault], list[Exception]]:
        """Sends requests; returns the answers and the faults by sub-environment, and the refusals."""
        for i, request in requests.items():
            self._slots[i].worker.send(*request)
        deadline = time.monotonic() + self.timeout
        answers: dict[int, Any] = {}
        faults: dict[int, Fault] = {}
        refused: list[Exception] = []
        for i, request in requests.items():
            try:
                answer = self._slots[i].worker.receive(deadline, self.timeout)
                check_form(request[0], answer, self.single_observation_space)
                answers[i] = answer
            except Fault as fault:
                faults[i] = fault
            except Exception as error:
                refused.append(error)
        return answers, faults, refused

    def _replace(self, i: int, fault: Fault) -> None:
        """Replaces a failed worker by a new one that is ready for the next reset.

        Raises:
            WorkerError: It must not be replaced, or its replacement failed too.
        """
        slot = self._slots[i]
        if not self.restart or slot.fresh:
            self._fail(i, fault)
        lost = bool(self._autoreset.begun[i] and not self._autoreset.done[i])
        outcome = ", and its episode is truncated" if lost else ""
        self._replaced.append(f"{self._name(i)} {fault}. It was replaced{outcome}.")
        stop([slot.worker], CLOSE_SECONDS if fault.alive else 0.0)
        slot.worker = Worker(self.env_fns[i])
        slot.lost, slot.fresh = lost, True
        slot.restarts += 1
        state = (slot.seed, slot.reported.get("draw_index"), slot.restarts, slot.attributes)
        _, failed, _ = self._exchange({i: ("restore", *state)})
        if failed:
            self._fail(i, failed[i])

    def _fail(self, i: int, fault: Fault) -> NoReturn:
        """Terminates all workers and raises WorkerError."""
        slot = self._slots[i]
        stop([slot.worker], CLOSE_SECONDS if fault.alive else 0.0)
        stop(other.worker for other in self._slots if other is not slot)
        self.closed = True
        again = " right after it was replaced" if slot.fresh else ""
        advice = "" if self.restart else " To replace failed workers, use WorkerVectorEnv(..., restart=True)."
        error = WorkerError(
            f"{self._name(i)} {fault}{again}. All other workers have been terminated.{advice}",
            env_index=i,
            seed=slot.seed,
            draw_index=slot.reported.get("draw_index"),
            params=slot.reported.get("params"),
        )
        raise error from (RuntimeError(f"in the worker:\n{fault.trace}") if fault.trace else None)

    def _name(self, i: int) -> str:
        """Describes a sub-environment, with its seed and draw, for messages."""
        slot = self._slots[i]
        if not self._autoreset.begun[i]:
            return f"Sub-environment {i} (before its first reset)"
        drawn = ", ".join(f"{name}={value:.6g}" for name, value in slot.reported.get("params", {}).items())
        draw = f", draw {slot.reported['draw_index']}: {drawn}" if "draw_index" in slot.reported else ""
        return f"Sub-environment {i} (seed {slot.seed}{draw})"
