"""States of environments as arrays by name, which go out and in, and checks before anything changes.

A state is a flat mapping: "physics/rows" -> an array whose first axis is the sub-environment. So rows can be chosen,
repeated and saved with numpy alone: ``{name: values[[0] * 8] for name, values in state.items()}`` is the first
sub-environment, eight times.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Indices
from gym_dr.errors import EnvStateError, shortened

if TYPE_CHECKING:  # they import this module
    from gym_dr.envs.backend import Backend
    from gym_dr.randomization.table import ParamTable

EnvState = dict[str, npt.NDArray[Any]]  # name -> (N, ...)
_VALUES = ("draws/value/", "draws/pin/")  # one for each parameter that was drawn or set, so states differ in them


def fingerprint(backend: Backend, keywords: Mapping[str, Any], mode: str = "") -> str:
    """What environments must have in common for their states to fit, beyond the layout: physics, keywords and mode."""
    drawn = ("width", "height", "camera_name", "camera_id", "default_camera_config", "max_geom", "visual_options")
    given = sorted((name, value) for name, value in keywords.items() if name not in drawn)
    text = f"{type(backend).__qualname__} {backend.space.name} {given!r} {mode}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def state_of(backend: Backend, table: ParamTable, seeds: Sequence[int | None], environment: str) -> EnvState:
    """Physics, draws and seeds of all sub-environments; seeds are text, since they may have any number of digits.

    Args:
        backend: The physics.
        table: The parameters.
        seeds: As in ``np_random_seed``; -1 is Gymnasium's mark of a generator that was set by hand.
        environment: From ``fingerprint``.
    """
    return {
        **put_under("physics", backend.get_state()),
        **put_under("draws", table.get_state()),
        "seed": np.array(["" if seed is None else str(seed) for seed in seeds]),
        "environment": np.full(len(seeds), environment),
        "observation": backend.observations.copy(),
    }


def check_state(state: Any, own: EnvState, backend: Backend, table: ParamTable) -> list[int | None]:
    """Checks a state before anything changes; returns its seeds.

    Args:
        state: What is checked.
        own: The environment's own state.
        backend: The physics.
        table: The parameters.

    Raises:
        EnvStateError: It has another layout, comes from other physics, or a number in it is impossible.
        UnknownNameError: It has a parameter that the environment does not have.
        RandomizationError: The value of a parameter is impossible.
    """
    if not isinstance(state, Mapping):
        raise EnvStateError(f"Expected a state from get_state(), a mapping of names to arrays, got {shortened(state)}.")
    expected = {name: values for name, values in own.items() if not name.startswith(_VALUES)}
    expected |= {name: np.zeros(table.num_envs) for name in state if str(name).startswith(_VALUES)}
    for name in dict.fromkeys([*expected, *state]):
        like, got = _form(expected.get(name)), _form(state.get(name))
        if like != got:
            raise EnvStateError(
                f"State {name!r}: expected {like}, got {got}. States fit environments with the same id, keywords, "
                "number of sub-environments and wrappers."
            )
    if (state["environment"] != own["environment"]).any():
        raise EnvStateError(
            "State 'environment': expected that of an environment with the same physics, keywords and autoreset mode, "
            "got another."
        )
    table.check_state(part_of("draws", state))
    backend.check_state(part_of("physics", state))
    try:
        return [int(text) if text else None for text in state["seed"].tolist()]
    except ValueError:
        raise EnvStateError(f"State 'seed': expected digits, got {shortened(state['seed'].tolist())}.") from None


def _form(values: Any) -> str:
    """What must be equal of arrays that fit: shape and kind."""
    if not isinstance(values, np.ndarray):
        return "nothing" if values is None else shortened(values)
    kinds = {"b": "truth values", "f": "numbers", "i": "whole numbers", "u": "whole numbers from 0", "U": "text"}
    return f"shape {values.shape} of {kinds.get(values.dtype.kind, str(values.dtype))}"


def restore(state: EnvState, envs: Indices, backend: Backend, table: ParamTable) -> None:
    """Has some sub-environments go on from a state that was checked."""
    table.set_state(part_of("draws", state), envs)
    backend.set_state(part_of("physics", state), envs, table)
    backend.observations[envs] = state["observation"][envs]


def put_under(prefix: str, state: Mapping[str, npt.NDArray[Any]]) -> EnvState:
    """The state with longer names."""
    return {f"{prefix}/{name}": values for name, values in state.items()}


def part_of(prefix: str, state: Mapping[str, npt.NDArray[Any]]) -> EnvState:
    """What ``put_under`` has put there."""
    return {name.removeprefix(f"{prefix}/"): values for name, values in state.items() if name.startswith(f"{prefix}/")}


def check_within(name: str, values: npt.NDArray[Any], low: Any, high: Any) -> None:
    """Checks that whole numbers, with which compiled code finds its memory, are within bounds.

    Raises:
        EnvStateError: One is not.
    """
    if ((values < low) | (values > high)).any():
        raise EnvStateError(f"State {name!r}: expected whole numbers from {low} to {high}, got {shortened(values)}.")
