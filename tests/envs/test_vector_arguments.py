from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from gym_dr.envs.vector_arguments import check_autoreset_mode, check_mask, check_seeds, check_whole_number
from gym_dr.errors import ConfigError, RandomizationError


def test_a_whole_number_seeds_each_sub_environment_with_its_index_added() -> None:
    assert check_seeds(np.int64(5), 3) == [5, 6, 7]


def test_lists_of_seeds_may_leave_some_out() -> None:
    assert check_seeds([3, None, 2**100], 3) == [3, None, 2**100]
    assert check_seeds(None, 2) == [None, None]


@pytest.mark.parametrize("seed", ["1", 1.0, True, [1], [1, -1, 2], [1, 2.5, 3], -4])
def test_impossible_seeds_are_refused(seed: Any) -> None:
    with pytest.raises(RandomizationError, match="Expected"):
        check_seeds(seed, 3)


def test_no_mask_means_all() -> None:
    assert check_mask(None, 2).tolist() == [True, True]


@pytest.mark.parametrize("mask", [[1, 0], [True], np.ones((2, 1), bool)])
def test_impossible_masks_are_refused(mask: Any) -> None:
    with pytest.raises(RandomizationError, match=r"shape \(2,\) and dtype bool"):
        check_mask(mask, 2)


def test_modes_are_named_or_given() -> None:
    assert check_autoreset_mode("SameStep") is check_autoreset_mode(AutoresetMode.SAME_STEP)
    with pytest.raises(ConfigError, match="'NextStep', 'SameStep', 'Disabled'"):
        check_autoreset_mode("next")


@pytest.mark.parametrize("value", [0, -1, 2.0, True, "3"])
def test_numbers_that_are_not_whole_and_above_0_are_refused(value: Any) -> None:
    with pytest.raises(ConfigError, match="num_envs to be a whole number above 0"):
        check_whole_number("num_envs", value)
