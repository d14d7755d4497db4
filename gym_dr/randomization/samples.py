"""Samples of a randomization as a table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from gym_dr.errors import RandomizationError, shortened
from gym_dr.options import is_whole
from gym_dr.randomization.draws import draw, seed_word
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.space import Param, ParamSpace
from gym_dr.randomization.spec import Randomization

if TYPE_CHECKING:
    import pandas as pd


def sample(randomization: Randomization, n: int, seed: int, space: ParamSpace | None) -> pd.DataFrame:
    """See ``Randomization.sample``."""
    import pandas as pd  # heavy

    for name, number, least in (("n", n, 1), ("seed", seed, 0)):
        if not is_whole(number) or number < least:
            raise RandomizationError(f"{name}: expected a whole number of at least {least}, got {number!r}.")
    if space is None:  # an unbounded one
        for name, rule in randomization.items():
            if rule.operation != "absolute" or {*"*?["} & {*name}:
                raise RandomizationError(
                    f"Parameter {name!r}: {rule!r} depends on the environment's parameters. Pass them: "
                    "space=envs.param_space."
                )
        space = ParamSpace("", [Param(name=n, nominal=0.0, low=-math.inf, high=math.inf) for n in randomization])
    elif not isinstance(space, ParamSpace):
        expected = "the environment's parameters, such as envs.unwrapped.param_space"
        raise RandomizationError(f"space: expected {expected}, got {shortened(space)}.")
    found = resolve(randomization, space)
    words = np.full(int(n), seed_word(seed), np.uint64)
    return pd.DataFrame(draw(found, space, words, np.arange(n)), index=pd.RangeIndex(int(n), name="draw_index"))
