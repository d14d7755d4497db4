"""What an algorithm is to gym_dr: a name, a configuration and a ``train`` function.

An algorithm of your own needs this module, ``gym_dr.options`` and the hook in ``gym_dr.plugins.hookspecs`` alone.
Nothing heavy is imported here: ``gymdr list algorithms`` does not load torch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from gym_dr.registry import load_object
from gym_dr.wrappers.record import RecordEpisodes

if TYPE_CHECKING:
    import gymnasium as gym

Policy = Callable[[npt.NDArray[Any]], npt.NDArray[Any]]  # observations (N, ...) -> actions (N, ...) for the environment


class Session(Protocol):
    """What ``train`` is given: the environments, and where results go.

    Training is divided into segments of ``--checkpoint-every`` updates. At the start of each the environments are reset
    with a seed of that segment; at its end a checkpoint is saved. A run that is killed goes on from the last
    checkpoint, and so from the same seeds to the same result as one that was not.
    """

    seed: int  # of the run; every random number should follow from it
    device: str  # "cpu" or "cuda"
    restored: dict[str, Any] | None  # what ``save`` was given before the run was interrupted, else None
    first_update: int  # 0, or the update to go on with

    def make_envs(self, rollout_steps: int | None) -> RecordEpisodes:
        """Makes the randomized vector environment, NEXT_STEP autoreset, finished episodes recorded.

        Args:
            rollout_steps: Vector steps of one rollout, the unit of ``--resample-every``; None where rollouts have no
                fixed length, so that updates are the unit.
        """
        ...

    def segment_seed(self, update: int) -> int | None:
        """The seed to reset the environments with before this update; None to go on with them as they are."""
        ...

    def guard_update(self, update: int) -> AbstractContextManager[None]:
        """Around all of an update but ``log`` and ``save``: what is not finite in it stops the run or, with
        ``--on-nan skip``, ends the block.

        An algorithm raises ``NotFiniteError`` for a loss or gradient before it changes anything; observations and
        rewards are looked at by the environments of ``make_envs``. After an update that was left out
        ``segment_seed`` gives the next one fresh environments.
        """
        ...

    def log(self, update: int, *, steps: int, **metrics: float) -> None:
        """Writes one row of metrics and moves the progress bar; call it once at the end of every update.

        Args:
            update: The update that has just ended.
            steps: Environment steps that it used, reset steps not counted.
            metrics: Losses and the like, by name.
        """
        ...

    def save(self, update: int, state: Callable[[], Mapping[str, Any]]) -> None:
        """Saves a checkpoint if the update ends a segment or the run; call it after ``log`` in every update.

        Args:
            update: The update that has just ended.
            state: Called only when a checkpoint is due; returns all that is needed to go on, as finite tensors,
                numbers, text and containers of those. Entries ``actor`` and ``critic`` are also written to files of
                their own.
        """
        ...


Train = Callable[[Session, Any], None]  # session, configuration -> trained; its last ``save`` is the result
LoadPolicy = Callable[[Mapping[str, Any], "gym.vector.VectorEnv[Any, Any, Any]", Any], Policy]


@dataclass(frozen=True, kw_only=True)
class Algorithm:
    """One algorithm. Text of the form ``"module:name"`` stands for an object that is imported when it is needed."""

    name: str  # on the command line: gymdr train NAME
    summary: str  # one line for ``gymdr list algorithms``
    config: type | str  # frozen dataclass whose fields were made with ``option``; has ``updates: int``
    train: Train | str  # called as train(session, config)
    num_envs: int = 10  # sub-environments, unless the user says otherwise
    load_policy: LoadPolicy | str | None = None  # (saved state, envs, config) -> policy; without it no evaluation
    offers: tuple[str, ...] = ()  # of SCORES and MASKS (randomization/sampler.py), for the samplers that need them

    def config_class(self) -> type:
        """The configuration dataclass."""
        found = load_object(self.config)
        if not (isinstance(found, type) and dataclasses.is_dataclass(found)):
            raise TypeError(f"Algorithm {self.name!r}: expected a dataclass as config, got {found!r}.")
        return found

    def train_function(self) -> Train:
        """The function that trains."""
        function: Train = load_object(self.train)
        return function

    def policy_loader(self) -> LoadPolicy | None:
        """The function that makes a policy of saved state, if there is one."""
        loader: LoadPolicy | None = load_object(self.load_policy)
        return loader


def seed_for(run_seed: int, stream: int, index: int = 0) -> int:
    """A seed that shares nothing with those of neighbouring run seeds.

    Gymnasium seeds sub-environment i with ``seed + i``, so runs with seeds 1 and 2 would share almost all of them.
    Training (stream 0) gets seeds below 2**61, other streams a range of their own above, so no two streams overlap.

    Args:
        run_seed: Of the run, >= 0.
        stream: What the seed is for: 0 training, 1 evaluation, 2 networks and sampling.
        index: Which one, for example the segment of the training.
    """
    word = np.random.SeedSequence(run_seed, spawn_key=(stream, index)).generate_state(1, np.uint64)[0]
    return (stream << 61) + (int(word) >> 4)
