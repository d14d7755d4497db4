"""Errors of this package, and what may be said before their messages."""

from __future__ import annotations

import pytest

from gym_dr.errors import CheckpointError, GymDrError, located


class RobotFellError(GymDrError):
    """An error as a plugin may define it."""

    def __init__(self, robot: str, height: float) -> None:
        super().__init__(f"{robot} fell from {height} m")
        self.robot = robot


def test_an_error_keeps_its_type_and_attributes_when_its_place_is_named() -> None:
    message = r"^run: episode 3: ant fell from 2.0 m$"
    with pytest.raises(RobotFellError, match=message) as caught, located("run"), located("episode 3"):
        raise RobotFellError("ant", 2.0)
    assert caught.value.robot == "ant"


def test_the_place_stands_before_the_message_of_an_operating_systems_error_too() -> None:
    with pytest.raises(CheckpointError, match=r"^run: truncated$"), located("run"):
        raise CheckpointError("truncated")
