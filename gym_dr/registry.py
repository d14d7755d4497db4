"""Named parts of gym_dr (algorithms, environments, presets), each with the package that added it.

A registry lives in the layer that owns its items; plugins add to it.
"""

from __future__ import annotations

import contextlib
import pkgutil
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from gym_dr.errors import NameClashError, check_known

T = TypeVar("T")


def load_object(target: Any) -> Any:
    """Imports and returns the object that a string "module:name" names; returns any other value as it is."""
    return pkgutil.resolve_name(target) if isinstance(target, str) else target


class Registry(Generic[T]):
    """Items of one kind, by name; iterating gives the names."""

    def __init__(self, kind: str) -> None:
        """Makes an empty registry.

        Args:
            kind: The kind of item, for messages: "algorithm".
        """
        self.kind = kind
        self._entries: dict[str, tuple[T, str]] = {}  # name -> item, owner

    def add(self, name: str, item: T, owner: str) -> None:
        """Adds an item; adding the same item for the same owner again has no effect.

        Args:
            name: The name to look it up by.
            item: The item.
            owner: The package that it comes from.

        Raises:
            NameClashError: Another item already has this name.
        """
        first = self._entries.setdefault(name, (item, owner))
        if first != (item, owner):
            raise NameClashError(f"Two plugins add the {self.kind} {name!r}: {first[1]} and {owner}.")

    def remove(self, name: str) -> None:
        """Removes an item, if it exists."""
        self._entries.pop(name, None)

    def get(self, name: str) -> T:
        """The item with this name.

        Raises:
            UnknownNameError: There is no such item.
        """
        check_known(self.kind, name, self._entries)
        return self._entries[name][0]

    def owner(self, name: str) -> str:
        """The package that added a name."""
        return self._entries[name][1]

    def values(self) -> list[T]:
        """All items, in the order in which they were added."""
        return [item for item, _ in self._entries.values()]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)


@contextlib.contextmanager
def all_or_nothing(*registries: Registry[Any]) -> Iterator[None]:
    """Restores the registries if the block raises an exception."""
    before = [dict(registry._entries) for registry in registries]
    try:
        yield
    except BaseException:
        for registry, entries in zip(registries, before, strict=True):
            registry._entries = entries
        raise
