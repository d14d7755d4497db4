"""Words in messages."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """A number and its noun, in the plural unless there is one: ``1 core``, ``1,200 episodes``."""
    return f"{number:,} {noun if number == 1 else f'{noun}s'}"
