"""Writes the tables of a test as TOML, so that what is read back went through real text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def toml_text(table: Mapping[str, Any]) -> str:
    """A TOML document with one line for each key of ``table``; inner tables are written inline."""
    return "".join(f"{_text(key)} = {_value(value)}\n" for key, value in table.items())


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_text(key)} = {_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int | float):
        return repr(value)
    raise TypeError(f"TOML has no form for {value!r}.")


def _text(value: str) -> str:
    # JSON would write characters beyond 16 bits as two escapes, which TOML does not read
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
