"""The order in which data flows is the order in which modules may import: upwards only."""

from __future__ import annotations

import ast
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

from tests.sources import PACKAGE, nodes_of

# earlier stages know nothing of later ones
LAYERS = (
    ("errors", "version"),
    ("registry", "arrays", "tensors", "options", "paths", "table"),
    ("randomization",),
    ("compiled",),
    ("envs",),
    ("zoo",),
    ("wrappers",),
    ("fitting",),
    ("integrations",),
    ("training",),
    ("runs",),
    ("plugins",),
    ("policies",),
    ("evaluation",),
    ("studies",),
    ("reports",),
    ("api",),
    ("bench",),
    ("cli", "__main__"),
    ("testing",),
)
ORDER = {name: rank for rank, names in enumerate(LAYERS) for name in names}


def layer_of(module: str) -> str:
    return module.split(".")[1]


@cache
def imports_of(path: Path) -> frozenset[str]:
    """Modules of gym_dr that a file imports, anywhere in it."""
    found = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found |= (
                {f"{node.module}.{alias.name}" for alias in node.names} if node.module == "gym_dr" else {node.module}
            )
    return frozenset(name for name in found if name.startswith("gym_dr."))


def test_every_folder_and_module_has_its_layer() -> None:
    present = {p.stem for p in PACKAGE.iterdir() if (p.suffix == ".py" or (p / "__init__.py").exists())}
    assert present - {"__init__"} == set(ORDER)


def test_imports_point_one_way() -> None:
    wrong: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts == ("__init__",):
            continue  # assembles the public names of all layers
        own = ORDER[parts[0]]
        down = {name.removeprefix("gym_dr.") for name in imports_of(path) if ORDER[layer_of(name)] > own}
        if down:
            wrong[".".join(parts)] = down
    assert wrong == {}


def module_of(path: Path) -> str:
    """The name by which others import a file."""
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def test_no_modules_import_each_other() -> None:
    """Not in a circle of several either; imports in functions and those for types alone count too."""
    paths = {module_of(path): path for path in PACKAGE.rglob("*.py")}
    found: dict[str, set[str]] = {name: set() for name in paths}
    for name, path in paths.items():
        for node in nodes_of(path):
            if isinstance(node, ast.Import):
                found[name] |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                found[name] |= inner & paths.keys() or {node.module}  # a module, or what one defines
    TopologicalSorter({name: others & paths.keys() - {name} for name, others in found.items()}).prepare()


def test_no_import_is_relative() -> None:
    for path in PACKAGE.rglob("*.py"):
        for node in nodes_of(path):
            assert not (isinstance(node, ast.ImportFrom) and node.level), path


# of environments and of the engines that they run on
FAMILY_WORDS = ("lander", "hopper", "cheetah", "walker", "swimmer", "humanoid", "reacher", "pusher", "pendulum")
ENGINE_WORDS = ("mujoco", "box2d", "cartpole", "cart_pole")


def words_of(path: Path) -> set[str]:
    """Names and texts in a file's code; docstrings, whose examples may name environments, are left out."""
    docstrings = {
        id(node.body[0].value)
        for node in nodes_of(path)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    found = set(imports_of(path))
    for node in nodes_of(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            found.add(node.value)
        elif isinstance(node, ast.Name | ast.Attribute):
            found.add(node.id if isinstance(node, ast.Name) else node.attr)
    return found


def test_only_environments_know_families_of_environments() -> None:
    naming = []
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).parts
        if parts[0] in ("envs", "zoo") or parts == ("__init__.py",):  # the last lists public names
            continue
        for text in words_of(path):
            naming += [f"{path.name}: {text}" for word in (*FAMILY_WORDS, *ENGINE_WORDS) if word in text.lower()]
    assert naming == []
