"""Attributes of an environment by path, as ``config["speed"]``, ``sim.mass`` or ``kp[0]``; parsed, never evaluated."""

from __future__ import annotations

import functools
import operator
import re
import sys
from types import ModuleType
from typing import Any

import numpy as np

from gym_dr.errors import GymDrError, RandomizationError, unknown_name

_STEP = re.compile(r"""\[(?P<index>-?\d+)\]|\[(["'])(?P<key>.*?)\2\]|\.?(?P<attribute>[^\W\d]\w*)""")
_SHARED = "which all environments of this process share. Let the environment read it from an attribute of its own."
# types of attributes, by kind of parameter: Python's, and those of numpy that are kept
_TYPES: dict[str, Any] = {"float": (float, np.floating), "int": (int, np.integer), "bool": (bool, np.bool_)}


class AttributePath:
    """Where a number is in an environment; followed anew each time, since objects on the way may be rebuilt."""

    def __init__(self, env: Any, text: str) -> None:
        """Checks that there is something that can be set.

        Args:
            env: The environment without wrappers.
            text: The path.

        Raises:
            UnknownNameError: A step leads nowhere.
            RandomizationError: It is no path, leads to what environments share, or its end cannot be set.
        """
        found = list(_STEP.finditer(text))
        if "".join(step[0] for step in found) != text:
            raise RandomizationError(
                f"Parameter {text!r}: expected the path of an attribute, as mass, sim.mass, kp[0] or "
                'config["speed"]. To set something else, pass apply=.'
            )
        self._steps: list[tuple[Any, Any, Any]] = [
            (getattr, setattr, step["attribute"])
            if step["attribute"]
            else (operator.getitem, operator.setitem, step["key"] if step["index"] is None else int(step["index"]))
            for step in found
        ]
        owner = value = env
        for step in self._steps:
            owner, (get, put, key) = value, step
            try:
                value = get(owner, key)
            except (AttributeError, LookupError, TypeError):
                raise _unknown(env, owner, key) from None
            of_class = step is not self._steps[-1] and getattr(type(owner), str(key), None) is value
            if of_class or isinstance(value, ModuleType | type):
                raise RandomizationError(f"Parameter {text!r}: {key} belongs to a class or module, {_SHARED}")
        try:
            put(owner, key, value)
        except (AttributeError, TypeError, ValueError) as error:
            raise RandomizationError(
                f"Parameter {text!r}: expected something that can be set, but in {type(owner).__name__} {error}. Make "
                "it an attribute, or pass apply=, which sets it in another way."
            ) from None

    def get(self, env: Any) -> Any:
        """The value in an environment."""
        return functools.reduce(lambda owner, step: step[0](owner, step[2]), self._steps, env)

    def set(self, env: Any, value: float, kind: str) -> None:
        """Sets the value, as a number of the type of numpy that was there before, or else of Python."""
        *way, (get, put, key) = self._steps
        owner = functools.reduce(lambda owner, step: step[0](owner, step[2]), way, env)
        (python, numpy), before = _TYPES[kind], type(get(owner, key))
        put(owner, key, (before if issubclass(before, numpy) else python)(value))


def _unknown(env: Any, owner: Any, key: Any) -> GymDrError:
    """The error for a step that leads nowhere, with what exists there."""
    module = type(env).__module__
    if owner is env and hasattr(sys.modules.get(module), str(key)):
        return RandomizationError(f"Parameter {key!r}: it is a global of {module}, {_SHARED}")
    known = (
        owner.keys() if hasattr(owner, "keys") else getattr(owner, "__dict__", range(getattr(owner, "__len__", int)()))
    )
    return unknown_name(
        f"attribute (apply= sets what reset builds) of {type(owner).__name__}:",
        key,
        [name for name in map(str, known) if not name.startswith("_")],
    )
