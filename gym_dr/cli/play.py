"""``gymdr play RUN`` and ``gymdr play --human ENV``."""

from __future__ import annotations

import click
import gymnasium as gym

from gym_dr.cli.options import trust_option
from gym_dr.errors import ConfigError, RunFolderError
from gym_dr.experiments.configure import open_run
from gym_dr.plugins.manager import load_plugins


@click.command()
@click.argument("target", metavar="RUN|ENV")
@click.option("--human", is_flag=True, help="fly ENV yourself with the arrow keys")
@click.option("--video", metavar="FILE", help="write .mp4 or .gif instead of showing a window")
@click.option("--episodes", type=click.IntRange(min=1), default=3, show_default=True, help="episodes of the policy")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="of the first episode")
@trust_option
def command(target: str, human: bool, video: str | None, episodes: int, seed: int, trust: tuple[str, ...]) -> None:
    """Watch a trained policy, or fly yourself.

    Every episode has a new draw of the run's training distribution; the values and the return are printed.
    """
    from gym_dr.evaluation import play  # heavy

    if human:
        if video:
            raise ConfigError("Expected --human or --video, got both.")
        load_plugins()
        play.play_by_hand(target, seed)
        return
    try:
        parts = open_run(target, trust)
    except RunFolderError as error:
        if target in gym.registry:
            raise ConfigError(f"{target}: is an environment; fly it with --human, or name a RUN to watch.") from error
        raise
    randomized = parts[1].randomization or ()
    for episode in play.play_policy(*parts, episodes=episodes, seed=seed, video=video):
        values = ", ".join(f"{name} {value:g}" for name, value in episode.params.items() if name in randomized)
        click.echo(f"return {episode.episode_return:8.1f}, {episode.length} steps" + (f" ({values})" if values else ""))
    if video:
        click.echo(f"Wrote {video}")
