"""Checks the run that a new run starts from or imitates."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from pathlib import Path

from gym_dr.errors import ConfigError
from gym_dr.runs.config import RunConfig
from gym_dr.training.config import check_same_networks, check_teacher


def named_runs(config: RunConfig) -> dict[str, Path]:
    """Options that name a run -> its folder."""
    options = {field.name: field.metadata for field in dataclasses.fields(config.options)}
    named = {name: getattr(config.options, name) for name, known in options.items() if known.get("run")}
    return {name: Path(value) for name, value in named.items() if value not in options[name].get("choices", ())}


def check_other_run(config: RunConfig, other: RunConfig, kind: str, name: str, source: str) -> None:
    """Checks that a run can start from the weights of another run, or imitate its policy.

    Args:
        config: Configuration of the new run.
        other: Configuration of the other run.
        kind: "weights" to start from, or "teacher" for a policy to imitate; see ``options.option``.
        name: The option that names the other run, for messages.
        source: The other run's folder, for messages.

    Raises:
        ConfigError: Networks or the draws that they observe differ; or the teacher has no policy to imitate.
    """
    if kind == "teacher":
        check_teacher(config.options, other.options, name, source)
    else:
        check_same_networks(config.options, other.options, name, source)
        _check_same_draws(config, other, name, source)


def _check_same_draws(config: RunConfig, other: RunConfig, name: str, source: str) -> None:
    """Checks that the networks of two runs observe the draws of the same parameters."""
    seen = [("policy", [list(each.context_ranges or ()) for each in (config, other)])]
    if getattr(config.options, "critic_context", False):  # equal to the other run's, as checked before
        seen.append(("critic", [list(each.randomization or ()) for each in (config, other)]))
    for what, (mine, theirs) in seen:
        if mine != theirs:
            raise ConfigError(
                f"{name}: the {what} of {source} observes {_draws(theirs)}, and that of this run {_draws(mine)}, so "
                "its weights do not fit."
            )


def _draws(names: Collection[str]) -> str:
    return f"the draw of {', '.join(names)}" if names else "no draw"
