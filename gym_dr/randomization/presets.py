"""Named randomizations, registered by parameter space."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import Any

from gym_dr.errors import GymDrError, RandomizationError, shortened, unknown_name
from gym_dr.randomization.files import load_randomization
from gym_dr.randomization.space import ParamSpace, idle_parameters, is_disturbance, ranges_of, switches_needed
from gym_dr.randomization.spec import Randomization
from gym_dr.registry import Registry

PRESETS: Registry[tuple[str, str, Randomization]] = Registry("preset")  # space name, preset name, randomization

NONE = "none"  # the preset that every space has: nominal values
DEFAULT = "default"  # the one that is used if none is given
CUSTOM = "own"  # stands for a preset's name
PROGRAM = "this program"  # owner of presets that do not come from a plugin


def add_preset(space_name: str, name: str, randomization: Randomization, owner: str = PROGRAM) -> None:
    """Adds a preset, so that ``randomization="name"`` finds it.

    Args:
        space_name: Name of its parameter space.
        name: Name of the preset.
        randomization: The randomization.
        owner: The package that adds it.

    Raises:
        RandomizationError: It is not a ``Randomization``, or the space already has a different preset with this name.
        NameClashError: Another package has already added this name.
    """
    if not isinstance(randomization, Randomization):
        got = shortened(randomization)
        raise RandomizationError(f"Preset {name!r}: expected a Randomization, got {got}. Use Randomization({{...}}).")
    if name == NONE or (owner == PROGRAM and presets(space_name).get(name, randomization) != randomization):
        raise RandomizationError(f"{space_name} already has a preset {name!r}. Choose another name.")
    PRESETS.add(f"{name} of {space_name}", (space_name, name, randomization), owner)


def remove_preset(space_name: str, name: str) -> None:
    """Removes a preset that ``add_preset`` added."""
    PRESETS.remove(f"{name} of {space_name}")


def presets(space_name: str) -> dict[str, Randomization]:
    """All presets of a space, by name."""
    own = {name: randomization for space, name, randomization in PRESETS.values() if space == space_name}
    return {NONE: Randomization(), **own}


def preset_of(randomization: Randomization, space: ParamSpace) -> str:
    """The name of the preset that equals a randomization, or "own"."""
    for name in presets(space.name):
        with contextlib.suppress(GymDrError):  # another preset that does not fit
            if resolve(name, space) == randomization:
                return name
    return CUSTOM


def resolve(value: Any, space: ParamSpace) -> Randomization:
    """Turns a user's ``randomization`` into a checked ``Randomization``.

    Args:
        value: A preset's name, a mapping, a ``Randomization``, a path to a TOML or JSON file, or None for nominal.
        space: The environment's parameters.

    Raises:
        UnknownNameError: A preset, parameter or distribution is unknown.
        RandomizationError: A range is impossible, or a parameter would have no effect.
        ConfigError: The file cannot be read.
    """
    return _checked(_read(value, space), space)


def with_rules(whole: Any, randomize: Any, space: ParamSpace) -> Randomization:
    """A randomization in which rules for single parameters, or for those of a pattern, replace its own.

    Args:
        whole: See ``resolve``.
        randomize: name, or pattern of names -> rule.
        space: The environment's parameters.

    Raises:
        RandomizationError: The rules are not a mapping; other errors are those of ``resolve``.
    """
    if not isinstance(randomize, Mapping):
        raise RandomizationError(f"randomize: expected a mapping of names to rules, got {shortened(randomize)}.")
    rest, own = _read(whole, space), space.expand(Randomization.from_dict(randomize))
    return _checked(Randomization({**rest, **own}, correlation=own.correlation or rest.correlation), space)


def _read(value: Any, space: ParamSpace) -> Randomization:
    """Reads a user's ``randomization``, with all names expanded; see ``resolve``."""
    if value is None:
        return Randomization()
    if isinstance(value, str) and value in presets(space.name):
        given = presets(space.name)[value]
        # what only Disturb can do is left to it
        elsewhere = [name for name in given if is_disturbance(name) and name not in space]
        preset = space.expand(given.without([*space.constants, *elsewhere]))
        return preset.without(idle_parameters(space, ranges_of(preset, space)))
    if isinstance(value, str | os.PathLike):
        text = os.fspath(value)
        if not (isinstance(value, os.PathLike) or text.endswith((".toml", ".json")) or os.sep in text):
            raise unknown_name(f"preset of {space.name}", text, presets(space.name))
        value = load_randomization(text, names=space)
    elif isinstance(value, Mapping) and not isinstance(value, Randomization):
        value = Randomization.from_dict(value)
    if not isinstance(value, Randomization):
        raise RandomizationError(
            f"Expected a preset ({', '.join(presets(space.name))}), a mapping, a Randomization or a path to a TOML "
            f"file as randomization, got {value!r}."
        )
    return space.expand(value)


def _checked(randomization: Randomization, space: ParamSpace) -> Randomization:
    """Checks a randomization, and adds the switches that its parameters turn on."""
    space.check_randomization(randomization)
    on = switches_needed(space, ranges_of(randomization, space))
    return Randomization({**randomization, **on}, correlation=randomization.correlation) if on else randomization
