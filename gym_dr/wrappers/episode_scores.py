"""The mean score of each episode, from scores of steps that come rollout by rollout."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from gym_dr.arrays import Array, Mask
from gym_dr.wrappers.record import EpisodeRecord


class EpisodeScores:
    """Notes when sub-environments step and when their episodes end, and divides the scores of these steps.

    Attributes:
        steps: Vector steps since the last scores.
    """

    def __init__(self, num_envs: int) -> None:
        self.steps = 0
        # since the last scores: the steps that did not step every sub-environment, and which ones they stepped
        self._partly_stepped: list[tuple[int, Mask]] = []
        # number of steps before each end of an episode, its sub-environment, and its record unless it was cut off
        self._ends: list[tuple[int, int, EpisodeRecord | None]] = []
        self._carried: Array = np.zeros((2, num_envs))  # sum and number of scores in the current episodes

    def note(self, stepped: Mask, steps: int, ended: Sequence[EpisodeRecord]) -> None:
        """Notes vector steps, of which only the last one has ended episodes.

        Args:
            stepped: Shape ``(num_envs,)``, the sub-environments that the first of them stepped; the others stepped all.
            steps: Number of vector steps.
            ended: The episodes.
        """
        if not stepped.all():
            self._partly_stepped.append((self.steps, stepped))
        self.steps += steps
        self._ends += [(self.steps, record.env_index, record) for record in ended]

    def cut_off(self, mask: Mask) -> None:
        """Notes a reset, which ends the current episodes of these sub-environments; they get no score."""
        self._ends += [(self.steps, i, None) for i in np.flatnonzero(mask).tolist()]

    def take(self, scores: Array) -> list[EpisodeRecord]:
        """Scores the episodes that have ended, and forgets them.

        Args:
            scores: Of the last T vector steps, shape ``(T, num_envs)``, with T at most ``steps``. Episodes that ended
                in steps before these have no score.

        Returns:
            The episodes that have one: the mean over their scored steps, which may span several calls.
        """
        missing = self.steps - len(scores)
        stepped = np.ones(scores.shape, np.bool_)
        for row, envs in self._partly_stepped:
            if row >= missing:
                stepped[row - missing] = envs
        ends = [(row - missing, env) for row, env, _ in self._ends]
        carried = np.zeros_like(self._carried) if missing else self._carried
        means, self._carried = episode_means(scores, stepped, ends, carried)
        records = [record for _, _, record in self._ends]
        self._partly_stepped, self.steps, self._ends = [], 0, []
        return [
            dataclasses.replace(record, score=mean)
            for record, mean in zip(records, means, strict=True)
            if record is not None and mean is not None
        ]


def episode_means(
    scores: Array, stepped: Mask, ends: Sequence[tuple[int, int]], carried: Array
) -> tuple[list[float | None], Array]:
    """The mean score of each episode.

    Args:
        scores: Shape ``(T, N)``.
        stepped: Shape ``(T, N)``, which of them are scores of steps; the others do not count.
        ends: For each episode, in order: after how many of the T steps it ended, and its sub-environment. It ended
            before the first of them if that is 0 or less.
        carried: Shape ``(2, N)``, sum and number of the scores that current episodes already have.

    Returns:
        A mean for each episode, None if it has no score among these; and what current episodes carry on.
    """
    # sums and counts before each step, (2, T + 1, N), and those at the start of each current episode
    so_far = np.zeros((2, len(scores) + 1, scores.shape[1]))
    so_far[0, 1:], so_far[1, 1:] = np.where(stepped, scores, 0.0), stepped
    np.cumsum(so_far, axis=1, out=so_far)
    begun = -carried
    means: list[float | None] = []
    for end, env in ends:
        total, count = so_far[:, max(end, 0), env] - begun[:, env]
        means.append(float(total / count) if end > 0 and count else None)
        begun[:, env] = so_far[:, max(end, 0), env]
    return means, so_far[:, -1] - begun
