"""Random numbers inside tasks."""

from __future__ import annotations

import numpy as np
import pytest

from gym_dr.randomization.keyed import KeyedRandom
from gym_dr.randomization.sampler import uniforms


def random(count: int = 4, step: int = 0, episode: int = 0) -> KeyedRandom:
    return KeyedRandom(np.arange(count, dtype=np.uint64), np.full(count, episode), np.full(count, step))


def test_numbers_depend_on_seed_episode_step_and_name_alone() -> None:
    first = random().uniform("command", size=3)
    np.testing.assert_array_equal(
        first[2:3], KeyedRandom(np.array([2], np.uint64), *np.zeros((2, 1), int)).uniform("command", size=3)
    )
    np.testing.assert_array_equal(first[:, :2], random().uniform("command", size=2))
    others = [random(step=1), random(episode=1)]
    assert all((first != other.uniform("command", size=3)).all() for other in others)
    assert (first != random().uniform("clock", size=3)).all()
    assert len(np.unique(first)) == first.size


def test_a_task_and_a_parameter_of_the_same_name_have_other_numbers() -> None:
    assert (uniforms(np.arange(4), 0, ["gravity"])[0] != random().uniform("gravity")).all()


@pytest.mark.parametrize(("size", "shape"), [((), (4,)), (3, (4, 3)), ((2, 3), (4, 2, 3))])
def test_the_size_is_the_shape_of_an_episodes_numbers(size: int | tuple[int, ...], shape: tuple[int, ...]) -> None:
    assert random().uniform("x", size=size).shape == random().normal("x", size=size).shape == shape


def test_bounds_and_moments_broadcast() -> None:
    numbers = random(20_000).uniform("x", [-1.0, 2.0], [1.0, 4.0], 2)
    assert (numbers >= [-1, 2]).all()
    assert (numbers <= [1, 4]).all()
    np.testing.assert_allclose(numbers.mean(axis=0), [0, 3], atol=0.02)  # 4 standard errors: 4 * 0.577 / 141
    drawn = random(20_000).normal("x", [5.0, 0.0], [1.0, 2.0], 2)
    np.testing.assert_allclose(drawn.mean(axis=0), [5, 0], atol=0.06)  # 4 * 2 / 141
    np.testing.assert_allclose(drawn.std(axis=0), [1, 2], rtol=0.03)
