from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gym_dr.training.returns import discounted_returns, gae


def column(values: list[float]) -> Any:
    return np.array(values, dtype=np.float32)[:, None]


def run(
    rewards: list[float],
    values: list[float],
    next_values: list[float],
    terminated: list[int],
    truncated: list[int],
    valid: list[int] | None = None,
    gamma: float = 0.5,
    gae_lambda: float = 0.5,
) -> list[float]:
    flags = [column(x).astype(bool) for x in (terminated, truncated, valid or [1] * len(rewards))]
    out = gae(column(rewards), column(values), column(next_values), *flags, gamma=gamma, gae_lambda=gae_lambda)
    return [float(v) for v in out[:, 0]]


NONE = [0, 0, 0]
ADVANTAGES: dict[str, tuple[list[float], dict[str, Any]]] = {
    # deltas: 1 + 0.5*20 - 10 = 1; 2 + 0.5*30 - 20 = -3; 3 + 0.5*40 - 30 = -7
    # A_2 = -7; A_1 = -3 + 0.25 * -7 = -4.75; A_0 = 1 + 0.25 * -4.75 = -0.1875
    "every step, the last one too": ([-0.1875, -4.75, -7.0], {}),
    # step 1 ends: 2 - 20 = -18; A_0 = 1 + 10 - 10 + 0.25 * -18 = -3.5
    "termination": ([-3.5, -18.0, -7.0], {"terminated": [0, 1, 0], "next_values": [20, 99, 40]}),
    # step 1 is cut, its final observation is worth 30: 2 + 0.5*30 - 20 = -3; A_0 = 1 + 0.25 * -3 = 0.25
    "truncation": ([0.25, -3.0, -7.0], {"truncated": [0, 1, 0]}),
    "lambda 0, the differences of one step": ([1.0, -3.0, -7.0], {"gae_lambda": 0.0}),
    # returns: R_2 = 3 + 0.5*40 = 23; R_1 = 2 + 0.5*23 = 13.5; R_0 = 1 + 0.5*13.5 = 7.75
    "lambda 1, returns less values": ([-2.25, -6.5, -7.0], {"gae_lambda": 1.0}),
}


@pytest.mark.parametrize(("expected", "changes"), ADVANTAGES.values(), ids=ADVANTAGES)
def test_advantages_of_three_steps(expected: list[float], changes: dict[str, Any]) -> None:
    given = {"next_values": [20, 30, 40], "terminated": NONE, "truncated": NONE, **changes}
    assert run([1, 2, 3], [10, 20, 30], **given) == expected


def test_a_reset_step_has_no_advantage_and_nothing_flows_through_it() -> None:
    # NEXT_STEP: step 1 ends the episode, step 2 is its reset (ignored action, reward 0), step 3 is the new episode
    # A_3 = 4 + 0.5*40 - 30 = -6; A_2 = 0; A_1 = 2 - 20 = -18; A_0 = 1 + 0.5*20 - 10 + 0.25 * -18 = -3.5
    advantages = run([1, 2, 0, 4], [10, 20, 7, 30], [20, 7, 30, 40], [0, 1, 0, 0], [0, 0, 0, 0], [1, 1, 0, 1])
    assert advantages == [-3.5, -18.0, 0.0, -6.0]


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), steps=st.integers(1, 12), envs=st.integers(1, 4))
def test_columns_do_not_influence_each_other(seed: int, steps: int, envs: int) -> None:
    rng = np.random.default_rng(seed)
    shape = (steps, envs)
    rewards, values, following = rng.normal(size=(3, *shape)).astype(np.float32)
    terminated, truncated, valid = rng.random((3, *shape)) < 0.3
    kwargs = {"gamma": 0.9, "gae_lambda": 0.8}
    together = gae(rewards, values, following, terminated, truncated, valid, **kwargs)
    for i in range(envs):
        one = slice(i, i + 1)
        alone = gae(
            *(x[:, one] for x in (rewards, values, following, terminated, truncated, valid)),
            **kwargs,  # type: ignore[arg-type]  # six arrays by position
        )
        assert (together[:, one] == alone).all()


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), steps=st.integers(1, 12))
def test_values_that_are_never_reached_do_not_matter(seed: int, steps: int) -> None:
    # next values at termination, and everything on reset steps
    rng = np.random.default_rng(seed)
    shape = (steps, 2)
    rewards, values, following = rng.normal(size=(3, *shape)).astype(np.float32)
    terminated = rng.random(shape) < 0.3
    valid = np.ones(shape, bool)
    valid[1:] = ~terminated[:-1]
    terminated &= valid
    none = np.zeros(shape, bool)
    kwargs: dict[str, Any] = {"gamma": 0.9, "gae_lambda": 0.8}
    before = gae(rewards, values, following, terminated, none, valid, **kwargs)
    rewards[~valid] = values[~valid] = following[~valid] = 1e6
    following[terminated] = 1e6
    assert gae(rewards, values, following, terminated, none, valid, **kwargs) == pytest.approx(before)


def returns_of(rewards: list[float], ends: list[int], final_values: list[float], gamma: float = 0.5) -> list[float]:
    out = discounted_returns(column(rewards), column(ends).astype(bool), column(final_values), gamma=gamma)
    return [float(v) for v in out[:, 0]]


@pytest.mark.parametrize(
    ("rewards", "ends", "final_values", "expected"),
    [
        # G_2 = 4; G_1 = 2 + 0.5*4 = 4; G_0 = 1 + 0.5*4 = 3
        ([1, 2, 4], [0, 0, 1], [0, 0, 0], [3.0, 4.0, 4.0]),
        # second episode: 8, before it 4 + 0.5*8 = 8; first: 2, before it 1 + 0.5*2 = 2
        ([1, 2, 4, 8], [0, 1, 0, 1], [0, 0, 0, 0], [2.0, 2.0, 8.0, 8.0]),
        # truncated: G_1 = 2 + 0.5*10 = 7; G_0 = 1 + 0.5*7 = 4.5; the 99 is at no end and not read
        ([1, 2], [0, 1], [99, 10], [4.5, 7.0]),
    ],
    ids=["one episode", "two episodes", "truncated"],
)
def test_discounted_returns(rewards: Any, ends: Any, final_values: Any, expected: list[float]) -> None:
    assert returns_of(rewards, ends, final_values) == expected


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), steps=st.integers(1, 30))
def test_discounted_returns_equal_the_sum_of_their_definition(seed: int, steps: int) -> None:
    rng = np.random.default_rng(seed)
    rewards = rng.normal(size=steps)
    ends = rng.random(steps) < 0.2
    expected = []
    for t in range(steps):
        last = next((k for k in range(t, steps) if ends[k]), steps - 1)
        expected.append(sum(0.9 ** (k - t) * rewards[k] for k in range(t, last + 1)))
    got = discounted_returns(column(list(rewards)), ends[:, None], np.zeros((steps, 1), np.float32), gamma=0.9)
    assert got[:, 0] == pytest.approx(expected, rel=1e-5, abs=1e-6)
