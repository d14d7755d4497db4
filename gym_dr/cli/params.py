"""``gymdr params ENV_ID``."""

from __future__ import annotations

import re

import click

from gym_dr.envs.family import randomized_id
from gym_dr.errors import ConfigError
from gym_dr.plugins.loading import load_plugins
from gym_dr.randomization.space import needs_text
from gym_dr.table import Table


@click.command()
@click.argument("env_id")
def command(env_id: str) -> None:
    """Show the parameters of an environment that can vary, and its presets."""
    from gym_dr.randomization.presets import presets  # heavy, with the environment
    from gym_dr.runs.environments import param_space_of
    from gym_dr.wrappers.disturbed_space import DisturbedSpace
    from gym_dr.wrappers.sensors import HIDE, SENSOR_PARAMS

    load_plugins()
    space = param_space_of(env_id)
    if space is None:
        raise ConfigError(
            f"{env_id} has no parameters to randomize. Use "
            f"{randomized_id(env_id) or 'another id (gymdr list envs), or gym_dr.register'}."
        )
    sensors = space.sensors if isinstance(space, DisturbedSpace) else None
    rows = [
        (
            *(p.name, f"{p.nominal:g}", f"{p.low:g}", f"{p.high:g}", p.unit if p.kind == "float" else p.kind),
            f"{p.doc}; needs {needs}" if (needs := needs_text(p, space)) else p.doc,
        )
        for p in [*space.values(), *(SENSOR_PARAMS.values() if sensors else ())]
    ]
    click.echo(Table(columns=["name", "nominal", "from", "to", "unit", "meaning"], rows=rows))
    if sensors:
        click.echo(f"\nsensors: {sensors.text}; {HIDE}:* stands for all, other patterns for matching ones")
    for name, randomization in presets(space.name).items():
        click.echo(f"\npreset {name}" + ("" if randomization else ": nominal values"))
        for param, rule in randomization.items():
            shown = re.sub(r"\d+\.\d{7,}(e-?\d+)?", lambda found: f"{float(found[0]):g}", repr(rule))
            click.echo(f"  {param} = {shown}")
