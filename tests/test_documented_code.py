"""Options, defaults, hooks and extras on the pages are those of the code; blocks run in ``test_docs.py``."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

import gym_dr
from gym_dr.cli.main import cli
from gym_dr.envs.family import FAMILIES
from gym_dr.plugins import hookspecs
from gym_dr.randomization.sampler import SAMPLERS
from gym_dr.training.registry import ALGORITHMS
from tests.pages import ROOT, blocks
from tests.test_docs import PAGES

DOCS = ROOT / "docs"


def resolved(path: str) -> Any:
    """The object with a dotted name."""
    first, *names = path.split(".")
    found: Any = importlib.import_module(first)
    for name in names:
        if not hasattr(found, name) and inspect.ismodule(found):
            importlib.import_module(f"{found.__name__}.{name}")
        found = getattr(found, name)
    return found


def prose(page: Path) -> str:
    """A page without its blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def spans(page: Path) -> list[str]:
    """What stands between single backticks in the prose of a page."""
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose(page))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_dotted_name_of_the_package_exists(page: Path) -> None:
    # an import of a peer's integration needs the peer
    names = set(re.findall(r"(?<![/:\w\"])gym_dr(?:\.[A-Za-z_]\w*)+", page.read_text(encoding="utf-8")))
    for name in sorted(names):
        if not name.startswith("gym_dr.integrations."):
            resolved(name)


def table(page: Path, first: str) -> list[dict[str, str]]:
    """The rows of the table of a page whose first column has this heading: heading -> cell."""
    for text in re.findall(r"(?:^\|.*\n)+", page.read_text(encoding="utf-8"), flags=re.MULTILINE):
        header, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines())
        if header[0] == first:
            return [dict(zip(header, row, strict=True)) for row in rows]
    raise AssertionError(f"{page}: no table of {first}")


def flags_of(cell: str) -> list[str]:
    return [flag.replace("-", "_") for flag in re.findall(r"`--([a-z-]+)", cell)]


def shown(value: Any) -> str:
    """A default as the pages write it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return ",".join(map(shown, value)) or "none"
    return np.format_float_positional(value, trim="-") if isinstance(value, float) else str(value)


def words(cell: str) -> list[str]:
    """The values in a cell of defaults, without what stands in parentheses."""
    plain = re.sub(r"\([^)]*\)", "", cell.replace("`", ""))
    return [word.rstrip(",") for word in plain.split() if word not in ("x", ",")]


@pytest.mark.parametrize(
    ("name", "page", "head"), [("ppo", "ppo.md", "option"), ("distill", "memory.md", "option of `distill`")]
)
def test_the_table_of_an_algorithm_has_its_options_and_their_defaults(name: str, page: str, head: str) -> None:
    known: dict[str, dict[str, Any]] = {}
    for each in ("ppo", "distill"):
        fields = dataclasses.fields(ALGORITHMS.get(each).config_class())
        known[each] = {field.name: field.default for field in fields} | {"num_envs": ALGORITHMS.get(each).num_envs}
    defaults = known[name]
    if name == "distill":  # whose others are PPO's
        defaults = {key: value for key, value in defaults.items() if known["ppo"].get(key) != value}
    documented: list[str] = []
    for row in table(DOCS / "guides" / page, head):
        names = flags_of(row[head])
        documented += names
        common, *robots = row["default"].split(" robots ")
        assert words(common) == [shown(defaults[name]) for name in names if defaults[name] != ""], row
        hopper = FAMILIES.get("Hopper").defaults.get(name, {})
        assert robots == [shown(hopper[name]) for name in names if name in hopper], row
    assert sorted(documented) == sorted(defaults)


def test_the_table_of_the_samplers_options_has_all_of_them_and_their_defaults() -> None:
    documented: dict[str, set[str]] = {}
    for row in table(DOCS / "guides" / "adaptive.md", "option"):
        names, owners = flags_of(row["option"]), re.findall("`([a-z_]+)`", row["samplers"])
        documented |= {name: set(owners) for name in names}
        fields = {owner: {f.name: f.default for f in SAMPLERS.get(owner).option_fields()} for owner in owners}
        values = [list(dict.fromkeys(fields[owner][name] for owner in owners)) for name in names]
        if values != [[None]]:  # None: the environment's own, which the page describes
            assert words(row["default"]) == [shown(value) for found in values for value in found], row
    existing: dict[str, set[str]] = {}
    for sampler in SAMPLERS.values():
        for field in sampler.option_fields():
            existing.setdefault(field.name, set()).add(sampler.name)
    assert documented == existing


def options_of(command: Sequence[str]) -> set[str]:
    """The flags of a command, ``("train", "ppo")``; of all algorithms if none is named."""
    context = click.Context(cli)
    item: Any = cli.get_command(context, command[0])
    assert item is not None, command
    if isinstance(item, click.Group):
        known = item.list_commands(context)
        named = [name for name in command[1:] if name in known] or known
        return set().union(*(flags(item.get_command(context, name)) for name in named))
    return flags(item)


def flags(command: click.Command | None) -> set[str]:
    assert command is not None
    parameters = [p for p in command.params if isinstance(p, click.Option)]
    return {flag for p in parameters for flag in [*p.opts, *p.secondary_opts]} | {"--help"}


ELSEWHERE = re.compile(
    r"python|pytest|ruff|pip |git -C|sphinx|tensorboard --logdir|\.ci/|--env-id|_GYMDR_COMPLETE"
)  # programs with options of their own
OF_EXAMPLES = {"--widening-episodes", "--population"}  # options of the packages in examples/


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_option_on_a_page_exists(page: Path) -> None:
    everything = set().union(*(options_of([name]) for name in cli.list_commands(click.Context(cli))))
    lines = [line for kind in ("sh", "console") for block in blocks(page, kind) for line in block.splitlines()]
    for text in [*lines, *spans(page)]:
        if ELSEWHERE.search(text):
            continue
        name, *rest = re.sub(r"^.*?gymdr ", "", text).split() if "gymdr " in text else [""]
        of_one = name and not name.startswith("-") and "ALGORITHM" not in rest
        known = options_of([name, *rest]) if of_one else everything
        used = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)) - OF_EXAMPLES
        assert used <= known | {"--version"}, text


def test_the_table_of_hooks_has_all_of_them() -> None:
    rows = table(DOCS / "guides" / "plugins.md", "hook")
    assert {row["hook"].strip("`") for row in rows} == {name for name in vars(hookspecs) if name.startswith("gym_dr_")}


def test_the_reference_lists_every_public_name() -> None:
    page = (DOCS / "reference.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^   ~gym_dr\.(\w+)$", page, re.MULTILINE)) >= set(gym_dr.__all__)
