"""Makes a report of runs and their evaluation."""

from __future__ import annotations

from collections.abc import Callable

from gym_dr.errors import ConfigError
from gym_dr.evaluation.report.comparison import Comparison
from gym_dr.evaluation.report.config_diff import config_diff
from gym_dr.evaluation.report.curves import along_parameters, distributions, sensitivity
from gym_dr.evaluation.report.film_strips import MAX_GROUPS, film_strips
from gym_dr.evaluation.report.maps import difference_maps, heat_maps
from gym_dr.evaluation.report.page import FilmStrip, Report
from gym_dr.evaluation.report.provenance import package_versions, provenance
from gym_dr.evaluation.report.tables import findings, summary_tables
from gym_dr.evaluation.report.training import draw_history, learning_curves
from gym_dr.runs.environments import param_space_of


def assemble(comparison: Comparison, command: str, progress: Callable[[str], None]) -> Report:
    """Collects the content of the page that ``command`` asked for; ``progress`` is that of ``film_strips``.

    Raises:
        RunFolderError: A run has no metrics or draws, or they are damaged.
    """
    document = comparison.document
    plots = (heat_maps, along_parameters, distributions, difference_maps, sensitivity)
    sections = [make(comparison) for make in plots]
    sections.append(learning_curves(comparison.groups))
    sections.append(draw_history(comparison.groups, param_space_of(document["env"])))
    strips, notes = _film_strips(comparison, progress)
    names = [group.name for group in comparison.groups]
    episodes = sum(cells.num_episodes for cells in comparison.evaluation.sets)
    runs = sum(len(group.policies) for group in comparison.groups)
    success = "" if document["success"] is None else f"success: a return of at least {document['success']:g}"
    facts = [document["env"], f"{runs} run{'s' if runs > 1 else ''}", f"{episodes:,} episodes a run", success]
    return Report(
        title=f"Robustness of {' and '.join(names) if len(names) < 3 else f'{len(names)} policies'}",
        facts=[fact for fact in facts if fact],
        findings=findings(comparison),
        tables=[*config_diff(comparison.groups), *summary_tables(comparison)],
        sections=[section for section in sections if section.views],
        film_strips=strips,
        film_strip_notes=notes,
        provenance=[provenance(group) for group in comparison.groups],
        command="\n".join(filter(None, dict.fromkeys([document["command"], command]))),
        versions=package_versions(),
    )


def _film_strips(comparison: Comparison, progress: Callable[[str], None]) -> tuple[list[FilmStrip], list[str]]:
    """Film strips and notes on them; without a way to render, the report has a note instead."""
    try:
        strips = film_strips(comparison, progress)
    except ConfigError as error:
        progress(f"no film strips: {error}")
        return [], [f"There are no film strips: {error}"]
    notes = [
        "A good episode is the one at the 90th percentile of returns. Both are replayed from their seed, draw and "
        "actions."
    ]
    if len(comparison.groups) > MAX_GROUPS:
        notes.append(f"Shown are the first {MAX_GROUPS} policies.")
    return strips, notes
