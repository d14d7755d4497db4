"""The classic control environments, made on demand: ``CartPoleDR``, ``CartPoleVectorEnv`` and so on."""

from __future__ import annotations

from functools import cache
from typing import Any

from gym_dr.arrays import Array
from gym_dr.envs.classic_control.backend import ClassicControlBackend
from gym_dr.envs.classic_control.family import EQUATIONS
from gym_dr.envs.native import NativeVectorEnv
from gym_dr.envs.single import CompiledEnv
from gym_dr.envs.stock import Parts, class_of


class ClassicControlEnv(CompiledEnv):
    """A single environment that also has the attributes of Gymnasium's class, with the values of the current episode.

    Attributes:
        state: As in Gymnasium's class; may be set.
    """

    _backend: ClassicControlBackend
    state: Array | Any = None

    def _go_on(self, call: str) -> None:
        super()._go_on(call)
        self._backend.simulation.state(0)[: len(self.state)] = self.state  # a user may have set it

    def _moved(self) -> None:
        self.state = self._backend.simulation.state(0).copy()

    def __getattr__(self, name: str) -> Any:
        """An attribute of Gymnasium's class, such as ``gravity``."""
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._backend.stock if self.state is None else self._backend.show(0), name)


@cache
def __getattr__(name: str) -> Any:
    """The class of an environment."""
    return class_of(name, __name__, EQUATIONS, _KINDS)


@cache
def _backend_class(env: str) -> type[ClassicControlBackend]:
    return type(f"{env}Backend", (ClassicControlBackend,), {"equations": EQUATIONS[env]})


_KINDS: dict[str, Parts] = {
    "DR": lambda env: ((ClassicControlEnv,), {"backend_class": _backend_class(env)}),
    "VectorEnv": lambda env: ((NativeVectorEnv,), {"backend_class": _backend_class(env)}),
}
