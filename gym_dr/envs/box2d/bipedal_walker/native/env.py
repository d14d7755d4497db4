"""One native walker, where Box2D is not installed."""

from __future__ import annotations

from gym_dr.envs.box2d.bipedal_walker.native.vector_env import BipedalWalkerBackend
from gym_dr.envs.box2d.single import CompiledEnv


class BipedalWalkerDR(CompiledEnv):
    """BipedalWalker-v3 that draws gravity, motors, masses, friction, joints, lidar and terrain at each reset."""

    backend_class = BipedalWalkerBackend
