"""What ONNX files of ``gymdr export`` say about their policies; anybody may have written it, so it is checked."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from gym_dr.errors import ConfigError, located, shortened
from gym_dr.integrations.onnx_policy import OnnxPolicy
from gym_dr.options import check_fields
from gym_dr.randomization.context import context_ranges
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.space import ParamSpace, nominal_may_be_outside
from gym_dr.randomization.spec import Randomization
from gym_dr.runs.environments import ContextRanges, check_module
from gym_dr.training.config import CONTEXT_SPAN
from gym_dr.wrappers.past import MAX_STACKED, NO_PAST, Past

MAX_NAME = 100  # characters of an algorithm's name


@dataclass(frozen=True, kw_only=True)
class PolicyMetadata:
    """What a file says about its policy; the defaults are those of a file that says nothing."""

    algorithm: str | None = None
    seed: int | None = None
    randomization: Randomization | None = None  # of its training; None if unknown
    past: Past = NO_PAST
    context_ranges: ContextRanges | None = None  # of the parameters that it observes, ...
    context_span: float = CONTEXT_SPAN  # ... mapped to [-context_span, context_span]


def env_of(policy: OnnxPolicy, trust: Collection[str]) -> str | None:
    """Id of the environment that a file names; None if it names none.

    Raises:
        ConfigError: The id would import a module that is not trusted.
    """
    env = policy.about.get("env")
    if env is not None:
        with located(policy.path):
            check_module(env, trust)
    return env


def read_metadata(policy: OnnxPolicy, env: str, space: ParamSpace | None) -> PolicyMetadata:
    """Reads what a file says about its policy.

    Args:
        policy: The policy.
        env: Id of the environment that it is to act in. The draws of its training are unknown if it names another one.
        space: Parameters of this environment; None if it has none.

    Raises:
        ConfigError: Something is of the wrong form, or the environment has no such parameters.
        UnknownNameError: The environment has no such parameter.
        RandomizationError: A range is impossible.
    """
    about = policy.about
    algorithm = about.get("algorithm", "")
    with located(policy.path):
        seed = _json(about, "seed", None)
        found: dict[str, Any] = {
            "algorithm": algorithm if algorithm.isprintable() and 0 < len(algorithm) <= MAX_NAME else None,
            "seed": seed if type(seed) is int and 0 <= seed < 2**63 else None,
        }
        if env == about.get("env") and "randomization" in about and space is not None:
            draws = Randomization.from_dict(_table(about, "randomization"), saved=True)
            with nominal_may_be_outside():  # whoever trained it was warned
                found["randomization"] = resolve(draws, space)
        if policy.says_what_it_observes:
            found |= {"past": _past(about), **_draw(about, space)}
    return PolicyMetadata(**found)


def _past(about: Mapping[str, str]) -> Past:
    past = Past(**check_fields(Past, _table(about, "observes_past")))
    if not 1 <= past.stack_observations <= MAX_STACKED:
        raise ConfigError(f"stack_observations: expected 1 to {MAX_STACKED}, got {past.stack_observations}.")
    return past


def _draw(about: Mapping[str, str], space: ParamSpace | None) -> dict[str, Any]:
    """The parameters that a policy observes, and how they are scaled."""
    ranges = _table(about, "observes_draw")
    if not ranges:
        return {}
    if space is None:
        raise ConfigError("observes_draw: expected an environment with parameters to observe, got one without.")
    for name, ends in ranges.items():
        if not (isinstance(ends, list) and len(ends) == 2 and all(map(_is_number, ends))):
            raise ConfigError(f"observes_draw: {shortened(name)}: expected two numbers, got {shortened(ends)}.")
    span = _json(about, "draw_span", CONTEXT_SPAN)
    if not _is_number(span) or span <= 0:
        raise ConfigError(f"draw_span: expected a number above 0, got {shortened(span)}.")
    shown = context_ranges(space, Randomization(), {name: (low, high) for name, (low, high) in ranges.items()})
    return {"context_ranges": {one.name: (one.low, one.high) for one in shown}, "context_span": float(span)}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _table(about: Mapping[str, str], key: str) -> dict[str, Any]:
    table = _json(about, key, {})
    if not isinstance(table, dict):
        raise ConfigError(f"{key}: expected a table, got {shortened(table)}.")
    return table


def _json(about: Mapping[str, str], key: str, default: Any) -> Any:
    if key not in about:
        return default
    try:
        return json.loads(about[key])
    except (ValueError, RecursionError):
        raise ConfigError(f"{key}: expected JSON in the file's metadata, got {shortened(about[key])}.") from None
