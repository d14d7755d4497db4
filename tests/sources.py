"""The code of the package, which several files of tests read, parsed once."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "gym_dr"


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Everything in a file's code; the module itself comes first."""
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
