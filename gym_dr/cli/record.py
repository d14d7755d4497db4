"""``gymdr record RUN`` and ``gymdr record --policy ...``."""

from __future__ import annotations

from typing import Any

import click

from gym_dr.api.evaluate import record
from gym_dr.cli.options import chosen_draws, one_policy, physics_options, policy_options, threads_option
from gym_dr.policies.record import FORMATS


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
@threads_option
@policy_options
@physics_options
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="seed of the first episode and of actions"
)
def command(
    run: str | None,
    others: tuple[str, ...],
    randomization: str | None,
    params: tuple[str, ...],
    randomize: tuple[str, ...],
    no_states: bool,
    **options: Any,
) -> None:
    """Record whole episodes of a policy as a log, with their draws, seeds and states.

    The policy is a run or --policy; with --policy random, actions in --env are uniformly random. Each episode has its
    own seed and its own draw, from the policy's training draws or from physics that you choose.
    """
    asked = {name: options.pop(name) for name in ("env", "context", "context_params", "stochastic", "trust")}
    policy = one_policy([*([run] if run else []), *others], randomization=randomization, **asked)
    played = chosen_draws(randomization, randomize, params)
    click.echo(f"Wrote {record(policy, played, states=not no_states, **options)}")
