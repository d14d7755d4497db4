"""``gymdr play RUN``, ``gymdr play --policy ...`` and ``gymdr play --human ENV``."""

from __future__ import annotations

from typing import Any

import click
import gymnasium as gym

from gym_dr.cli.options import policy_options
from gym_dr.errors import ConfigError, RunFolderError
from gym_dr.experiments.pretrained import names, pretrained
from gym_dr.plugins.manager import load_plugins
from gym_dr.wording import counted


@click.command()
@click.argument("target", required=False, metavar="[RUN|ENV]")
@policy_options
@click.option("--pretrained", "name", type=click.Choice(names()), help="a policy included in the package")
@click.option("--human", is_flag=True, help="play ENV yourself with the arrow keys")
@click.option("--video", metavar="FILE", help="write an .mp4 or .gif file instead of opening a window")
@click.option("--episodes", type=click.IntRange(min=1), default=3, show_default=True, help="number of episodes")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="seed of the first episode")
def command(
    target: str | None,
    others: tuple[str, ...],
    name: str | None,
    human: bool,
    video: str | None,
    episodes: int,
    seed: int,
    **options: Any,
) -> None:
    """Watch a trained policy, or play yourself.

    Each episode has a new draw from the policy's training distribution; the values and the return are printed.
    """
    from gym_dr.evaluation import play  # heavy
    from gym_dr.evaluation.policies import training_draws
    from gym_dr.experiments.policies import open_all
    from gym_dr.runs.environments import param_space_of

    given = [*([target] if target else []), *others, *([str(pretrained(name))] if name else [])]
    if len(given) != 1:
        raise ConfigError(
            f"Expected one RUN, one --policy, one --pretrained, or --human and an ENV, got {len(given)} of them."
        )
    if human:
        if video or not target:
            other = "--video" if video else "--policy" if others else "--pretrained"
            raise ConfigError(f"Expected --human or {other}, got both.")
        load_plugins()
        play.play_by_hand(given[0], seed)
        return
    try:
        policies, _ = open_all(given, **options)
    except RunFolderError as error:
        if target in gym.registry:
            raise ConfigError(f"{target}: is an environment; play it with --human, or name a RUN to watch.") from error
        raise
    draws = training_draws(policies, param_space_of(policies[0].env))
    randomization = draws[0] if draws else None
    for episode in play.play_policy(policies[0], randomization, episodes=episodes, seed=seed, video=video):
        values = ", ".join(
            f"{name} {value:g}" for name, value in episode.params.items() if name in (randomization or ())
        )
        told = f" ({values})" if values else ""
        click.echo(f"return {episode.episode_return:8.1f}, {counted(episode.length, 'step')}{told}")
    if video:
        click.echo(f"Wrote {video}")
