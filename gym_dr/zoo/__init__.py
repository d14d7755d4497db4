"""Robots that people own: each a task and an MJCF, as a user would write them. Importing a module registers its id."""

from gym_dr.zoo import go1

__all__ = ["go1"]
