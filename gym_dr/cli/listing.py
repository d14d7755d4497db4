"""``gymdr list envs|algorithms|samplers|loggers|plugins``."""

from __future__ import annotations

import click

from gym_dr.cli.typed import option
from gym_dr.envs.family import ENVIRONMENTS
from gym_dr.plugins.loading import load_plugins
from gym_dr.randomization.sampler import SAMPLERS, Sampler
from gym_dr.runs.loggers import LOGGERS
from gym_dr.table import Table
from gym_dr.training.registry import ALGORITHMS


def _options_of(sampler: Sampler) -> str:
    """A sampler's command-line options with their defaults."""
    typed = [(option(field.name), field.default) for field in sampler.option_fields()]
    options = ", ".join(name if value is None else f"{name} {value}" for name, value in typed)
    return f"[{options}]" if options else ""


@click.command()
@click.argument("what", type=click.Choice(["envs", "algorithms", "samplers", "loggers", "plugins"]))
def command(what: str) -> None:
    """List environments, algorithms, samplers, loggers or plugins.

    gymdr params ENV_ID shows the parameters and presets of an environment.
    """
    plugins = load_plugins()
    rows = {
        "envs": [
            (entry.id, f"at most {most} steps" if (most := entry.max_episode_steps) else "no step limit")
            for entry in ENVIRONMENTS.values()
        ],
        "algorithms": [(item.name, item.summary) for item in ALGORITHMS.values()],
        "samplers": [(item.name, f"{item.summary} {_options_of(item)}".rstrip()) for item in SAMPLERS.values()],
        "loggers": [(item.name, item.summary) for item in LOGGERS.values()],
        "plugins": [(p.name, f"{p.package}, {p.origin}{': disabled' if p.disabled else ''}") for p in plugins],
    }
    click.echo(Table(rows=sorted(rows[what])))
