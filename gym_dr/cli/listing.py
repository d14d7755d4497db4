"""``gymdr list envs|algorithms|plugins``."""

from __future__ import annotations

import click

from gym_dr.plugins.manager import load_plugins
from gym_dr.registration import ENVIRONMENTS
from gym_dr.training.registry import ALGORITHMS


@click.command()
@click.argument("what", type=click.Choice(["envs", "algorithms", "plugins"]))
def command(what: str) -> None:
    """List environments, algorithms or plugins."""
    plugins = load_plugins()
    if what == "envs":
        rows = [(entry.id, f"at most {entry.max_episode_steps} steps") for entry in ENVIRONMENTS.values()]
    elif what == "algorithms":
        rows = [(algorithm.name, algorithm.summary) for algorithm in ALGORITHMS.values()]
    else:
        texts = {plugin: f"{plugin.package}, {plugin.origin}" for plugin in plugins}
        rows = [(p.name, f"{text}: {p.problem}" if p.problem else text) for p, text in texts.items()]
    width = max(len(name) for name, _ in rows)
    for name, text in sorted(rows):
        click.echo(f"{name:{width}}  {text}")
