"""Steps that Python runs and numba cannot compile, each with what the message must name."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.envs.equations.swing import Swing

TABLE = [1.0, 2.0]


def reads_a_list(p: Any, s: Swing, action: float) -> Any:
    return Swing(s.angle * TABLE[0], s.speed), 0.0, False


def leaves_none(p: Any, s: Swing, action: float) -> Any:
    bonus = None
    if s.angle > 0.0:
        bonus = 1.0
    return s, bonus or 0.0, False


def opened(x: float) -> float:
    with np.errstate(all="ignore"):
        return x


def calls_what_opens(p: Any, s: Swing, action: float) -> Any:
    return Swing(opened(s.angle), s.speed), 0.0, False


def needs(s: Swing) -> Any:
    return not_there(s) if s.angle > 1e9 else s.angle  # type: ignore[name-defined]  # noqa: F821


def calls_what_forgets(p: Any, s: Swing, action: float) -> Any:
    return Swing(needs(s), s.speed), 0.0, False


# function -> the function and the text of the line that are named, and part of what numba says
EXPECTED = {
    reads_a_list: ("reads_a_list", "TABLE[0]", "assigned to variable 'TABLE' in globals, is not supported"),
    leaves_none: ("leaves_none", "bonus or 0.0", "OptionalType"),
    calls_what_opens: ("opened", "with np.errstate", "Unsupported context manager"),
    calls_what_forgets: ("needs", "needs(s)", "name 'not_there' is not defined"),
}
