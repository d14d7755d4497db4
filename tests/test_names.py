"""One word, one thing: no two modules define a class or a type of the same name."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from tests.sources import PACKAGE, nodes_of

# patterns: name -> the folders in which files of the same form define it; elsewhere it may not be defined at all
PATTERNS = {
    # a file of equations is complete in itself: its parameters, the constants computed from them, and its state
    "Params": ("envs/classic_control", "envs/mujoco"),
    "Physics": ("envs/classic_control", "envs/mujoco"),
    "State": ("envs/classic_control", "envs/mujoco", "envs/box2d/lunar_lander"),
    # an environment has one name, whether Box2D or compiled code plays it
    "LunarLanderDR": ("envs/box2d/lunar_lander",),
    "BipedalWalkerDR": ("envs/box2d/bipedal_walker",),
    # the arrays of each compiled environment on Box2D, and the part that all have
    "Environments": ("envs/box2d",),
}


def defined_in(module: ast.AST) -> Iterator[str]:
    """Public classes and type aliases at the top of a module: CamelCase, unlike constants and type variables."""
    for node in ast.iter_child_nodes(module):
        names: list[str] = []
        if isinstance(node, ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names = [node.target.id]
        yield from (name for name in names if name[0].isupper() and not name.isupper())


def shared(modules: dict[str, ast.AST]) -> dict[str, list[str]]:
    """Name -> the files that define it, for names with several, except where it is a pattern."""
    places: dict[str, list[str]] = defaultdict(list)
    for path, module in modules.items():
        for name in dict.fromkeys(defined_in(module)):
            places[name].append(path)
    for name, folders in PATTERNS.items():
        inside = [path for path in places[name] if path.startswith(tuple(f"{folder}/" for folder in folders))]
        if inside and inside == places[name]:
            del places[name]
    return {name: paths for name, paths in places.items() if len(paths) > 1}


def test_no_class_or_type_is_defined_by_two_modules() -> None:
    modules = {path.relative_to(PACKAGE).as_posix(): nodes_of(path)[0] for path in sorted(PACKAGE.rglob("*.py"))}
    assert shared(modules) == {}


def test_classes_and_aliases_of_the_same_name_are_found() -> None:
    sources = {
        "runs/a.py": "class Table: ...\nLIMIT = 1\n_Own = int\n",
        "runs/b.py": "Table: TypeAlias = dict[str, int]\nLIMIT = 2\n_Own = str\n",
        "envs/mujoco/c.py": "Params = tuple[float, ...]\n",
        "envs/mujoco/d.py": "class Params: ...\n",
        "envs/box2d/lunar_lander/e.py": "State = int\n",
    }
    modules: dict[str, ast.AST] = {path: ast.parse(source) for path, source in sources.items()}
    assert shared(modules) == {"Table": ["runs/a.py", "runs/b.py"]}
    elsewhere = {"runs/f.py": ast.parse("class Params: ...\n")}  # outside its folders
    assert set(shared({**modules, **elsewhere})) == {"Table", "Params"}


def test_every_pattern_is_one() -> None:
    """A name that a single module defines needs no exception."""
    defined = [name for path in PACKAGE.rglob("*.py") for name in set(defined_in(nodes_of(path)[0]))]
    assert {name for name in PATTERNS if defined.count(name) < 2} == set()
