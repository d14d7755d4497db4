"""``gymdr play RUN``, ``gymdr play --policy ...`` and ``gymdr play --human ENV``."""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource

from gym_dr.cli.options import chosen_draws, one_policy, physics_options, policy_options, read_pairs
from gym_dr.cli.typed import option
from gym_dr.errors import ConfigError, counted
from gym_dr.evaluation.sets import CellSet
from gym_dr.evaluation.suite import cells_to_play, sets_of
from gym_dr.plugins.loading import load_plugins
from gym_dr.policies.open import pretrained, pretrained_names
from gym_dr.randomization.space import in_effect
from gym_dr.randomization.spec import Randomization
from gym_dr.runs.environments import param_space_of

_OF_POLICIES = (
    "episodes",
    "env",
    "steer",
    "context",
    "context_params",
    "stochastic",
    "trust",
)  # options without effect by hand


@click.command()
@click.argument("target", required=False, metavar="[RUN|ENV]")
@policy_options
@physics_options
@click.option("--pretrained", "name", type=click.Choice(pretrained_names()), help="a policy included in the package")
@click.option("--human", is_flag=True, help="play ENV yourself with the arrow keys")
@click.option("--video", metavar="FILE", help="write an .mp4 or .gif file instead of opening a window")
@click.option(
    "--steer",
    multiple=True,
    metavar="NAME=NUMBERS",
    callback=lambda ctx, param, texts: read_pairs(
        texts,
        "--steer: expected NAME=NUMBERS such as command=1,0,0.5, got",
        lambda text: [*map(float, text.split(","))],
    ),
    help="what a robot's task remembers, such as command=1,0,0.5; in the window of a robot keys change it; repeatable",
)
@click.option("--episodes", type=click.IntRange(min=1), default=3, show_default=True, help="number of episodes")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="seed of the first episode")
def command(
    target: str | None,
    others: tuple[str, ...],
    name: str | None,
    human: bool,
    video: str | None,
    steer: dict[str, list[float]],
    episodes: int,
    seed: int,
    stochastic: bool,
    params: tuple[str, ...],
    randomize: tuple[str, ...],
    **options: Any,
) -> None:
    """Watch a trained policy, or play yourself, under the training draws or under physics that you choose.

    Each episode has a new draw. A video shows its values, and gymdr prints them with the return. The window of a robot
    is MuJoCo's viewer: keys that it shows steer the robot, and change the parameters of --set while it moves.
    """
    from gym_dr.policies import play  # heavy

    played = chosen_draws(options["randomization"], randomize, params)
    given = [*([target] if target else []), *others, *([str(pretrained(name))] if name else [])]
    if human:
        if video or not target or len(given) > 1:
            raise ConfigError("Expected --human and an ENV, without a policy and --video.")
        source = click.get_current_context().get_parameter_source
        if idle := [option(of) for of in _OF_POLICIES if source(of) is ParameterSource.COMMANDLINE]:
            raise ConfigError(f"Leave out {', '.join(idle)}: no effect with --human.")
        load_plugins()
        cells = None if played is None else sets_of(target, param_space_of(target), played, {}, 1)[-1]
        _show_notes(cells)
        play.play_by_hand(target, seed, *((cells.randomization or Randomization(), cells.fixed) if cells else ()))
        return
    if not given:
        raise ConfigError("Expected one RUN, one --policy, one --pretrained, or --human and an ENV, got none.")
    policy = one_policy(given, stochastic=stochastic or None, **options)
    cells = cells_to_play(policy, played, episodes)
    _show_notes(cells)
    for episode in play.play_policy(policy, cells.draws, seed=seed, video=video, steer=steer):
        shown = in_effect(cells.draws.names, episode.params, policy.space or {})
        values = ", ".join(f"{key} {episode.params[key]:g}" for key in shown)
        click.echo(
            f"return {episode.episode_return:8.1f}, {counted(episode.length, 'step')}{f' ({values})' if values else ''}"
        )
    if video:
        click.echo(f"Wrote {video}")


def _show_notes(cells: CellSet | None) -> None:
    for note in cells.notes if cells else ():
        click.echo(note, err=True)
