"""What users type stays: names, parameters, commands and options are those of a stored list."""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest

from tests.interface import STORED, interface

HINT = "see docs/stable.md; if the change is meant and CHANGELOG tells it, run `python -m tests.interface`"


today_of = functools.cache(interface)


def listed(value: Any, path: str = "") -> set[str]:
    """Everything in a list of names, as one line each."""
    if isinstance(value, dict):
        return {path, *(line for key, below in value.items() for line in listed(below, f"{path} {key}"))}
    return {f"{path} {each}" for each in value} | {path}


@pytest.mark.parametrize("part", ["names", "members", "commands", "options", "samplers", "hooks", "environments"])
def test_what_users_type_is_what_the_list_says(part: str) -> None:
    stored, today = (listed(whole[part]) for whole in (json.loads(STORED.read_text(encoding="utf-8")), today_of()))
    assert not stored - today, f"gone: {HINT}"
    assert not today - stored, f"new, and not in the list: {HINT}"


def test_parameters_keep_their_order_and_what_must_be_named_does() -> None:
    stored = json.loads(STORED.read_text(encoding="utf-8"))["names"]
    assert stored == today_of()["names"]
