from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from gym_dr.errors import ConfigError
from gym_dr.options import check_fields
from gym_dr.training.config import A2CConfig


def test_whole_numbers_become_floats_and_lists_tuples() -> None:
    checked = check_fields(A2CConfig, {"gamma": 1, "hidden_sizes": [8, 8]})
    assert (checked, type(checked["gamma"])) == ({"gamma": 1.0, "hidden_sizes": (8, 8)}, float)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("updates", 2.0, "int"),
        ("updates", True, "int"),
        ("gamma", "0.9", "float"),
        ("normalize_advantages", 1, "bool"),
        ("hidden_sizes", 8, "a list"),
        ("hidden_sizes", [8, 0.5], "int"),
    ],
)
def test_a_value_of_another_type_is_refused(name: str, value: Any, expected: str) -> None:
    with pytest.raises(ConfigError, match=f"{name}: expected {expected}, got"):
        check_fields(A2CConfig, {name: value})


def test_an_optional_field_takes_none_and_its_type() -> None:
    @dataclass(frozen=True)
    class Config:
        limit: float | None = None

    # local classes have no resolvable hints under postponed evaluation unless they name builtins, as here
    assert check_fields(Config, {"limit": None}) == {"limit": None}
    assert check_fields(Config, {"limit": 1}) == {"limit": 1.0}
