"""Named parts of gym_dr (algorithms, environments, presets), each with the package that has added it.

A registry lives in the layer that owns what is in it; plugins fill it.
"""

from __future__ import annotations

import contextlib
import pkgutil
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from gym_dr.errors import NameClashError, unknown_name

T = TypeVar("T")


def load_object(target: Any) -> Any:
    """What text of the form "module:name" stands for, imported now; anything else itself."""
    return pkgutil.resolve_name(target) if isinstance(target, str) else target


class Registry(Generic[T]):
    """Items of one kind by name; iterates over the names."""

    def __init__(self, kind: str) -> None:
        """Makes an empty registry.

        Args:
            kind: What is in it, for messages: "algorithm".
        """
        self.kind = kind
        self._entries: dict[str, tuple[T, str]] = {}  # name -> item, owner

    def add(self, name: str, item: T, owner: str) -> None:
        """Adds an item; the same one of the same owner may be added again.

        Args:
            name: That it is found by.
            item: What it is.
            owner: The package that it comes from.

        Raises:
            NameClashError: There is another item of that name.
        """
        first = self._entries.setdefault(name, (item, owner))
        if first != (item, owner):
            raise NameClashError(f"Two plugins add the {self.kind} {name!r}: {first[1]} and {owner}.")

    def remove(self, name: str) -> None:
        """Takes an item out, if it is there."""
        self._entries.pop(name, None)

    def get(self, name: str) -> T:
        """The item of a name.

        Raises:
            UnknownNameError: There is none.
        """
        if name not in self._entries:
            raise unknown_name(self.kind, name, self._entries)
        return self._entries[name][0]

    def owner(self, name: str) -> str:
        """The package that has added a name."""
        return self._entries[name][1]

    def values(self) -> list[T]:
        """All items, in the order of their adding."""
        return [item for item, _ in self._entries.values()]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)


@contextlib.contextmanager
def all_or_nothing(*registries: Registry[Any]) -> Iterator[None]:
    """Takes back what was added to registries in a block that ends with an exception."""
    before = [dict(registry._entries) for registry in registries]
    try:
        yield
    except BaseException:
        for registry, entries in zip(registries, before, strict=True):
            registry._entries = entries
        raise
