"""Compiled keyed noise against the plain formulas."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from gym_dr.compiled.noise import KeyedNoise, to_normals
from gym_dr.randomization.normal import normal_ppf
from gym_dr.randomization.sampler import uniforms

NORMALS, UNIFORMS = ["obs_noise:0", "obs_noise:1", "push_speed:0"], ["action_drop", "push_probability"]


def drawn(normals: list[str], others: list[str], num_envs: int) -> tuple[npt.NDArray[np.float64], ...]:
    """What is drawn for many seeds, draws and steps, and the plain uniforms of the same names."""
    rng = np.random.default_rng(num_envs)
    words = rng.integers(0, 2**64, num_envs, dtype=np.uint64, endpoint=False)
    index, steps = rng.integers(-1, 2**31, num_envs), rng.integers(0, 2**31, num_envs)
    index[num_envs // 2 :: 5] = -1  # before the first draw, which stands for 0
    table = np.full((len(normals) + len(others), num_envs), np.nan)
    KeyedNoise(normals, others).draw(words, index, steps, table)
    return table, uniforms(words, np.maximum(index, 0) | (steps << 32), [*normals, *others])


@pytest.mark.parametrize("num_envs", [1, 16, 20_001])
def test_keyed_noise_equals_the_plain_formula_bit_for_bit(num_envs: int) -> None:
    table, plain = drawn(NORMALS, UNIFORMS, num_envs)
    np.testing.assert_array_equal(table[:3], normal_ppf(plain[:3]))
    np.testing.assert_array_equal(table[3:], plain[3:])


def test_there_may_be_normals_or_uniforms_alone_or_none() -> None:
    normals, plain = drawn(NORMALS, [], 5)
    np.testing.assert_array_equal(normals, normal_ppf(plain))
    np.testing.assert_array_equal(*drawn([], UNIFORMS, 5))
    assert drawn([], [], 5)[0].shape == (0, 5)


def test_normals_are_right_as_far_out_as_uniforms_go() -> None:
    small = np.concatenate([2.0 ** -np.arange(1, 54), [0.075, np.nextafter(0.075, 0), np.exp(-25.0)]])
    u = np.concatenate([small, 1.0 - small])[None]
    expected = normal_ppf(u)
    assert np.abs(expected).max() > 8
    to_normals(u, np.log(np.minimum(u, 1.0 - u)))
    np.testing.assert_array_equal(u, expected)
