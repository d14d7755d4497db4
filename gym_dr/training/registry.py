"""The installed algorithms, built in and from plugins."""

from __future__ import annotations

import dataclasses

from gym_dr.errors import PluginError
from gym_dr.registry import Registry
from gym_dr.training.api import Algorithm

ALGORITHMS: Registry[Algorithm] = Registry("algorithm")


def find_algorithm(name: str) -> Algorithm:
    """Looks up an algorithm by name and checks its configuration.

    Raises:
        UnknownNameError: There is no such algorithm.
        PluginError: Its configuration cannot be imported, or is not a dataclass with ``updates``.
    """
    algorithm = ALGORITHMS.get(name)
    try:
        fields = {field.name for field in dataclasses.fields(algorithm.config_class())}
    except Exception as error:  # the configuration is imported here, maybe from a plugin
        raise PluginError(
            f"Algorithm {name!r} of {ALGORITHMS.owner(name)} cannot be used: loading its configuration "
            f"{algorithm.config!r} failed with {type(error).__name__}: {error}"
        ) from error
    if "updates" not in fields:
        raise PluginError(f"Algorithm {name!r}: expected a field 'updates' in its configuration, got {fields}.")
    return algorithm
