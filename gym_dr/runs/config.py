"""The configuration of a run: settings, options of its algorithm and its sampler, and its randomization."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gym_dr.envs.families import DEFAULT_ENV
from gym_dr.errors import ConfigError, shortened
from gym_dr.options import AT_LEAST_0, AT_LEAST_1, as_json, check_values, expect, flattened, is_whole, option
from gym_dr.randomization.context import INFO, OBSERVATION
from gym_dr.randomization.sampler import UNIFORM
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization
from gym_dr.runs.environments import REGISTERED_BY, VECTORIZATIONS, ContextRanges, make_env, source_of
from gym_dr.runs.folder import RunFolder
from gym_dr.training.api import Algorithm
from gym_dr.training.config import check_same, check_same_networks, check_teacher
from gym_dr.version import WRITTEN_BY, __version__
from gym_dr.wrappers.frame_stack import MAX_STACKED, Frames

CONTEXTS = (INFO, OBSERVATION)  # not "hidden", which would hide the draw from the run's records
MAX_ENVS = 1_000_000

NOT_COMPARED = ("loggers", REGISTERED_BY)  # keys that do not change a run's results
KEYWORDS = (  # of gym_dr.train that are not settings of a single run
    *("run_dir", "seeds", "launcher", "workers", "num_threads", "ray_address", "config", "trust"),
    *("randomization", "randomize", "total_steps", "overwrite", "progress", "callback", "command"),
)


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """Settings that all algorithms share."""

    env: str = option(DEFAULT_ENV, "id of the environment to train on")
    seed: int = option(1, "random seed of the run", within=AT_LEAST_0)
    num_envs: int = option(10, "number of sub-environments", within=AT_LEAST_1)
    vectorization: str = option("auto", "how sub-environments run; auto: native if available", VECTORIZATIONS)
    context: str = option("info", "who sees the draw: info (only records) or observation (also the policy)", CONTEXTS)
    stack_observations: int = option(
        1, "number of observations in the frame stack: the current one and those before it"
    )
    observe_reward: bool = option(False, "append the reward of the last step to the observation")
    sampler: str = option(UNIFORM, "sampler of the draws; see gymdr list samplers")
    resample_every: int = option(
        0, "rollouts between re-draws of all parameters; 0 re-draws at every episode", within=AT_LEAST_0
    )
    checkpoint_every: int = option(
        100,
        "updates between checkpoints; each checkpoint drops unfinished episodes and re-draws all parameters",
        within=AT_LEAST_1,
    )
    eval_episodes: int = option(100, "episodes in each evaluation after training; 0 for none", within=AT_LEAST_0)
    device: str = option("cpu", "device of the networks: cpu or cuda")
    torch_threads: int = option(
        1, "threads of torch, which trains larger networks; results depend on their number", within=AT_LEAST_1
    )
    reserved_seeds: tuple[int, ...] = option(
        (), "seeds on which options were tuned; runs with these seeds must not be reported"
    )
    loggers: tuple[str, ...] = option((), "loggers of the run, such as tensorboard; see gymdr list loggers")

    def __post_init__(self) -> None:
        check_values(self)
        expect(min(self.reserved_seeds, default=0) >= 0, "reserved_seeds", "at least 0 each", self.reserved_seeds)
        stacked = f"1 to {MAX_STACKED}"
        expect(1 <= self.stack_observations <= MAX_STACKED, "stack_observations", stacked, self.stack_observations)
        expect(self.num_envs <= MAX_ENVS, "num_envs", f"at most {MAX_ENVS}", self.num_envs)
        most = f"at most checkpoint_every ({self.checkpoint_every}), which re-draws all parameters"
        expect(self.resample_every <= self.checkpoint_every, "resample_every", most, self.resample_every)


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Everything that determines a run."""

    algorithm: str  # name
    settings: RunSettings
    randomization: Randomization | None  # None for environments without parameters
    options: Any  # the algorithm's dataclass
    sampler_options: Any = None  # the sampler's dataclass; None if it has none
    # derived from the others:
    context_ranges: ContextRanges | None = None  # of parameters that the policy observes
    space: ParamSpace | None = dataclasses.field(default=None, compare=False, repr=False)  # of the environment

    @property
    def frames(self) -> Frames:
        """What the policy observes besides the current observation and the draw."""
        return Frames(stack_observations=self.settings.stack_observations, observe_reward=self.settings.observe_reward)

    @property
    def steps_per_update(self) -> int | None:
        """Environment steps of one update, with reset steps; None if they depend on the length of episodes."""
        steps = getattr(self.options, "rollout_steps", None)
        return None if steps is None else int(steps * self.settings.num_envs)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, which ``config`` of ``gym_dr.train`` reads."""
        form: dict[str, Any] = {"algorithm": self.algorithm, **as_json(self.settings)}
        form["randomization"] = {} if self.randomization is None else self.randomization.to_dict()
        form[self.algorithm] = as_json(self.options)
        if self.sampler_options is not None:
            form[self.settings.sampler] = as_json(self.sampler_options)
        return form

    def to_json(self) -> str:
        """The content of ``config.json``: ``to_dict``, the version of gym_dr, and the source of the environment."""
        form = {WRITTEN_BY: __version__, **self.to_dict()}
        if source := source_of(self.settings.env):
            form[REGISTERED_BY] = source
        return json.dumps(form, indent=2) + "\n"


@dataclass(frozen=True, kw_only=True)
class OpenedRun:
    """A run: its folder, the configuration in it, and the algorithm that the configuration names."""

    folder: RunFolder
    config: RunConfig
    algorithm: Algorithm


SETTINGS = tuple(field.name for field in dataclasses.fields(RunSettings))


def with_total_steps(config: RunConfig, total_steps: int, given: Collection[str] = ()) -> RunConfig:
    """The configuration with the fewest updates that make at least ``total_steps`` environment steps.

    Raises:
        ConfigError: ``updates`` is ``given`` as well, ``total_steps`` is not a whole number above 0, or an update has
            no fixed number of steps.
    """
    if "updates" in given:
        raise ConfigError("Expected updates or total_steps, got both.")
    if not is_whole(total_steps) or total_steps < 1:
        raise ConfigError(f"`total_steps`: expected a whole number of at least 1, got {shortened(total_steps)}.")
    if (each := config.steps_per_update) is None:
        raise ConfigError(
            f"`total_steps`: expected an algorithm with rollouts of a fixed length, got {config.algorithm}, "
            f"whose updates take complete episodes. Use `updates`."
        )
    options = dataclasses.replace(config.options, updates=-(-int(total_steps) // each))
    return dataclasses.replace(config, options=options)


def check_not_reserved(name: str, seeds: Collection[int], reserved: Collection[int]) -> None:
    """Checks that no options were tuned on these seeds: their results would look too good.

    Raises:
        ConfigError: They were.
    """
    if taken := sorted({*seeds} & {*reserved}):
        raise ConfigError(
            f"{name}: expected seeds on which no options were tuned, got {', '.join(map(str, taken))}. Use others than "
            f"reserved_seeds: {', '.join(map(str, reserved))}."
        )


def check_device(device: str) -> None:
    """Checks that networks can be trained on a device.

    Raises:
        ConfigError: The device is not available.
    """
    import torch  # heavy: only when a run begins

    try:
        torch.zeros(1, device=device).item()  # fails on a meta device, which has no numbers
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"device: expected cpu, or cuda where there is one, got {device!r} ({reason}).") from None


def differences(saved: Mapping[str, Any], config: RunConfig) -> list[str]:
    """Describes the settings in which a configuration differs from a saved one.

    Options that an older version did not save have their defaults.
    """
    now = config.to_dict()
    defaults = {**as_json(RunSettings()), config.algorithm: as_json(type(config.options)())}
    if config.sampler_options is not None:
        defaults[config.settings.sampler] = as_json(type(config.sampler_options)())
    old, new = {**flattened(defaults, "."), **flattened(saved, ".")}, flattened(now, ".")
    changed = [name for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name)]
    return [f"{name} was {old.get(name)!r} and is {new.get(name)!r}" for name in changed if name not in NOT_COMPARED]


# ---- other runs that options name ------------------------------------------------------------------------------------


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
