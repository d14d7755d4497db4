"""Which principal moments of inertia a body can have."""

from __future__ import annotations

from collections.abc import Sequence

from gym_dr.errors import RandomizationError

_SLACK = 1e-6  # relative; MuJoCo's own inertias lie on the bound where a body is flat


def check_triangles(body: str, bounds: Sequence[tuple[float, float]]) -> None:
    """Checks that no moment of inertia can exceed the sum of the other two, as no mass distribution has that.

    Args:
        body: The name for the error message, ``"body_inertia:torso"``.
        bounds: Smallest and largest value of each of the three moments.

    Raises:
        RandomizationError: Values within the bounds break the inequality.
    """
    for k, (_, high) in enumerate(bounds):
        rest = sum(low for j, (low, _) in enumerate(bounds) if j != k)
        if high > rest * (1.0 + _SLACK):
            raise RandomizationError(
                f"Parameter {body!r}: expected principal moments of inertia of which none exceeds the sum of the other "
                f"two, got up to {high:g} beside {rest:g}. Scale all three together: {body!r} without an axis."
            )
