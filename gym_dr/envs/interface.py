"""The meaning of an environment's observations and actions, for people and for the pages."""

from __future__ import annotations

from dataclasses import dataclass

NAME = r"[A-Za-z_][\w.]*"  # pattern of the names of quantities


@dataclass(frozen=True)
class Quantity:
    """One or several consecutive numbers of an observation or an action."""

    meaning: str  # "horizontal position, from the middle of the pad"
    unit: str = ""  # "m"; of scaled numbers the size of 1: "10 m"
    size: int = 1  # numbers
    name: str = ""  # of an observation, for its sensor: "x_dot", "torso.z"; empty if it has none


@dataclass(frozen=True, kw_only=True)
class Interface:
    """The observations and actions of an environment."""

    observation: tuple[Quantity, ...]  # in order; together as long as the observation
    actions: tuple[Quantity, ...]  # the numbers of a Box in order, or one for each action of a Discrete
