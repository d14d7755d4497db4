"""Command-line options, most of them from the documented fields of configuration dataclasses."""

from __future__ import annotations

import dataclasses
import re
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, Union, get_args, get_origin

import click
from click.shell_completion import CompletionItem

from gym_dr.cli.typed import option as flag
from gym_dr.envs.family import ENVIRONMENTS, described_space
from gym_dr.errors import ConfigError, RandomizationError
from gym_dr.evaluation.sets import EvaluationSet, draws
from gym_dr.options import hints_of
from gym_dr.plugins.loading import load_plugins
from gym_dr.policies.frozen import FrozenPolicy
from gym_dr.policies.open import is_policy_text, open_policies, open_policy
from gym_dr.randomization.context import INFO
from gym_dr.randomization.sampler import SAMPLERS, Sampler
from gym_dr.randomization.spec import Randomization
from gym_dr.registry import load_object
from gym_dr.runs.config import CONTEXTS
from gym_dr.training.registry import ALGORITHMS

Read = TypeVar("Read")

RANGE = re.compile(r"\b(\d{1,6})-(\d{1,6})\b")

# arguments and options -> their names, which shells complete
KNOWN: dict[str, Iterable[str]] = {
    "algorithm": ALGORITHMS,
    "sampler": SAMPLERS,
    "env": ENVIRONMENTS,
    "env_id": ENVIRONMENTS,
}

trust_option = click.option(
    "--trust",
    multiple=True,
    metavar="MODULE|FILE",
    help="a module or Python file of its environment, whose code may run; repeatable",
)

threads_option = click.option(
    "--num-threads",
    type=click.IntRange(min=1),
    help="threads of native environments and compiled learners; results do not depend on it  [default: cores, divided "
    "by what trains at once]",
)


def _together(*options: Callable[..., Any]) -> Callable[..., Any]:
    """One decorator that adds several options."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for each in reversed(options):
            command = each(command)
        return command

    return add


# of policies that are not runs, and --trust
policy_options = _together(
    click.option(
        "--policy",
        "others",
        multiple=True,
        metavar="[NAME=]POLICY",
        help="sb3:FILE.zip from Stable-Baselines3, onnx:FILE.onnx as gymdr export writes it, "
        "package.module:function (observations -> actions, or observations, episode_starts -> actions), or random for "
        "uniform random actions; repeatable where several can be compared",
    ),
    click.option(
        "--env",
        metavar="ID",
        help="environment of --policy; required unless a RUN or an ONNX file of gymdr export names it",
    ),
    click.option(
        "--context",
        metavar="|".join(CONTEXTS),
        default=INFO,
        show_default=True,
        help="observation if --policy was trained on environments with context='observation', which "
        "needs --randomization or --context-params",
    ),
    click.option(
        "--context-params",
        multiple=True,
        metavar="NAME[=LOW:HIGH]",
        callback=lambda ctx, param, texts: read_context_params(texts),
        help="a parameter that --policy observes, and the range that was mapped to [-1, 1]; repeatable  [default: "
        "all of --randomization, with their ranges]",
    ),
    click.option(
        "--stochastic",
        is_flag=True,
        help="sample the actions of sb3:FILE.zip, and in gymdr record those of RUN, instead of taking the most likely "
        "ones",
    ),
    click.option(
        "--trust",
        multiple=True,
        metavar="MODULE|FILE",
        help="a module, sb3 file or VecNormalize file of --policy, or a module of a RUN's configuration, whose "
        "code may run; repeatable",
    ),
)


reference_option = click.option(
    "--reference",
    "references",
    multiple=True,
    metavar="RUN|[NAME=]POLICY",
    help="another run or policy, to show what is possible: regret is how much more the best of all policies "
    "returns; repeatable",
)


# that choose the physics to play
physics_options = _together(
    click.option(
        "--set",
        "params",
        multiple=True,
        metavar="NAME=VALUE",
        help="fixed value of a parameter; without --randomization and --randomize, all others are nominal; repeatable",
    ),
    click.option(
        "--randomization",
        metavar="PRESET|FILE",
        help="draws to play, and the training draws of --policy  [default: the policy's training "
        "draws, or those of the preset default if they are unknown]",
    ),
    click.option(
        "--randomize",
        multiple=True,
        metavar="NAME=DIST",
        help="draws of one parameter, such as gravity=-12:-2; without --randomization, nothing else varies; repeatable",
    ),
)


def opened_policies(
    given: Sequence[str], references: Sequence[str] = (), *, randomization: str | None, **options: Any
) -> list[FrozenPolicy]:
    """Opens the policies that a command names; ``--randomization`` gives the training draws of all but runs."""
    trained_on = randomization if any(map(is_policy_text, [*given, *references])) else None
    return open_policies(given, references, randomization=trained_on, **options)


def one_policy(given: Sequence[str], *, randomization: str | None, **options: Any) -> FrozenPolicy:
    """Opens the policy of a command that takes only one; for arguments see ``opened_policies``."""
    if len(given) != 1:
        raise ConfigError(f"Expected one RUN or one --policy, got {len(given)}.")
    return open_policy(given[0], randomization=randomization if is_policy_text(given[0]) else None, **options)


def chosen_draws(
    randomization: str | None, randomize: tuple[str, ...], params: tuple[str, ...]
) -> EvaluationSet | None:
    """The set that ``physics_options`` choose; None if they choose nothing."""
    rules: Any = {**read_randomize(randomize), **read_params(params)}
    return None if randomization is None and not rules else draws(randomization, **rules)


class _Text(click.types.StringParamType):
    """Text that a shell completes: a name, or else a file."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        load_plugins()
        usage, described = param.make_metavar(ctx), described_space(str(ctx.params.get("env")))
        words = KNOWN.get(param.name or "", [word for word in usage.split("|") if word.islower()])
        if usage.startswith("NAME=") and described is not None:
            words = [f"{name}=" for name in described[0]]
        found = [CompletionItem(word) for word in words if word.startswith(incomplete)]
        return found or [CompletionItem(incomplete, type="file")]


TEXT = _Text()


class NumberList(click.ParamType[Any]):
    """Numbers separated by commas, as a tuple."""

    name = "list"

    def __init__(self, item: type, *, ranges: bool = False) -> None:
        """Makes the type for items of type ``item``; with ``ranges``, 1-3 stands for 1,2,3."""
        self.item, self.ranges = item, ranges

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Any, ...]:
        if isinstance(value, tuple):
            return value
        text = (
            RANGE.sub(lambda ends: ",".join(map(str, range(int(ends[1]), int(ends[2]) + 1))), str(value))
            if self.ranges
            else str(value)
        )
        try:
            return tuple(self.item(part.strip()) for part in text.split(",")) if value or self.item is not str else ()
        except ValueError:
            such = "1,2,3 or 1-3" if self.ranges else "64,64"
            self.fail(f"expected numbers separated by commas, such as {such}, got {value!r}.", param, ctx)


def field_options(cls: type, **defaults: Any) -> list[click.Option]:
    """An option for each field of a dataclass; ``defaults`` override those of the fields."""
    hints = hints_of(cls)
    return [_option(f, hints[f.name], defaults.get(f.name, f.default)) for f in dataclasses.fields(cls)]


def sampler_options() -> list[click.Option]:
    """The options of all samplers; samplers share an option by its name."""
    owners: dict[str, list[tuple[Sampler, dataclasses.Field[Any]]]] = {}
    for sampler in SAMPLERS.values():
        for field in sampler.option_fields():
            owners.setdefault(field.name, []).append((sampler, field))
    options = []
    for name, found in owners.items():
        sampler, field = found[0]
        values = {each.default: [s.name for s, other in found if other.default == each.default] for _, each in found}
        shown = [f"{value}" if len(values) == 1 else f"{value} with {'/'.join(of)}" for value, of in values.items()]
        help = f"[{', '.join(each.name for each, _ in found)}] {field.metadata['help']}"
        hint = hints_of(load_object(sampler.options))[name]
        # no default: each sampler has its own
        options.append(_option(field, hint, None, help, ", ".join(shown) if None not in values else False))
    return options


def command_line() -> str:
    """The command line, recorded in folders and reports."""
    return str(click.get_current_context().find_root().obj)


def read_context_params(texts: tuple[str, ...]) -> dict[str, tuple[float, float] | None] | None:
    """Reads ``--context-params NAME`` and ``NAME=LOW:HIGH`` options; None without any.

    Raises:
        ConfigError: A text is malformed.
        RandomizationError: A name is given twice.
    """

    def ends(numbers: str | None) -> tuple[float, float] | None:
        if numbers is None:
            return None
        low, high = map(float, numbers.split(":"))
        return low, high

    expected = "--context-params: expected NAME or NAME=LOW:HIGH such as gravity=-12:-2, got"
    return read_pairs(texts, expected, ends, alone=True) or None


def read_randomize(texts: tuple[str, ...]) -> Randomization:
    """Reads ``--randomize NAME=DISTRIBUTION`` options, whose names are checked when parameters are known.

    Raises:
        ConfigError: A text is malformed.
        RandomizationError: A name is given twice, or a distribution is impossible.
        UnknownNameError: There is no such distribution.
    """
    return Randomization(read_pairs(texts, "--randomize: expected NAME=DISTRIBUTION such as gravity=-12:-2, got", str))


def read_params(texts: tuple[str, ...]) -> dict[str, float]:
    """Reads ``--set NAME=VALUE`` options.

    Raises:
        ConfigError: A text is malformed.
        RandomizationError: A name is given twice.
    """

    def number(text: str) -> float:
        return float({"true": "1", "false": "0"}.get(text.lower(), text))

    return read_pairs(
        texts,
        "--set: expected NAME=VALUE such as gravity=-3, got",
        number,
        hint=" For draws: --randomize {name}=DISTRIBUTION",
    )


def read_pairs(
    texts: tuple[str, ...], expected: str, read: Callable[[Any], Read], *, alone: bool = False, hint: str = ""
) -> dict[str, Read]:
    """Reads texts of the form NAME=VALUE.

    Args:
        texts: The texts; spaces around names and values do not count.
        expected: Begins the message about a malformed text.
        read: Reads a value, None for a name alone; raises ValueError for a malformed value.
        alone: Whether a name may stand alone.
        hint: Ends the message about a value that cannot be read.
    """
    pairs: dict[str, Read] = {}
    for text in texts:
        name, given, value = (part.strip() for part in text.partition("="))
        if not name or not (value or (alone and not given)):
            raise ConfigError(f"{expected} {text!r}.")
        if name in pairs:
            raise RandomizationError(f"{expected.partition(':')[0]}: parameter {name!r} is given twice.")
        try:
            pairs[name] = read(value if given else None)
        except ValueError:
            raise ConfigError(f"{expected} {f'{name}={value}'!r}.{hint.format(name=name)}") from None
    return pairs


def _option(
    field: dataclasses.Field[Any], hint: Any, default: Any, help: str | None = None, shown: bool | str = True
) -> click.Option:
    name = flag(field.name)
    if get_origin(hint) in (Union, types.UnionType):
        hint = next(part for part in get_args(hint) if part is not type(None))
    shared: Any = {"help": help or field.metadata.get("help", ""), "default": default}
    shared["show_default"] = shown if default not in ("", ()) else False  # no default to show
    if hint is bool:
        return click.Option([f"{name}/--no-{name[2:]}"], **shared)
    if get_origin(hint) is tuple:
        if default is not None:
            shared["show_default"] = ",".join(map(str, default)) or False
        numbers = NumberList(get_args(hint)[0], ranges=field.name.endswith("seeds"))
        return click.Option([name, field.name], type=numbers, **shared)
    # the configuration checks choices, from files too
    words = [*field.metadata.get("choices", ()), *(["RUN"] if field.metadata.get("run") else [])]
    return click.Option([name], type=TEXT if hint is str else hint, metavar="|".join(words) or None, **shared)
