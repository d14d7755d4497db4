"""What a policy with memory knows about its physics: the share of a parameter's variance that its memory explains.

At some steps of many episodes, a linear map predicts each parameter's draw from what the policy remembers. The map is
a ridge regression, and each episode is predicted by the map of all others, so that a memory which holds nothing
explains nothing, however many numbers it has. The baseline is the same with the observation of that step alone: what
the policy would know without memory. A linear map finds what is easy to use; more may be there.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
from gymnasium.vector import VectorEnv

from gym_dr.arrays import Array, Floats
from gym_dr.evaluation.acting import drive
from gym_dr.evaluation.cells import distribution, nominal
from gym_dr.evaluation.policies import FrozenPolicy
from gym_dr.evaluation.protocol import EVALUATION_SEED
from gym_dr.randomization.sampler import EpisodeRecord
from gym_dr.training.api import EpisodeStarts, Policy
from gym_dr.wrappers.record import RecordEpisodes

if TYPE_CHECKING:  # torch is heavy
    from gym_dr.training.behavior import RememberingPolicy

EPISODES = 512  # half as many find much less in a memory of 64 numbers
MIN_EPISODES = 50  # that still go on at a step; the share of fewer would be mostly chance
EARLY = 16  # step of tables

_PENALTIES = np.geomspace(1e-6, 1e2, 9)  # of a regression whose features have variance 1
_LEAST_SPREAD = 1e-6  # of a feature relative to its size; less is rounding


def explained_shares(features: Array, draws: Array) -> Array:
    """The share of each parameter's variance that a linear map of the features explains.

    One minus the squared errors of ridge regression relative to those of the mean, both leave-one-out. Leaving one
    episode out divides its residual by one minus its leverage (Hastie, Tibshirani and Friedman 2009, "The Elements of
    Statistical Learning", eq. 7.64), so nothing is fitted again. The penalty of each parameter is the one with the
    smallest such errors (Golub, Heath and Wahba 1979, "Generalized cross-validation as a method for choosing a good
    ridge parameter").

    Args:
        features: Shape ``(E, m)``.
        draws: Values of the parameters, shape ``(E, k)``.

    Returns:
        Shape ``(k,)``, from 0 to 1; NaN with fewer than ``MIN_EPISODES`` episodes, and for a parameter that is the same
        in all of them.
    """
    episodes = len(features)
    if episodes < MIN_EPISODES:
        return np.full(draws.shape[1], np.nan)
    spread = features.std(0)
    varies = spread > _LEAST_SPREAD * np.abs(features).max(0)
    directions, sizes, _ = np.linalg.svd((features - features.mean(0))[:, varies] / spread[varies], full_matrices=False)
    deviations = draws - draws.mean(0)
    projected, smallest = directions.T @ deviations, np.full(draws.shape[1], np.inf)
    for penalty in episodes * _PENALTIES:
        fitted = directions * (sizes**2 / (sizes**2 + penalty))
        leverage = 1.0 / episodes + (fitted * directions).sum(1)  # the mean is fitted too
        left_out = (deviations - fitted @ projected) / (1.0 - leverage)[:, None]
        smallest = np.minimum(smallest, (left_out**2).sum(0))
    mean_left_out = deviations * episodes / (episodes - 1)
    whole = np.where(np.ptp(draws, axis=0) > 0.0, (mean_left_out**2).sum(0), np.nan)
    shares: Array = np.maximum(1.0 - smallest / whole, 0.0)
    return shares


def missing_knowledge(policies: Sequence[FrozenPolicy], entries: Sequence[Mapping[str, Any]]) -> list[FrozenPolicy]:
    """The policies with a memory that can be read and draws that vary, except those that have an entry already."""
    known = {entry["policy"] for entry in entries}
    return [policy for policy in policies if policy.name not in known and _varying(policy) and _remembers(policy)]


def find_knowledge(policy: FrozenPolicy, on_step: Callable[[], object] = lambda: None) -> dict[str, Any]:
    """What a policy's memory knows about its training draws, as an entry of ``evaluation.json``.

    Args:
        policy: One of ``missing_knowledge``.
        on_step: Called after each step of all sub-environments.

    Returns:
        ``policy``, ``parameters`` (k names), ``episodes``, S ``steps`` (1, 2, 4, ...), how many episodes are ``alive``
        at each, and the shares that ``memory`` and ``observation`` explain there: S lists of k numbers, None with too
        few episodes.
    """
    names = _varying(policy)
    draws, lengths, seen = _watch(policy, names, on_step)
    found: dict[str, Any] = {"steps": [], "alive": [], "memory": [], "observation": []}
    for step, (memories, observations) in seen.items():
        alive = lengths >= step
        found["steps"].append(step)
        found["alive"].append(int(alive.sum()))
        for what, features in (("memory", memories), ("observation", observations)):
            shares = explained_shares(features[alive].astype(np.float64), draws[alive])
            found[what].append([None if math.isnan(share) else share for share in shares.tolist()])
    return {"policy": policy.name, "parameters": names, "episodes": len(draws), **found}


def known_before(before: Mapping[str, Any] | None, document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Entries of an earlier evaluation that hold for policies of a new one, since these and their draws are the same.

    Args:
        before: The earlier document; None if there is none. Documents of version 0.2 have no entries.
        document: The new document.
    """
    entries = {entry["policy"]: entry for entry in (before or {}).get("knowledge", ())}
    old = {_identity(policy): entries.get(policy["name"]) for policy in (before or {}).get("policies", ())}
    found = [(policy["name"], old.get(_identity(policy))) for policy in document["policies"]]
    return [{**entry, "policy": name} for name, entry in found if entry is not None]


def _identity(policy: Mapping[str, Any]) -> str:
    """What determines the entry of a policy, the same before and after its document is written to a file."""
    determines = [policy["digest"], policy["randomization"]]
    return json.dumps(json.loads(json.dumps(determines), parse_constant=lambda name: None), sort_keys=True)


def summarized(entry: Mapping[str, Any]) -> tuple[int, list[tuple[str, float, float, int, float]]]:
    """One row for each parameter, the best known first, for tables.

    Args:
        entry: From ``find_knowledge``.

    Returns:
        The step ``EARLY``, or the last one before it, and for each parameter: its name, what memory explains at that
        step, what it explains at the step where it explains most, that step, and what the observation alone explains
        there. Shares are NaN with too few episodes.
    """
    memory, observation = (np.array(entry[what], np.float64) for what in ("memory", "observation"))  # None becomes NaN
    steps = np.array(entry["steps"])
    early = np.flatnonzero(steps <= EARLY)[-1]
    best = np.nan_to_num(memory, nan=-1.0).argmax(0)
    columns = np.arange(len(best))
    rows = zip(
        entry["parameters"],
        memory[early].tolist(),
        memory[best, columns].tolist(),
        steps[best].tolist(),
        observation[best, columns].tolist(),
        strict=True,
    )
    return int(steps[early]), sorted(rows, key=lambda row: -np.nan_to_num(row[2], nan=-1.0))


# ---- playing -------------------------------------------------------------------------------------------------------


def _varying(policy: FrozenPolicy) -> list[str]:
    """The parameters that vary in a policy's training, in the order of the environment."""
    if policy.space is None or policy.randomization is None:
        return []
    ends = {name: rule.support(policy.space[name].nominal) for name, rule in policy.randomization.items()}
    return policy.space.in_order([name for name, (low, high) in ends.items() if low < high])


def _remembers(policy: FrozenPolicy) -> bool:
    """Whether a policy has a memory that can be read."""
    from gym_dr.training.behavior import RememberingPolicy  # heavy

    with contextlib.closing(policy.make_envs(nominal(episodes=1))) as envs:
        return isinstance(policy.make(envs), RememberingPolicy)


class _Watch:
    """Acts as a policy with memory, and keeps what it saw and remembered at steps 1, 2, 4, ..."""

    def __init__(self, policy: RememberingPolicy) -> None:
        self.seen: dict[int, tuple[Floats, Floats]] = {}  # step -> memories (N, H), observations (N, obs)
        self._policy, self._step = policy, 0

    def __call__(self, observations: npt.NDArray[Any], episode_starts: EpisodeStarts) -> npt.NDArray[Any]:
        actions = self._policy(observations, episode_starts)
        self._step += 1
        if self._step.bit_count() == 1:  # a power of two
            memories = self._policy.state[:, : self._policy.memory_size]
            self.seen[self._step] = memories, np.array(observations, np.float32)
        return actions


def _watch(
    policy: FrozenPolicy, names: Sequence[str], on_step: Callable[[], object]
) -> tuple[Array, Array, dict[int, tuple[Floats, Floats]]]:
    """Plays E episodes on training draws and looks on, all at once in a native environment.

    Returns:
        The draws ``(E, k)``; the lengths ``(E,)`` in steps, infinite for the last few episodes of all, which are not
        played to their end; and for steps 1, 2, 4, ... memories ``(E, H)`` and observations ``(E, obs)``, which have no
        meaning where an episode has ended before.
    """
    assert policy.randomization is not None  # something varies
    draws, lengths = np.empty((EPISODES, len(names))), np.full(EPISODES, np.inf)
    seen: dict[int, tuple[Floats, Floats]] = {}
    with contextlib.closing(policy.make_envs(distribution("training", policy.randomization, EPISODES))) as envs:
        least = MIN_EPISODES if envs.num_envs == EPISODES else 1
        for first in range(0, EPISODES, envs.num_envs):
            batch = slice(first, min(first + envs.num_envs, EPISODES))
            watch = _Watch(cast("RememberingPolicy", policy.make(envs)))
            drawn, ended = _play(watch, envs, EVALUATION_SEED + first, names, least, on_step)
            count = batch.stop - first  # the last batch needs fewer
            draws[batch], lengths[batch] = drawn[:count], ended[:count]
            for step, now in watch.seen.items():
                memories, observations = (np.zeros((EPISODES, part.shape[1]), np.float32) for part in now)
                for kept, part in zip(seen.setdefault(step, (memories, observations)), now, strict=True):
                    kept[batch] = part[:count]
    return draws, lengths, {step: seen[step] for step in sorted(seen)}


def _play(
    policy: Policy,
    envs: VectorEnv[Any, Any, Any],
    seed: int,
    names: Sequence[str],
    least: int,
    on_step: Callable[[], object],
) -> tuple[Array, Array]:
    """Plays an episode in each of N sub-environments while at least ``least`` of them go on.

    Returns:
        The draws ``(N, k)``, and the lengths ``(N,)``, infinite for those that still go on.
    """
    lengths = np.full(envs.num_envs, np.inf)

    def end(record: EpisodeRecord) -> None:
        lengths[record.env_index] = record.length

    recorded = RecordEpisodes(envs, end)
    steps = drive(policy, recorded, seed=seed)
    params = next(steps)["params"]  # of the reset
    draws = np.column_stack([params[name] for name in names]).astype(np.float64)
    while np.isinf(lengths).sum() >= least:
        next(steps)
        recorded.paused[np.isfinite(lengths)] = True
        on_step()
    return draws, lengths
