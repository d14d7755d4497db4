"""The state that the functions of a custom robot get."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gym_dr.arrays import Array


class RobotState:
    """n simulations at one time, as a robot's functions see them.

    Arrays are read-only, except for ``memory`` in ``reset`` and ``update``. After a step, quantities that MuJoCo
    derives (``xpos``, sensors, ...) belong to the beginning of the last simulation step, as in Gymnasium's
    environments; ``qpos`` and ``qvel`` belong to its end.

    Attributes:
        model: The ``MjModel`` with nominal values: ``state.model.site("tip").id``.
        dt: Seconds of an environment step, with the nominal timestep.
        qpos: ``(n, nq)``.
        qvel: ``(n, nv)``.
        ctrl: ``(n, nu)``, the controls of the last step; after a reset those of the keyframe, or 0.
        sensordata: ``(n, nsensordata)``.
        action: ``(n, action_size)``, the actions of the last step; 0 after a reset.
        memory: What the task remembers: name -> ``(n, *shape)``.
        params: The task's own parameters: name -> ``(n,)``.
    """

    qpos: Array
    qvel: Array
    ctrl: Array
    sensordata: Array

    def __init__(
        self,
        model: Any,
        dt: float,
        fields: Mapping[str, Array],
        action: Array,
        memory: Mapping[str, Array],
        params: Mapping[str, Array],
        *,
        writable: bool = False,
    ) -> None:
        """Stores the arrays.

        Args:
            model: See the class, as for ``dt``, ``action`` and ``params``.
            dt: Seconds.
            fields: Fields of ``MjData`` by name, each ``(n, ...)``.
            action: Actions.
            memory: What the task remembers.
            params: The task's own parameters.
            writable: Whether ``memory`` may be written.
        """
        self.model, self.dt = model, dt
        self._names = tuple(fields)
        for name, array in fields.items():
            setattr(self, name, _read_only(array))
        self.action = _read_only(action)
        self.memory = memory if writable else {name: _read_only(array) for name, array in memory.items()}
        self.params = {name: _read_only(array) for name, array in params.items()}

    def sensor(self, name: str) -> Array:
        """The output of a sensor, ``(n, dimension of the sensor)``."""
        sensor = self.model.sensor(name)
        return self.sensordata[:, sensor.adr[0] : sensor.adr[0] + sensor.dim[0]]

    def __getattr__(self, name: str) -> Array:
        """Refuses a field that was not requested.

        Raises:
            AttributeError: Always; the message says how to request it.
        """
        from gym_dr.envs.mujoco.engine import DATA_FIELDS  # heavy

        hint = f"; add it with register_robot(..., fields=[{name!r}])" if name in DATA_FIELDS else ""
        known = ", ".join(("model", *self.__dict__.get("_names", ())))
        raise AttributeError(f"The state has {known}, but not {name!r}{hint}.")


def _read_only(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view
