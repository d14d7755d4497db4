"""Policies to evaluate, mainly from the newest checkpoints of runs, and the environments they act in."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import inspect
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import VectorEnv

from gym_dr.errors import CheckpointError, ConfigError, GymDrError
from gym_dr.evaluation.acting import drive, takes_episode_starts
from gym_dr.evaluation.actions import checked, describe_spaces, for_one_or_many
from gym_dr.evaluation.cells import CellSet, distribution, nominal
from gym_dr.randomization.presets import CUSTOM, NONE, preset_of, presets, resolve
from gym_dr.randomization.sampler import UNIFORM
from gym_dr.randomization.space import ParamSpace, nominal_may_be_outside
from gym_dr.randomization.spec import Randomization
from gym_dr.runs.checkpoint import checkpoint_paths, load_newest
from gym_dr.runs.config import RunConfig
from gym_dr.runs.environments import ContextRanges, make_vector_env, wrap_for_policy
from gym_dr.runs.folder import RunFolder
from gym_dr.training.api import Algorithm, EpisodeStarts, LoadPolicy, MemorylessPolicy, Policy
from gym_dr.training.config import CONTEXT_SPAN
from gym_dr.wording import either, flag
from gym_dr.wrappers.past import NO_PAST, Past
from gym_dr.wrappers.vector_params import with_params

NATIVE_ENVS = 512  # sub-environments of an evaluation; more are hardly faster and report progress less often
PYTHON_ENVS = 10  # more are no faster in Python, and all wait for the slowest episode

UNKNOWN = "unknown"  # in place of a preset's name
DEFAULT = "default"  # the preset to evaluate on if the training randomization is unknown


@dataclass(frozen=True, kw_only=True)
class TrainedRun:
    """The run that a policy comes from."""

    folder: RunFolder
    config: RunConfig


@dataclass(frozen=True, kw_only=True)
class FrozenPolicy:
    """A policy to evaluate, of a run or from elsewhere; it can be created any number of times."""

    name: str  # unique among policies evaluated together
    env: str  # id of the environment that it acts in
    source: str  # where it comes from, for messages
    space: ParamSpace | None  # what may vary in it; None if nothing may
    randomization: Randomization | None  # of its training; None if unknown, or without parameters
    context_ranges: ContextRanges | None = None  # of the parameters that it observes, ...
    context_span: float = CONTEXT_SPAN  # ... mapped to [-context_span, context_span]
    past: Past = NO_PAST
    digest: str  # of everything that determines its actions
    load: Callable[[VectorEnv[Any, Any, Any]], Policy]
    record: Mapping[str, Any]  # its entry in an evaluation: kind, path, algorithm, seed, and more by kind
    run: TrainedRun | None = None  # None for a policy from elsewhere
    reference: bool = False  # whether it only shows what is possible, for regret

    def make(self, envs: VectorEnv[Any, Any, Any]) -> Policy:
        """Creates the policy and restarts its random numbers.

        Raises:
            CheckpointError: The weights do not fit the environment's observations or actions.
        """
        try:
            return self.load(envs)
        except GymDrError as error:
            spaces = describe_spaces(self.env, envs)
            raise CheckpointError(f"{self.source}: the policy does not fit {spaces}: {error}") from None

    def make_envs(self, cells: CellSet) -> VectorEnv[Any, Any, Any]:
        """Makes a vector environment for a set of cells, wrapped as in the policy's training.

        It accepts ``options["params"]`` for the values of the cells.
        """
        native = self.space is not None and gym.spec(self.env.rpartition(":")[2]).vector_entry_point is not None
        num_envs = min(NATIVE_ENVS if native else PYTHON_ENVS, cells.num_episodes)
        if self.space is None:
            return self.wrap(make_vector_env(self.env, num_envs, "auto", None), None)
        randomization, settable = cells.randomization or Randomization(), (*cells.names, *cells.fixed)
        with nominal_may_be_outside():
            envs = make_vector_env(self.env, num_envs, "auto", randomization)
        if settable:
            envs = with_params(envs)
        return self.wrap(envs, randomization, settable)

    def wrap(
        self, envs: VectorEnv[Any, Any, Any], randomization: Randomization | None, settable: Iterable[str] = ()
    ) -> VectorEnv[Any, Any, Any]:
        """Adds the wrappers of the policy's training; for the other arguments see ``wrap_for_policy``."""
        return wrap_for_policy(envs, randomization, self.context_ranges, settable, self.context_span, self.past)

    def check(self, episodes: int = 2, steps: int = 2) -> npt.NDArray[Any]:
        """Checks that the policy acts in its environment.

        Args:
            episodes: Number of episodes whose first observations it gets.
            steps: Steps of each; the second one shows whether a policy with memory can go on.

        Returns:
            Its actions, shape ``(steps, episodes, ...)``.

        Raises:
            ConfigError: It fails on the environment's observations, or observations or actions are not arrays.
            InvalidActionError: It returns actions of the wrong shape or type, or that are not finite.
            CheckpointError: Its weights do not fit.
        """
        taken: list[npt.NDArray[Any]] = []
        with contextlib.closing(self.make_envs(nominal(episodes))) as envs:
            act = checked(self.make(envs), envs, self.source, self.env)

            def record(observations: npt.NDArray[Any], episode_starts: EpisodeStarts) -> npt.NDArray[Any]:
                taken.append(act(observations, episode_starts))
                return taken[-1]

            for _ in itertools.islice(drive(record, envs, seed=0), steps + 1):
                pass
        return np.stack(taken)

    @property
    def trained_on(self) -> str:
        """The preset of its training, "none" for nominal values, "own" for other randomizations, or "unknown"."""
        if self.space is None or (self.randomization is not None and not self.randomization):
            return NONE
        if self.randomization is None:
            return UNKNOWN
        return preset_of(self.randomization, self.space)


RunParts = tuple[RunFolder, RunConfig, Algorithm]


def open_policies(given: Sequence[RunParts | FrozenPolicy]) -> list[FrozenPolicy]:
    """Reads the newest checkpoints of runs and checks that they, and other policies, can be compared.

    Raises:
        ConfigError: A run is named twice, two policies have the same name or act in different environments, an
            algorithm cannot load policies, or a policy does not act in its environment.
        InvalidActionError: A policy's actions do not fit its environment.
        CheckpointError: There is no usable checkpoint.
    """
    names = iter(_unique_names([one[0].path for one in given if isinstance(one, tuple)]))
    policies = [_open(next(names), *one) if isinstance(one, tuple) else one for one in given]
    first = policies[0]
    for policy in policies:
        if policy.env != first.env:
            raise ConfigError(
                f"{_place(policy)}: was trained on {policy.env}, but {_place(first)} on {first.env}; "
                "policies are compared on one environment."
            )
    if twice := [name for name, count in Counter(policy.name for policy in policies).items() if count > 1]:
        raise ConfigError(
            f"Two policies are named {twice[0]!r}; name one of them: "
            + either(f"{flag('policy')} NAME=...", "policies={'NAME': ...}")
            + "."
        )
    for policy in policies:
        policy.check()
    return policies


def training_draws(policies: Sequence[FrozenPolicy]) -> list[Randomization]:
    """Training randomizations of policies; the preset "default", if there is one, if all are unknown."""
    known = [policy.randomization for policy in policies if policy.randomization is not None]
    space = policies[0].space
    if known or space is None or DEFAULT not in presets(space.name):
        return known
    return [resolve(DEFAULT, space)]


def nominal_and_training(policies: Sequence[FrozenPolicy], episodes: int) -> list[CellSet]:
    """Nominal values, and the training draws of each policy; all policies are evaluated on all sets.

    Returns:
        The set "nominal", and the set "training" for the training draws, or several sets "training: PRESET" or
        "training: NAME" if policies differ; the set "default", of that preset, if all training draws are unknown.
    """
    trained = training_randomizations(policies)
    unknown = all(policy.randomization is None for policy in policies)
    names = {end: DEFAULT if unknown else f"training{end}" for end in trained}
    return [nominal(episodes), *(distribution(names[end], rule, episodes) for end, rule in trained.items())]


def training_randomizations(policies: Sequence[FrozenPolicy]) -> dict[str, Randomization]:
    """Distinct training randomizations of policies, without nominal values; see ``training_draws``.

    Keys are suffixes for names of sets: "" for a single one, else ": PRESET" or ": NAME"; ": default" if all are
    unknown.
    """
    owners: dict[Randomization, FrozenPolicy] = {}
    for policy in policies:
        if policy.randomization:
            owners.setdefault(policy.randomization, policy)
    if all(policy.randomization is None for policy in policies):
        return {f": {DEFAULT}": draws for draws in training_draws(policies)}
    if len(owners) == 1:
        return dict.fromkeys([""], next(iter(owners)))
    ends = {}
    for randomization, policy in owners.items():
        preset = policy.trained_on
        named = preset == CUSTOM or preset in {other.name for other in policies}  # the preset's name would be ambiguous
        ends[f": {policy.name if named else preset}"] = randomization
    return ends


def load_run_policy(
    folder: RunFolder, config: RunConfig, algorithm: Algorithm, *, deterministic: bool = False
) -> Policy:
    """Loads the policy from a run's newest checkpoint; see ``Run.policy``.

    Raises:
        ConfigError: The algorithm cannot load policies, or not deterministic ones.
        CheckpointError: There is no usable checkpoint.
    """
    from gym_dr.training.behavior import RememberingPolicy  # heavy

    loader = _loader(folder, algorithm)
    if deterministic:
        if "deterministic" not in inspect.signature(loader).parameters:
            raise ConfigError(
                f"{folder.path}: algorithm {algorithm.name!r} has no deterministic policy: its load_policy takes no "
                "keyword 'deterministic'. Leave it out."
            )
        algorithm = dataclasses.replace(algorithm, load_policy=functools.partial(loader, deterministic=True))
    policy = _open(folder.path.name, folder, config, algorithm)
    with contextlib.closing(policy.make_envs(nominal(episodes=1))) as envs:
        act, shape = policy.make(envs), envs.single_observation_space.shape
        if isinstance(act, RememberingPolicy):
            act.hint = _about_observations(config)
        if shape is None or takes_episode_starts(act, policy.source):  # no arrays; or a memory has a batch's size
            return act
        return for_one_or_many(cast(MemorylessPolicy, act), shape, str(folder.path), _about_observations(config))


def _about_observations(config: RunConfig) -> str:
    """A sentence, to follow others, on what a policy observes besides the environment's observations."""
    sentence = ""
    if past := config.past:
        words = ", ".join(f"{name}={value}" for name, value in vars(past).items())
        sentence += f" The policy observes what was before: wrap the environment in ObservePast(envs, {words})."
    if config.context_ranges:
        sentence += (
            f" The policy observes the draw of {', '.join(config.context_ranges)} at the end: wrap the environment in "
            f"DrawContext(envs, 'observation', run.config.context_ranges, span={CONTEXT_SPAN})."
        )
    return sentence


def _loader(folder: RunFolder, algorithm: Algorithm) -> LoadPolicy:
    loader = algorithm.policy_loader()
    if loader is None:
        raise ConfigError(
            f"{folder.path}: algorithm {algorithm.name!r} has no load_policy: its runs cannot be evaluated or played."
        )
    return loader


def _open(name: str, folder: RunFolder, config: RunConfig, algorithm: Algorithm) -> FrozenPolicy:
    loader = _loader(folder, algorithm)
    checkpoint = load_newest(folder)
    path = checkpoint_paths(folder)[-1]
    return FrozenPolicy(
        name=name,
        env=config.settings.env,
        source=str(path),
        space=config.space,
        randomization=config.randomization,
        context_ranges=config.context_ranges,
        past=config.past,
        digest=hashlib.sha256(path.read_bytes()).hexdigest(),
        load=lambda envs: loader(checkpoint["state"], envs, config.options),
        record={
            "kind": "run",
            "path": str(folder.path),
            "algorithm": algorithm.name,
            "seed": config.settings.seed,
            **({} if config.settings.sampler == UNIFORM else {"sampler": config.settings.sampler}),
            "updates": int(checkpoint["update"]),
            "checkpoint": path.name,
        },
        run=TrainedRun(folder=folder, config=config),
    )


def _place(policy: FrozenPolicy) -> str:
    return policy.source if policy.run is None else str(policy.run.folder.path)


def _unique_names(paths: Sequence[Path]) -> list[str]:
    """The last part of each path, with as many parts before it as it takes to make all distinct."""
    resolved = [path.resolve() for path in paths]
    if len(set(resolved)) != len(resolved):
        twice = next(path for path, full in zip(paths, resolved, strict=True) if resolved.count(full) > 1)
        raise ConfigError(f"{twice}: is named twice.")
    longer = (["/".join(path.parts[-parts:]) for path in resolved] for parts in itertools.count(1))
    return next(names for names in longer if len(set(names)) == len(names))
