"""How runs were made, as far as their folders tell: what was typed, what repeats it, the configuration."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Sequence
from importlib.metadata import version

from gym_dr.errors import RunFolderError
from gym_dr.evaluation.report.groups import Group
from gym_dr.evaluation.report.page import Origin
from gym_dr.runs.folder import RunFolder

SHOWN = ("gym-dr", "gymnasium", "torch", "numpy", "plotly")  # versions that results may depend on


def origins(groups: Sequence[Group]) -> list[Origin]:
    """One for each policy."""
    return [_origin(group) for group in groups]


def versions() -> str:
    """Of this Python and of what results may depend on."""
    parts = [f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in SHOWN)]
    return f"{', '.join(parts)} on {platform.system()} {platform.machine()}."


def _origin(group: Group) -> Origin:
    first = group.policies[0]
    config = group.config
    typed = {_typed(policy.folder): None for policy in group.policies}  # a command of several seeds made all of them
    commands = [("As it was typed", command) for command in typed if command]
    repeat = ["gymdr", "train", config.algorithm, "--config", str(first.folder.config), "--run-dir", "runs/again"]
    if len(group.seeds) > 1:
        repeat += ["--seeds", ",".join(map(str, group.seeds))]
    commands.append(("To repeat it", shlex.join(repeat)))
    seeds = ", ".join(map(str, group.seeds))
    text = f"{config.algorithm} on {config.settings.env}, seed{'s' if len(group.seeds) > 1 else ''} {seeds}."
    if len(group.seeds) > 1:
        text += " The configuration is the first seed's; the others differ in their seed alone."
    return Origin(name=group.name, text=text, commands=commands, config=config.to_json())


def _typed(folder: RunFolder) -> str | None:
    """The command that trained a run; runs that a program trained have none."""
    try:
        return str(folder.command.read_text(encoding="utf-8")).strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise RunFolderError(f"{folder.command}: cannot be read: {error}.") from None
