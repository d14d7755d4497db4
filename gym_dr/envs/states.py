"""States of environments: arrays by name, and checks of their layout.

A state is a flat mapping: "physics/rows" -> an array whose first axis is the sub-environment. Rows can be chosen,
repeated and saved with numpy alone: ``{name: values[[0] * 8] for name, values in state.items()}`` is the first
sub-environment, eight times.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.errors import EnvStateError, shortened

EnvState = dict[str, npt.NDArray[Any]]  # name -> (N, ...)
_VALUES = ("draws/value/", "draws/pin/")  # one for each parameter that was drawn or set, so states differ in them


def check_layout(state: Any, own: EnvState) -> None:
    """Checks the names, shapes and kinds of the arrays of a state.

    Args:
        state: What is checked.
        own: The environment's own state.

    Raises:
        EnvStateError: A name, a shape or a kind differs.
    """
    if not isinstance(state, Mapping):
        raise EnvStateError(f"Expected a state from get_state(), a mapping of names to arrays, got {shortened(state)}.")
    expected = {name: values for name, values in own.items() if not name.startswith(_VALUES)}
    expected |= {name: np.zeros(len(own["seed"])) for name in state if str(name).startswith(_VALUES)}
    for name in dict.fromkeys([*expected, *state]):
        like, got = _form(expected.get(name)), _form(state.get(name))
        if like != got:
            raise EnvStateError(
                f"State {name!r}: expected {like}, got {got}. States fit environments with the same id, keywords, "
                "number of sub-environments and wrappers."
            )


def _form(values: Any) -> str:
    """Shape and kind of an array, which must match."""
    if not isinstance(values, np.ndarray):
        return "nothing" if values is None else shortened(values)
    kinds = {"b": "truth values", "f": "numbers", "i": "whole numbers", "u": "whole numbers from 0", "U": "text"}
    return f"shape {values.shape} of {kinds.get(values.dtype.kind, str(values.dtype))}"


def put_under(prefix: str, state: Mapping[str, npt.NDArray[Any]]) -> EnvState:
    """The state with prefixed names: "rows" -> "physics/rows"."""
    return {f"{prefix}/{name}": values for name, values in state.items()}


def check_within(name: str, values: npt.NDArray[Any], low: Any, high: Any) -> None:
    """Checks the bounds of whole numbers that compiled code uses as indices.

    Raises:
        EnvStateError: A number is out of bounds.
    """
    if ((values < low) | (values > high)).any():
        raise EnvStateError(f"State {name!r}: expected whole numbers from {low} to {high}, got {shortened(values)}.")
