"""Signatures, options, defaults and versions in README and docs are those of the code.

Calls in prose and in blocks must fit the signature of what they call; where all arguments are bare names, as in
``Uniform(low, high)``, these must be the names of its parameters. Tables of options list all of them, with their
defaults. Blocks of ``python`` are also run, see ``test_docs.py``.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import click
import gymnasium as gym
import numpy as np
import pytest
from gym_dr.experiments.study_gap import Gap

import gym_dr
from gym_dr.cli.main import cli
from gym_dr.envs.family import FAMILIES
from gym_dr.experiments import study_file
from gym_dr.experiments.evaluate import EPISODES
from gym_dr.plugins import hookspecs
from gym_dr.randomization.distributions import DISTRIBUTIONS
from gym_dr.randomization.sampler import SAMPLERS, FinishedEpisode, ParamSampler
from gym_dr.runs.config import RunSettings
from gym_dr.training.registry import ALGORITHMS
from tests.pages import ROOT, blocks
from tests.sources import PACKAGE, nodes_of
from tests.test_docs import PAGES

DOCS = ROOT / "docs"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


# --- calls ---


def documented_objects() -> dict[str, Any]:
    """What the reference lists and what ``import gym_dr`` offers: name -> object."""
    listed = re.findall(r"auto(?:class|function):: (gym_dr\.[\w.]+)", (DOCS / "reference.md").read_text("utf-8"))
    found = {path.rpartition(".")[2]: resolved(path) for path in listed}
    return found | {name: getattr(gym_dr, name) for name in gym_dr.__all__}


def resolved(path: str) -> Any:
    """The object with a dotted name."""
    first, *names = path.split(".")
    found: Any = importlib.import_module(first)
    for name in names:
        if not hasattr(found, name) and inspect.ismodule(found):
            importlib.import_module(f"{found.__name__}.{name}")
        found = getattr(found, name)
    return found


# what users write and our code calls, by the names that the pages give them
CALLBACKS = {
    "train": "gym_dr.training.a2c.train",
    "load_policy": "gym_dr.training.a2c.load_policy",
    "seed_for": "gym_dr.training.api.seed_for",
    "uniforms": "gym_dr.randomization.draws.uniforms",
}


@cache
def candidates() -> dict[str, list[Any]]:
    """Name of a function, class or method -> those that it may mean; Gymnasium's own methods are left out."""
    objects = documented_objects()
    found = {name: [item] for name, item in objects.items() if callable(item)}
    for name, path in CALLBACKS.items():
        found.setdefault(name, []).append(resolved(path))
    for item in filter(inspect.isclass, objects.values()):
        for name, method in inspect.getmembers(item, callable):
            if not name.startswith("_") and not hasattr(gym.vector.VectorWrapper, name):
                bound = isinstance(inspect.getattr_static(item, name), classmethod | staticmethod)
                found.setdefault(name, []).append(method if bound else without_self(method))
    return found


def without_self(method: Any) -> inspect.Signature:
    signature = inspect.signature(method)
    return signature.replace(parameters=list(signature.parameters.values())[1:])


def option_names() -> set[str]:
    """Keywords that ``train`` and ``AdaptParams`` pass on."""
    kinds = [RunSettings, *(algorithm.config_class() for algorithm in ALGORITHMS.values())]
    fields = {field.name for kind in kinds for field in dataclasses.fields(kind)}
    return fields | {field.name for sampler in SAMPLERS.values() for field in sampler.option_fields()}


def misfit(call: ast.Call, item: Any) -> str | None:
    """Why a call does not fit; None if it does. ``...`` stands for arguments that are left out."""
    signature = item if isinstance(item, inspect.Signature) else inspect.signature(item)
    parameters = signature.parameters.values()
    given = [arg for arg in call.args if not (isinstance(arg, ast.Constant) and arg.value is ...)]
    keywords = {keyword.arg: keyword for keyword in call.keywords if keyword.arg}
    partial = len(given) < len(call.args) or any(keyword.arg is None for keyword in call.keywords)
    if any(isinstance(arg, ast.Starred) for arg in given):
        given, partial = [], True
    try:
        (signature.bind_partial if partial else signature.bind)(*given, **keywords)
    except TypeError as error:
        return str(error)
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    unknown = keywords.keys() - signature.parameters.keys() - option_names() if takes_any else ()
    if unknown and item in (gym_dr.train, gym_dr.AdaptParams):
        return f"no option {', '.join(unknown)}"
    return None


def misnamed(call: ast.Call, item: Any) -> str | None:
    """Why a call of bare names, ``Uniform(low, high)``, does not name the parameters; None if it does."""
    if not call.args or not all(isinstance(arg, ast.Name) for arg in call.args):
        return None
    signature = item if isinstance(item, inspect.Signature) else inspect.signature(item)
    names = [arg.id for arg in call.args if isinstance(arg, ast.Name)]
    expected = list(signature.parameters)[: len(names)]
    return None if names == expected else f"expected the names {', '.join(expected)}"


def name_of(call: ast.Call) -> str:
    return ast.unparse(call.func).rpartition(".")[2]


# what is called as something of ours but is Gymnasium's, Stable-Baselines3's or the reader's own
OTHERS = re.compile(r"(.*_space\.sample|model\..*|policy)")


def called(text: str) -> list[ast.Call]:
    """The calls in a piece of Python; none if it is something else."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return []
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [call for call in calls if not OTHERS.fullmatch(ast.unparse(call.func))]


def prose(page: Path) -> str:
    """A page without its blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def spans(page: Path) -> list[str]:
    """What stands between single backticks in the prose of a page."""
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose(page))]


def defined_in(page: Path) -> set[str]:
    """Functions and classes that the blocks of a page define, and names that they import from elsewhere."""
    nodes: Iterator[Any] = (node for text in code(page) for node in ast.walk(ast.parse(text)))
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ImportFrom) and not (node.module or "").startswith("gym_dr"):
            names |= {alias.asname or alias.name for alias in node.names}
    return names


def code(page: Path) -> list[str]:
    return [*blocks(page, "python"), *blocks(page, "py")]


def problems(call: ast.Call, *, names: bool) -> str | None:
    """What is wrong with a call of ours; None if nothing is, or if it is not ours."""
    path = ast.unparse(call.func)
    if re.match(r"(gym|torch|envpool|np)\.", path):
        return None
    items = [resolved(path)] if re.fullmatch(r"gym_dr(\.\w+)+", path) else candidates().get(name_of(call), [])
    if not items:
        return "there is no such class" if isinstance(call.func, ast.Name) and path[0].isupper() else None
    found = [misfit(call, item) or (misnamed(call, item) if names else None) for item in items]
    return None if None in found else f"{found[0]}; it is {items[0]!r}"


def owner_of(call: ast.Call) -> str:
    """What stands before the first dot; the name itself if there is none and it is ours."""
    owner, _, method = ast.unparse(call.func).partition(".")
    return owner if method else "" if owner in candidates() else owner


OWNERS = {"", "gym_dr", "envs", "env", "run", "found", "session", "resampled", "workers"}  # what blocks call ours


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_call_in_prose_fits_and_names_the_parameters(page: Path) -> None:
    own = defined_in(page)
    calls = [call for span in spans(page) for call in called(span) if name_of(call) not in own]
    wrong = {ast.unparse(call): problem for call in calls if (problem := problems(call, names=True))}
    assert wrong == {}


@pytest.mark.parametrize("page", [page for page in PAGES if code(page)], ids=lambda page: str(page.relative_to(ROOT)))
def test_a_call_in_a_block_fits(page: Path) -> None:
    own = defined_in(page)
    calls = [call for text in code(page) for call in called(text) if name_of(call) not in own]
    ours = [call for call in calls if owner_of(call) in OWNERS]
    wrong = {ast.unparse(call): problem for call in ours if (problem := problems(call, names=False))}
    assert wrong == {}


def test_a_wrong_signature_would_be_found() -> None:
    assert problems(called("Uniform(low, high)")[0], names=True) is None
    assert problems(called("Normal(mean, std)")[0], names=True)
    assert problems(called("Normal(0, 1, bound=3)")[0], names=True)
    assert problems(called('gym_dr.train("a2c", update=3)')[0], names=False)
    assert problems(called("Gaussian(mu, sigma)")[0], names=True)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_dotted_name_of_the_package_exists(page: Path) -> None:
    # an import of a peer's integration needs the peer
    names = set(re.findall(r"(?<![/:\w\"])gym_dr(?:\.[A-Za-z_]\w*)+", page.read_text(encoding="utf-8")))
    for name in sorted(names):
        if not name.startswith("gym_dr.integrations."):
            resolved(name)


def test_the_table_of_distributions_shows_their_whole_signatures() -> None:
    rows = table(DOCS / "guides" / "randomization.md", "distribution")
    expected = {f"`{cls.__name__}({', '.join(inspect.signature(cls).parameters)})`" for cls in DISTRIBUTIONS.values()}
    assert {row["distribution"] for row in rows} == expected


# --- options ---


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
def test_the_table_of_an_algorithm_has_all_of_its_options_and_their_defaults(name: str, page: str, head: str) -> None:
    algorithm = ALGORITHMS.get(name)
    fields = {field.name: field.default for field in dataclasses.fields(algorithm.config_class())}
    defaults = fields | {"num_envs": algorithm.num_envs}
    documented: list[str] = []
    for row in table(DOCS / "guides" / page, head):
        names = flags_of(row[head])
        documented += names
        common, *robots = row["default"].split(" robots ")
        assert words(common) == [shown(defaults[name]) for name in names if defaults[name] != ""], row
        hopper = FAMILIES.get("Hopper").defaults.get(name, {})
        assert robots == [shown(hopper[name]) for name in names if name in hopper], row
    assert sorted(documented) == sorted(defaults)


def test_the_table_of_samplers_has_all_of_them() -> None:
    rows = table(DOCS / "guides" / "adaptive.md", "name")
    assert {row["name"].strip("`") for row in rows} == set(SAMPLERS)


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


KIND_OF_SET = {"grid": "cell", "corners": "cell", "sobol": "sobol", "sobol_box": "sobol"}  # others are draws


def test_the_tables_of_sets_have_the_episodes_that_are_played() -> None:
    for row in table(DOCS / "guides" / "evaluation.md", "option"):
        kind = KIND_OF_SET.get((flags_of(row["option"]) or [""])[0], "draws")
        assert row["episodes per cell"] == str(EPISODES[kind]), row
    for row in table(DOCS / "guides" / "studies.md", "set"):
        kind = KIND_OF_SET.get(re.split(r"[`:]", row["set"])[1].replace("-", "_") if "`" in row["set"] else "", "draws")
        assert row["episodes"].split()[0] == str(EPISODES[kind]), row


def test_the_table_of_a_study_has_every_key() -> None:
    rows = {row["key"]: row["meaning"] for row in table(DOCS / "guides" / "studies.md", "key")}
    keys = {name for cell in rows for name in re.findall(r"`\[?([A-Za-z_]+)", cell)}
    assert keys >= field_names(study_file._Head) | set(study_file.TABLES)
    assert "`cross`" in rows["`[factors.FACTOR.LEVEL]`, `[design]`"]
    tables = ("evaluation", "comparisons", "gap")
    inside = {name: set(re.findall("`([a-z_]+)[ `]", rows[f"`[{name}]`"])) for name in tables}
    assert inside["evaluation"] == field_names(study_file._Evaluation) | {"grid", "sets"}
    assert inside["comparisons"] == field_names(study_file._Comparisons)
    assert inside["gap"] == field_names(Gap)


def field_names(kind: type) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}


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
    r"python|pytest|ruff|pip |sphinx|tensorboard --logdir|\.ci/|--env-id"
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


# --- versions, extras, hooks ---


def test_the_installation_page_has_the_versions_of_the_project() -> None:
    page = " ".join((DOCS / "start.md").read_text(encoding="utf-8").split())
    needs = next(text for text in PROJECT["dependencies"] if text.startswith("gymnasium"))
    low, below = re.findall(r"[\d.]+", needs)
    assert f"Gymnasium {low} or later, below {below}" in page
    low, below = re.findall(r"\d+\.\d+", PROJECT["requires-python"])
    minors = range(int(low.split(".")[1]), int(below.split(".")[1]))
    expected = ", ".join(f"3.{minor}" for minor in minors[:-1]) + f" or 3.{minors[-1]}"
    assert f"Python {expected}" in page
    assert f"Python {expected}" in " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())


def test_the_table_of_extras_has_all_that_users_need() -> None:
    rows = table(DOCS / "start.md", "extra")
    for_developers = {"test", "docs", "dev"}
    expected = {f"`gym-dr[{name}]`" for name in PROJECT["optional-dependencies"].keys() - for_developers}
    assert {row["extra"] for row in rows} == expected


def test_the_table_of_hooks_has_all_of_them() -> None:
    rows = table(DOCS / "guides" / "plugins.md", "hook")
    assert {row["hook"].strip("`") for row in rows} == {name for name in vars(hookspecs) if name.startswith("gym_dr_")}


def test_every_extra_on_a_page_exists() -> None:
    extras = {name for page in PAGES for name in re.findall(r"gym-dr\[(\w+)\]", page.read_text(encoding="utf-8"))}
    assert extras <= PROJECT["optional-dependencies"].keys()


# --- names and claims ---


def test_the_reference_lists_every_public_name() -> None:
    page = (DOCS / "reference.md").read_text(encoding="utf-8")
    assert set(re.findall(r"auto(?:class|function):: (?:gym_dr\.)?(\w+)$", page, re.MULTILINE)) >= set(gym_dr.__all__)


def test_the_pages_name_every_public_function_and_every_keyword_of_an_evaluation() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES if page.name != "reference.md")
    functions = [name for name in gym_dr.__all__ if inspect.isfunction(getattr(gym_dr, name))]
    assert [name for name in functions if f"gym_dr.{name}" not in text and f"`{name}(" not in text] == []
    keywords = inspect.signature(gym_dr.evaluate).parameters.keys() - {"policies", "progress", "command"}
    assert [name for name in keywords if f"{name}=" not in text and f"--{name.replace('_', '-')}" not in text] == []


def members(protocol: type) -> set[str]:
    return {name for name in vars(protocol) if not name.startswith("_")}


def test_the_page_on_samplers_names_all_that_a_sampler_and_an_episode_have() -> None:
    page = DOCS / "tutorials" / "own_sampler.md"
    assert documented_names(table(page, "member")) == members(ParamSampler)
    assert documented_names(table(page, "attribute")) == members(FinishedEpisode)
    assert members(FinishedEpisode) <= {field.name for field in dataclasses.fields(gym_dr.EpisodeRecord)}


def documented_names(rows: list[dict[str, str]]) -> set[str]:
    cells = [next(iter(row.values())) for row in rows]
    return {name for cell in cells for name in re.findall(r"`(\w+)", cell)}


def test_returns_are_grouped_by_a_parameter_within_one_set() -> None:
    """Every evaluation has nominal values and training draws, which would be groups of their own."""
    texts = [path.read_text(encoding="utf-8") for path in [*PAGES, *(ROOT / "gym_dr").rglob("*.py")]]
    keys = {key for text in texts for key in re.findall(r"\.episodes\.groupby\(\[?\"(\w+)", text)}
    assert keys <= {"set", "policy"}


def test_the_time_to_compile_stands_in_one_place() -> None:
    paths = [*PAGES, *(ROOT / "gym_dr" / "compiled").rglob("*.py"), *(ROOT / "gym_dr" / "envs").rglob("*.py")]
    found = [
        path.name
        for path in paths
        for sentence in re.split(r"(?<=[.:])\s|\n\n", path.read_text(encoding="utf-8"))
        if re.search(r"compil(?!\w+ not\s+counted)", sentence) and re.search(r"\d+ s(econds)?\b|minute", sentence)
    ]
    assert set(found) <= {"performance.md", "cache.py"}


def test_no_page_counts_the_lines_of_a_file() -> None:
    """Nobody would notice when the number has become untrue."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert re.findall(r"\w+ lines of code|(?:\d+|eighty|fifteen) lines", text) == []


def sentences(module: Path) -> list[str]:
    """The texts in a module; what an f-string inserts is left out."""
    return [node.value for node in nodes_of(module) if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def test_the_messages_of_the_page_on_troubles_are_those_of_the_code() -> None:
    page = (DOCS / "guides" / "troubleshooting.md").read_text(encoding="utf-8")
    modules = [*PACKAGE.rglob("*.py"), Path(inspect.getfile(gym.make))]
    known = [text for module in modules for text in sentences(module)]
    messages = re.findall(r"^\*\*`([^`]+)`", page, re.MULTILINE)
    assert len(messages) > 5
    for message in messages:
        parts = [part.strip() for part in message.split("...") if part.strip(" ,.")]
        assert all(any(part in text for text in known) for part in parts), message


def test_the_glossary_has_each_word_once_and_the_words_of_the_guides() -> None:
    page = (DOCS / "glossary.md").read_text(encoding="utf-8")
    words = [line for block in re.findall(r"```{glossary}\n(.*?)```", page, re.DOTALL) for line in block.splitlines()]
    terms = [line for line in words if line and not line.startswith(" ")]
    assert len(terms) == len(set(terms))
    assert {"draw", "box", "cell", "set", "cohort", "level", "nominal", "switch", "exact values"} <= set(terms)


def test_the_changelog_is_a_page() -> None:
    assert "{include} ../CHANGELOG.md" in (DOCS / "changelog.md").read_text(encoding="utf-8")
    assert "\nchangelog\n" in (DOCS / "index.md").read_text(encoding="utf-8")


def test_the_reference_describes_every_parameter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS / "_extensions"))
    described = importlib.import_module("field_comments").described
    missing = []
    for name, item in documented_objects().items():
        if not callable(item) or getattr(item, "_is_protocol", False):
            continue
        text = "\n".join(filter(None, (item.__doc__, getattr(item.__init__, "__doc__", None))))
        fields = (
            {f.name: described(item, f) for f in dataclasses.fields(item)} if dataclasses.is_dataclass(item) else {}
        )
        for parameter in inspect.signature(item).parameters:
            if not fields.get(parameter) and not re.search(rf"^ *\**{parameter}(?: \(.*\))?: ", text, re.MULTILINE):
                missing.append(f"{name}({parameter})")
    assert missing == []
