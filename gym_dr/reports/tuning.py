"""The page of a tuning: Optuna's plots, which need no network."""

from __future__ import annotations

import html
from pathlib import Path

from gym_dr.errors import printable
from gym_dr.runs.folder import write_atomically
from gym_dr.studies.tune import TuneResult, open_storage

PLOTS = ("optimization_history", "slice", "parallel_coordinate", "intermediate_values", "param_importances")
ENOUGH = 10  # trials, for importances


def write_tuning_page(found: TuneResult, algorithm: str, path: Path) -> None:
    """Writes the page of a tuning.

    Args:
        found: What it has found.
        algorithm: Name of the algorithm.
        path: File to write.
    """
    from optuna import visualization  # heavy

    with open_storage(found.folder) as study:
        names = PLOTS if len(found.trials) >= ENOUGH else PLOTS[:-1]
        figures = [getattr(visualization, f"plot_{name}")(study) for name in names]
    plots = [figure.to_html(full_html=False, include_plotlyjs=not index) for index, figure in enumerate(figures)]
    title = html.escape(f"Trial {found.best} is the best: mean return {found.value:.1f}")
    command = html.escape(f"gymdr train {algorithm} --config {found.config}")
    head = [f"<meta charset='utf-8'><title>{title}</title>", f"<h1>{title}</h1>", f"<pre>{command}</pre>"]
    write_atomically(path, "\n".join([*map(printable, head), *plots]).encode())
