"""The interface of an algorithm: a name, a configuration and a ``train`` function.

Your own algorithm needs only this module, ``gym_dr.options`` and the hook in ``gym_dr.plugins.hookspecs``.
Nothing heavy is imported here: ``gymdr list algorithms`` does not load torch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from gym_dr.registry import load_object
from gym_dr.wrappers.record import RecordEpisodes

EpisodeStarts = npt.NDArray[np.bool_]  # (N,): True where an observation is the first of an episode
# observations (N, ...), or a dictionary or tuple of such arrays, and episode_starts (N,) -> actions (N, ...) for the
# environment. The policy keeps its state and clears it where an episode starts; N may change where all start
PolicyWithMemory = Callable[[Any, EpisodeStarts], npt.NDArray[Any]]
MemorylessPolicy = Callable[[Any], npt.NDArray[Any]]  # observations -> actions (N, ...)
# the signature tells them apart (policies/frozen.py)
Policy = MemorylessPolicy | PolicyWithMemory


@dataclass(frozen=True, kw_only=True)
class TrainedNetworks:
    """Another run's networks, for algorithms that start from them or imitate their policy."""

    source: str  # the run's folder, for messages
    options: Any  # the run's configuration
    state: Mapping[str, Any]  # from the newest checkpoint, as passed to ``Session.save``
    context_ranges: Mapping[str, tuple[float, float]] | None  # of parameters that the policy observes


class Session(Protocol):
    """The first argument of ``train``: makes the environments and stores the results.

    Training is divided into segments of ``checkpoint_every`` updates. The environments are reset with the segment's
    own seed at its start, and a checkpoint is saved at its end. A killed run resumes from the last checkpoint, with the
    same seeds, and so reaches the same result as an uninterrupted run.

    Numbers that are not finite end the run: the environments of ``make_envs`` check observations and rewards, and the
    algorithm raises ``NotFiniteError`` for a loss or gradient.
    """

    seed: int  # of the run; derive every random number from it
    device: str  # "cpu" or "cuda"
    num_threads: int  # that it may use for compiled code; its results must not depend on them
    restored: dict[str, Any] | None  # state from the last checkpoint if the run is resumed, else None
    first_update: int  # 0, or the update to resume with

    def make_envs(self, rollout_steps: int | None) -> RecordEpisodes:
        """Makes the randomized vector environment, with NEXT_STEP autoreset and finished episodes recorded.

        Args:
            rollout_steps: Vector steps of one rollout, the unit of ``resample_every``; None if rollouts have no fixed
                length, which makes updates the unit.
        """

    def trained(self, run: str) -> TrainedNetworks:
        """The networks of another run, for algorithms with an option that names a run.

        Raises:
            GymDrError: There is no such run, or it has no usable checkpoint.
        """

    def segment_seed(self, update: int) -> int | None:
        """The seed to reset the environments with before this update; None to continue without a reset."""

    def log(self, update: int, *, steps: int, **metrics: float) -> None:
        """Writes one row of metrics and moves the progress bar; call it once at the end of every update.

        Args:
            update: The update that has just ended.
            steps: Environment steps that it used, without reset steps.
            metrics: Losses and other numbers by name.
        """

    def save(self, update: int, state: Callable[[], Mapping[str, Any]]) -> None:
        """Saves a checkpoint if the update ends a segment or the run; call it after ``log`` in every update.

        Args:
            update: The update that has just ended.
            state: Called only when a checkpoint is due; returns everything needed to resume, as finite tensors,
                numbers, text and containers of those. The entries ``actor`` and ``critic`` are also written to files of
                their own.
        """


Train = Callable[[Session, Any], None]  # session, configuration; the result is the last ``save``
LoadPolicy = Callable[..., Policy]  # saved state, envs, configuration, perhaps deterministic=... -> policy


@dataclass(frozen=True, kw_only=True)
class Algorithm:
    """One algorithm. Text of the form ``"module:name"`` names an object that is imported on first use."""

    name: str  # on the command line: gymdr train NAME
    summary: str  # one line for ``gymdr list algorithms``
    config: type | str  # frozen dataclass whose fields were made with ``option``; has ``updates: int``
    train: Train | str  # called as train(session, config)
    num_envs: int = 10  # default number of sub-environments
    # (saved state, envs, config) -> policy; without it no evaluation. A keyword ``deterministic`` (False by default)
    # makes ``Run.policy(deterministic=True)`` possible
    load_policy: LoadPolicy | str | None = None

    def config_class(self) -> type:
        """The configuration dataclass."""
        found = load_object(self.config)
        if not (isinstance(found, type) and dataclasses.is_dataclass(found)):
            raise TypeError(f"Algorithm {self.name!r}: expected a dataclass as config, got {found!r}.")
        return found

    def train_function(self) -> Train:
        """The function that trains."""
        return cast(Train, load_object(self.train))

    def policy_loader(self) -> LoadPolicy | None:
        """The function that makes a policy from saved state, if the algorithm has one."""
        return cast(LoadPolicy | None, load_object(self.load_policy))


def seed_for(run_seed: int, stream: int, index: int = 0) -> int:
    """Derives a seed that is independent of seeds derived from neighboring run seeds.

    Gymnasium seeds sub-environment i with ``seed + i``, so runs with seeds 1 and 2 would share almost all seeds.
    Training (stream 0) has seeds below 2**61 and each other stream its own range above, so streams never overlap.

    Args:
        run_seed: Seed of the run, >= 0.
        stream: Purpose of the seed: 0 training, 1 evaluation, 2 networks and sampling, 3 worst cells played again.
        index: Index in the stream, for example the segment of the training.
    """
    word = np.random.SeedSequence(run_seed, spawn_key=(stream, index)).generate_state(1, np.uint64)[0]
    return (stream << 61) + (int(word) >> 4)
