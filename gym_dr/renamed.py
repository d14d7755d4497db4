"""Old names that still work and warn."""

from __future__ import annotations

import pkgutil
import warnings
from collections.abc import Callable, Mapping
from typing import Any


def old_names(module: str, names: Mapping[str, tuple[str, str]]) -> Callable[[str], Any]:
    """A module's ``__getattr__`` that serves its old names and warns.

    Define it under ``if not TYPE_CHECKING``, so that a checker reports names that do not exist.

    Args:
        module: Name of the module.
        names: Old name -> where it is now, as "package.module:name", and what the warning says of it.
    """

    def serve(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home, advice = names[name]
        warnings.warn(f"{module}.{name} {advice}.", DeprecationWarning, stacklevel=2)
        return pkgutil.resolve_name(home)

    return serve
