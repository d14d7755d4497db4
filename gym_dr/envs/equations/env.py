"""The environments of any equations, which the keyword ``equations`` names by their id."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from gym_dr.envs.equations.backend import EquationsBackend
from gym_dr.envs.single import CompiledEnv
from gym_dr.envs.vector import NativeVectorEnv


class EquationsDR(CompiledEnv, gym.Env[Any, Any]):
    """One environment of equations with randomized physics."""

    backend_class = EquationsBackend


class EquationsVectorEnv(NativeVectorEnv, gym.vector.VectorEnv[Any, Any, Any]):
    """Many environments of the same equations with randomized physics."""

    backend_class = EquationsBackend
