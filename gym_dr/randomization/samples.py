"""Draws of a randomization as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gym_dr.randomization.draws import draw, seed_word
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization

if TYPE_CHECKING:
    import pandas as pd


def sample(randomization: Randomization, space: ParamSpace, n: int, seed: int = 0) -> pd.DataFrame:
    """Draws from a randomization: a row for each draw, a column for each parameter.

    Row i is draw i of a sub-environment that was reset with this seed.

    Example:
        >>> import gymnasium as gym, gym_dr
        >>> envs = gym.make_vec("gym_dr/LunarLanderDR-v3", num_envs=1)
        >>> table = gym_dr.sample(envs.randomization, envs.param_space, 1000, seed=1)
        >>> bool(-12 <= table["gravity"].min() <= table["gravity"].max() <= 0)
        True
        >>> envs.close()

    Args:
        randomization: The parameters that vary.
        space: The environment's parameters, ``envs.param_space``.
        n: Number of draws.
        seed: Seed of the sub-environment, at least 0.

    Returns:
        Shape ``(n, parameters)``, in each parameter's unit.

    Raises:
        RandomizationError: The seed is negative, or the randomization does not fit the space.
        UnknownNameError: The space has no such parameter.
    """
    import pandas as pd  # heavy

    seed_words = np.full(int(n), seed_word(seed), np.uint64)
    values = draw(resolve(randomization, space), space, seed_words, np.arange(n))
    return pd.DataFrame(values, index=pd.RangeIndex(int(n), name="draw_index"))
