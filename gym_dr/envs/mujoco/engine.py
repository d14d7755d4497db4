"""Many simulations of one model: the physics of the native vector environments.

``BatchEngine`` uses ``mujoco.batch``, which MuJoCo has from 3.17. ``OwnDataEngine`` has an ``MjData`` for each
sub-environment, for older versions and for tasks that read contact forces: Gymnasium computes ``cfrc_ext`` by
``mj_rnePostConstraint`` from the contacts of the last stage of the last substep, which a batch does not keep. Both do
the arithmetic of single simulations, with any number of threads.

The child of a fork has none of the threads of its parent. It starts its own with the first call that needs them.
"""

from __future__ import annotations

import copy
import ctypes
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from queue import SimpleQueue
from threading import Thread
from typing import Any, cast
from weakref import WeakSet

import mujoco  # type: ignore[import-untyped]
import numpy as np

from gym_dr.arrays import Array, Indices, Mask
from gym_dr.envs.mujoco.editor import edit, needs_set_const
from gym_dr.envs.mujoco.fields import field_array, is_option
from gym_dr.envs.mujoco.memory import ScatteredField
from gym_dr.envs.mujoco.reference import BAD_STATE, QUIET

try:
    from mujoco import batch as mujoco_batch
except ImportError:  # MuJoCo before 3.17
    mujoco_batch = None

_FIXED = re.compile(  # fields of MjData whose size depends on the model alone, in every version
    "act|act_dot|actuator_.*|cacc|cam_x.*|cdof.*|cfrc_.*|cinert|crb|ctrl|cvel|energy|geom_x.*|light_x.*|mocap_.*"
    "|qacc.*|qfrc_.*|qpos|qvel|sensordata|site_x.*|subtree_.*|ten_length|ten_velocity|time|userdata|x.*"
)
DATA_FIELDS: frozenset[str] = (  # of MjData, that an engine can provide
    frozenset(filter(_FIXED.fullmatch, dir(mujoco.MjData))) if mujoco_batch is None else mujoco_batch.DATA_FIELDS
)

_INTEGRATION = mujoco.mjtState.mjSTATE_INTEGRATION.value
_CHUNKS = 8  # per thread, so that slow simulations do not keep the other threads waiting
# of a call on several threads: who has begun, who has ended, the same to wait for, and whether to stop
_Call = tuple[list[bool], list[bool], SimpleQueue[bool], list[bool]]
_THREADED: WeakSet[Engine] = WeakSet()  # engines with threads of their own


class Engine(ABC):
    """``num_envs`` simulations; arrays are overwritten in place by each call."""

    qpos: Array  # (num_envs, nq)
    qvel: Array  # (num_envs, nv)
    ctrl: Array  # (num_envs, nu), controls of the next step
    diverged: Mask  # (num_envs,), in the last step
    written: dict[str, Array]  # fields of the model that were written, (num_envs, ...)
    _fields: dict[str, Array]
    _jobs: SimpleQueue[Callable[[], None] | None]
    _helpers = 0  # threads of Python that take jobs

    def field(self, name: str) -> Array:
        """A field of ``MjData``: ``qpos``, ``qvel``, ``ctrl`` or one named at construction, ``(num_envs, ...)``."""
        return self._fields[name] if name in self._fields else cast(Array, getattr(self, name))

    @abstractmethod
    def write(self, fields: Mapping[str, Array], envs: Indices) -> None:
        """Sets model fields of some simulations, each ``(len(envs), ...)``, and recomputes derived constants.

        Their states are lost: ``start``, ``place`` or ``set_state`` follows.
        """

    @abstractmethod
    def start(self, envs: Indices, qpos: Array, qvel: Array) -> None:
        """Resets some simulations to states ``(len(envs), nq)`` and ``(len(envs), nv)``, and runs ``mj_forward``."""

    @abstractmethod
    def place(self, qpos: Array, qvel: Array) -> None:
        """Moves all simulations to states ``(num_envs, nq)`` and ``(num_envs, nv)``, without a warm start."""

    def push(self, envs: Indices, dofs: Sequence[int], velocities: Array) -> None:
        """Adds ``velocities``, of shape ``(len(envs), len(dofs))``, to those of some simulations."""
        self.qvel[envs[:, None], dofs] += velocities

    @abstractmethod
    def apply_wrench(self, envs: Indices, body: int, wrenches: Array) -> None:
        """Sets force and torque on a body of some simulations, ``(len(envs), 6)``; ``start`` sets them to 0."""

    @abstractmethod
    def get_state(self) -> Array:
        """MuJoCo's integration states, which hold the warm start of the solver, ``(num_envs, size)``."""

    @abstractmethod
    def set_state(self, states: Array, outputs: Mapping[str, Array], envs: Indices) -> None:
        """Restores some simulations.

        Args:
            states: From ``get_state``.
            outputs: The fields named at construction, which belong to an earlier time than the states.
            envs: The simulations to restore.
        """

    @abstractmethod
    def step(self, envs: Indices | None, substeps: int) -> None:
        """Advances some simulations, or all (None), under ``ctrl``."""

    @abstractmethod
    def snapshot(self, env: int, model: Any, data: Any) -> None:
        """Copies one simulation's model and state, for drawing."""

    @abstractmethod
    def after_fork(self) -> None:
        """Forgets the threads, in the child of a fork."""

    def close(self) -> None:
        """Ends the threads that Python made."""
        for _ in range(self._helpers):
            self._jobs.put(None)
        self._helpers = 0


class BatchEngine(Engine):
    """``mujoco.batch.Batch``."""

    def __init__(self, model: Any, num_envs: int, num_threads: int, fields: Sequence[str], keyframe: int = -1) -> None:
        """Starts all simulations at the model's own state, or at a keyframe.

        Args:
            model: An ``MjModel`` with nominal values; it is copied.
            num_envs: Simulations.
            num_threads: Threads.
            fields: Fields of ``MjData`` that ``field`` must provide.
            keyframe: Where simulations begin, see ``reset_data``.
        """
        self._keyframe = keyframe
        self._batch, self._threads_lost = mujoco_batch.Batch(model, num_envs, num_threads), False
        _THREADED.add(self)
        self.qpos, self.qvel, self.ctrl = (self._batch.bind(name) for name in ("qpos", "qvel", "ctrl"))
        self._fields = {name: self._batch.bind(name) for name in fields}
        self._batch.reset(stage=mujoco.mjtStage.mjSTAGE_NONE.value)
        self._first_state = self._batch.state[0].copy()  # the complete state after mj_resetData
        if keyframe >= 0:
            data = mujoco.MjData(model)
            reset_data(model, data, keyframe)
            mujoco.mj_getState(model, data, self._first_state, _INTEGRATION)
        self._counts = self._batch.warning[:, :, 1]  # (num_envs, kinds); the other column is MuJoCo's detail
        self._counts[...] = QUIET
        self.written = {}
        self._restored: dict[str, Array] = {}  # fields that a restored state brought, until the next step
        self.diverged = np.zeros(num_envs, np.bool_)

    def after_fork(self) -> None:
        # a batch waits for its threads when it ends, here forever; so it never ends
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._batch))
        self._threads_lost = True

    def _ready(self) -> Any:
        """The batch, with threads; after a fork a new one in the state of the old."""
        if self._threads_lost:
            old, fields = self._batch, self.written
            outputs = {name: np.array(self.field(name)) for name in self._fields}
            BatchEngine.__init__(self, old.model, old.nsim, old.nthread, tuple(outputs), self._keyframe)
            self.write(fields, np.arange(old.nsim))
            self._batch.state[:] = old.state
            self._restored = outputs
        return self._batch

    def write(self, fields: Mapping[str, Array], envs: Indices) -> None:
        for name, values in fields.items():
            if name not in self.written:
                array = self._batch.expand(f"opt.{name}" if is_option(name) else name)
                self.written[name] = array.reshape(len(array)) if values.ndim == 1 else array
            self.written[name][envs] = values
        if needs_set_const(fields):
            self._ready().set_const(envs)

    def start(self, envs: Indices, qpos: Array, qvel: Array) -> None:
        # like Batch.reset, but without waking the threads a second time
        self._ready().state[envs] = self._first_state
        self.qpos[envs], self.qvel[envs] = qpos, qvel
        self._counts[envs] = QUIET
        self._batch.forward(envs)
        self._counts[envs] = QUIET  # only warnings of a step count
        for name, restored in self._restored.items():
            restored[envs] = self._fields[name][envs]

    def place(self, qpos: Array, qvel: Array) -> None:
        self._batch.state[:] = self._first_state
        self.qpos[:], self.qvel[:] = qpos, qvel
        self._counts[...] = QUIET

    def apply_wrench(self, envs: Indices, body: int, wrenches: Array) -> None:
        self._ready().bind("xfrc_applied")[envs, body] = wrenches

    def field(self, name: str) -> Array:
        return self._restored[name] if name in self._restored else super().field(name)

    def get_state(self) -> Array:
        return np.array(self._batch.state)

    def set_state(self, states: Array, outputs: Mapping[str, Array], envs: Indices) -> None:
        self._batch.state[envs] = states[envs]
        for name, values in outputs.items():  # the batch's own are read-only
            self._restored.setdefault(name, self._fields[name].copy())[envs] = values[envs]

    def step(self, envs: Indices | None, substeps: int) -> None:
        self._ready().step(envs, nstep=substeps)
        self._restored.clear()
        self.diverged[:] = False
        if (self._counts != QUIET).any():  # rare, and cheaper to check than to reset before every step
            np.any(self._counts[:, BAD_STATE] != QUIET, axis=1, out=self.diverged)
            self._counts[...] = QUIET

    def snapshot(self, env: int, model: Any, data: Any) -> None:
        self._batch.get_model(env, model)
        self._batch.get_data(env, data)


class OwnDataEngine(Engine):
    """An ``MjData`` for each simulation; ``mj_rnePostConstraint`` follows each step, as in Gymnasium.

    MuJoCo's functions release the interpreter lock, so threads run in parallel except for the few microseconds of
    Python around each simulation.
    """

    def __init__(self, model: Any, num_envs: int, num_threads: int, fields: Sequence[str], keyframe: int = -1) -> None:
        """Starts all simulations at the model's own state; arguments as for ``BatchEngine``."""
        self._nominal, self._keyframe = copy.copy(model), keyframe
        self._models = [self._nominal] * num_envs  # one shared model until their fields differ
        self._data = [mujoco.MjData(model) for _ in range(num_envs)]
        self._counts = np.full((num_envs, len(self._data[0].warning.number)), QUIET, np.int32)
        self.qpos = np.zeros((num_envs, model.nq))
        self.qvel = np.zeros((num_envs, model.nv))
        self.ctrl = np.zeros((num_envs, model.nu))
        self._fields = {name: np.zeros((num_envs, *np.shape(getattr(self._data[0], name)))) for name in fields}
        self.diverged = np.zeros(num_envs, np.bool_)
        self.written = {}
        self._controls = ScatteredField([data.ctrl for data in self._data])
        self._warnings = ScatteredField([data.warning.number for data in self._data])
        copies = {"qpos": self.qpos, "qvel": self.qvel, **self._fields}
        self._sources = [
            (ScatteredField([getattr(data, name) for data in self._data]), copied)
            for name, copied in copies.items()
            if copied.ndim > 1
        ]
        self._numbers = {name: copied for name, copied in copies.items() if copied.ndim == 1}  # without an address
        self._threads = num_threads
        self.after_fork()
        _THREADED.add(self)

    def after_fork(self) -> None:
        self._jobs, self._helpers = SimpleQueue(), 0
        self._call: _Call = ([], [], SimpleQueue(), [])

    def __del__(self) -> None:
        self.close()

    def write(self, fields: Mapping[str, Array], envs: Indices) -> None:
        for name, values in fields.items():
            if name not in self.written:
                self.written[name] = np.repeat(field_array(self._nominal, name)[None], len(self._data), axis=0)
            self.written[name][envs] = values

        def change(row: int, env: int) -> None:
            if self._models[env] is self._nominal:
                self._models[env] = copy.copy(self._nominal)
            edit(self._models[env], self._data[env], fields, row)

        self._parallel(change, envs)

    def start(self, envs: Indices, qpos: Array, qvel: Array) -> None:
        def begin(row: int, env: int) -> None:
            model, data = self._models[env], self._data[env]
            reset_data(model, data, self._keyframe)
            data.warning.number[:] = QUIET  # the reset made them 0
            data.qpos[:], data.qvel[:] = qpos[row], qvel[row]
            mujoco.mj_forward(model, data)

        self._parallel(begin, envs)
        self.ctrl[envs] = self._nominal.key_ctrl[self._keyframe] if self._keyframe >= 0 else 0.0  # as the reset left it
        self._read(envs)

    def place(self, qpos: Array, qvel: Array) -> None:
        for env, data in enumerate(self._data):
            mujoco.mj_resetData(self._models[env], data)
            data.warning.number[:] = QUIET
            data.qpos[:], data.qvel[:] = qpos[env], qvel[env]
        self.qpos[:], self.qvel[:] = qpos, qvel

    def push(self, envs: Indices, dofs: Sequence[int], velocities: Array) -> None:
        super().push(envs, dofs, velocities)
        for env in envs.tolist():
            self._data[env].qvel[:] = self.qvel[env]

    def apply_wrench(self, envs: Indices, body: int, wrenches: Array) -> None:
        for env, wrench in zip(envs.tolist(), wrenches, strict=True):
            self._data[env].xfrc_applied[body] = wrench

    def get_state(self) -> Array:
        states = np.zeros((len(self._data), mujoco.mj_stateSize(self._nominal, _INTEGRATION)))
        for env, data in enumerate(self._data):
            mujoco.mj_getState(self._models[env], data, states[env], _INTEGRATION)
        return states

    def set_state(self, states: Array, outputs: Mapping[str, Array], envs: Indices) -> None:
        for env in envs.tolist():
            for name in outputs.keys() - self._numbers.keys():
                getattr(self._data[env], name)[...] = outputs[name][env]
            mujoco.mj_setState(self._models[env], self._data[env], states[env], _INTEGRATION)  # last: it has wrenches
            self.ctrl[env] = self._data[env].ctrl
        self._read(envs)
        for name, copied in self._numbers.items():  # which we cannot write there
            copied[envs] = outputs[name][envs]

    def step(self, envs: Indices | None, substeps: int) -> None:
        step, post = mujoco.mj_step, mujoco.mj_rnePostConstraint
        models, data = self._models, self._data

        def advance(row: int, env: int) -> None:
            step(models[env], data[env], substeps)
            post(models[env], data[env])

        self._controls.write(self.ctrl)
        self._warnings.write(QUIET)
        self._parallel(advance, envs)
        self._read(slice(None))
        self._warnings.read(self._counts)
        np.any(self._counts[:, BAD_STATE] != QUIET, axis=1, out=self.diverged)

    def snapshot(self, env: int, model: Any, data: Any) -> None:
        edit(model, data, self.written, env)
        state = np.zeros(mujoco.mj_stateSize(model, _INTEGRATION))
        mujoco.mj_getState(self._models[env], self._data[env], state, _INTEGRATION)
        mujoco.mj_setState(model, data, state, _INTEGRATION)

    def _read(self, rows: slice | Indices) -> None:
        """Copies what some simulations, or all, have now."""
        for source, copied in self._sources:
            source.read(copied, rows)
        for name, copied in self._numbers.items():
            copied[rows] = [getattr(self._data[k], name) for k in np.arange(len(self._data))[rows]]

    def _parallel(self, work: Callable[[int, int], None], envs: Indices | None) -> None:
        """Calls ``work(row, env)`` for some simulations, or all (None); a free thread takes the next few.

        A signal may interrupt it anywhere, but neither a ``SimpleQueue`` nor a list halfway, as it may the locks of
        ``concurrent.futures``.
        """
        begun, ended, outbox, stopped = self._call
        stopped.append(True)  # that call may have been interrupted, which threads have not noticed: they finish first
        while len(ended) < len(begun):
            outbox.get()
        rows = range(len(self._data)) if envs is None else envs.tolist()
        size = max(1, len(rows) // (self._threads * _CHUNKS))
        chunks = count()  # next() on it is atomic
        failures: list[BaseException] = []
        begun, ended, outbox, stopped = self._call = [], [], SimpleQueue(), []

        def run() -> None:
            try:
                while not stopped and (start := next(chunks) * size) < len(rows):
                    for row in range(start, min(start + size, len(rows))):
                        work(row, rows[row])
            except BaseException as error:  # passed to the caller
                failures.append(error)

        def help_out() -> None:
            begun.append(True)
            run()
            ended.append(True)
            outbox.put(True)

        while self._helpers < self._threads - 1:
            self._helpers += 1
            Thread(target=_serve, args=(self._jobs,), name="gym_dr-mujoco", daemon=True).start()
        for _ in range(min(self._threads, -(-len(rows) // size)) - 1):
            self._jobs.put(help_out)
        run()
        while len(ended) < len(begun):  # a thread that has not begun by now finds nothing to do
            outbox.get()
        if failures:
            raise failures[0]


def _serve(jobs: SimpleQueue[Callable[[], None] | None]) -> None:
    """What a thread does until it gets None."""
    while (job := jobs.get()) is not None:
        job()
        del job  # it holds the engine, which ends this thread when nobody else does


def reset_data(model: Any, data: Any, keyframe: int) -> None:
    """Resets a simulation, to a keyframe unless it is -1; actuators with delays remember its controls."""
    if keyframe < 0:
        mujoco.mj_resetData(model, data)
        return
    mujoco.mj_resetDataKeyframe(model, data, keyframe)
    for k in np.flatnonzero(model.actuator_history[:, 0]) if hasattr(model, "actuator_history") else ():
        remembered = np.full((model.actuator_history[k, 0], 1), data.ctrl[k])
        mujoco.mj_initCtrlHistory(model, data, k, None, remembered)


def engine_class(contact_forces: bool) -> type[BatchEngine | OwnDataEngine]:
    """The engine for a task, which may read contact forces."""
    return OwnDataEngine if contact_forces or mujoco_batch is None else BatchEngine


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: [engine.after_fork() for engine in _THREADED])
