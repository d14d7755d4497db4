from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gym_dr.training.api import Algorithm, seed_for
from gym_dr.training.config import A2CConfig

seeds = st.integers(0, 2**32)


@given(seed=seeds, index=st.integers(0, 10_000))
def test_streams_of_seeds_never_overlap(seed: int, index: int) -> None:
    # training below 2**60, evaluation above 2**61, also with a million sub-environments added
    training, evaluation = seed_for(seed, 0, index), seed_for(seed, 1, index)
    assert training >= 0
    assert training + 1_000_000 < 2**61 <= evaluation
    assert evaluation + 1_000_000 < 2**62 <= seed_for(seed, 2, index)
    assert seed_for(seed, 2, index) + 1_000_000 < 3 * 2**61 <= seed_for(seed, 3, index) < 2**63 - 1_000_000


@given(seed=seeds)
def test_neighboring_runs_share_no_sub_environment_seeds(seed: int) -> None:
    # Gymnasium seeds sub-environment i with seed + i
    assert abs(seed_for(seed, 0) - seed_for(seed + 1, 0)) > 100_000
    assert abs(seed_for(seed, 0, 0) - seed_for(seed, 0, 1)) > 100_000


def test_seeds_are_the_same_on_every_machine() -> None:
    assert seed_for(1, 0) == 415729157897709796
    assert seed_for(0, 1) == 3027079406020079855


def test_text_stands_for_an_object_that_is_imported_later() -> None:
    algorithm = Algorithm(name="x", summary="", config="gym_dr.training.config:A2CConfig", train="no.such:thing")
    assert algorithm.config_class() is A2CConfig
    assert algorithm.policy_loader() is None
