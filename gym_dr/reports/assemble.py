"""Assembles the report of policies and their evaluation."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence

from gym_dr.errors import ConfigError, RunFolderError
from gym_dr.reports.comparison import Comparison, Group
from gym_dr.reports.curves import along_parameters, distributions, sensitivity
from gym_dr.reports.film_strips import MAX_GROUPS, film_strips
from gym_dr.reports.maps import difference_maps, heat_maps
from gym_dr.reports.page import FilmStrip, Provenance, Report, versions_of
from gym_dr.reports.tables import (
    config_diff,
    difference_tables,
    failure_tables,
    findings,
    regret_table,
    summary_tables,
    watch_commands,
)
from gym_dr.reports.training import draw_growth, learning_curves
from gym_dr.runs.folder import RunFolder
from gym_dr.runs.plain import read_plain
from gym_dr.table import Table

MAX_COMMAND = 2**20  # bytes that are read
PACKAGES = ("gym-dr", "gymnasium", "torch", "numpy", "plotly")  # results may depend on their versions


def assemble(
    comparison: Comparison,
    command: str,
    progress: Callable[[str], None],
    *,
    compared: tuple[Sequence[str], Sequence[Table]] | None = None,
) -> Report:
    """Collects the content of a page.

    Args:
        comparison: The policies and their evaluation.
        command: The command that makes the page.
        progress: See ``film_strips``.
        compared: Findings and first tables, if the caller has already compared the policies; None to compare them
            here.

    Raises:
        RunFolderError: A run has no metrics or draws, or they are damaged.
    """
    document = comparison.document
    plots = (heat_maps, along_parameters, distributions, difference_maps, sensitivity)
    sections = [make(comparison) for make in plots]
    sections.append(learning_curves(comparison.groups))
    sections.append(draw_growth(comparison.groups))
    strips, notes = _film_strips(comparison, progress)
    names = [group.name for group in comparison.groups]
    episodes = sum(cells.num_episodes for cells in comparison.evaluation.sets)
    count = sum(len(group.policies) for group in comparison.groups)
    word = "run" if all(group.runs for group in comparison.groups) else "policy"
    words = word if count == 1 else {"run": "runs", "policy": "policies"}[word]
    success = "" if document["success"] is None else f"success: a return of at least {document['success']:g}"
    facts = [document["env"], f"{count} {words}", f"{episodes:,} episodes a {word}", success]
    sentences, first = compared or (findings(comparison), ())
    tables = [
        *first,
        *config_diff(comparison.groups),
        *summary_tables(comparison),
        *([] if compared else difference_tables(comparison)),
        *regret_table(comparison),
        *failure_tables(comparison),
    ]
    return Report(
        title=f"Robustness of {' and '.join(names) if len(names) < 3 else f'{len(names)} policies'}",
        facts=[fact for fact in facts if fact],
        findings=sentences,
        tables=tables,
        sections=[section for section in sections if section.views],
        film_strips=strips,
        film_strip_notes=notes,
        provenance=[_provenance(group) for group in (*comparison.groups, *comparison.references)],
        command="\n".join(filter(None, dict.fromkeys([document["command"], command]))),
        versions=versions_of(PACKAGES),
        next_commands=watch_commands(comparison),
    )


def _film_strips(comparison: Comparison, progress: Callable[[str], None]) -> tuple[list[FilmStrip], list[str]]:
    """Film strips and notes on them; if nothing can be rendered, only a note."""
    try:
        strips = film_strips(comparison, progress)
    except ConfigError as error:
        progress(f"no film strips: {error}")
        return [], [f"There are no film strips: {error}"]
    notes = [
        "A good episode is the one at the 90th percentile of returns. Both episodes are replayed from their seed, draw "
        "and actions."
    ]
    if len(comparison.groups) > MAX_GROUPS:
        notes.append(f"Only the first {MAX_GROUPS} policies are shown.")
    return strips, notes


def _provenance(group: Group) -> Provenance:
    """The provenance of one policy."""
    if not group.runs:
        policy = group.policies[0]
        hidden, ranges = ("path", "context"), policy.record.get("context", {})
        shown = [f"{key} {value}" for key, value in policy.record.items() if value is not None and key not in hidden]
        shown += [f"observes {name} from {low:g} to {high:g}" for name, (low, high) in ranges.items()]
        text = (
            f"{policy.source} ({', '.join(shown)}). It was trained elsewhere, so its learning curves, draws and "
            "settings are unknown."
        )
        return Provenance(name=group.name, text=text, commands=[], config="")
    config, seeds = group.runs[0].config, ", ".join(map(str, group.seeds))
    typed = dict.fromkeys(_typed(run.folder) for run in group.runs)  # one command may have made several seeds
    commands = [("Command", command) for command in typed if command]
    path = str(group.runs[0].folder.config)
    repeat = ["gymdr", "train", config.algorithm, "--config", path, "--run-dir", "runs/again"]
    several = len(group.seeds) > 1
    text = f"{config.algorithm} on {config.settings.env}, seed{'s' if several else ''} {seeds}."
    if several:
        repeat += ["--seeds", ",".join(map(str, group.seeds))]
        text += " The configuration is that of the first seed; the others differ only in the seed"
        folders = group.folders_by_seed
        for name, folder in folders.items():
            repeat += [f"--{name.replace('_', '-')}", folder]
        text += f", and in the run with the same seed that {' and '.join(folders)} names." if folders else "."
    commands.append(("Reproduce with", shlex.join(repeat)))
    return Provenance(name=group.name, text=text, commands=commands, config=config.to_json())


def _typed(folder: RunFolder) -> str | None:
    """The command that trained a run; None for runs trained from Python."""
    try:
        return read_plain(folder.command, MAX_COMMAND).decode().strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise RunFolderError(f"{folder.command}: cannot be read: {error}.") from None
