"""The environments of any equations, which the keyword ``equations`` names by their id."""

from __future__ import annotations

from gym_dr.envs.equations.backend import EquationsBackend
from gym_dr.envs.single import CompiledEnv
from gym_dr.envs.vector import NativeVectorEnv


class EquationsDR(CompiledEnv):
    """One environment of equations with randomized physics."""

    backend_class = EquationsBackend


class EquationsVectorEnv(NativeVectorEnv):
    """Many environments of the same equations with randomized physics."""

    backend_class = EquationsBackend
