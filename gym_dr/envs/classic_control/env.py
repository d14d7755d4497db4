"""The classic control environments, made on demand: ``CartPoleDR``, ``CartPoleVectorEnv`` and so on.

Gymnasium's classes (MIT license) render them.
"""

from __future__ import annotations

from functools import cache, cached_property
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from gym_dr.arrays import Array
from gym_dr.envs.classic_control.family import IDS
from gym_dr.envs.classic_control.params import derive_cart_pole
from gym_dr.envs.equations.backend import EquationsBackend
from gym_dr.envs.equations.equations import fields_of
from gym_dr.envs.family import reference_class
from gym_dr.envs.single import CompiledEnv
from gym_dr.envs.vector import NativeVectorEnv
from gym_dr.errors import EnvStateError, shortened
from gym_dr.randomization.space import ParamSpace

# name -> fields of the state that Gymnasium keeps outside ``env.state``; nan for its None
ATTRIBUTES = {"Pendulum": ("last_u",)}
# name -> size of ``env.state`` in Gymnasium, where our state has more fields
STATE_SIZES = {"Pendulum": 2, "MountainCarContinuous": 2}


class ClassicControlBackend(EquationsBackend):
    """Many environments of one kind, which a subclass names."""

    name: ClassVar[str]

    def __init__(self, **kwargs: Any) -> None:
        """Reads the keywords of Gymnasium's class; one that is a parameter sets its nominal value.

        Raises:
            TypeError: There is no such keyword.
            RandomizationError: A value is impossible.
        """
        super().__init__(IDS[self.name].id, **kwargs)
        self._reference_class, self._kwargs = reference_class(IDS[self.name].reference), kwargs
        self.metadata = self._reference_class.metadata

    @cached_property
    def reference(self) -> Any:
        """Gymnasium's environment."""
        return self._reference_class(render_mode="rgb_array", **self._kwargs)

    @cached_property
    def known_as(self) -> list[tuple[str, str]]:
        """Attributes of Gymnasium's class, and the parameters whose values they have."""
        return [
            (known, name) for name in self.space for known in (name, name.upper()) if hasattr(self.reference, known)
        ]

    def state_attributes(self, state: Array) -> dict[str, Any]:
        """Attributes of Gymnasium's class, besides ``state``, that change from step to step."""
        fields = fields_of(self.equations.state)
        values = {name: state.item(fields.index(name)) for name in ATTRIBUTES.get(self.name, ())}
        return {name: None if value != value else value for name, value in values.items()}  # nan stands for None

    def render(self, env: int) -> Any:
        """One frame, rendered by Gymnasium's class."""
        state = self.simulation.states(np.array(env))
        values = dict(zip(self.space, self.simulation.params[:, env].tolist(), strict=False))
        vars(self.reference).update({attribute: values[name] for attribute, name in self.known_as})
        vars(self.reference).update(**self.state_attributes(state), state=state)
        return self.reference.render()

    def close(self) -> None:
        if "reference" in vars(self):
            self.reference.close()


class ClassicControlEnv(CompiledEnv):
    """A single environment that also has the attributes of Gymnasium's class, with the values of the current episode.

    Attributes:
        state: As in Gymnasium's class; may be set.
    """

    _backend: ClassicControlBackend
    state: Array | Any = None

    def _build(self, **kwargs: Any) -> ParamSpace:
        space = super()._build(**kwargs)
        shown = {n: value for n, value in vars(self._backend.reference).items() if not hasattr(self, n)}
        vars(self).update(shown | {attribute: space[name].nominal for attribute, name in self._backend.known_as})
        return space

    def _note_values(self) -> None:
        super()._note_values()
        if self._backend.name == "CartPole":
            derive_cart_pole(self)

    def _take_state(self, call: str) -> None:
        self._check_begun(call)
        physics = self._backend.simulation.state(0)
        size = STATE_SIZES.get(self._backend.name, len(physics))
        if self.state is None or len(self.state) != size:  # a user may have set it
            raise EnvStateError(f"Expected a state of {size} numbers before {call}(), got {shortened(self.state)}.")
        physics[:size] = self.state

    def _show_state(self) -> None:
        state = self._backend.simulation.state(0)
        self.state = state[: STATE_SIZES.get(self._backend.name)].copy()
        if self._backend.name in ATTRIBUTES:
            vars(self).update(self._backend.state_attributes(state))


@cache
def __getattr__(name: str) -> Any:
    """The class of an environment."""
    env = name.removesuffix("DR").removesuffix("VectorEnv")
    if env == name or env not in IDS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    backend = type(f"{env}Backend", (ClassicControlBackend,), {"name": env})
    named = {"__doc__": f"{env} with randomized physics.", "__module__": __name__, "backend_class": backend}
    if name.endswith("VectorEnv"):
        return type(name, (NativeVectorEnv, gym.vector.VectorEnv), named)
    theirs = reference_class(IDS[env].reference)
    shared = {n: getattr(theirs, n) for n in dir(theirs) if not (n.startswith("_") or hasattr(CompiledEnv, n))}
    constants = {n: value for n, value in shared.items() if not callable(value)}
    metadata = {**theirs.metadata, "render_modes": ["rgb_array"]}
    return type(name, (ClassicControlEnv, gym.Env), {**named, **constants, "metadata": metadata})
