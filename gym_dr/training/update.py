"""What frames an update in every algorithm's loop: its guard, its row of metrics and its checkpoint."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any

from gym_dr.training.actor_critic import ActorCritic
from gym_dr.training.api import Session

PREDICTION = "prediction_loss"  # the metrics' last column, if a memory predicts the draw


@contextlib.contextmanager
def training_update(
    session: Session, update: int, agent: ActorCritic, losses: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Guards the block as one update of the session, then logs and saves the update.

    Args:
        session: Passed to the algorithm's ``train``.
        update: Index of the update.
        agent: Its state is saved.
        losses: Their names, in the order of the metrics' columns.

    Yields:
        The row of metrics: the block sets ``steps`` and losses at its end. A skipped update has 0 steps and NaN for
        each loss.
    """
    row: dict[str, Any] = {"steps": 0, **dict.fromkeys(losses, math.nan)}
    with session.guard_update(update):
        yield row
    session.log(update, **row)
    session.save(update, agent.state)
