"""A policy of any origin, and the environments in which it acts."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
from gymnasium.vector import VectorEnv

from gym_dr.envs.family import family_of
from gym_dr.errors import CheckpointError, GymDrError
from gym_dr.policies.acting import Draws, checked, describe_spaces, drive
from gym_dr.randomization.presets import NONE, preset_of
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization
from gym_dr.runs.config import OpenedRun
from gym_dr.runs.environments import ContextRanges, make_vector_env, wrap_for_policy
from gym_dr.training.api import Policy
from gym_dr.training.config import CONTEXT_SPAN
from gym_dr.wrappers.frame_stack import ONE_FRAME, Frames
from gym_dr.wrappers.vector_params import with_params

NATIVE_ENVS = 512  # sub-environments of an evaluation; more are hardly faster and report progress less often
PYTHON_ENVS = 10  # more are no faster in Python, and all wait for the slowest episode

UNKNOWN = "unknown"  # in place of a preset's name


@dataclass(frozen=True, kw_only=True)
class FrozenPolicy:
    """A policy of a run or from elsewhere, which can be created any number of times."""

    name: str  # unique among policies evaluated together
    env: str  # id of the environment that it acts in
    source: str  # where it comes from, for messages
    space: ParamSpace | None  # parameters of the environment; None if it has none
    randomization: Randomization | None  # of its training; None if unknown, or without parameters
    context_ranges: ContextRanges | None = None  # of the parameters that it observes, ...
    context_span: float = CONTEXT_SPAN  # ... mapped to [-context_span, context_span]
    frames: Frames = ONE_FRAME
    digest: str  # of everything that determines its actions
    load: Callable[[VectorEnv[Any, Any, Any]], Policy]
    home: Path  # default folder of its evaluation
    record: Mapping[str, Any]  # its entry in an evaluation: kind, path, algorithm, seed, and more by kind
    run: OpenedRun | None = None  # None for a policy from elsewhere
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

    def make_envs(
        self, draws: Draws, *, render_mode: str | None = None, together: int | None = None, mode: str = "auto"
    ) -> VectorEnv[Any, Any, Any]:
        """Makes a vector environment with these draws, wrapped as in the policy's training.

        Args:
            draws: The distribution of its draws, and the names that ``options["params"]`` may set.
            render_mode: With one, there is a single sub-environment.
            together: Most sub-environments at once; None for as many as are useful.
            mode: Without pictures, how they are stepped: "auto", "native", "sync" or "async".
        """
        native = self.space is not None and gym.spec(self.env.rpartition(":")[2]).vector_entry_point is not None
        alone = getattr(family_of(self.env), "only", None) is not None  # an object of the user
        most = 1 if alone else together or (NATIVE_ENVS if native else PYTHON_ENVS)
        num_envs, shown = min(most, draws.episodes), {}
        if render_mode is not None:
            num_envs, mode, shown = 1, "sync", {"render_mode": render_mode}
        randomization = None if self.space is None else draws.randomization
        envs = make_vector_env(self.env, num_envs, mode, randomization, **shown)
        if draws.values:
            envs = with_params(envs)
        return wrap_for_policy(
            envs, randomization, self.context_ranges, tuple(draws.values), self.context_span, self.frames
        )

    def check(self) -> None:
        """Checks that the policy acts in its environment, for two steps, so that one with memory goes on.

        Raises:
            ConfigError: It fails on the environment's observations, or actions are not arrays.
            InvalidActionError: It returns actions of the wrong shape or type, or that are not finite.
            CheckpointError: Its weights do not fit.
        """
        # single ones: to play one episode, nobody waits until the native environment is compiled
        with contextlib.closing(self.make_envs(Draws(episodes=2), mode="sync")) as envs:
            act = checked(self.make(envs), envs, self.source, self.env)
            for _ in itertools.islice(drive(act, envs, seed=0), 3):  # a reset and two steps
                pass

    @property
    def trained_on(self) -> str:
        """The preset of its training, "none" for nominal values, "own" for other randomizations, or "unknown"."""
        if self.space is None or (self.randomization is not None and not self.randomization):
            return NONE
        if self.randomization is None:
            return UNKNOWN
        return preset_of(self.randomization, self.space)
