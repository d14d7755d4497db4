"""Robots that people own: each a task and an MJCF, as a user would write them. Importing a module registers its id."""

from gym_dr.zoo import g1, go1

__all__ = ["g1", "go1"]
