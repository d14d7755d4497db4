"""Steps that Python runs and numba cannot compile, each with what the message must name."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.envs.equations import swing as other_file
from tests.envs.equations.swing import Swing

TABLE = [1.0, 2.0]
NAMED = {"a": 1.0}


class Settings:
    gain = 2.0


SETTINGS = Settings()


def tries(p: Any, s: Swing, action: float) -> Any:
    try:
        x = s.angle / p.length
    except ZeroDivisionError:
        x = 0.0
    return Swing(x, s.speed), 0.0, False


def reads_a_list(p: Any, s: Swing, action: float) -> Any:
    return Swing(s.angle * TABLE[0], s.speed), 0.0, False


def reads_a_dict(p: Any, s: Swing, action: float) -> Any:
    return Swing(s.angle * NAMED["a"], s.speed), 0.0, False


def reads_an_object(p: Any, s: Swing, action: float) -> Any:
    return Swing(s.angle * SETTINGS.gain, s.speed), 0.0, False


def makes_an_array(p: Any, s: Swing, action: float) -> Any:
    both = np.array([s.angle, s.speed])
    return Swing(both[0], both[1]), 0.0, False


def mixes_types(p: Any, s: Swing, action: float) -> Any:
    if s.angle > 0.0:
        return Swing(0, 0), 0.0, False
    return s, 0.0, False


def leaves_none(p: Any, s: Swing, action: float) -> Any:
    bonus = None
    if s.angle > 0.0:
        bonus = 1.0
    return s, bonus or 0.0, False


def calls_through_a_module(p: Any, s: Swing, action: float) -> Any:
    return other_file.step(p, s, action)


def formats(p: Any, s: Swing, action: float) -> Any:
    return Swing(float(f"{s.angle:.3f}"), s.speed), 0.0, False


def replaces(p: Any, s: Swing, action: float) -> Any:
    return s._replace(speed=1.0), 0.0, False


def sums(p: Any, s: Swing, action: float) -> Any:
    return Swing(sum(x for x in (s.angle, s.speed)), s.speed), 0.0, False


def lacks(p: Any, s: Swing, action: float) -> Any:
    return Swing(math.dist((s.angle,), (0.0,)), s.speed), 0.0, False


def clips(p: Any, s: Swing, action: float) -> Any:
    return Swing(np.clip(s.angle, -1.0, 1.0), s.speed), 0.0, False


def opened(x: float) -> float:
    with np.errstate(all="ignore"):
        return x


def calls_what_opens(p: Any, s: Swing, action: float) -> Any:
    return Swing(opened(s.angle), s.speed), 0.0, False


def forgets(p: Any, s: Swing, action: float) -> Any:
    if s.angle > 1e9:
        return missing(s)  # type: ignore[name-defined]  # noqa: F821
    return s, 0.0, False


def needs(s: Swing) -> Any:
    return not_there(s) if s.angle > 1e9 else s.angle  # type: ignore[name-defined]  # noqa: F821


def calls_what_forgets(p: Any, s: Swing, action: float) -> Any:
    return Swing(needs(s), s.speed), 0.0, False


def indexes(p: Any, s: Swing, action: float) -> Any:
    return Swing((1.0, 2.0)[s.angle > 2.0 and s.speed], s.speed), 0.0, False  # type: ignore[call-overload]


# function -> the function and the text of the line that are named, and what to write instead
EXPECTED = {
    tries: ("tries", "except ZeroDivisionError", "Instead of try, test before"),
    reads_a_list: ("reads_a_list", "TABLE[0]", "Make TABLE a number, a tuple or a function"),
    reads_a_dict: ("reads_a_dict", 'NAMED["a"]', "Make NAMED a number, a tuple or a function"),
    reads_an_object: ("reads_an_object", "SETTINGS.gain", "Make SETTINGS a number, a tuple or a function"),
    makes_an_array: ("makes_an_array", "np.array(", "Make no lists or arrays"),
    mixes_types: ("mixes_types", "return ", "0.0 rather than 0"),
    leaves_none: ("leaves_none", "bonus or 0.0", "never None"),
    calls_through_a_module: (
        "calls_through_a_module",
        "other_file.step",
        "Import it by its name: from tests.envs.equations.swing import step",
    ),
    formats: ("formats", "s.angle:.3f", "Leave text out"),
    replaces: ("replaces", "s._replace", "Write all fields out"),
    sums: ("sums", "sum(x", "without a comprehension"),
    lacks: ("lacks", "math.dist", "Numba has no dist"),
    clips: ("clips", "np.clip", "Numba has no such clip: use min, max"),
    calls_what_opens: ("opened", "with np.errstate", "Leave the with statement out"),
    calls_what_forgets: ("needs", "def needs", "Define or import not_there"),
    indexes: ("indexes", "(1.0, 2.0)[", "index with int(s.n)"),
    forgets: ("forgets", "def forgets", "Define or import missing"),
}
