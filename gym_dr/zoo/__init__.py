"""Robots that people own: each a task and an MJCF, as a user would write them. Importing a module registers its id."""

from gym_dr.zoo import crazyflie, g1, go1, ur5e

__all__ = ["crazyflie", "g1", "go1", "ur5e"]
