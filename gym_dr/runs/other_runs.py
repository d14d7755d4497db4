"""Checks the run that a new run starts from or imitates."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Collection
from pathlib import Path

from gym_dr.errors import ConfigError
from gym_dr.runs.config import RunConfig
from gym_dr.runs.environments import make_env
from gym_dr.training.config import check_same, check_same_networks, check_teacher


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
        ConfigError: Networks, spaces or observations differ; or the teacher has no policy to imitate, or observes
            parameters that this run's environment does not have.
    """
    weights = kind == "weights"
    (check_same_networks if weights else check_teacher)(config.options, other.options, name, source)
    _check_spaces(config.settings.env, other.settings.env, name, source)
    for stacked, value in vars(other.frames).items():
        check_same(stacked, getattr(config.frames, stacked), value, name, source)
    (_check_same_draws if weights else _check_observable)(config, other, name, source)


def _check_spaces(env_id: str, other_id: str, name: str, source: str) -> None:
    """Checks that two environments have the same observations and actions."""
    if env_id == other_id:
        return
    with contextlib.closing(make_env(env_id, None)) as env, contextlib.closing(make_env(other_id, None)) as other:
        for what, mine, theirs in (
            ("observations of shape", env.observation_space.shape, other.observation_space.shape),
            ("actions", env.action_space, other.action_space),
        ):
            if mine != theirs:
                raise ConfigError(f"{name}: {source} has {what} {theirs} ({other_id}), and {env_id} has {mine}.")


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


def _check_observable(config: RunConfig, teacher: RunConfig, name: str, source: str) -> None:
    """Checks that the environment has the parameters that a teacher observes."""
    for param in teacher.context_ranges or ():
        if config.space is None or param not in config.space:
            raise ConfigError(
                f"{name}: the policy of {source} observes the draw of {param}, which {config.settings.env} does not "
                "have."
            )


def _draws(names: Collection[str]) -> str:
    return f"the draw of {', '.join(names)}" if names else "no draw"
