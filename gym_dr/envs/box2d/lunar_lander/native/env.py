"""One native lander, where Box2D is not installed."""

from __future__ import annotations

from gym_dr.envs.box2d.lunar_lander.native.vector_env import LunarLanderBackend
from gym_dr.envs.box2d.single import CompiledEnv


class LunarLanderDR(CompiledEnv):
    """LunarLander-v3 whose gravity, wind, engines, mass, legs and ground are drawn anew at each reset."""

    backend_class = LunarLanderBackend
