"""Checks of the arguments that users pass to environments, before anything changes."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete, MultiDiscrete, Space
from gymnasium.vector import AutoresetMode

from gym_dr.arrays import Indices, Mask
from gym_dr.errors import ConfigError, InvalidActionError, RandomizationError, did_you_mean, shortened
from gym_dr.options import is_number, is_whole
from gym_dr.randomization.space import ParamSpace

Seeds = int | Sequence[int | None] | None  # as vector environments accept them
Options = dict[str, Any] | None  # of ``reset``

OF_EVERY_ENV = ("randomization", "context", "context_params", "render_mode")  # keywords


def check_whole_number(name: str, value: Any) -> int:
    """Checks a whole number above 0.

    Raises:
        ConfigError: The value is something else.
    """
    if not is_whole(value) or value < 1:
        raise ConfigError(f"Expected {name} to be a whole number above 0, got {shortened(value)}.")
    return int(value)


def check_memory(num_envs: int, each: int) -> None:
    """Raises ConfigError if ``num_envs`` environments of ``each`` bytes do not fit into free memory."""
    needed = num_envs * each
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        free = max(free, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2)  # caches can be evicted
    except (AttributeError, ValueError, OSError):  # not available on this system
        free = 2**36
    if needed > free:
        raise ConfigError(
            f"Expected num_envs that fit into memory, got {num_envs}, which need {needed / 2**30:.1f} GiB; "
            f"{free / 2**30:.1f} GiB are free."
        )


def check_optional_number(name: str, value: Any) -> float | None:
    """Checks a finite number or None.

    Raises:
        ConfigError: The value is something else.
    """
    if value is None:
        return None
    if not is_number(value):
        raise ConfigError(f"Expected {name} to be a number or None, got {shortened(value)}.")
    return float(value)


def check_render_mode(value: Any, modes: Collection[str]) -> str | None:
    """Checks a render mode; None is always possible.

    Raises:
        ConfigError: It is not among the modes.
    """
    if value is not None and value not in modes:
        others = f" or one of {', '.join(modes)}" if modes else ""
        why = "." if modes else ": this environment draws no pictures."
        raise ConfigError(f"Expected render_mode None{others}, got {value!r}{why}")
    return cast(str | None, value)


def check_keywords(space: ParamSpace, given: Collection[str], known: Collection[str]) -> None:
    """Checks the names of an environment's own keywords.

    Raises:
        TypeError: A keyword is unknown, in Python's words, which TorchRL reads; the message says how to set a parameter
            instead.
    """
    for name in given:
        if name not in known:
            hint = did_you_mean(name, [*known, *OF_EVERY_ENV])
            hint = f" Use randomization={{{name!r}: ...}}." if name in space else hint
            names = f" Known: {', '.join(known)}, and for every environment {', '.join(OF_EVERY_ENV)}." if known else ""
            raise TypeError(f"{space.name}.__init__() got an unexpected keyword argument {name!r}.{hint}{names}")


def check_autoreset_mode(value: Any) -> AutoresetMode:
    """Checks an autoreset mode or its name.

    Raises:
        ConfigError: There is no such mode.
    """
    try:
        return AutoresetMode(value)
    except ValueError:
        modes = ", ".join(repr(mode.value) for mode in AutoresetMode)
        raise ConfigError(f"Expected autoreset_mode to be one of {modes}, got {value!r}.") from None


def check_mask(mask: Any, num_envs: int) -> Mask:
    """Checks a mask of sub-environments and returns it as an array; None means all.

    Raises:
        RandomizationError: It is not a boolean array of shape ``(num_envs,)``.
    """
    if mask is None:
        return np.ones(num_envs, dtype=np.bool_)
    array: Mask = np.asanyarray(mask)  # a masked array stays one
    if array.dtype != np.bool_ or array.shape != (num_envs,) or np.any(getattr(array, "mask", False)):
        raise RandomizationError(
            f"Expected a mask of shape ({num_envs},) and dtype bool, got shape {array.shape} and dtype {array.dtype}."
        )
    return array


def check_indices(envs: Any, num_envs: int) -> Indices:
    """Checks the indices of some sub-environments and returns them as an array.

    Raises:
        InvalidActionError: They are not whole numbers from 0 to ``num_envs - 1``, or one of them is repeated.
    """
    array = np.asanyarray(envs)  # a masked array stays one, and lists None
    whole = array.ndim == 1 and (array.dtype.kind in "iu" or not array.size)
    listed, known = array.tolist() if whole else [None], range(num_envs)
    if not all(i in known for i in listed) or len(set(listed)) < len(listed):
        raise InvalidActionError(
            f"Expected the indices of sub-environments, whole numbers from 0 to {num_envs - 1}, each once, got "
            f"{shortened(envs)}."
        )
    return np.array(listed, np.int64)


def check_seeds(seed: Any, num_envs: int) -> list[int | None]:
    """A seed, or None, for each sub-environment; ``seed + i`` for a single number, as in Gymnasium.

    Raises:
        RandomizationError: Not a whole number >= 0, None, or a sequence with one of these for each sub-environment.
    """
    if seed is None:
        return [None] * num_envs
    if is_whole(seed):
        seeds: list[Any] = list(range(int(seed), int(seed) + num_envs))
    elif isinstance(seed, Sequence | np.ndarray) and not isinstance(seed, str) and getattr(seed, "ndim", 1) == 1:
        seeds = list(seed)
    else:
        raise RandomizationError(f"Expected seed to be a whole number, a list of them or None, got {seed!r}.")
    if len(seeds) != num_envs:
        raise RandomizationError(f"Expected a seed for each of {num_envs} sub-environments, got {len(seeds)}.")
    for value in seeds:
        if value is not None and not (is_whole(value) and value >= 0):
            raise RandomizationError(f"Expected seeds to be whole numbers >= 0 or None, got {value!r}.")
    return [None if value is None else int(value) for value in seeds]


def check_reset_mask(options: Mapping[str, Any] | None, num_envs: int) -> Mask:
    """The mask in the options of ``reset``; all True if there is none.

    Raises:
        RandomizationError: The options are not a mapping, or the mask is not a boolean array with at least one True.
    """
    if options is not None and not isinstance(options, Mapping):
        raise RandomizationError(f"Expected options to be a dict or None, got {options!r}.")
    mask = check_mask((options or {}).get("reset_mask"), num_envs)
    if not mask.any():
        raise RandomizationError("Expected at least one True in options['reset_mask'].")
    return mask


def check_actions(actions: Any, space: Space[Any]) -> Any:
    """Checks the actions of all sub-environments before any of them is used.

    Numbers beyond the bounds of a Box of floats pass: environments clip them, as Gymnasium's do.

    Args:
        actions: The argument of ``step``.
        space: ``action_space`` of the vector environment. Spaces that do not consist of arrays are not checked.

    Returns:
        The actions: lists as arrays, discrete ones in the space's dtype.

    Raises:
        InvalidActionError: Wrong shape or type, not finite, or not in the space.
    """
    if not isinstance(space, Box | MultiDiscrete):
        return actions
    if isinstance(space, Box) and space.dtype.kind == "f":
        return check_finite(actions, space.shape)
    array = _array(actions, space.shape, "iu", "whole numbers")
    low, high = (space.low, space.high) if isinstance(space, Box) else (space.start, space.start + space.nvec - 1)
    if not ((array >= low) & (array <= high)).all():
        raise InvalidActionError(f"Expected actions from {space}, got {array.tolist()}.")
    return array.astype(space.dtype)  # Gymnasium's Discrete refuses some types of whole numbers


def check_finite(actions: Any, shape: tuple[int, ...], noun: str = "actions") -> npt.NDArray[Any]:
    """Checks continuous actions and returns them as an array; those beyond the bounds pass.

    Args:
        actions: The actions, or other numbers.
        shape: The expected shape.
        noun: What messages call them, in the plural.

    Raises:
        InvalidActionError: Wrong shape or type, or not finite.
    """
    array = _array(actions, shape, "fiu", "numbers", noun)
    values = array
    if array.dtype.itemsize > 8:  # more precise than the physics
        with np.errstate(over="ignore"):
            values = array.astype(np.float64)
    if np.count_nonzero(np.isfinite(values)) < array.size:  # all() takes five times as long for few numbers
        raise InvalidActionError(f"Expected finite {noun}, got nan or infinity.")
    return array


def action_check(space: Space[Any], num_envs: int) -> Callable[[Any], npt.NDArray[Any]]:
    """A function that checks the actions of ``num_envs`` sub-environments and returns them as an array.

    Args:
        space: ``action_space`` of one: a Discrete, or a Box of floats.
        num_envs: How many there are.
    """
    if isinstance(space, Discrete):
        return partial(check_discrete, shape=(num_envs,), start=int(space.start), count=int(space.n))
    return partial(check_finite, shape=(num_envs, *(space.shape or ())))


def check_discrete(actions: Any, shape: tuple[int, ...], start: int, count: int) -> Indices:
    """Checks discrete actions from ``start`` to ``start + count - 1`` and returns them as a new array.

    Raises:
        InvalidActionError: Wrong shape or type, or not in the space.
    """
    array = _array(actions, shape, "iu", "whole numbers")
    choices = array.astype(np.int64)
    from_zero = choices - start if start else choices
    if np.maximum.reduce(from_zero.view(np.uint64)) >= count:  # as unsigned numbers, negative ones are large
        raise InvalidActionError(f"Expected actions from {start} to {start + count - 1}, got {array.tolist()}.")
    return choices


def _array(actions: Any, shape: tuple[int, ...], kinds: str, what: str, noun: str = "actions") -> npt.NDArray[Any]:
    try:
        array = np.asarray(actions)
    except ValueError:  # lists of different lengths
        raise InvalidActionError(f"Expected {noun} to be {what} of shape {shape}, got {actions!r}.") from None
    if array.shape != shape or array.dtype.kind not in kinds:
        raise InvalidActionError(
            f"Expected {noun} to be {what} of shape {shape}, got shape {array.shape} and dtype {array.dtype}."
        )
    return array
