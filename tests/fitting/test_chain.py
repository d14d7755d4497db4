"""The banded likelihood of a chain of noisy states equals that of dense matrices, which numpy inverts as a whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gym_dr.fitting.chain import ChainCovariance, NoiseVariances
from tests.strategies import few

N = 2
NOISE = NoiseVariances(measured=np.array([0.3, 0.05]), process=np.array([0.02, 0.4]), simulated=1.7)


def chain_of(steps: int = 7, seed: int = 0, breaks: tuple[int, ...] = (2,), random: bool = True) -> ChainCovariance:
    """Steps of two coordinates; after those in ``breaks`` another episode, or a gap, begins."""
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(2, steps, N, N)) * 0.3
    second_order, simulated = roots @ roots.transpose(0, 1, 3, 2)
    joined = np.array([t not in breaks for t in range(steps - 1)] + [False], np.bool_)
    jacobians = rng.normal(size=(steps, N, N))
    return ChainCovariance(
        jacobians=jacobians, second_order=second_order, simulated=simulated if random else None, joined=joined
    )


def residuals(chain: ChainCovariance) -> npt.NDArray[np.float64]:
    return np.random.default_rng(len(chain)).normal(size=(len(chain), N))


def dense(chain: ChainCovariance, noise: NoiseVariances) -> tuple[Any, Any, list[int], list[int]]:
    """Covariance of all residuals; how they depend on errors of measurement; the state before and after each step.

    Residual t is ``e_after - J_t e_before + w_t``, and a joined step ends in the state where the next one begins.
    """
    steps, before, after, state = len(chain), [], [], -1
    for t in range(steps):
        state += 1 if t and chain.joined[t - 1] else 2
        before.append(state - 1)
        after.append(state)
    errors = np.zeros((steps, N, state + 1, N))
    own = np.zeros((steps * N, steps * N))
    for t in range(steps):
        errors[t, :, after[t]] += np.eye(N)
        errors[t, :, before[t]] -= chain.jacobians[t]
        part = np.diag(noise.process) + chain.second_order[t]
        part = part + (0.0 if chain.simulated is None else noise.simulated * chain.simulated[t])
        own[t * N : (t + 1) * N, t * N : (t + 1) * N] = part
    flat = errors.reshape(steps * N, -1)
    return flat @ np.diag(np.tile(noise.measured, state + 1)) @ flat.T + own, flat, before, after


CHAINS = {
    "with a break": chain_of(),
    "without breaks": chain_of(breaks=()),
    "all apart": chain_of(breaks=tuple(range(7))),
    "one step": chain_of(1, breaks=()),
    "without randomness of its own": chain_of(random=False),
}


@pytest.fixture(params=CHAINS.values(), ids=list(CHAINS))
def chain(request: pytest.FixtureRequest) -> ChainCovariance:
    found: ChainCovariance = request.param
    return found


def test_innovations_are_white(chain: ChainCovariance) -> None:
    # whitening is linear, so W V W' = 1 says that innovations are independent with variance 1
    covariance, *_ = dense(chain, NOISE)
    count = len(chain) * N
    white = chain.factor(NOISE).whiten(np.eye(count).reshape(len(chain), N, count)).reshape(count, count)
    np.testing.assert_allclose(white @ covariance @ white.T, np.eye(count), atol=1e-9)


def test_an_innovation_depends_on_no_later_residual(chain: ChainCovariance) -> None:
    changed = residuals(chain)
    changed[-1] += 5.0
    factor = chain.factor(NOISE)
    before, after = factor.whiten(residuals(chain)), factor.whiten(changed)
    np.testing.assert_array_equal(before[:-1], after[:-1])
    assert (before[-1] != after[-1]).any()


def test_solve_is_the_dense_inverse_times_residuals(chain: ChainCovariance) -> None:
    covariance, *_ = dense(chain, NOISE)
    r = residuals(chain)
    expected = np.linalg.solve(covariance, r.ravel()).reshape(r.shape)
    np.testing.assert_allclose(chain.factor(NOISE).solve(r), expected, rtol=1e-8, atol=1e-10)


def test_the_blocks_of_the_inverse_are_those_of_the_dense_one(chain: ChainCovariance) -> None:
    covariance, *_ = dense(chain, NOISE)
    steps = len(chain)
    blocks = np.linalg.inv(covariance).reshape(steps, N, steps, N).transpose(0, 2, 1, 3)
    inside, beside = chain.factor(NOISE).inverse_blocks()
    np.testing.assert_allclose(inside, blocks[range(steps), range(steps)], atol=1e-9)
    np.testing.assert_allclose(beside, blocks[range(steps - 1), range(1, steps)], atol=1e-9)


def test_slopes_are_finite_differences_of_the_log_likelihood(chain: ChainCovariance) -> None:
    r = residuals(chain)
    slopes = chain.gradient(r, chain.factor(NOISE))

    def difference(field: str, k: int) -> float:
        ends = []
        for sign in (1.0, -1.0):
            value = np.array(getattr(NOISE, field), np.float64)
            value[k if value.ndim else ()] += sign * 1e-5
            changed: dict[str, Any] = {field: value if value.ndim else float(value)}
            noise = replace(NOISE, **changed)
            ends.append(chain.factor(noise).log_likelihood(r))
        return (ends[0] - ends[1]) / 2e-5

    for field in ("measured", "process"):
        found = [difference(field, k) for k in range(N)]
        np.testing.assert_allclose(getattr(slopes, field), found, rtol=1e-5, atol=1e-5)
    assert slopes.simulated == pytest.approx(
        difference("simulated", 0) if chain.simulated is not None else 0.0, rel=1e-5, abs=1e-5
    )


def test_errors_are_the_conditional_expectation(chain: ChainCovariance) -> None:
    # of jointly Gaussian e and r = A e + w: E[e | r] = S A' V^-1 r
    covariance, flat, before, after = dense(chain, NOISE)
    r = residuals(chain)
    expected = np.tile(NOISE.measured, flat.shape[1] // N) * (flat.T @ np.linalg.solve(covariance, r.ravel()))
    states = expected.reshape(-1, N)
    found = chain.measurement_errors(r, NOISE, chain.factor(NOISE))
    np.testing.assert_allclose(found[:, 0], states[before], atol=1e-9)
    np.testing.assert_allclose(found[:, 1], states[after], atol=1e-9)


def test_rows_of_a_chain_share_states_only_with_their_neighbors() -> None:
    part = chain_of(breaks=(2,)).rows(np.array([1, 2, 3, 5, 6]))
    assert len(part) == 5
    assert part.joined.tolist() == [True, False, False, True, False]
    assert chain_of(breaks=()).rows(np.arange(4)).joined.tolist() == [True, True, True, False]


def test_what_is_not_positive_definite_is_told() -> None:
    with pytest.raises(np.linalg.LinAlgError):
        chain_of(random=False).factor(NoiseVariances(measured=np.full(N, -9.0), process=np.zeros(N)))


@few
@given(st.integers(1, 9), st.integers(0, 2**16), st.sets(st.integers(0, 7)), st.booleans())
def test_any_chain_has_the_likelihood_of_dense_matrices(steps: int, seed: int, breaks: set[int], random: bool) -> None:
    chain = chain_of(steps, seed, tuple(breaks), random)
    covariance, *_ = dense(chain, NOISE)
    r = residuals(chain)
    expected = -0.5 * (r.ravel() @ np.linalg.solve(covariance, r.ravel()) + np.linalg.slogdet(covariance)[1])
    assert chain.factor(NOISE).log_likelihood(r) == pytest.approx(expected, rel=1e-8)
