"""Which class a single environment is: the families' descriptors ask, so nothing heavy is imported here."""

from __future__ import annotations

from importlib.util import find_spec


def entry_point(package: str, name: str) -> str:
    """Where the single environment ``name`` of a family is: on Box2D, or on compiled physics where there is none.

    Box2D comes first: nothing needs compiling then, its bodies can be looked at, and nominal episodes are Gymnasium's
    on every machine, not only where compiled code rounds as Box2D's does. Both give the same episodes.
    """
    return f"{package}.env:{name}" if find_spec("Box2D") else f"{package}.native.env:{name}"
