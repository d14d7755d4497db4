"""Writes a page for each environment family from the registry, before Sphinx reads the sources.

What the registry does not know, such as equivalence with Gymnasium, is in ``environments/notes/``: a file named after a
family becomes part of its page.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym

from gym_dr.cli.params import rows_of
from gym_dr.envs.family import FAMILIES, EnvFamily, EnvId
from gym_dr.envs.interface import Interface, Quantity
from gym_dr.policies.play import arrow_keys
from gym_dr.randomization.presets import presets
from gym_dr.randomization.space import Param
from gym_dr.registry import load_object
from gym_dr.runs.environments import make_env, param_space_of
from gym_dr.wrappers.disturbances import DISTURBANCES


def setup(app: Any) -> dict[str, Any]:
    """Registers the extension; called by Sphinx."""
    app.connect("builder-inited", lambda app: write_pages(Path(app.srcdir)))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_pages(docs: Path) -> None:
    """Writes ``environments/families/NAME.md``; unchanged files keep their modification time."""
    folder = docs / "environments" / "families"
    folder.mkdir(exist_ok=True)
    for family in FAMILIES.values():
        path, text = folder / f"{short_name(family)}.md", page(family, docs / "environments")
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def short_name(family: EnvFamily) -> str:
    """Its name; of a robot that registered itself, whose name is its id, without the namespace."""
    return family.name.rpartition("/")[2]


def page(family: EnvFamily, folder: Path) -> str:
    """The page of a family, in Markdown."""
    first = family.ids[0]
    params = [param for param in (param_space_of(first.id) or {}).values() if param.name not in DISTURBANCES]
    name = short_name(family)
    picture, note = folder / "pictures" / f"{name}.png", folder / "notes" / f"{name}.md"
    parts = [
        f"# {name}",
        f"![{name}](../pictures/{name}.png)" if picture.exists() else "",
        table(
            ("id", "equals at nominal values", "episode limit", "solved at", "native"),
            [
                (
                    f"`{env.id}`",
                    f"`{env.reference}`" if env.reference else "",
                    f"{env.max_episode_steps} steps",
                    "" if env.reward_threshold is None else f"{env.reward_threshold:g}",
                    "yes" if env.vector_entry_point else "no",
                )
                for env in family.ids
            ],
        ),
        "\n".join(("```sh", *commands(family), "```")),
        *interface_sections(family),
        note.read_text(encoding="utf-8") if note.exists() else "",
        "## Parameters",
        table(("name", "nominal", "lowest", "highest", "unit", "meaning"), parameter_rows(params)),
        "[Noise, delays, failing sensors and pushes](../../guides/disturbances.md) can also be randomized.",
        "## Presets",
        *(
            f"`{name}`\n: {_rules(randomization) if randomization else 'nothing varies'}"
            for name, randomization in presets(family.name).items()
        ),
    ]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def commands(family: EnvFamily) -> list[str]:
    """What to type first."""
    first = family.ids[0].id
    with contextlib.closing(make_env(first, None)) as env:
        by_hand = [f"gymdr play --human {first}"] if arrow_keys(env) else []
    return [f"gymdr train ppo --env {first}", *by_hand, f"gymdr params {first}"]


def interface_sections(family: EnvFamily) -> list[str]:
    """What the environments observe and take; nothing if their family does not say."""
    if not family.interface:
        return []
    env = family.ids[0]  # the others differ in their actions only
    found: Interface = load_object(family.interface)(env.id)
    made = gym.make(env.id)
    space: Any = made.observation_space
    made.close()
    return [
        "## Observations\n\nA unit of 10 m means that 1 stands for 10 m.\n\n"
        + table(("index", "name", "what", "unit", "lowest", "highest"), _named_rows(found.observation, space)),
        "## Actions",
        *(f"`{env.id}`:\n\n{action_table(family, env)}" for env in family.ids),
        f"{task_page(env)} says what is rewarded, and when an episode ends.",
    ]


def action_table(family: EnvFamily, env: EnvId) -> str:
    """The table of the actions of an id."""
    made = gym.make(env.id)
    space: Any = made.action_space
    made.close()
    actions = load_object(family.interface)(env.id).actions
    if isinstance(space, gym.spaces.Discrete):
        return table(("action", "what"), [(str(k), action.meaning) for k, action in enumerate(actions)])
    return table(("index", "what", "unit", "lowest", "highest"), _rows(actions, space.low, space.high))


def _named_rows(quantities: Sequence[Quantity], space: Any) -> Iterable[tuple[str, ...]]:
    """Rows with the names of sensors."""
    for one, (index, *rest) in zip(quantities, _rows(quantities, space.low, space.high), strict=True):
        yield index, f"`{one.name}`" if one.name else "", *rest


def _rows(quantities: Iterable[Quantity], low: Any, high: Any) -> Iterable[tuple[str, ...]]:
    at = 0
    for one in quantities:
        last = at + one.size - 1
        low_end, high_end = min(low[at : last + 1]), max(high[at : last + 1])
        index = str(at) if one.size == 1 else f"{at} to {last}"
        yield index, one.meaning, one.unit, _limit(low_end), _limit(high_end)
        at = last + 1


def _limit(value: float) -> str:
    return f"{value + 0.0:.4g}".replace("inf", "\u221e")  # and no -0


def task_page(env: EnvId) -> str:
    """A link to the page that describes the task of an id."""
    return f"[Gymnasium's page]({gymnasium_page(env)})" if env.reference else "[The page on the zoo](../zoo.md)"


def gymnasium_page(env: EnvId) -> str:
    """The page of an id's reference environment in Gymnasium's documentation."""
    folder = str(gym.spec(env.reference).entry_point).split(".")[2].partition(":")[0]
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", env.reference.partition("-")[0]).lower()
    special = {"half_cheetah": "half_cheetah", "walker2d": "walker2d", "bipedal_walker_hardcore": "bipedal_walker"}
    return f"https://gymnasium.farama.org/environments/{folder}/{special.get(words, words)}/"


def parameter_rows(params: list[Param]) -> Iterable[tuple[str, ...]]:
    """One row per parameter, or one row for many elements of a field."""
    for name, *others in rows_of(params, {param.name: param for param in params}):
        yield f"`{name}`", *others


def _rules(randomization: Any) -> str:
    return ", ".join(f"`{name}` = `{rule!r}`" for name, rule in randomization.items())


def table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A table in Markdown."""
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
