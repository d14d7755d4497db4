"""The physics of the classic control environments; Gymnasium's classes (MIT license) draw them."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from gym_dr.arrays import Array
from gym_dr.envs.classic_control.family import IDS
from gym_dr.envs.equations.backend import EquationsBackend
from gym_dr.envs.equations.equations import fields_of
from gym_dr.envs.stock import stock_class

# name -> fields of the state that Gymnasium keeps outside ``env.state``; nan for its None
ATTRIBUTES = {"Pendulum": ("last_u",)}
# name -> numbers of ``env.state`` in Gymnasium, where the state has more fields
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
        self._stock_class, self._kwargs = stock_class(IDS[self.name].stock), kwargs
        self.metadata = self._stock_class.metadata
        fields = fields_of(self.equations.state)
        self._moving = {name: fields.index(name) for name in ATTRIBUTES.get(self.name, ())}

    @cached_property
    def stock(self) -> Any:
        """Gymnasium's environment."""
        return self._stock_class(render_mode="rgb_array", **self._kwargs)

    @cached_property
    def _known_as(self) -> list[tuple[str, str]]:
        """Attributes of Gymnasium's class, and the parameters or constants of the physics that they show."""
        names = [*self.space, *fields_of(self.equations.physics)]
        return [(known, name) for name in names for known in (name, name.upper()) if hasattr(self.stock, known)]

    def attributes(self, env: int) -> dict[str, Any]:
        """Attributes of Gymnasium's class, with their values in the episode of a sub-environment."""
        params = dict(zip(self.space, self.simulation.params[:, env].tolist(), strict=False))
        known = {**params, **self.simulation.physics(env)._asdict()}
        return {attribute: known[name] for attribute, name in self._known_as}

    def moving(self, state: Array) -> dict[str, Any]:
        """Attributes of Gymnasium's class, besides ``state``, that change from step to step."""
        values = {name: state.item(place) for name, place in self._moving.items()}
        return {name: None if value != value else value for name, value in values.items()}  # nan stands for None

    def render(self, env: int) -> Any:
        """One frame, drawn by Gymnasium's class."""
        state = self.simulation.states(np.array(env))
        vars(self.stock).update(self.attributes(env), **self.moving(state), state=state)
        return self.stock.render()

    def close(self) -> None:
        if "stock" in vars(self):
            self.stock.close()
