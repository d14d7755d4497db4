"""Shows the comments that stand behind the fields of a dataclass as descriptions of its parameters.

    low: float  # lowest value that is physically possible

becomes ``low (float): lowest value that is physically possible``, so that code and reference share one text.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import io
import textwrap
import tokenize
from typing import Any


def setup(app: Any) -> dict[str, Any]:
    """Registers the extension; called by Sphinx."""
    app.connect("autodoc-process-docstring", add_fields, priority=900)  # after napoleon
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def add_fields(app: Any, what: str, name: str, item: Any, options: Any, lines: list[str]) -> None:
    """Adds the fields of a dataclass that its docstring does not describe; called for every docstring."""
    if what != "class" or not dataclasses.is_dataclass(item):
        return
    written = "\n".join(lines)
    found = [
        f":param {field.name}: {comment}"
        for field in dataclasses.fields(item)
        if field.init and (comment := described(item, field)) and f":param {field.name}:" not in written
    ]
    if found:
        lines[:] = [*lines, "", *found, ""]


def described(cls: Any, field: dataclasses.Field[Any]) -> str:
    """What a field is: the help of an option, or else the comment in the class that defines it."""
    if help := field.metadata.get("help"):
        return str(help)
    owner = next(base for base in cls.__mro__ if field.name in vars(base).get("__annotations__", {}))
    return comments(owner).get(field.name, "")


def comments(cls: type) -> dict[str, str]:
    """Field -> the comment behind it, or the lines of comment above it."""
    source = textwrap.dedent(inspect.getsource(cls))
    found = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    texts = source.splitlines()
    fields: dict[str, str] = {}
    for node in ast.parse(source).body[0].body:  # type: ignore[attr-defined]
        if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)):
            continue
        above: list[str] = []
        line = node.lineno - 1
        while line in found and texts[line - 1].lstrip().startswith("#"):
            above.insert(0, found[line])
            line -= 1
        text = found.get(node.end_lineno or node.lineno) or " ".join(above)
        if text:
            fields[node.target.id] = text
    return fields
