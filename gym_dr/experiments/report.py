"""``gym_dr.report``: how robust policies are, as one HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gym_dr.errors import ConfigError
from gym_dr.experiments.evaluate import playing
from gym_dr.experiments.run import RunLike, open_runs


def report(
    runs: RunLike | Sequence[RunLike],
    *,
    output: str | Path | None = None,
    evaluation: str | Path | None = None,
    progress: bool = True,
    command: str = "",
) -> Path:
    """Writes one HTML file that says how robust policies are, to what, and which of them is better where.

    It opens from disk and needs no network. What the evaluation lacks is played first: nominal values, the draws of
    training, and points that fill the distribution of those draws.

    Example:
        >>> gym_dr.report(["runs/first", "runs/wind"], output="comparison.html")

    Args:
        runs: A path, a ``Run`` or ``Runs``, or several of them, the baseline first.
        output: File to write; None for ``report.html``, in the run's folder if there is one.
        evaluation: Folder of an evaluation; None for ``evaluation`` in the run's folder, or beside the file.
        progress: Whether to show it: a bar on a terminal and in a notebook, lines elsewhere.
        command: The command that asked for the report, named on the page.

    Returns:
        The file.

    Raises:
        ConfigError: The page cannot be where it is to go, the runs cannot be compared, or gym-dr[report] is missing.
        RunFolderError: There is no run at a path, or a file cannot be read or written.
        Interrupted: A signal has stopped it.
    """
    from gym_dr.evaluation.policies import open_policies  # heavy, as those below
    from gym_dr.evaluation.report.assemble import assemble
    from gym_dr.evaluation.report.comparison import Comparison, group_runs
    from gym_dr.evaluation.report.evaluation import complete_evaluation
    from gym_dr.evaluation.report.page import check_installed, write_report
    from gym_dr.evaluation.results import evaluation_folder

    check_installed()
    paths, opened = open_runs(runs)
    page = Path(output) if output is not None else Path(paths[0] if len(paths) == 1 else ".") / "report.html"
    if page.suffix != ".html" or page.is_dir() or not page.absolute().parent.is_dir():
        raise ConfigError(f"--output: expected a file that ends in .html in a folder that exists, got {page}.")
    if evaluation is None and len(paths) > 1:
        evaluation = page.with_name(f"{page.stem}-evaluation")
    folder = evaluation_folder(paths, None if evaluation is None else str(evaluation))
    policies = open_policies([run.parts for run in opened])
    with playing(progress) as display:
        found = complete_evaluation(policies, folder, command, display)
        compared = Comparison(groups=group_runs(policies), evaluation=found)
        write_report(assemble(compared, command, display.note), page)
    return page
