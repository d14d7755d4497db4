"""``gymdr list envs|algorithms|plugins``."""

from __future__ import annotations

import click

from gym_dr.cli.runs import plugin_host
from gym_dr.plugins.manager import load_plugins


@click.command()
@click.argument("what", type=click.Choice(["envs", "algorithms", "plugins"]))
def command(what: str) -> None:
    """List environments, algorithms or plugins."""
    host = load_plugins() if what == "plugins" else plugin_host()
    if what == "envs":
        rows = [(entry.id, f"at most {entry.max_episode_steps} steps") for entry in host.environments.values()]
    elif what == "algorithms":
        rows = [(algorithm.name, algorithm.summary) for algorithm in host.algorithms.values()]
    else:
        rows = [(plugin.name, f"{plugin.package}, {plugin.origin}") for plugin in host.plugins if not plugin.problem]
        rows += [
            (plugin.name, f"{plugin.package}, {plugin.origin}: {plugin.problem}")
            for plugin in host.plugins
            if plugin.problem
        ]
    width = max(len(name) for name, _ in rows)
    for name, text in sorted(rows):
        click.echo(f"{name:{width}}  {text}")
