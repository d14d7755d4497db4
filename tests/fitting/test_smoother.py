"""The filter and smoother of chains equal a dense Gaussian, which numpy inverts as a whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gym_dr.fitting.smoother import Chains, Deltas, NoiseVariances
from tests.strategies import few

N = 3
NOISE = NoiseVariances(measured=np.array([0.3, 0.05, 0.2]), process=np.array([0.02, 0.4, 0.0]), simulated=1.7)
Numbers = npt.NDArray[np.float64]


def chains_of(steps: int = 7, seed: int = 0, begins: tuple[int, ...] = (3,), random: bool = True) -> Chains:
    """Steps of three coordinates, the last of which is hidden; others are missing now and then."""
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(2, steps, N, N)) * 0.3
    second_order, simulated = roots @ roots.transpose(0, 1, 3, 2)
    starts = np.array([t == 0 or t in begins for t in range(steps)])
    observed = rng.random((steps, N)) < 0.7
    first_observed = rng.random((int(starts.sum()), N)) < 0.7
    observed[:, 2] = first_observed[:, 2] = False
    observed[steps // 2] = False  # a whole row
    return Chains(
        jacobians=rng.normal(size=(steps, N, N)),
        second_order=second_order,
        simulated=simulated if random else None,
        lasting=rng.uniform(0.5, 2.0, steps),
        begins=starts,
        observed=observed,
        first_observed=first_observed,
        prior=np.array([2.0, 3.0, 4.0]),
    )


def deltas_of(chains: Chains) -> Deltas:
    rng = np.random.default_rng(len(chains))
    drift, measured = rng.normal(size=(2, len(chains), N))
    first = rng.normal(size=chains.first_observed.shape)
    return Deltas(drift=drift, measured=np.where(chains.observed, measured, 0.0), first=first)


class Dense:
    """Means and covariances of all states and of all measured numbers."""

    def __init__(self, chains: Chains, noise: NoiseVariances, deltas: Deltas) -> None:
        steps, mean, blocks = len(chains), [], []
        total = steps + len(deltas.first)
        roots = np.zeros((total, N, total, N))  # states are linear in first states and noise
        own = np.zeros((total, N, N))
        state, chain, self.after, self.first = -1, -1, [], []
        for t in range(steps):
            if chains.begins[t]:
                state, chain = state + 1, chain + 1
                self.first.append(state)
                own[state] = np.diag(np.where(chains.first_observed[chain], noise.measured, chains.prior))
                roots[state, :, state] = np.eye(N)
                mean.append(deltas.first[chain])
            state += 1
            self.after.append(state)
            own[state] = np.diag(noise.process * chains.lasting[t]) + chains.second_order[t]
            own[state] += 0.0 if chains.simulated is None else noise.simulated * chains.simulated[t]
            roots[state] = np.einsum("ij,jab->iab", chains.jacobians[t], roots[state - 1])
            roots[state, :, state] = np.eye(N)
            mean.append(chains.jacobians[t] @ mean[-1] + deltas.drift[t])
        flat = roots.reshape(total * N, total * N)
        for part in own:
            blocks.append(part)
        noises = np.zeros((total, N, total, N))
        for k, part in enumerate(blocks):
            noises[k, :, k] = part
        self.mean = np.array(mean)
        self.states = flat @ noises.reshape(flat.shape) @ flat.T
        rows = (np.array(self.after)[:, None] * N + np.arange(N))[chains.observed]
        errors = np.broadcast_to(noise.measured, chains.observed.shape)[chains.observed]
        self.covariance = self.states[np.ix_(rows, rows)] + np.diag(errors)
        self.residuals = deltas.measured[chains.observed] - self.mean.ravel()[rows]
        pulls = np.linalg.solve(self.covariance, self.residuals)
        self.smoothed = self.mean + (self.states[:, rows] @ pulls).reshape(-1, N)
        self.log_likelihood = -0.5 * (self.residuals @ pulls + np.linalg.slogdet(self.covariance)[1])


CHAINS = {
    "two chains": chains_of(),
    "one chain": chains_of(begins=()),
    "steps apart": chains_of(begins=tuple(range(7))),
    "one step": chains_of(1, begins=()),
    "without randomness of its own": chains_of(random=False),
}


@pytest.fixture(params=CHAINS.values(), ids=list(CHAINS))
def chains(request: pytest.FixtureRequest) -> Chains:
    found: Chains = request.param
    return found


def likelihood_of(chains: Chains, noise: NoiseVariances, deltas: Deltas) -> float:
    kalman = chains.filter(noise)
    return kalman.log_likelihood(kalman.innovations(deltas))


def test_the_likelihood_is_that_of_all_measured_numbers_at_once(chains: Chains) -> None:
    deltas = deltas_of(chains)
    expected = Dense(chains, NOISE, deltas).log_likelihood
    assert likelihood_of(chains, NOISE, deltas) == pytest.approx(expected, rel=1e-8)


def test_smoothed_states_are_conditional_expectations(chains: Chains) -> None:
    deltas = deltas_of(chains)
    dense = Dense(chains, NOISE, deltas)
    first, after = chains.filter(NOISE).smoothed(deltas)
    np.testing.assert_allclose(after, dense.smoothed[dense.after], atol=1e-8)
    np.testing.assert_allclose(first, dense.smoothed[dense.first], atol=1e-8)


def test_innovations_are_the_measured_numbers_whitened_in_order(chains: Chains) -> None:
    deltas = deltas_of(chains)
    dense = Dense(chains, NOISE, deltas)
    expected = np.linalg.solve(np.linalg.cholesky(dense.covariance), dense.residuals)
    found = chains.filter(NOISE).innovations(deltas)
    np.testing.assert_allclose(found[chains.observed], expected, atol=1e-8)
    assert not found[~chains.observed].any()


def test_slopes_of_innovations_are_differences(chains: Chains) -> None:
    deltas, kalman = deltas_of(chains), chains.filter(NOISE)
    moved = np.random.default_rng(1).normal(size=(len(chains), N, 2))
    found = kalman.slopes(moved)
    for k in range(2):
        other = kalman.innovations(replace(deltas, drift=deltas.drift + moved[..., k]))
        np.testing.assert_allclose(found[..., k], other - kalman.innovations(deltas), atol=1e-9)


def test_derivatives_by_variances_are_differences_of_the_log_likelihood(chains: Chains) -> None:
    deltas, noise = deltas_of(chains), replace(NOISE, process=NOISE.process + 0.1)
    kalman = chains.filter(noise)
    slopes = kalman.gradient(kalman.innovations(deltas))

    def difference(field: str, k: int) -> float:
        ends = []
        for sign in (1.0, -1.0):
            value = np.array(getattr(noise, field), np.float64)
            value[k if value.ndim else ()] += sign * 1e-5
            changed: dict[str, Any] = {field: value if value.ndim else float(value)}
            ends.append(likelihood_of(chains, replace(noise, **changed), deltas))
        return (ends[0] - ends[1]) / 2e-5

    for field in ("measured", "process"):
        found = [difference(field, k) for k in range(N)]
        np.testing.assert_allclose(getattr(slopes, field), found, rtol=1e-5, atol=1e-5)
    expected = difference("simulated", 0) if chains.simulated is not None else 0.0
    assert slopes.simulated == pytest.approx(expected, rel=1e-5, abs=1e-5)


def test_some_of_the_steps_begin_chains_of_their_own() -> None:
    chains = chains_of(begins=(3,))
    deltas = deltas_of(chains)
    part, own = chains.rows(np.array([1, 2, 3, 5, 6]), deltas)
    assert part.begins.tolist() == [True, False, True, True, False]
    np.testing.assert_array_equal(
        part.first_observed, [chains.observed[0], chains.first_observed[1], chains.observed[4]]
    )
    np.testing.assert_array_equal(own.first, [deltas.measured[0], deltas.first[1], deltas.measured[4]])
    assert likelihood_of(part, NOISE, own) == pytest.approx(Dense(part, NOISE, own).log_likelihood)


def test_hidden_speeds_of_exact_positions_are_as_exact_as_these() -> None:
    # x' = v with a step of 1 ms, and errors of 1e-9: v is known to about 1e-6, from a prior of 1
    steps = 50
    chains = Chains(
        jacobians=np.broadcast_to(np.array([[1.0, 1e-3], [0.0, 1.0]]), (steps, 2, 2)).copy(),
        second_order=np.zeros((steps, 2, 2)),
        simulated=None,
        lasting=np.ones(steps),
        begins=np.arange(steps) == 0,
        observed=np.tile([True, False], (steps, 1)),
        first_observed=np.array([[True, False]]),
        prior=np.ones(2),
    )
    measured = np.stack([0.7e-3 * np.arange(1, steps + 1), np.zeros(steps)], axis=1)
    deltas = Deltas(drift=np.zeros((steps, 2)), measured=measured, first=np.zeros((1, 2)))
    noise = NoiseVariances(measured=np.full(2, 1e-18), process=np.zeros(2))
    _, after = chains.filter(noise).smoothed(deltas)
    np.testing.assert_allclose(after[:, 1], 0.7, atol=1e-6)


def test_what_is_not_positive_definite_is_told() -> None:
    with pytest.raises(np.linalg.LinAlgError):
        chains_of(random=False).filter(NoiseVariances(measured=np.full(N, -9.0), process=np.zeros(N)))


@few
@given(st.integers(1, 9), st.integers(0, 2**16), st.sets(st.integers(1, 8)), st.booleans())
def test_any_chains_have_the_likelihood_of_dense_matrices(
    steps: int, seed: int, begins: set[int], random: bool
) -> None:
    chains = chains_of(steps, seed, tuple(begins), random)
    deltas = deltas_of(chains)
    expected = Dense(chains, NOISE, deltas).log_likelihood
    assert likelihood_of(chains, NOISE, deltas) == pytest.approx(expected, rel=1e-8)
