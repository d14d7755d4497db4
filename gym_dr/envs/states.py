"""States of environments as arrays by name, which go out and in: their layout, and checks before anything changes.

A state is a flat mapping: "physics/rows" -> an array whose first axis is the sub-environment. So rows can be chosen,
repeated and saved with numpy alone: ``{name: values[[0] * 8] for name, values in state.items()}`` is the first
sub-environment, eight times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.errors import EnvStateError, shortened

EnvState = dict[str, npt.NDArray[Any]]  # name -> (N, ...)
_SEED = "U40"  # a seed of 128 bits has 39 digits; empty if there is none


def write_seeds(seeds: Sequence[int | None]) -> npt.NDArray[Any]:
    """Seeds as an array of their digits."""
    return np.array(["" if seed is None else str(seed) for seed in seeds], _SEED)


def read_seeds(written: npt.NDArray[Any]) -> list[int | None]:
    """Seeds from their digits.

    Raises:
        EnvStateError: They are something else.
    """
    if not all(text == "" or (text.isascii() and text.isdigit()) for text in written.tolist()):
        raise EnvStateError(f"State 'seed': expected digits, got {shortened(written.tolist())}.")
    return [int(text) if text else None for text in written.tolist()]


def put_under(prefix: str, state: Mapping[str, npt.NDArray[Any]]) -> EnvState:
    """The state with longer names."""
    return {f"{prefix}/{name}": values for name, values in state.items()}


def part_of(prefix: str, state: Mapping[str, npt.NDArray[Any]]) -> EnvState:
    """What ``put_under`` has put there."""
    return {name.removeprefix(f"{prefix}/"): values for name, values in state.items() if name.startswith(f"{prefix}/")}


def split_state(prefix: str, state: Any, num_envs: int) -> tuple[EnvState, EnvState]:
    """A state without what ``put_under`` has put there, and that.

    Raises:
        EnvStateError: It is no state of ``num_envs`` sub-environments.
    """
    check_state(state, num_envs)
    rest = {name: values for name, values in state.items() if not name.startswith(f"{prefix}/")}
    return rest, part_of(prefix, state)


def check_state(state: Any, num_envs: int) -> None:
    """Checks that a state is a mapping of names to arrays with a row for each sub-environment.

    Raises:
        EnvStateError: It is something else.
    """
    if not isinstance(state, Mapping) or not all(isinstance(values, np.ndarray) for values in state.values()):
        raise EnvStateError(f"Expected a state from get_state(), a mapping of names to arrays, got {shortened(state)}.")
    for name, values in state.items():
        if values.shape[:1] != (num_envs,):
            raise EnvStateError(
                f"State {name!r}: expected {num_envs} rows, one for each sub-environment, got shape {values.shape}. "
                "Choose rows of all arrays: {name: values[rows] for name, values in state.items()}."
            )


def check_layout(state: Mapping[str, npt.NDArray[Any]], like: Mapping[str, npt.NDArray[Any]]) -> None:
    """Checks names, shapes and types of arrays.

    Args:
        state: What is checked.
        like: The environment's own state.

    Raises:
        EnvStateError: Something differs.
    """
    for name, own in like.items():
        values = state.get(name)
        if values is None or (values.shape, values.dtype) != (own.shape, own.dtype):
            got = "nothing" if values is None else f"shape {values.shape} and {values.dtype}"
            raise EnvStateError(
                f"State {name!r}: expected shape {own.shape} and {own.dtype}, got {got}. States fit environments with "
                "the same id, keywords and wrappers."
            )
    unknown = [name for name in state if name not in like]
    if unknown:
        raise EnvStateError(
            f"State {unknown[0]!r}: expected nothing of this name, which another environment or wrapper has. "
            "States fit environments with the same id, keywords and wrappers."
        )


def check_within(name: str, values: npt.NDArray[Any], low: Any, high: Any) -> None:
    """Checks that whole numbers, with which compiled code finds its memory, are within bounds.

    Raises:
        EnvStateError: One is not.
    """
    if ((values < low) | (values > high)).any():
        raise EnvStateError(f"State {name!r}: expected whole numbers from {low} to {high}, got {shortened(values)}.")
