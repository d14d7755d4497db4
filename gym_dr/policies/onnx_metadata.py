"""Reads and checks the metadata of ONNX files of ``gymdr export``, which may be untrusted."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from gym_dr.errors import ConfigError, GymDrError, located, shortened
from gym_dr.integrations.onnx_policy import OnnxPolicy
from gym_dr.options import check_fields, expect, is_number
from gym_dr.randomization.context import context_ranges as checked_ranges
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization
from gym_dr.runs.sources import check_source
from gym_dr.training.config import CONTEXT_SPAN
from gym_dr.wrappers.frame_stack import Frames

MAX_NAME = 100  # characters of an algorithm's name
_JSON = ("seed", "randomization", "observes_past", "observes_draw", "draw_span")


# entries of the policy's record, its training randomization (None if unknown), and what it observes, as fields of a
# ``FrozenPolicy``
Metadata = tuple[Mapping[str, Any], Randomization | None, Mapping[str, Any]]


def env_of(policy: OnnxPolicy, trust: Collection[str]) -> str | None:
    """Id of the environment that a file names; None if it names none.

    Raises:
        ConfigError: The id would import a module that is not trusted.
    """
    env = policy.about.get("env")
    if env is not None:
        with located(policy.path):
            check_source(env, trust)
    return env


def read_metadata(policy: OnnxPolicy, env: str, space: ParamSpace | None) -> Metadata:
    """Reads a file's metadata about its policy.

    Args:
        policy: The policy.
        env: Id of the environment to act in. Training draws are unknown if the file names another environment.
        space: Parameters of this environment; None if it has none.

    Raises:
        GymDrError: Metadata are malformed, or the environment has no such parameters.
    """
    with located(policy.path):
        try:
            return _metadata(policy, env, space)
        except GymDrError:
            raise
        except Exception as error:  # any JSON may fail in any way
            raise ConfigError(f"expected metadata as gymdr export writes them: {shortened(str(error))}.") from None


def _metadata(policy: OnnxPolicy, env: str, space: ParamSpace | None) -> Metadata:
    about = {name: json.loads(text) for name, text in policy.about.items() if name in _JSON}
    algorithm, seed = policy.about.get("algorithm", ""), about.get("seed")
    randomization, ranges = None, None
    frames, span = about.get("observes_past", {}), about.get("draw_span", CONTEXT_SPAN)
    if env == policy.about.get("env") and "randomization" in about and space is not None:
        randomization = resolve(Randomization.from_dict(about["randomization"]), space)
    expect(is_number(span) and span > 0, "draw_span", "a number above 0", span)
    if about.get("observes_draw"):
        if space is None:
            raise ConfigError("observes_draw: expected an environment with parameters to observe, got one without.")
        shown = checked_ranges(space, Randomization(), dict(about["observes_draw"]))
        ranges = {one.name: (one.low, one.high) for one in shown}
    record = {
        "algorithm": algorithm if algorithm.isprintable() and 0 < len(algorithm) <= MAX_NAME else None,
        "seed": seed if type(seed) is int and 0 <= seed < 2**63 else None,
    }
    observed = {
        "frames": Frames(**check_fields(Frames, frames)),
        "context_ranges": ranges,
        "context_span": float(span),
    }
    return record, randomization, observed
