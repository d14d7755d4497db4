"""What a fit says in words."""

from __future__ import annotations

import numpy as np
import pytest

from gym_dr.fitting.findings import _verdict, noise_sentences
from gym_dr.fitting.misfit import Misfit
from gym_dr.randomization.distributions import Uniform


@pytest.mark.parametrize(
    ("feature", "words"), [("action 1", "residuals of x depend on action 1 ("), ("", "residuals of x are not 0 on av")]
)
def test_a_suspicious_model_is_told_with_what_its_residuals_show(feature: str, words: str) -> None:
    misfit = Misfit(coordinate="x", feature=feature, p=1e-5, episodes_p=0.5, explained=1.234)
    told = _verdict(misfit, varies=False, ended=False)
    assert words in told
    assert "(123 % of their variance, p = 1e-05)" in told
    assert "Something that is not fitted differs" in told


@pytest.mark.parametrize(("size", "sentences"), [(0.5, 0), (1.05, 0), (1.2, 1), (0.005, 1)])
def test_noise_beyond_its_prior_is_told(size: float, sentences: int) -> None:
    found = noise_sentences(np.array([size, 0.5]), Uniform(0.01, 1.0))
    assert len(found) == sentences
