"""The pages that list what may vary in a MuJoCo model name what exists: here, and in mjlab's wheel."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import gymnasium as gym
import pytest

from gym_dr.envs.mujoco.fields import FIELDS
from gym_dr.wrappers.disturbances import DISTURBANCES
from tests.envs.mujoco.stock.robots import EVERYTHING, register
from tests.envs.mujoco.stock.wheels import unpacked
from tests.pages import ROOT
from tests.registered import forgotten_afterwards

TERMS = re.compile(r"^### mjlab .*?(?=^## )", re.DOTALL | re.MULTILINE)
NAME = re.compile(r"`([a-z_0-9]+)[^`]*`")
NO_TERM = {
    "abs",
    "add",
    "scale",
    "gaussian",
    "log_uniform",
    "uniform",
    "Distribution",
    "Operation",
}  # but how they draw


def rows(page: str, heading: re.Pattern[str]) -> Iterator[list[str]]:
    """The cells of the tables below a heading, without the headers."""
    found = heading.search((ROOT / "docs" / page).read_text(encoding="utf-8"))
    assert found is not None
    for table in re.split(r"\n\s*\n", found[0]):
        lines = [line for line in table.splitlines() if line.startswith("|")]
        yield from ([cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:])


def test_the_table_of_fields_has_each_field() -> None:
    fields = [row[0] for row in rows("environments/mujoco.md", re.compile(r"^## Parameters.*?(?=^## )", re.S | re.M))]
    named = {name for cell in fields for name in NAME.findall(cell)}
    assert named == FIELDS.keys()


def test_each_name_of_ours_on_the_comparison_page_can_vary(tmp_path_factory: pytest.TempPathFactory) -> None:
    with forgotten_afterwards():
        made = gym.make(register(EVERYTHING, tmp_path_factory.mktemp(EVERYTHING)), randomization="none")
        space = made.get_wrapper_attr("param_space")
    known = {name.partition(":")[0].partition(".")[0] for name in space if not space[name].idle}
    known |= {*DISTURBANCES, "obs_offset"}
    named = {name for row in rows("comparison.md", TERMS) if row[1] != "no" for name in NAME.findall(row[1])}
    assert len(named) > 50
    assert named <= known
    made.close()


@pytest.mark.slow
def test_each_term_of_mjlab_is_on_the_comparison_page() -> None:
    folder = unpacked("mjlab") / "envs" / "mdp"
    exported = [
        node
        for node in ast.walk(ast.parse((folder / "dr" / "__init__.py").read_text()))
        if isinstance(node, ast.ImportFrom)
    ]
    terms = {alias.name for node in exported for alias in node.names} - NO_TERM
    module = ast.parse((folder / "events.py").read_text()).body
    helpers = {"resolve_env_ids"}
    terms |= {node.name for node in module if isinstance(node, ast.FunctionDef | ast.ClassDef)} - helpers
    named = {name for row in rows("comparison.md", TERMS) for name in NAME.findall(row[0])}
    assert {term for term in terms if not term.startswith("_")} - named == set()
