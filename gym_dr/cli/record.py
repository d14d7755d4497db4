"""``gymdr record RUN`` and ``gymdr record --policy ...``."""

from __future__ import annotations

from typing import Any

import click

from gym_dr.cli.options import physics_options, policy_options, read_params, read_randomize
from gym_dr.errors import ConfigError
from gym_dr.experiments.record import FORMATS, RANDOM, record


@click.command()
@click.argument("run", required=False, metavar="[RUN]")
@click.option("--episodes", type=click.IntRange(min=1), required=True, help="number of episodes")
@click.option(
    "--output",
    required=True,
    metavar="LOG",
    help="where to write; must not exist yet: a folder with --format npz; for Minari, the id of a data set, such as "
    "flights/first-v0, or its folder, which begins with / or .",
)
@click.option(
    "--format",
    type=click.Choice(FORMATS),
    default="minari",
    show_default=True,
    help="a Minari data set, or a folder with an .npz file for each episode",
)
@click.option("--no-states", is_flag=True, help="leave out the environment's state at each step")
@policy_options
@physics_options
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="seed of the first episode and of actions"
)
def command(
    run: str | None,
    others: tuple[str, ...],
    params: tuple[str, ...],
    randomize: tuple[str, ...],
    no_states: bool,
    **options: Any,
) -> None:
    """Record whole episodes of a policy as a log, with their draws, seeds and states.

    The policy is a run or --policy; with --policy random, actions in --env are uniformly random. Each episode has its
    own seed and its own draw, from the policy's training draws or from physics that you choose.
    """
    named = [f"./{RANDOM}" if run == RANDOM else run] if run else []  # a folder of this name is no random policy
    given = [*named, *others]
    if len(given) != 1:
        raise ConfigError(f"Expected one RUN or one --policy, got {len(given)} of them.")
    chosen: Any = {"params": read_params(params), "randomize": read_randomize(randomize)}
    folder = record(given[0], states=not no_states, **chosen, **options)
    click.echo(f"Wrote {folder}")


def _adapt(option: click.Parameter) -> None:
    """Lets the shared options say what is different here."""
    if not isinstance(option, click.Option):
        return
    if option.name == "others":
        check: Any = option.callback

        def checked(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> tuple[str, ...]:
            check(ctx, param, tuple(text for text in texts if text != RANDOM))
            return texts

        option.callback = checked
        option.help = f"random for uniform random actions, {(option.help or '').replace('; repeatable', '')}"
    elif option.name == "stochastic":
        option.help = "sample the actions of RUN or sb3:FILE.zip instead of taking the most likely ones"


for _option in command.params:
    _adapt(_option)
