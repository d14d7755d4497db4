"""The state that the functions of a custom robot get."""

from __future__ import annotations

from typing import Any

from gym_dr.arrays import Array


class RobotState:
    """n simulations at one time, as a robot's functions see them; arrays are read-only.

    After a step, quantities that MuJoCo derives (``xpos``, sensors, ...) belong to the beginning of the last simulation
    step, as in Gymnasium's environments; ``qpos`` and ``qvel`` belong to its end.

    Attributes:
        model: The ``MjModel`` with nominal values: ``state.model.site("tip").id``.
        qpos: ``(n, nq)``.
        qvel: ``(n, nv)``.
        ctrl: ``(n, nu)``, the actions of the last step; 0 after a reset.
        sensordata: ``(n, nsensordata)``.
    """

    qpos: Array
    qvel: Array
    ctrl: Array
    sensordata: Array

    def __init__(self, model: Any, arrays: dict[str, Array]) -> None:
        """Stores the fields.

        Args:
            model: See the class.
            arrays: Fields of ``MjData`` by name, each ``(n, ...)``.
        """
        self.model = model
        self._names = tuple(arrays)
        for name, array in arrays.items():
            view = array.view()
            view.flags.writeable = False
            setattr(self, name, view)

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
