"""Chooses the class of a single environment; imported by the families' descriptors, so it imports nothing heavy."""

from __future__ import annotations

from importlib.util import find_spec


def entry_point(package: str, name: str) -> str:
    """Entry point of a family's single environment ``name``: on Box2D if installed, otherwise on compiled physics.

    Box2D is preferred: it needs no compiling, its bodies can be inspected, and nominal episodes equal Gymnasium's on
    every machine, not only where compiled code rounds like Box2D. Both give the same episodes.
    """
    return f"{package}.env:{name}" if find_spec("Box2D") else f"{package}.backend:{name}"
