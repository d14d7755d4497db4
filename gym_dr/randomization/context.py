"""Who may see the draw: nobody, readers of ``info``, or the policy, as a privileged observation.

In a privileged observation each value is mapped linearly to [-1, 1], from the range of the randomization if both ends
are finite and differ, otherwise from the parameter's physical bounds. Values outside that range are clipped. To use a
policy with another randomization later, name the range that it was trained with:
``context_params={"gravity": (-12, 0)}``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array
from gym_dr.errors import ConfigError, RandomizationError, check_known
from gym_dr.randomization.space import Param, ParamSpace, as_numbers
from gym_dr.randomization.spec import Randomization, Rule

HIDDEN, INFO, OBSERVATION = "hidden", "info", "observation"
MODES = (HIDDEN, INFO, OBSERVATION)
KEY = "context"  # of the draw in a dictionary observation


@dataclass(frozen=True, kw_only=True)
class ContextRange:
    """A parameter that the policy sees, with the values that map to -span and span."""

    name: str
    low: float
    high: float
    nominal: float  # used if no value is reported
    span: float = 1.0


def context_ranges(
    space: ParamSpace,
    randomization: Randomization,
    chosen: Sequence[str] | Mapping[str, Any] | None = None,
    span: float = 1.0,
) -> tuple[ContextRange, ...]:
    """The parameters that the policy sees, in order, with their ranges.

    Args:
        space: The environment's parameters.
        randomization: The parameters that vary.
        chosen: Names, or a mapping of names to ``(low, high)``; None for all that vary.
        span: Each range is mapped to [-span, span].

    Raises:
        UnknownNameError: There is no such parameter.
        RandomizationError: There is no parameter, a name is repeated, or a parameter has no finite range.
    """
    names = list(randomization if chosen is None else chosen)
    if isinstance(chosen, str) or not names or len(set(names)) != len(names):
        raise RandomizationError(
            f"Expected the names of parameters to show, each once, got {names if chosen is None else chosen!r}. "
            "Randomize a parameter, or name some."
        )
    given = chosen if isinstance(chosen, Mapping) else {}
    rules = dict(randomization)
    return tuple(_range(space[name], rules.get(name), given.get(name), span) for name in names)


def normalized_context(params: Mapping[str, npt.ArrayLike], ranges: Sequence[ContextRange]) -> Array:
    """Current values, mapped to [-span, span] ([-1, 1] by default).

    Args:
        params: name -> number or shape ``(N,)``, as in ``env.params`` and ``info["params"]``; missing names count as
            nominal.
        ranges: The k ranges from ``context_ranges``.

    Returns:
        float64 of shape ``(k,)`` or ``(N, k)``.
    """
    values = [np.asarray(params.get(r.name, r.nominal), dtype=np.float64) for r in ranges]
    stacked = np.stack(np.broadcast_arrays(*values), axis=-1)
    low, high = np.array([r.low for r in ranges]), np.array([r.high for r in ranges])
    span = np.array([r.span for r in ranges])
    return np.asarray(span * np.clip((stacked - low) / (high - low) * 2.0 - 1.0, -1.0, 1.0))


class Context:
    """Implements an environment's keyword ``context``."""

    def __init__(
        self, mode: str, chosen: Any, space: ParamSpace, randomization: Randomization, span: float = 1.0
    ) -> None:
        """Checks the keywords.

        Args:
            mode: "hidden", "info" or "observation".
            chosen: ``context_params``, see ``context_ranges``; None in the other modes.
            space: The environment's parameters.
            randomization: The parameters that vary.
            span: Each range is mapped to [-span, span].

        Raises:
            UnknownNameError: There is no such mode or parameter.
            ConfigError: Parameters are chosen, but the mode is not "observation".
            RandomizationError: There is nothing to show, or a parameter has no finite range.
        """
        check_context(mode, chosen)
        self.mode = mode
        self.ranges = context_ranges(space, randomization, chosen, span) if mode == OBSERVATION else ()

    def extend_space(self, space: gym.Space[Any]) -> gym.Space[Any]:
        """The space of one environment's observations, with a number in [-span, span] for each range.

        They are at the end of a flat box, in the key "context" of a dictionary, or one more element of a tuple.

        Raises:
            ConfigError: The mode is "observation", and the space is none of these or has the key already.
        """
        if not self.ranges:
            return space
        spans = [r.span for r in self.ranges]
        if isinstance(space, gym.spaces.Box) and len(space.shape) == 1 and space.dtype.kind == "f":
            ends = np.array(spans, space.dtype)
            return gym.spaces.Box(np.append(space.low, -ends), np.append(space.high, ends), dtype=space.dtype.type)
        shown = gym.spaces.Box(-np.array(spans, np.float32), np.array(spans, np.float32))
        if isinstance(space, gym.spaces.Tuple):
            return gym.spaces.Tuple([*space.spaces, shown])
        if not isinstance(space, gym.spaces.Dict):
            raise ConfigError(
                "context='observation': expected a flat Box of floating-point numbers, a Dict or a Tuple as "
                f"observations, got {space}. Make it an entry of a Dict, for example with "
                f"gymnasium.wrappers.TransformObservation; the draw then is another, {KEY!r}."
            )
        if KEY in space.spaces:
            raise ConfigError(
                f"context='observation': expected observations without the key {KEY!r}, which is for the draw, got "
                f"{space}. Rename theirs, for example with gymnasium.wrappers.TransformObservation."
            )
        return gym.spaces.Dict({**space.spaces, KEY: shown})

    def extend(self, observations: Any, params: Mapping[str, npt.ArrayLike]) -> Any:
        """Adds the context to an observation, or to those of N environments, if the policy may see it."""
        if not self.ranges:
            return observations
        context = normalized_context(params, self.ranges)
        if isinstance(observations, Mapping):
            return {**observations, KEY: context.astype(np.float32)}
        if isinstance(observations, tuple):
            return (*observations, context.astype(np.float32))
        return np.concatenate([observations, context.astype(observations.dtype)], axis=-1)

    def visible_info(self, info: dict[str, Any]) -> dict[str, Any]:
        """``info`` and its ``final_info``, without the current values if they are hidden."""
        if self.mode != HIDDEN:
            return info
        kept = {key: value for key, value in info.items() if key not in ("params", "_params")}
        if isinstance(kept.get("final_info"), dict):
            kept["final_info"] = self.visible_info(kept["final_info"])
        return kept


def check_context(mode: Any, chosen: Any) -> None:
    """Checks a user's ``context`` and ``context_params``.

    Raises:
        UnknownNameError: There is no such mode.
        ConfigError: Parameters are chosen, but the mode is not "observation".
    """
    check_known("context", mode, MODES)
    if chosen is not None and mode != OBSERVATION:
        raise ConfigError(f"Expected `context_params` with `context={OBSERVATION!r}` only, got `context={mode!r}`.")


def _range(param: Param, rule: Rule | None, given: Any, span: float) -> ContextRange:
    if given is not None:
        try:
            low, high = as_numbers(given).tolist()
        except (TypeError, ValueError):
            raise RandomizationError(
                f"Parameter {param.name!r}: expected a range (low, high), got {given!r}."
            ) from None
    else:
        ends = rule.support(param.nominal) if rule is not None else (param.nominal, param.nominal)
        varies = math.isfinite(ends[0]) and math.isfinite(ends[1]) and ends[0] < ends[1]
        low, high = ends if varies else (param.low, param.high)
    if not (math.isfinite(high - low) and low < high):
        raise RandomizationError(
            f"Parameter {param.name!r}: expected a finite range low < high to map to [-1, 1], got {low:g} to {high:g}. "
            f"Give its distribution bounds or name the range: context_params={{{param.name!r}: (low, high)}}."
        )
    return ContextRange(name=param.name, low=low, high=high, nominal=float(param.nominal), span=span)
