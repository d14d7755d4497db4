"""gym_dr's own algorithms, environments and presets, added through the public hooks."""

from __future__ import annotations

from collections.abc import Callable

from gym_dr.envs.lunar_lander.params import LUNAR_LANDER
from gym_dr.envs.lunar_lander.params import PRESETS as LUNAR_LANDER_PRESETS
from gym_dr.envs.mujoco.presets import PRESETS as MUJOCO_PRESETS
from gym_dr.plugins.hookspecs import hookimpl
from gym_dr.randomization.spec import Randomization
from gym_dr.registration import BUILTIN, EnvEntry
from gym_dr.training.api import Algorithm


@hookimpl
def gym_dr_register_algorithms(register: Callable[[Algorithm], None]) -> None:
    """A2C and REINFORCE, named by text, so that torch is imported only when one of them trains."""
    register(
        Algorithm(
            name="a2c",
            summary="Advantage actor-critic, many environments in step (Mnih et al. 2016).",
            config="gym_dr.training.config:A2CConfig",
            train="gym_dr.training.a2c:train",
            num_envs=32,
            load_policy="gym_dr.training.a2c:load_policy",
        )
    )
    register(
        Algorithm(
            name="reinforce",
            summary="Monte Carlo policy gradient on complete episodes (Williams 1992).",
            config="gym_dr.training.config:ReinforceConfig",
            train="gym_dr.training.reinforce:train",
            load_policy="gym_dr.training.reinforce:load_policy",
        )
    )


@hookimpl
def gym_dr_register_environments(register: Callable[[EnvEntry], None]) -> None:
    """The ids of ``registration.py``."""
    for entry in BUILTIN:
        register(entry)


@hookimpl
def gym_dr_register_presets(register: Callable[[str, str, Randomization], None]) -> None:
    """The presets of every family of environments."""
    for name, randomization in LUNAR_LANDER_PRESETS.items():
        register(LUNAR_LANDER.name, name, randomization)
    for space_name, presets in MUJOCO_PRESETS.items():
        for name, randomization in presets.items():
            register(space_name, name, randomization)
