"""The algorithms of this installation, gym_dr's own and those of plugins."""

from __future__ import annotations

import dataclasses

from gym_dr.errors import PluginError
from gym_dr.registry import Registry
from gym_dr.training.api import Algorithm

ALGORITHMS: Registry[Algorithm] = Registry("algorithm")


def find_algorithm(name: str) -> Algorithm:
    """The algorithm of a name, whose configuration can be used.

    Raises:
        UnknownNameError: There is none.
        PluginError: Its configuration cannot be imported or is not one.
    """
    algorithm = ALGORITHMS.get(name)
    try:
        fields = {field.name for field in dataclasses.fields(algorithm.config_class())}
    except Exception as error:  # its configuration is imported only now, and may be a stranger's
        raise PluginError(
            f"Algorithm {name!r} of {ALGORITHMS.owner(name)} cannot be used: its configuration "
            f"{algorithm.config!r} failed with {type(error).__name__}: {error}"
        ) from error
    if "updates" not in fields:
        raise PluginError(f"Algorithm {name!r}: expected a field 'updates' in its configuration, got {fields}.")
    return algorithm
