"""States of environments as arrays by name, which go out and in: their layout, and checks before anything changes.

A state is a flat mapping: "physics/rows" -> an array whose first axis is the sub-environment. So rows can be chosen,
repeated and saved with numpy alone: ``{name: values[[0] * 8] for name, values in state.items()}`` is the first
sub-environment, eight times.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.errors import EnvStateError, shortened

EnvState = dict[str, npt.NDArray[Any]]  # name -> (N, ...)
_SEED = "U100"  # digits of a seed; empty if there is none
_HAS_HALF, _HALF = 4, 5  # columns of a random stream, see ``compiled.pcg64``


def fingerprint(backend: Any, keywords: Mapping[str, Any]) -> str:
    """What environments must have in common for their states to fit, beyond the layout: physics and its keywords."""
    drawn = ("width", "height", "camera_name", "camera_id", "default_camera_config", "max_geom", "visual_options")
    given = sorted((name, value) for name, value in keywords.items() if name not in drawn)
    text = f"{type(backend).__qualname__} {backend.space.name} {given!r}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def write_seeds(seeds: Sequence[int | None]) -> npt.NDArray[Any]:
    """Seeds as an array of their digits.

    Raises:
        EnvStateError: One has more than 100.
    """
    digits = ["" if seed is None else str(seed) for seed in seeds]
    if max(map(len, digits), default=0) > 100:
        raise EnvStateError("Expected seeds of at most 100 digits, to write a state.")
    return np.array(digits, _SEED)


def read_seeds(written: npt.NDArray[Any]) -> list[int | None]:
    """Seeds from their digits; -1 is Gymnasium's mark of a generator that was set by hand.

    Raises:
        EnvStateError: They are something else.
    """
    texts = np.asarray(written, _SEED).tolist()
    if not all(text in ("", "-1") or (text.isascii() and text.isdigit()) for text in texts):
        raise EnvStateError(f"State 'seed': expected digits, got {shortened(texts)}.")
    return [int(text) if text else None for text in texts]


def check_physics(state: Mapping[str, npt.NDArray[Any]], environment: str) -> None:
    """Checks what the states of all kinds of physics have: where they come from, and random streams ``(N, STREAM)``.

    Args:
        state: Of the right layout.
        environment: The environment's own ``fingerprint``.

    Raises:
        EnvStateError: It comes from other physics, or half of an output that is left over has more than 32 bits.
    """
    if (state["environment"] != environment).any():
        raise EnvStateError(
            "State 'environment': expected that of an environment with the same physics and keywords, got another."
        )
    for name, values in state.items():
        if name in ("physics/streams", "physics/clouds"):
            check_within(f"{name}, has half", values[:, _HAS_HALF], 0, 1)
            check_within(f"{name}, half", values[:, _HALF], 0, 2**32 - 1)


def put_under(prefix: str, state: Mapping[str, npt.NDArray[Any]]) -> EnvState:
    """The state with longer names."""
    return {f"{prefix}/{name}": values for name, values in state.items()}


def part_of(prefix: str, state: Mapping[str, npt.NDArray[Any]]) -> EnvState:
    """What ``put_under`` has put there."""
    return {name.removeprefix(f"{prefix}/"): values for name, values in state.items() if name.startswith(f"{prefix}/")}


def check_state(state: Any, num_envs: int) -> None:
    """Checks that a state is a mapping of names to arrays with a row for each sub-environment.

    Raises:
        EnvStateError: It is something else.
    """
    good = isinstance(state, Mapping) and all(isinstance(name, str) for name in state)
    if not good or not all(isinstance(values, np.ndarray) for values in state.values()):
        raise EnvStateError(f"Expected a state from get_state(), a mapping of names to arrays, got {shortened(state)}.")
    for name, values in state.items():
        if values.shape[:1] != (num_envs,):
            raise EnvStateError(
                f"State {name!r}: expected {num_envs} rows, one for each sub-environment, got shape {values.shape}. "
                "Choose rows of all arrays: {name: values[rows] for name, values in state.items()}."
            )


def check_layout(state: Mapping[str, npt.NDArray[Any]], like: Mapping[str, npt.NDArray[Any]], within: str = "") -> None:
    """Checks names, shapes and types of arrays.

    Args:
        state: What is checked.
        like: The environment's own state.
        within: Begins the names in messages.

    Raises:
        EnvStateError: Something differs.
    """
    for name, own in like.items():
        values = state.get(name)
        if values is None or (values.shape, values.dtype) != (own.shape, own.dtype):
            got = "nothing" if values is None else f"shape {values.shape} and {values.dtype}"
            raise EnvStateError(
                f"State {within + name!r}: expected shape {own.shape} and {own.dtype}, got {got}. States fit "
                "environments with the same id, keywords and wrappers."
            )
    unknown = [name for name in state if name not in like]
    if unknown:
        raise EnvStateError(
            f"State {within + unknown[0]!r}: expected nothing of this name, which another environment or wrapper has. "
            "States fit environments with the same id, keywords and wrappers."
        )


def check_within(name: str, values: npt.NDArray[Any], low: Any, high: Any) -> None:
    """Checks that whole numbers, with which compiled code finds its memory, are within bounds.

    Raises:
        EnvStateError: One is not.
    """
    if ((values < low) | (values > high)).any():
        raise EnvStateError(f"State {name!r}: expected whole numbers from {low} to {high}, got {shortened(values)}.")
