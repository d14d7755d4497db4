from __future__ import annotations

import contextlib
import math

import gymnasium as gym
import pytest

from gym_dr.errors import NotFiniteError
from gym_dr.training.a2c import make_agent
from gym_dr.training.config import A2CConfig
from gym_dr.training.update import training_update
from tests.training.fake_session import FakeSession

AGENT = make_agent(gym.make_vec("CartPole-v1", 2, vectorization_mode="sync"), A2CConfig(hidden_sizes=(8,)), 1, "cpu")


def test_an_update_that_is_left_out_is_logged_without_steps_and_losses(monkeypatch: pytest.MonkeyPatch) -> None:
    session = FakeSession("CartPole-v1")
    monkeypatch.setattr(session, "guard_update", lambda update: contextlib.suppress(NotFiniteError))
    with training_update(session, 0, AGENT, ("actor_loss", "entropy")):
        raise NotFiniteError("a reward is not finite")
    with training_update(session, 1, AGENT, ("actor_loss", "entropy")) as row:
        row.update(entropy=0.5, actor_loss=2.0, steps=7)
    assert [row.pop("steps") for row in session.rows] == [0, 7]
    assert [list(row) for row in session.rows] == [["update", "actor_loss", "entropy"]] * 2
    assert [math.isnan(row["actor_loss"]) for row in session.rows] == [True, False]
