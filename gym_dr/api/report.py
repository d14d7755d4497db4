"""``gym_dr.report``: how robust policies are, as one HTML file."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from gym_dr.errors import as_path, located, needs
from gym_dr.evaluation.evaluate import evaluate_policies, playing
from gym_dr.evaluation.results import evaluation_folder
from gym_dr.evaluation.suite import report_suite
from gym_dr.options import expect
from gym_dr.policies.open import EnvLike, PoliciesLike, open_policies
from gym_dr.runs.config import check_not_reserved
from gym_dr.runs.folder import check_output


def report(
    policies: PoliciesLike,
    *,
    references: PoliciesLike = (),
    env: EnvLike | None = None,
    output: str | Path | None = None,
    evaluation: str | Path | None = None,
    num_threads: int | None = None,
    trust: Collection[str] = (),
    progress: bool = True,
    command: str = "",
) -> Path:
    """Writes a report as one HTML file: how robust policies are, which parameters matter, and where each is better.

    The file opens from disk and needs no network. Missing episodes are played first: on nominal values, on training
    draws, and on points that fill the training distribution. For policies that are not runs, the report has no
    settings or training draws.

    Example:
        >>> gym_dr.report(["runs/first", "runs/wind"], output="first_and_wind.html")

    Args:
        policies: As in ``gym_dr.evaluate``, the baseline first.
        references: As in ``gym_dr.evaluate``: the report then has the regret of each policy.
        env: As in ``gym_dr.evaluate``.
        output: File to write; None for ``report.html``, in the run's folder if there is a single one.
        evaluation: Folder of an evaluation; None for the default of ``gym_dr.evaluate``, or beside the file if there
            are several policies.
        num_threads: As in ``gym_dr.evaluate``.
        trust: As in ``gym_dr.evaluate``.
        progress: Whether to show progress: a bar on a terminal and in a notebook, lines elsewhere.
        command: The command line, shown on the page.

    Returns:
        The path of the file.

    Raises:
        ConfigError: The output path cannot be used, gym-dr[report] is missing, the policies cannot be compared,
            or a run's seed is reserved: its options were tuned on it.
        InvalidActionError: A policy's actions do not fit the environment, or are not finite.
        RunFolderError: There is no run at a path, or a file cannot be read or written.
        Interrupted: A signal stopped the evaluation.
    """
    needs("A report", "report", "jinja2", "plotly")
    from gym_dr.reports.assemble import assemble  # heavy, as those below
    from gym_dr.reports.comparison import Comparison, group_policies
    from gym_dr.reports.page import MARK, write_report

    opened = open_policies(policies, references, env=env, trust=trust)
    folders = list(dict.fromkeys(policy.home for policy in opened))
    for run in [policy.run for policy in opened if policy.run]:
        with located(f"{run.folder.path} would look too good"):
            check_not_reserved("seed", [run.config.settings.seed], run.config.settings.reserved_seeds)
    home = folders[0].parent if len(folders) == 1 else Path()
    page = home / "report.html" if output is None else as_path(output)
    expect(page.suffix == ".html", "`output`", "a file that ends in .html", str(page))
    check_output(page, MARK if output is None else b"")
    if evaluation is None and len(folders) > 1:
        evaluation = page.with_name(f"{page.stem}-evaluation")
    folder = evaluation_folder(folders, evaluation)
    shown, others = ([policy for policy in opened if policy.reference is kind] for kind in (False, True))
    groups, of_references = group_policies(shown), group_policies(others)
    with playing(progress, num_threads=num_threads) as display:
        played = evaluate_policies(opened, report_suite(opened), folder, command=command, progress=display)
        compared = Comparison(groups=groups, references=of_references, evaluation=played)
        write_report(assemble(compared, command), page)
    return page
