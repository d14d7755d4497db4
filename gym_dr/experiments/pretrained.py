"""Policies that come with the package: run folders without their tables, loaded as data like any run."""

from __future__ import annotations

from pathlib import Path

from gym_dr.errors import unknown_name

FOLDER = Path(__file__).parent.parent / "pretrained"


def names() -> list[str]:
    """All that there are."""
    return sorted(path.parent.name for path in FOLDER.glob("*/config.json"))


def pretrained(name: str) -> Path:
    """The folder of a policy that comes with the package, for ``load_run`` and ``evaluate``.

    Example:
        >>> policy = gym_dr.load_run(gym_dr.pretrained("lander")).policy()

    Args:
        name: ``lander``, and those that ``gymdr play --help`` lists.

    Raises:
        UnknownNameError: There is no such policy.
    """
    if name not in names():
        raise unknown_name("pretrained policy", name, names())
    return FOLDER / name
