"""The first number that is not finite is named, with the draw of its episode; contracts have the rest."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gym_dr.errors import NotFiniteError
from gym_dr.testing.playing import SEED, play_compiled
from gym_dr.wrappers.base import EpisodeWrapper
from gym_dr.wrappers.finite import RequireFinite


class Breaking(EpisodeWrapper):
    """Breaks rewards and observations in the second call of ``rollout``: (what, step, sub-environment)."""

    def __init__(self, env: Any, places: list[tuple[str, int, int]]) -> None:
        super().__init__(env)
        self.places, self.calls = places, 0

    def rollout(self, *args: Any) -> Any:
        played, self.calls = super().rollout(*args), self.calls + 1
        for what, step, env in self.places if self.calls == 2 else ():
            getattr(played, what)[step, env] = np.inf
        return played


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ([("rewards", 4, 0), ("observations", 1, 2)], "environment 2, seed 22, draw 1 returned inf in its observation"),
        ([("rewards", 4, 2), ("rewards", 4, 0)], "environment 0, seed 20, draw 3 returned inf in its reward"),
        ([("observations", 2, 0), ("rewards", 2, 1)], "environment 1, seed 21, draw 2 returned inf in its reward"),
    ],
)
def test_a_rollout_names_the_first_step_and_the_draw_of_its_episode(
    places: list[tuple[str, int, int]], expected: str
) -> None:
    # episodes have two steps, and a reset after them. The second call plays rows 2 to 6: of the first sub-environment
    # the reset to its draw 2, both steps, the reset to draw 3 and a step; of the others both steps with draw 1, the
    # reset to draw 2 and both steps
    assert SEED == 20
    envs = RequireFinite(Breaking(gym.make_vec("gym_dr/CartPoleDR-v1", 3, max_episode_steps=2), places))
    with pytest.raises(NotFiniteError, match=expected):
        play_compiled(envs)
