"""The banded likelihood of a chain of noisy states equals that of dense matrices, which numpy inverts as a whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gym_dr.fitting.chain import Links, Sizes
from tests.strategies import few

N = 2
SIZES = Sizes(measured=np.array([0.3, 0.05]), process=np.array([0.02, 0.4]), own=1.7)


def chain(steps: int = 7, seed: int = 0, breaks: tuple[int, ...] = (2,), random: bool = True) -> Links:
    """Steps of two coordinates; after those in ``breaks`` another episode, or a gap, begins."""
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(2, steps, N, N)) * 0.3
    bent, spread = roots @ roots.transpose(0, 1, 3, 2)
    joined = np.array([t not in breaks for t in range(steps - 1)] + [False], np.bool_)
    jacobians = rng.normal(size=(steps, N, N))
    return Links(jacobians=jacobians, bent=bent, spread=spread if random else None, joined=joined)


def residuals(links: Links) -> npt.NDArray[np.float64]:
    return np.random.default_rng(len(links)).normal(size=(len(links), N))


def dense(links: Links, sizes: Sizes) -> tuple[Any, Any, list[int], list[int]]:
    """Covariance of all residuals; how they depend on errors of measurement; the state before and after each step.

    Residual t is ``e_after - J_t e_before + w_t``, and a joined step ends in the state where the next one begins.
    """
    steps, before, after, state = len(links), [], [], -1
    for t in range(steps):
        state += 1 if t and links.joined[t - 1] else 2
        before.append(state - 1)
        after.append(state)
    errors = np.zeros((steps, N, state + 1, N))
    own = np.zeros((steps * N, steps * N))
    for t in range(steps):
        errors[t, :, after[t]] += np.eye(N)
        errors[t, :, before[t]] -= links.jacobians[t]
        part = np.diag(sizes.process) + links.bent[t]
        part = part + (0.0 if links.spread is None else sizes.own * links.spread[t])
        own[t * N : (t + 1) * N, t * N : (t + 1) * N] = part
    flat = errors.reshape(steps * N, -1)
    return flat @ np.diag(np.tile(sizes.measured, state + 1)) @ flat.T + own, flat, before, after


CHAINS = {
    "with a break": chain(),
    "without breaks": chain(breaks=()),
    "all apart": chain(breaks=tuple(range(7))),
    "one step": chain(1, breaks=()),
    "without randomness of its own": chain(random=False),
}


@pytest.fixture(params=CHAINS.values(), ids=list(CHAINS))
def links(request: pytest.FixtureRequest) -> Links:
    found: Links = request.param
    return found


def test_innovations_are_white(links: Links) -> None:
    # whitening is linear, so W V W' = 1 says that innovations are independent with variance 1
    covariance, *_ = dense(links, SIZES)
    count = len(links) * N
    white = links.factor(SIZES).whiten(np.eye(count).reshape(len(links), N, count)).reshape(count, count)
    np.testing.assert_allclose(white @ covariance @ white.T, np.eye(count), atol=1e-9)


def test_an_innovation_depends_on_no_later_residual(links: Links) -> None:
    changed = residuals(links)
    changed[-1] += 5.0
    factor = links.factor(SIZES)
    before, after = factor.whiten(residuals(links)), factor.whiten(changed)
    np.testing.assert_array_equal(before[:-1], after[:-1])
    assert (before[-1] != after[-1]).any()


def test_solve_is_the_dense_inverse_times_residuals(links: Links) -> None:
    covariance, *_ = dense(links, SIZES)
    r = residuals(links)
    expected = np.linalg.solve(covariance, r.ravel()).reshape(r.shape)
    np.testing.assert_allclose(links.factor(SIZES).solve(r), expected, rtol=1e-8, atol=1e-10)


def test_the_blocks_of_the_inverse_are_those_of_the_dense_one(links: Links) -> None:
    covariance, *_ = dense(links, SIZES)
    steps = len(links)
    blocks = np.linalg.inv(covariance).reshape(steps, N, steps, N).transpose(0, 2, 1, 3)
    inside, beside = links.factor(SIZES).inverse_blocks()
    np.testing.assert_allclose(inside, blocks[range(steps), range(steps)], atol=1e-9)
    np.testing.assert_allclose(beside, blocks[range(steps - 1), range(1, steps)], atol=1e-9)


def test_slopes_are_finite_differences_of_the_log_likelihood(links: Links) -> None:
    r = residuals(links)
    slopes = links.slopes(r, links.factor(SIZES))

    def difference(field: str, k: int) -> float:
        ends = []
        for sign in (1.0, -1.0):
            value = np.array(getattr(SIZES, field), np.float64)
            value[k if value.ndim else ()] += sign * 1e-5
            changed: dict[str, Any] = {field: value if value.ndim else float(value)}
            sizes = replace(SIZES, **changed)
            ends.append(links.factor(sizes).log_likelihood(r))
        return (ends[0] - ends[1]) / 2e-5

    for field in ("measured", "process"):
        found = [difference(field, k) for k in range(N)]
        np.testing.assert_allclose(getattr(slopes, field), found, rtol=1e-5, atol=1e-5)
    assert slopes.own == pytest.approx(difference("own", 0) if links.spread is not None else 0.0, rel=1e-5, abs=1e-5)


def test_errors_are_the_conditional_expectation(links: Links) -> None:
    # of jointly Gaussian e and r = A e + w: E[e | r] = S A' V^-1 r
    covariance, flat, before, after = dense(links, SIZES)
    r = residuals(links)
    expected = np.tile(SIZES.measured, flat.shape[1] // N) * (flat.T @ np.linalg.solve(covariance, r.ravel()))
    states = expected.reshape(-1, N)
    found = links.errors(r, SIZES, links.factor(SIZES))
    np.testing.assert_allclose(found[:, 0], states[before], atol=1e-9)
    np.testing.assert_allclose(found[:, 1], states[after], atol=1e-9)


def test_rows_of_a_chain_share_states_only_with_their_neighbors() -> None:
    part = chain(breaks=(2,)).rows(np.array([1, 2, 3, 5, 6]))
    assert len(part) == 5
    assert part.joined.tolist() == [True, False, False, True, False]
    assert chain(breaks=()).rows(np.arange(4)).joined.tolist() == [True, True, True, False]


def test_what_is_not_positive_definite_is_told() -> None:
    with pytest.raises(np.linalg.LinAlgError):
        chain(random=False).factor(Sizes(measured=np.full(N, -9.0), process=np.zeros(N)))


@few
@given(st.integers(1, 9), st.integers(0, 2**16), st.sets(st.integers(0, 7)), st.booleans())
def test_any_chain_has_the_likelihood_of_dense_matrices(steps: int, seed: int, breaks: set[int], random: bool) -> None:
    links = chain(steps, seed, tuple(breaks), random)
    covariance, *_ = dense(links, SIZES)
    r = residuals(links)
    expected = -0.5 * (r.ravel() @ np.linalg.solve(covariance, r.ravel()) + np.linalg.slogdet(covariance)[1])
    assert links.factor(SIZES).log_likelihood(r) == pytest.approx(expected, rel=1e-8)
