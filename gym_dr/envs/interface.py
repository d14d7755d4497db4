"""What the numbers of an environment mean: its observations and actions, for people and for the pages."""

from __future__ import annotations

from dataclasses import dataclass

NAME = r"[A-Za-z_][\w.]*"  # what names of quantities look like


@dataclass(frozen=True)
class Quantity:
    """One or several consecutive numbers of an observation or an action."""

    meaning: str  # "horizontal position, from the middle of the pad"
    unit: str = ""  # "m"; of scaled numbers what 1 stands for, "10 m"
    size: int = 1  # numbers
    name: str = ""  # of an observation, for its sensor: "x_dot", "torso.z"; empty for none


@dataclass(frozen=True, kw_only=True)
class Interface:
    """What an environment shows and takes."""

    observation: tuple[Quantity, ...]  # in order; together as long as the observation
    actions: tuple[Quantity, ...]  # of a Box its numbers in order, of a Discrete one for each action
