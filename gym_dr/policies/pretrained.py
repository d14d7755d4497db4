"""Pretrained policies in the package: run folders without logs, loaded as data like any run."""

from __future__ import annotations

from pathlib import Path

from gym_dr.errors import check_known

FOLDER = Path(__file__).resolve().parent.parent / "pretrained"


def names() -> list[str]:
    """Names of all pretrained policies."""
    return sorted(path.parent.name for path in FOLDER.glob("*/config.json"))


def pretrained(name: str) -> Path:
    """The folder of a pretrained policy in the package, for ``load_run`` and ``evaluate``.

    Example:
        >>> policy = gym_dr.load_run(gym_dr.pretrained("lander")).policy()

    Args:
        name: Its name, such as ``lander``; ``gymdr play --help`` lists all.

    Raises:
        UnknownNameError: There is no such policy.
    """
    check_known("pretrained policy", name, names())
    return FOLDER / name
