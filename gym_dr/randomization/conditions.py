"""What a parameter needs, besides a value, to have an effect on an episode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

Range = tuple[float, float]  # lowest and highest value that a parameter can have
Ranges = Callable[[str], Range]  # by name of the parameter


class Condition(Protocol):
    """A condition of one parameter, which may depend on the values of others."""

    @property
    def others(self) -> tuple[str, ...]:
        """The names of those other parameters."""
        ...

    @property
    def text(self) -> str:
        """What it needs, to follow "it needs": "density or viscosity other than 0"."""
        ...

    def met(self, name: str, ranges: Ranges) -> bool:
        """Whether some values in the ranges let parameter ``name`` have an effect."""
        ...


@dataclass(frozen=True)
class NotZero:
    """One of some other parameters is not 0: wind needs a medium, a push a probability."""

    others: tuple[str, ...]
    called: str = ""  # all of them, in a text; empty for their names

    @property
    def text(self) -> str:
        return f"{self.called or _either(self.others)} other than 0"

    def met(self, name: str, ranges: Ranges) -> bool:
        return any(ranges(other) != (0.0, 0.0) for other in self.others)


@dataclass(frozen=True)
class Exceeds:
    """The value is above that of one of some other parameters, where the larger one counts."""

    others: tuple[str, ...]

    @property
    def text(self) -> str:
        return f"a value above {_either(self.others)}"

    def met(self, name: str, ranges: Ranges) -> bool:
        (lowest, highest), other = ranges(name), min(ranges(other)[0] for other in self.others)
        return highest > other or lowest == highest == other  # to say that both are equal changes nothing, but is true


@dataclass(frozen=True)
class Lacking:
    """Something that this environment does not have, so no value has an effect."""

    what: str  # "a joint that moves it"
    others: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return f"{self.what}, which is not in this model"

    def met(self, name: str, ranges: Ranges) -> bool:
        return False


@dataclass(frozen=True)
class On:
    """A switch, a parameter of kind "bool", is on."""

    switch: str

    @property
    def others(self) -> tuple[str, ...]:
        return (self.switch,)

    @property
    def text(self) -> str:
        return f"{self.switch} = 1"

    def met(self, name: str, ranges: Ranges) -> bool:
        return ranges(self.switch)[1] != 0.0


def _either(names: tuple[str, ...]) -> str:
    return " or ".join(names) if len(names) <= 3 else f"{names[0]} or one of {len(names) - 1} others"
