"""Checks that what a sub-environment returns matches its spaces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from gym_dr.envs.workers.worker import Fault


def check_form(command: str, answer: Any, space: gym.Space[Any]) -> None:
    """Checks the answer to ``reset`` or ``step``; other answers may be anything.

    Raises:
        Fault: The answer has the wrong form; the message says how.
    """
    if command not in ("reset", "step"):
        return
    size, parts = (2, "observation and info") if command == "reset" else (5, "observation, reward, ends and info")
    if not (isinstance(answer, tuple) and len(answer) == size and isinstance(answer[-1], dict)):
        raise Fault(f"returned {_short(answer)} from {command}, not {parts}", alive=True)
    for name, value in zip(("reward", "terminated", "truncated"), answer[1:-1], strict=False):
        kinds = "biuf" if name == "reward" else "biu"
        if np.ndim(value) != 0 or np.asarray(value).dtype.kind not in kinds:
            raise Fault(f"returned {_short(value)} as {name}, not one number", alive=True)
    wrong = _misfit(answer[0], space)
    if wrong:
        raise Fault(f"returned {wrong}", alive=True)


def _misfit(value: Any, space: gym.Space[Any]) -> str:
    """Describes what is wrong with an observation's shape or type; as in Gymnasium, bounds are not checked."""
    if isinstance(space, gym.spaces.Dict | gym.spaces.Tuple):
        parts: dict[Any, gym.Space[Any]] = (
            dict(space.spaces) if isinstance(space, gym.spaces.Dict) else dict(enumerate(space.spaces))
        )
        values = value if isinstance(value, Mapping) else dict(enumerate(value)) if isinstance(value, tuple) else {}
        if values.keys() != parts.keys():
            return f"{_short(value)} as observation, not one of {space}"
        return next((wrong for key in parts if (wrong := _misfit(values[key], parts[key]))), "")
    if space.shape is None or space.dtype is None:  # graphs, texts, ...
        return "" if space.contains(value) else f"{_short(value)} as observation, not one of {space}"
    try:
        array = np.asarray(value)
    except ValueError:  # lists of different lengths
        return f"{_short(value)} as observation, not one of shape {space.shape}"
    if array.shape != space.shape:
        return f"an observation of shape {array.shape}, not {space.shape}"
    if not np.can_cast(array.dtype, space.dtype, "same_kind"):
        return f"an observation of dtype {array.dtype}, not {space.dtype}"
    return ""


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
