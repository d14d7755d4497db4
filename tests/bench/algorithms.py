"""The algorithms that ``gymdr bench`` is tested with: gym_dr's own, and one that knows nothing of its insides."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from gym_dr.training.api import Algorithm
from gym_dr.training.registry import find_algorithm

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_algorithm" / "gym_dr_cem.py"


def _example() -> Algorithm:
    """The cross-entropy method of the examples, which uses neither torch nor our rollouts."""
    spec = importlib.util.spec_from_file_location("gym_dr_cem", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)  # where dataclasses look their module up
    spec.loader.exec_module(module)
    found: list[Algorithm] = []
    module.gym_dr_register_algorithms(found.append)
    return found[0]


ALGORITHMS = {name: find_algorithm(name) for name in ("a2c", "reinforce")} | {"cem": _example()}
