from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gym_dr.envs.lunar_lander.params import LUNAR_LANDER, PRESETS
from gym_dr.randomization.ahead import DrawsAhead
from gym_dr.randomization.draws import draw


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), num_envs=st.integers(1, 5), resets=st.integers(1, 200))
def test_draws_made_ahead_are_those_made_one_by_one(seed: int, num_envs: int, resets: int) -> None:
    # any order of resets, seedings and left-out draws
    rng = np.random.default_rng(seed)
    ahead = DrawsAhead(LUNAR_LANDER, PRESETS["default"], num_envs)
    words = rng.integers(0, 2**63, num_envs).astype(np.uint64)
    ahead.seed(np.arange(num_envs), words)
    for _ in range(resets):
        envs = np.flatnonzero(rng.random(num_envs) < 0.5)
        if rng.random() < 0.05:
            words[envs] += np.uint64(1)
            ahead.seed(envs, words[envs])
        ahead.index[envs] += int(rng.choice([1, 1, 1, 2, 90]))
        if len(envs):
            expected = draw(PRESETS["default"], LUNAR_LANDER, words[envs], ahead.index[envs])
            assert (ahead.current(envs) == np.stack(list(expected.values()), axis=1)).all()
