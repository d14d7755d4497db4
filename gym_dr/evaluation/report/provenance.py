"""How runs were made: the command as typed, a command that repeats it, the configuration."""

from __future__ import annotations

import platform
import shlex
from importlib.metadata import version

from gym_dr.errors import RunFolderError
from gym_dr.evaluation.report.comparison import Group
from gym_dr.evaluation.report.page import Provenance
from gym_dr.runs.folder import RunFolder

PACKAGES = ("gym-dr", "gymnasium", "torch", "numpy", "plotly")  # whose versions results may depend on


def package_versions() -> str:
    """Versions of Python and of the packages that results may depend on."""
    parts = [f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in PACKAGES)]
    return f"{', '.join(parts)} on {platform.system()} {platform.machine()}."


def provenance(group: Group) -> Provenance:
    """The provenance of one policy."""
    config, seeds = group.config, ", ".join(map(str, group.seeds))
    typed = dict.fromkeys(_typed(policy.folder) for policy in group.policies)  # one command may have made several seeds
    commands = [("As it was typed", command) for command in typed if command]
    path = str(group.policies[0].folder.config)
    repeat = ["gymdr", "train", config.algorithm, "--config", path, "--run-dir", "runs/again"]
    several = len(group.seeds) > 1
    text = f"{config.algorithm} on {config.settings.env}, seed{'s' if several else ''} {seeds}."
    if several:
        repeat += ["--seeds", ",".join(map(str, group.seeds))]
        text += " The configuration is the first seed's; the others differ in their seed alone."
    commands.append(("To repeat it", shlex.join(repeat)))
    return Provenance(name=group.name, text=text, commands=commands, config=config.to_json())


def _typed(folder: RunFolder) -> str | None:
    """The command that trained a run; runs that a program trained have none."""
    try:
        return str(folder.command.read_text(encoding="utf-8")).strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise RunFolderError(f"{folder.command}: cannot be read: {error}.") from None
