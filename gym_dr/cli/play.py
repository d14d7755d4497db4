"""``gymdr play RUN``, ``gymdr play --policy ...`` and ``gymdr play --human ENV``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import gymnasium as gym
from click.core import ParameterSource

from gym_dr.cli.options import physics_options, policy_options, read_params, read_randomize
from gym_dr.errors import ConfigError, RunFolderError
from gym_dr.experiments.pretrained import names, pretrained
from gym_dr.plugins.loading import load_plugins
from gym_dr.wording import counted, flag

if TYPE_CHECKING:
    from gym_dr.experiments.chosen_params import ChosenParams
    from gym_dr.randomization.space import ParamSpace


@click.command()
@click.argument("target", required=False, metavar="[RUN|ENV]")
@policy_options
@physics_options
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
    params: tuple[str, ...],
    randomize: tuple[str, ...],
    **options: Any,
) -> None:
    """Watch a trained policy, or play yourself, under the training draws or under physics that you choose.

    Each episode has a new draw. The picture shows its values, and gymdr prints them with the return.
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
    asked = {"params": read_params(params), "randomize": read_randomize(randomize)}
    asked["randomization"] = options["randomization"]
    if human:
        if video or not target:
            other = "--video" if video else "--policy" if others else "--pretrained"
            raise ConfigError(f"Expected --human or {other}, got both.")
        _check_played_by_hand()
        load_plugins()
        chosen = _choose(target, param_space_of(target), asked)
        play.play_by_hand(target, seed, *((chosen.randomization, chosen.params) if chosen else ()))
        return
    try:
        policies, _ = open_all(given, **options)
    except RunFolderError as error:
        if target in gym.registry:
            raise ConfigError(f"{target}: is an environment; play it with --human, or name a RUN to watch.") from error
        raise
    if len(policies) > 1:
        first = policies[0].run
        raise ConfigError(
            f"{given[0]}: holds several runs: expected one, such as {first.folder.path if first else ''}."
        )
    chosen = _choose(policies[0].env, policies[0].space, asked)
    draws = training_draws(policies)
    randomization = chosen.randomization if chosen else draws[0] if draws else None
    exact = chosen.params if chosen else {}
    played = play.play_policy(policies[0], randomization, episodes=episodes, seed=seed, video=video, params=exact)
    for episode in played:
        shown = {name: episode.params[name] for name in (*exact, *(randomization or ())) if name in episode.params}
        values = ", ".join(f"{name} {value:g}" for name, value in shown.items())
        told = f" ({values})" if values else ""
        click.echo(f"return {episode.episode_return:8.1f}, {counted(episode.length, 'step')}{told}")
    if video:
        click.echo(f"Wrote {video}")


def _check_played_by_hand() -> None:
    """Checks that nothing was given that only episodes of a policy have.

    Raises:
        ConfigError: Something was.
    """
    context = click.get_current_context()
    of_policies = ("episodes", "env", "context", "context_params", "stochastic", "trust")
    given = [name for name in of_policies if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    if given:
        raise ConfigError(f"{', '.join(map(flag, given))}: has no effect with --human. Leave it out.")


def _choose(env: str, space: ParamSpace | None, asked: dict[str, Any]) -> ChosenParams | None:
    """The parameters that the user chose, if any; says which switches they turn on."""
    from gym_dr.experiments.chosen_params import choose_params  # heavy

    chosen = choose_params(env, space, **asked)
    for note in chosen.notes() if chosen else ():
        click.echo(note, err=True)
    return chosen
