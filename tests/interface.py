"""What users type: names, their parameters, ids, presets, commands and options.

    python -m tests.interface

writes ``interface.json``, the list that ``test_stable.py`` holds the code to. ``docs/stable.md`` says what may change.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

import gym_dr
from gym_dr.cli.main import cli
from gym_dr.envs.family import FAMILIES
from gym_dr.plugins import hookspecs
from gym_dr.policies.open import pretrained_names
from gym_dr.randomization.sampler import SAMPLERS
from gym_dr.runs.environments import param_space_of
from gym_dr.training.registry import ALGORITHMS
from gym_dr.wrappers.disturbances import DISTURBANCES

READ = ("Distribution", "EpisodeRecord", "ParamSpace", "Randomization", "Run", "Runs")  # whose members users read
STORED = Path(__file__).parent / "interface.json"


def interface() -> dict[str, Any]:
    """The whole interface, as JSON has it."""
    ours = [family for family in FAMILIES.values() if family.ids[0].id.startswith("gym_dr/")]
    return {
        "names": {name: parameters_of(getattr(gym_dr, name)) for name in sorted(gym_dr.__all__)},
        "members": {name: sorted(members_of(getattr(gym_dr, name))) for name in READ},
        "commands": {" ".join(path): options for path, options in sorted(commands_of(cli, ()))},
        "options": {
            algorithm.name: sorted(field.name for field in dataclasses.fields(algorithm.config_class()))
            for algorithm in ALGORITHMS.values()
            if algorithm.config_class().__module__.startswith("gym_dr.")
        },
        "samplers": {
            sampler.name: sorted(field.name for field in sampler.option_fields())
            for sampler in SAMPLERS.values()
            if str(sampler.make).startswith("gym_dr.")
        },
        "hooks": sorted(name for name in vars(hookspecs) if name.startswith("gym_dr_")),
        "pretrained": sorted(pretrained_names()),
        "disturbances": sorted(DISTURBANCES),
        "environments": {
            family.name: {
                "ids": sorted(each.id for each in family.ids),
                "presets": sorted(family.presets),
                "params": sorted({kind_of(name) for name in param_space_of(family.ids[0].id) or ()} - {*DISTURBANCES}),
            }
            for family in ours
        },
    }


def kind_of(name: str) -> str:
    """A parameter's name, without the element and the component of a robot's."""
    return name.partition(":")[0].partition(".")[0]


def parameters_of(item: Any) -> list[str]:
    """The parameters that a caller names, and ``*`` before those that must be."""
    found: list[str] = []
    for name, parameter in inspect.signature(item).parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in found:
            found.append("*")
        stars = str(parameter).partition(name)[0]  # of *names and **names
        found.append(stars + name)
    return found


def members_of(item: type) -> Iterator[str]:
    """Public attributes of a class of ours, without those that it has from others."""
    for name in dir(item):
        owner = next((each for each in item.__mro__ if name in vars(each)), object)
        if not name.startswith("_") and owner.__module__.partition(".")[0] == "gym_dr":
            yield name


def commands_of(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Each command below one, with its flags and arguments."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from commands_of(below, (*path, name))
        return
    flags = [flag for item in command.params for flag in (*item.opts, *item.secondary_opts)]
    yield path, sorted(flags)


if __name__ == "__main__":
    STORED.write_text(json.dumps(interface(), indent=1) + "\n", encoding="utf-8")
    print(f"Wrote {STORED}")
