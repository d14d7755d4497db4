"""Makes a report of runs and their evaluation."""

from __future__ import annotations

from collections.abc import Callable

from gym_dr.errors import ConfigError
from gym_dr.evaluation.report.compared import Compared
from gym_dr.evaluation.report.curves import along_parameters, distributions, sensitivity
from gym_dr.evaluation.report.differing import what_differs
from gym_dr.evaluation.report.films import MOST_GROUPS, films
from gym_dr.evaluation.report.maps import difference_maps, heat_maps
from gym_dr.evaluation.report.origin import origins, versions
from gym_dr.evaluation.report.page import Film, Report
from gym_dr.evaluation.report.tables import answers, summary_tables
from gym_dr.evaluation.report.training import draw_history, learning_curves
from gym_dr.runs.environments import param_space_of


def assemble(compared: Compared, command: str, progress: Callable[[str], None]) -> Report:
    """Everything that the page says.

    Args:
        compared: Runs and their evaluation.
        command: That asked for the page.
        progress: Told what is being drawn.

    Raises:
        RunFolderError: A run has no metrics or draws, or they are damaged.
    """
    document = compared.document
    sections = [
        heat_maps(compared),
        along_parameters(compared),
        distributions(compared),
        difference_maps(compared),
        sensitivity(compared),
        learning_curves(compared.groups),
        draw_history(compared.groups, param_space_of(document["env"])),
    ]
    strips, notes = _films(compared, progress)
    names = [group.name for group in compared.groups]
    episodes = sum(entry["cells"] * entry["episodes"] for entry in document["sets"])
    runs = sum(len(group.policies) for group in compared.groups)
    success = "" if document["success"] is None else f"success: a return of at least {document['success']:g}"
    facts = [document["env"], f"{runs} run{'s' if runs > 1 else ''}", f"{episodes:,} episodes a run", success]
    return Report(
        title=f"Robustness of {' and '.join(names) if len(names) < 3 else f'{len(names)} policies'}",
        facts=[fact for fact in facts if fact],
        answers=answers(compared),
        tables=[*what_differs(compared.groups), *summary_tables(compared)],
        sections=[section for section in sections if section is not None],
        films=strips,
        film_notes=notes,
        origins=origins(compared.groups),
        made_by="\n".join(filter(None, dict.fromkeys([document["command"], command]))),
        made_with=versions(),
    )


def _films(compared: Compared, progress: Callable[[str], None]) -> tuple[list[Film], list[str]]:
    """Strips, and what is to be said of them; a report without pictures is better than none."""
    try:
        strips = films(compared, progress)
    except ConfigError as error:
        progress(f"no film strips: {error}")
        return [], [f"There are no film strips: {error}"]
    notes = [
        "A good episode is that at the 90th percentile of returns, the worst is the worst of all. Both are played "
        "again from their seed, draw and actions."
    ]
    if len(compared.groups) > MOST_GROUPS:
        notes.append(f"Shown are the first {MOST_GROUPS} policies.")
    return strips, notes
