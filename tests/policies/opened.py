"""Evaluates policies with what describes them."""

from __future__ import annotations

from typing import Any

import gym_dr
from gym_dr.evaluation.results import Evaluation
from gym_dr.policies.open import open_policies

ABOUT = ("env", "randomization", "context", "context_params", "stochastic", "trust")  # how a policy is opened


def evaluate(policies: Any, sets: Any = (), **options: Any) -> Evaluation:
    about = {name: options.pop(name) for name in ABOUT if name in options}
    return gym_dr.evaluate(open_policies(policies, **about), sets, **{"progress": False, **options})
