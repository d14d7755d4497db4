"""Ends what is under way at some call, as a signal or a kill would."""

from __future__ import annotations

import importlib
from typing import Any

import pytest


class Killed(BaseException):
    """Stands for a process that is killed: nothing of ours catches it."""


def stopping(target: str, count: int, error: BaseException, patch: pytest.MonkeyPatch) -> None:
    """Has a function, ``module.name``, raise the error instead of the call after ``count`` of them."""
    place, _, name = target.rpartition(".")
    owner, calls = importlib.import_module(place), iter(range(count))
    function = getattr(owner, name)

    def call(*args: Any, **kwargs: Any) -> Any:
        if next(calls, None) is None:
            raise error
        return function(*args, **kwargs)

    patch.setattr(owner, name, call)
