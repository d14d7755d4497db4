"""``gymdr params ENV_ID [NAMES]``."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

import click

from gym_dr.envs.family import randomized_id
from gym_dr.errors import ConfigError, listed
from gym_dr.plugins.loading import load_plugins
from gym_dr.randomization.presets import presets
from gym_dr.randomization.space import Param, needs_text
from gym_dr.runs.environments import param_space_of
from gym_dr.table import Table
from gym_dr.wrappers.disturbed_space import DisturbedSpace
from gym_dr.wrappers.sensors import HIDE, SENSOR_PARAMS

COLUMNS = ("name", "nominal", "from", "to", "unit", "meaning")
_GROUPED_FROM = 6  # this many parameters of one field share a row
_ALL = 10**6  # elements in a row


@click.command()
@click.argument("env_id")
@click.argument("names", nargs=-1)
def command(env_id: str, names: tuple[str, ...]) -> None:
    """Show the parameters of an environment that can vary, and its presets.

    Parameters of many elements share a row. NAMES show some, such as body_mass or '*:torso', each in a row.
    """
    load_plugins()
    space = param_space_of(env_id)
    if space is None:
        raise ConfigError(
            f"{env_id} has no parameters to randomize. Use "
            f"{randomized_id(env_id) or 'another id (gymdr list envs), or gym_dr.register'}."
        )
    sensors = space.sensors if isinstance(space, DisturbedSpace) else None
    params = [*space.values(), *(SENSOR_PARAMS.values() if sensors else ())]
    if names:
        wanted = [*names, *(f"{name}:*" for name in names), *(f"{name}.*" for name in names)]
        found = [param for param in params if any(fnmatch.fnmatchcase(param.name, name) for name in wanted)]
        if not found:
            raise ConfigError(f"No parameter of {env_id} matches {listed(names)}. gymdr params {env_id} lists them.")
        click.echo(Table(columns=COLUMNS, rows=[row(param, space) for param in found]))
        return
    click.echo(Table(columns=COLUMNS, rows=list(rows_of(params, space, most=4))))
    if sensors:
        click.echo(f"\nsensors: {sensors.text}; {HIDE}:* stands for all, other patterns for matching ones")
    for name, randomization in presets(space.name).items():
        click.echo(f"\npreset {name}" + ("" if randomization else ": nominal values"))
        for param, rule in randomization.items():
            shown = re.sub(r"\d+\.\d{7,}(e-?\d+)?", lambda found: f"{float(found[0]):g}", repr(rule))
            click.echo(f"  {param} = {shown}")


def rows_of(params: Iterable[Param], space: Mapping[str, Param], most: int = _ALL) -> Iterator[tuple[str, ...]]:
    """The rows of parameters; those of many elements of one field (``body_mass:torso`` and so on) share one.

    Args:
        params: The parameters, those of a field together, the factor for the whole field first.
        space: These and all that they need.
        most: Elements that a row names.
    """
    for field, group in groupby(params, key=lambda param: param.name.partition(":")[0]):
        members = list(group)
        elements = [param for param in members if ":" in param.name]
        if len(elements) < _GROUPED_FROM:
            yield from (row(param, space) for param in members)
            continue
        yield from (row(param, space) for param in members if ":" not in param.name)
        numbers = [param for param in elements if param.unit != "x"] or elements
        able = [param for param in numbers if not param.idle] or numbers
        pairs = [param.name.partition(":")[2].rpartition(".") for param in able]
        names, axes = dict.fromkeys(first for first, _, _ in pairs), dict.fromkeys(last for _, _, last in pairs)
        vectors = "" not in names and len(axes) > 1 and len(names) * len(axes) == len(able)
        names = names if vectors else dict.fromkeys(param.name.partition(":")[2] for param in able)
        parts = f", each with {', '.join(f'.{axis}' for axis in axes)}" if vectors else ""
        whole = " (without an axis: a factor)" if vectors and len(numbers) < len(elements) else ""
        nominal = sorted({param.nominal for param in able})
        *_, unit, meaning = row(able[-1], space)
        yield (
            f"{field}:...",
            f"{nominal[0]:g}" if len(nominal) == 1 else f"{nominal[0]:g} to {nominal[-1]:g}",
            f"{min(param.low for param in able):g}",
            f"{max(param.high for param in able):g}",
            unit,
            f"{meaning}; for {listed([*names], most)}{parts}{whole}",
        )


def row(param: Param, space: Mapping[str, Param]) -> tuple[str, ...]:
    """The row of a parameter."""
    needs = needs_text(param, space)
    cannot = f"; cannot vary here: {param.idle}" if param.idle else f"; needs {needs}" if needs else ""
    unit = param.unit if param.kind == "float" else param.kind
    # 0 is added since -0 looks like a mistake
    return param.name, f"{param.nominal + 0.0:g}", f"{param.low:g}", f"{param.high:g}", unit, f"{param.doc}{cannot}"
