"""Leaves comparisons with Box2D out where it is not installed; recorded episodes take their place (test_golden.py)."""

from __future__ import annotations

from importlib.util import find_spec

_WITH_BOX2D = [
    f"{family}/{file}.py"
    for family in ("lunar_lander", "bipedal_walker")
    for file in ("test_env", "native/test_equality", "native/test_state")
] + ["lunar_lander/native/test_vector_env.py", "test_single.py", "test_constants.py"]

collect_ignore = [] if find_spec("Box2D") else _WITH_BOX2D
