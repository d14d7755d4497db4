"""The built-in algorithms, environments, samplers and loggers, registered through the public hooks."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from gym_dr.envs.families import BUILTIN
from gym_dr.envs.family import EnvFamily
from gym_dr.plugins.hookspecs import hookimpl
from gym_dr.randomization.sampler import FixedSampler, Sampler
from gym_dr.runs.loggers import Logger
from gym_dr.training.api import Algorithm

ADAPTIVE = "gym_dr.randomization.adaptive"


@hookimpl
def gym_dr_register_algorithms(register: Callable[[Algorithm], None]) -> None:
    """Registers A2C, PPO, distillation and REINFORCE by name, so torch is only imported for training."""
    for algorithm in (
        Algorithm(
            name="a2c",
            summary="Advantage actor-critic with synchronous updates (Mnih et al. 2016).",
            config="gym_dr.training.config:A2CConfig",
            train="gym_dr.training.a2c:train",
            num_envs=32,
            load_policy="gym_dr.training.actor_critic:load_policy",
        ),
        Algorithm(
            name="ppo",
            summary="Proximal policy optimization with a clipped objective (Schulman et al. 2017).",
            config="gym_dr.training.config:PPOConfig",
            train="gym_dr.training.ppo:train",
            num_envs=8,
            load_policy="gym_dr.training.actor_critic:load_policy",
        ),
        Algorithm(
            name="distill",
            summary="Imitation of a teacher that may observe the draw, for policies with memory (Ross et al. 2011).",
            config="gym_dr.training.config:DistillConfig",
            train="gym_dr.training.distill:train",
            num_envs=8,
            load_policy="gym_dr.training.actor_critic:load_policy",
        ),
        Algorithm(
            name="reinforce",
            summary="Monte Carlo policy gradient on complete episodes (Williams 1992).",
            config="gym_dr.training.config:ReinforceConfig",
            train="gym_dr.training.reinforce:train",
            load_policy="gym_dr.training.actor_critic:load_policy",
        ),
    ):
        register(algorithm)


@hookimpl
def gym_dr_register_environments(register: Callable[[EnvFamily], None]) -> None:
    """Registers all families with their ids and presets."""
    for family in BUILTIN:
        register(family)
    importlib.import_module("gym_dr.zoo")  # registers its robots as a user's file does


@hookimpl
def gym_dr_register_samplers(register: Callable[[Sampler], None]) -> None:
    """Registers the fixed sampler and the adaptive ones."""
    for sampler in (
        Sampler(
            name="uniform",
            summary="Draws from the randomization itself, without adaptation.",
            make=FixedSampler,
        ),
        Sampler(
            name="adr",
            summary="Widens ranges where the policy succeeds at their ends (OpenAI 2019).",
            make=f"{ADAPTIVE}.adr:Adr",
            options=f"{ADAPTIVE}.adr:AdrOptions",
        ),
        Sampler(
            name="doraemon",
            summary="Maximizes the entropy of draws at a given success rate (Tiboni et al. 2024).",
            make=f"{ADAPTIVE}.doraemon:Doraemon",
            options=f"{ADAPTIVE}.doraemon:DoraemonOptions",
        ),
        Sampler(
            name="spdl",
            summary="Moves draws towards the whole box as fast as the mean return allows (Klink et al. 2021).",
            make=f"{ADAPTIVE}.self_paced:SelfPaced",
            options=f"{ADAPTIVE}.self_paced:SelfPacedOptions",
        ),
    ):
        register(sampler)


@hookimpl
def gym_dr_register_loggers(register: Callable[[Logger], None]) -> None:
    """Registers TensorBoard."""
    register(
        Logger(
            name="tensorboard",
            summary="Event files for TensorBoard, in the folder of each run.",
            open="gym_dr.integrations.tensorboard:TensorBoardWriter",
            module="tensorboard",
            install="pip install 'gym-dr[tensorboard]'",
            files="events.out.tfevents.*",
        )
    )
