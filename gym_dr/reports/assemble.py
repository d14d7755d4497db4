"""Assembles the report of policies and their evaluation."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from gym_dr.errors import RunFolderError
from gym_dr.reports.comparison import Comparison, Group
from gym_dr.reports.page import Provenance, Report, versions_of
from gym_dr.reports.returns import along_parameters, first_picture, heat_maps
from gym_dr.reports.tables import (
    config_diff,
    failure_tables,
    findings,
    pooled,
    regret_table,
    sensitivity_tables,
    sets_table,
    summary_tables,
    terms_of_rewards,
    watch_commands,
)
from gym_dr.runs.folder import RunFolder, read_plain
from gym_dr.table import Table

MAX_COMMAND = 2**20  # bytes that are read
PACKAGES = ("gym-dr", "gymnasium", "torch", "numpy", "plotly")  # results may depend on their versions


def assemble(
    comparison: Comparison, command: str, *, compared: tuple[Sequence[str], Sequence[Table]] | None = None
) -> Report:
    """Collects the content of a page.

    Args:
        comparison: The policies and their evaluation.
        command: The command that makes the page.
        compared: Findings and tables of a caller that has compared the policies; None to compare them here.

    Raises:
        RunFolderError: The command that trained a run cannot be read.
    """
    document = comparison.document
    sections = [heat_maps(comparison), along_parameters(comparison)]
    names = [group.name for group in comparison.groups]
    episodes = sum(cells.num_episodes for cells in comparison.evaluation.sets)
    count = sum(len(group.policies) for group in comparison.groups)
    word = "run" if all(group.runs for group in comparison.groups) else "policy"
    words = word if count == 1 else {"run": "runs", "policy": "policies"}[word]
    success = "" if document["success"] is None else f"success: a return of at least {document['success']:g}"
    facts = [document["env"], f"{count} {words}", f"{episodes:,} episodes a {word}", success]
    sentences, tables = compared or ((), ())
    tables = [
        sets_table(comparison),
        *tables,
        *terms_of_rewards(comparison),
        *config_diff(comparison.groups),
        *regret_table(comparison),
        *failure_tables(comparison),
        *sensitivity_tables(comparison),
    ]
    means = [pooled(comparison, group, comparison.main_set(0), "mean")["value"] for group in range(len(names))]
    best = max(range(1, len(names)), key=means.__getitem__, default=0)
    return Report(
        title=f"Robustness of {' and '.join(names) if len(names) < 3 else f'{len(names)} policies'}",
        facts=[fact for fact in facts if fact],
        findings=sentences or findings(comparison),
        tables=tables,
        sections=[section for section in sections if section.views],
        provenance=[_provenance(group) for group in (*comparison.groups, *comparison.references)],
        command="\n".join(filter(None, dict.fromkeys([document["command"], command]))),
        versions=versions_of(PACKAGES),
        picture=first_picture(comparison, best),
        folded=summary_tables(comparison),
        next_commands=watch_commands(comparison),
    )


def _provenance(group: Group) -> Provenance:
    """The provenance of one policy."""
    if not group.runs:
        policy = group.policies[0]
        hidden, ranges = ("path", "context"), policy.record.get("context", {})
        shown = [f"{key} {value}" for key, value in policy.record.items() if value is not None and key not in hidden]
        shown += [f"observes {name} from {low:g} to {high:g}" for name, (low, high) in ranges.items()]
        text = (
            f"{policy.source} ({', '.join(shown)}). It was trained elsewhere, so its settings and training draws are "
            "unknown."
        )
        return Provenance(name=group.name, text=text, commands=[], config="")
    run, seeds = group.runs[0], ", ".join(map(str, group.seeds))
    several = len(group.seeds) > 1
    text = f"{run.config.algorithm} on {run.config.settings.env}, seed{'s' if several else ''} {seeds}."
    text += " The configuration is that of the first seed; the others differ only in the seed." if several else ""
    typed = dict.fromkeys(_typed(run.folder) for run in group.runs)  # one command may have made several seeds
    commands = [("Command", command) for command in typed if command]
    if not commands:
        again = ["gymdr", "train", run.config.algorithm, "--config", str(run.folder.config), "--run-dir", "runs/again"]
        commands = [("Reproduce with", shlex.join(again))]
    return Provenance(name=group.name, text=text, commands=commands, config=run.config.to_json())


def _typed(folder: RunFolder) -> str | None:
    """The command that trained a run; None for runs trained from Python."""
    try:
        return read_plain(folder.command, MAX_COMMAND).decode().strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise RunFolderError(f"{folder.command}: cannot be read: {error}.") from None
