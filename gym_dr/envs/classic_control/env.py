"""The classic control environments, made on demand: ``CartPoleDR``, ``CartPoleVectorEnv`` and so on."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from gym_dr.arrays import Array
from gym_dr.envs.classic_control.backend import ATTRIBUTES, STATE_SIZES, ClassicControlBackend
from gym_dr.envs.classic_control.family import IDS
from gym_dr.envs.single import CompiledEnv
from gym_dr.envs.stock import Parts, class_of, stock_class
from gym_dr.envs.vector import NativeVectorEnv
from gym_dr.errors import EnvStateError, shortened
from gym_dr.randomization.space import ParamSpace


class ClassicControlEnv(CompiledEnv):
    """A single environment that also has the attributes of Gymnasium's class, with the values of the current episode.

    Attributes:
        state: As in Gymnasium's class; may be set.
    """

    _backend: ClassicControlBackend
    state: Array | Any = None

    def _build(self, **kwargs: Any) -> ParamSpace:
        space = super()._build(**kwargs)
        stock = self._backend.stock
        vars(self).update({name: value for name, value in vars(stock).items() if not hasattr(self, name)})
        return space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """See ``CompiledEnv.reset``."""
        result = super().reset(seed=seed, options=options)
        vars(self).update(self._backend.attributes(0))
        return result

    def set_state(self, state: Mapping[str, Any]) -> Any:
        """See ``CompiledEnv.set_state``."""
        observation = super().set_state(state)
        vars(self).update(self._backend.attributes(0))
        return observation

    def _take_state(self, call: str) -> None:
        self._check_begun(call)
        if self.state is None:  # a user may have set it
            raise EnvStateError(f"Expected a state before {call}(), got None: call reset().")
        physics = self._backend.simulation.state(0)
        size = STATE_SIZES.get(self._backend.name, len(physics))
        if len(self.state) != size:
            raise EnvStateError(f"Expected a state of {size} numbers before {call}(), got {shortened(self.state)}.")
        physics[:size] = self.state

    def _show_state(self) -> None:
        state = self._backend.simulation.state(0)
        self.state = state[: STATE_SIZES.get(self._backend.name)].copy()
        if self._backend.name in ATTRIBUTES:
            vars(self).update(self._backend.moving(state))


def _constants_of(env: str) -> dict[str, Any]:
    """The metadata and the public constants of Gymnasium's class."""
    stock = stock_class(IDS[env].stock)
    names = [name for name in dir(stock) if not (name.startswith("_") or hasattr(CompiledEnv, name))]
    found = {name: getattr(stock, name) for name in ["metadata", *names]}
    return {name: value for name, value in found.items() if not callable(value)}


@cache
def __getattr__(name: str) -> Any:
    """The class of an environment."""
    return class_of(name, __name__, IDS, _KINDS)


@cache
def _backend_class(env: str) -> type[ClassicControlBackend]:
    return type(f"{env}Backend", (ClassicControlBackend,), {"name": env})


_KINDS: dict[str, Parts] = {
    "DR": lambda env: ((ClassicControlEnv,), {"backend_class": _backend_class(env), **_constants_of(env)}),
    "VectorEnv": lambda env: ((NativeVectorEnv,), {"backend_class": _backend_class(env)}),
}
