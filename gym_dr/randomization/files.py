"""Reads randomizations and configurations from TOML and JSON files."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import tomli_w

from gym_dr.errors import ConfigError, as_path, located, shortened
from gym_dr.randomization.spec import Randomization

MAX_FILE = 2**22  # bytes
MAX_KEY = 80  # characters of a key in a message


def load_randomization(path: str | Path, names: Collection[str] = ()) -> Randomization:
    """Reads rules from a TOML or JSON file, at the top level or in a table ``randomization``.

    Args:
        path: The file. A whole configuration may have the table.
        names: Parameters of the environment, which would have no effect beside the table.

    Raises:
        ConfigError: The file cannot be read or is not TOML or JSON, or there are rules beside the table.
        RandomizationError: A rule is impossible.
        UnknownNameError: A distribution or field is unknown.
    """
    form = read_table(path)
    if not (inner := form.get("randomization", form)):
        raise ConfigError(f"{path}: expected rules, got none. For nominal values: `randomization='none'`")
    if not isinstance(inner, Mapping):
        raise ConfigError(f"{path}: expected a table of parameters, got {inner!r}.")
    beside = [] if inner is form else [name for name in form if name in names]
    if beside:
        raise ConfigError(
            f"{path}: {beside[0]} has no effect outside the table [randomization]. Move it into the table."
        )
    with located(path):
        return Randomization.from_dict(inner)


def randomization_text(randomization: Randomization, comment: str) -> str:
    """A randomization as the content of a TOML file, which ``load_randomization`` reads.

    Args:
        randomization: What to write.
        comment: Lines of text for the beginning.
    """
    lines = [f"# {line}".rstrip() for line in comment.splitlines()]
    return "\n".join([*lines, "", tomli_w.dumps(randomization.to_dict())])


def read_table(path: str | Path) -> dict[str, Any]:
    """Reads a TOML file, or a JSON file if its name ends in .json.

    Raises:
        ConfigError: The file is missing, cannot be read or is malformed; the message names it.
    """
    path = as_path(path)
    try:
        with open(path, "rb") as file:  # it may be a pipe, whose size is not known in advance
            content = file.read(MAX_FILE + 1)
        if len(content) > MAX_FILE:
            raise OSError(f"it is larger than {MAX_FILE} bytes")
        text = content.decode("utf-8-sig")  # some Windows editors write a byte order mark
        table = json.loads(text, object_pairs_hook=_each_once) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}.") from None
    except (ValueError, RecursionError) as error:  # invalid UTF-8, JSON or TOML, or a number with too many digits
        kind = "JSON" if path.suffix == ".json" else "TOML"
        raise ConfigError(f"{path}: is not a valid {kind} file: {error}.") from None
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: expected a table at the top level, got {type(table).__name__}.")
    return table


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object without repeated keys; Python would silently use the last one, and TOML refuses them too."""
    table = dict(pairs)
    if len(table) < len(pairs):
        twice = next(key for key in table if sum(key == other for other, _ in pairs) > 1)
        raise ValueError(f"the key {twice[:MAX_KEY]!r} appears twice")
    return table


def file_beside(path: Path, named: str) -> str:
    """Resolves the randomization that a file names: a preset, or a file beside it.

    Raises:
        ConfigError: It names a file that is elsewhere.
    """
    if not (named.endswith((".toml", ".json")) or {"/", os.sep} & set(named)):
        return named
    folder = path.parent
    if not (folder / named).resolve().is_relative_to(folder.resolve()):
        raise ConfigError(
            f"{path}: randomization: expected a file beside or below this one, got {shortened(named)}. Copy it there."
        )
    return str(folder / named)
