"""The policies in the newest checkpoints of runs, and the environments that they act in."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import VectorEnv

from gym_dr.errors import CheckpointError, ConfigError, GymDrError
from gym_dr.evaluation.cells import CellSet, distribution, nominal
from gym_dr.randomization.presets import NONE, presets, resolve
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization
from gym_dr.runs.checkpoint import checkpoint_paths, load_newest
from gym_dr.runs.config import RunConfig
from gym_dr.runs.environments import make_vector_env, wrap_for_policy
from gym_dr.runs.folder import RunFolder
from gym_dr.training.api import Algorithm, Policy
from gym_dr.wrappers.vector_params import with_params

NATIVE_ENVS = 512  # sub-environments of an evaluation; more are hardly faster and report progress less often
PYTHON_ENVS = 10  # more are no faster in Python, and all wait for the slowest episode

CUSTOM = "own"  # in place of a preset's name, for any other randomization


@dataclass(frozen=True, kw_only=True)
class RunPolicy:
    """A run's policy, which can be created any number of times."""

    name: str  # unique among those that are evaluated together
    folder: RunFolder
    config: RunConfig
    algorithm: Algorithm
    checkpoint: Path
    digest: str  # of the checkpoint file
    updates: int  # before the checkpoint
    state: Mapping[str, Any]  # the algorithm's

    @property
    def env(self) -> str:
        """Id of the environment that it was trained on."""
        return self.config.settings.env

    def make(self, envs: VectorEnv[Any, Any, Any]) -> Policy:
        """Creates the policy, with its random numbers at their start.

        Raises:
            CheckpointError: The weights do not fit the environment's observations or actions.
        """
        loader = self.algorithm.policy_loader()
        assert loader is not None  # checked when it was opened
        try:
            return loader(self.state, envs, self.config.options)
        except GymDrError as error:
            raise CheckpointError(f"{self.checkpoint}: the policy does not fit {self._spaces(envs)}: {error}") from None

    def make_envs(self, cells: CellSet) -> VectorEnv[Any, Any, Any]:
        """A vector environment for a set of cells, wrapped as in the policy's training.

        It accepts ``options["params"]`` for the values of the cells.
        """
        has_params = self.config.randomization is not None
        native = has_params and gym.spec(self.env.rpartition(":")[2]).vector_entry_point is not None
        num_envs = min(NATIVE_ENVS if native else PYTHON_ENVS, cells.num_episodes)
        if not has_params:
            return make_vector_env(self.env, num_envs, "auto", None)
        randomization, settable = cells.randomization or Randomization(), (*cells.names, *cells.fixed)
        envs = make_vector_env(self.env, num_envs, "auto", randomization)
        if settable:
            envs = with_params(envs)
        return wrap_for_policy(envs, randomization, self.config.context_ranges, settable)

    def check(self) -> None:
        """Checks that the policy acts in its environment.

        Raises:
            ConfigError: It fails on the environment's observations, or returns actions of the wrong shape.
            CheckpointError: Its weights do not fit.
        """
        with contextlib.closing(self.make_envs(nominal(episodes=2))) as envs:
            observations, _ = envs.reset(seed=0)
            policy = self.make(envs)
            try:
                shape = np.shape(policy(np.asarray(observations)))
            except Exception as error:  # a plugin's policy may raise anything
                raise ConfigError(f"{self.checkpoint}: fails on {self._spaces(envs)}: {error}") from error
            if shape != envs.action_space.shape:
                raise ConfigError(
                    f"{self.checkpoint}: expected actions of shape {envs.action_space.shape} for {self._spaces(envs)}, "
                    f"got shape {shape}."
                )

    def trained_on(self, space: ParamSpace | None) -> str:
        """The name of the preset that it was trained on, "none" for nominal values, "own" for anything else."""
        if not self.config.randomization or space is None:
            return NONE
        known = {name: resolve(name, space) for name in presets(space.name)}
        return next((name for name, value in known.items() if value == self.config.randomization), CUSTOM)

    def _spaces(self, envs: VectorEnv[Any, Any, Any]) -> str:
        return (
            f"{self.env}, which has observations of shape {envs.single_observation_space.shape} "
            f"and actions {envs.single_action_space}"
        )


def open_policies(runs: Sequence[tuple[RunFolder, RunConfig, Algorithm]]) -> list[RunPolicy]:
    """Reads the newest checkpoints of runs and checks that they can be compared.

    Raises:
        ConfigError: A run is named twice or was trained on another environment than the first, its algorithm cannot
            load policies, or the policy does not act in its environment.
        CheckpointError: There is no usable checkpoint.
    """
    if not runs:
        raise ConfigError("Expected at least one run.")
    first = runs[0][1].settings.env
    for folder, config, _ in runs:
        if config.settings.env != first:
            raise ConfigError(
                f"{folder.path}: was trained on {config.settings.env}, but {runs[0][0].path} on {first}; "
                "policies are compared on one environment."
            )
    names = _unique_names([folder.path for folder, _, _ in runs])
    policies = [_open(name, *run) for name, run in zip(names, runs, strict=True)]
    for policy in policies:
        policy.check()
    return policies


def nominal_and_training(policies: Sequence[RunPolicy], space: ParamSpace | None, episodes: int) -> list[CellSet]:
    """The nominal environment, and the draws that each policy was trained on; all policies are evaluated on all.

    Returns:
        "nominal", and "training" if some were trained on draws, or one "training: PRESET" or "training: RUN" for each
        that differs.
    """
    trained = training_randomizations(policies, space)
    return [nominal(episodes), *(distribution(f"training{end}", rule, episodes) for end, rule in trained.items())]


def training_randomizations(policies: Sequence[RunPolicy], space: ParamSpace | None) -> dict[str, Randomization]:
    """What policies were trained on, each once; its key ends names of sets: "", or of several ": PRESET" or ": RUN"."""
    owners: dict[Randomization, RunPolicy] = {}
    for policy in policies:
        if policy.config.randomization:
            owners.setdefault(policy.config.randomization, policy)
    if len(owners) == 1:
        return dict.fromkeys([""], next(iter(owners)))
    ends = {}
    for randomization, policy in owners.items():
        preset = policy.trained_on(space)
        named = preset == CUSTOM or preset in {other.name for other in policies}  # that run may have had other draws
        ends[f": {policy.name if named else preset}"] = randomization
    return ends


def load_run_policy(folder: RunFolder, config: RunConfig, algorithm: Algorithm) -> Policy:
    """The policy in a run's newest checkpoint.

    Raises:
        ConfigError: The algorithm cannot load policies.
        CheckpointError: There is no usable checkpoint.
    """
    envs = make_vector_env(config.settings.env, 1, "sync", config.randomization)
    envs = wrap_for_policy(envs, config.randomization, config.context_ranges)
    with contextlib.closing(envs):
        return _open(folder.path.name, folder, config, algorithm).make(envs)


def _open(name: str, folder: RunFolder, config: RunConfig, algorithm: Algorithm) -> RunPolicy:
    if algorithm.policy_loader() is None:
        raise ConfigError(
            f"{folder.path}: algorithm {algorithm.name!r} has no load_policy: its runs cannot be evaluated or played."
        )
    checkpoint = load_newest(folder)
    path = checkpoint_paths(folder)[-1]
    return RunPolicy(
        name=name,
        folder=folder,
        config=config,
        algorithm=algorithm,
        checkpoint=path,
        digest=hashlib.sha256(path.read_bytes()).hexdigest(),
        updates=int(checkpoint["update"]),
        state=checkpoint["state"],
    )


def _unique_names(paths: Sequence[Path]) -> list[str]:
    """The last part of each path, with as many parts before it as make all different."""
    resolved = [path.resolve() for path in paths]
    if len(set(resolved)) != len(resolved):
        twice = next(path for path, full in zip(paths, resolved, strict=True) if resolved.count(full) > 1)
        raise ConfigError(f"{twice}: is named twice.")
    longer = (["/".join(path.parts[-parts:]) for path in resolved] for parts in itertools.count(1))
    return next(names for names in longer if len(set(names)) == len(names))
