"""``gymdr report RUN ...``."""

from __future__ import annotations

from pathlib import Path

import click

from gym_dr.cli.runs import open_run
from gym_dr.errors import ConfigError


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--output", metavar="HTML", help="file to write  [default: report.html, in RUN if it is the only one]")
@click.option(
    "--evaluation",
    metavar="FOLDER",
    help="what 'gymdr evaluate' wrote  [default: RUN/evaluation; for several RUNs beside HTML]",
)
def command(runs: tuple[str, ...], output: str | None, evaluation: str | None) -> None:
    """Write one HTML file that says how robust policies are, to what, and which of them is better where.

    It opens from disk and needs no network. What the evaluation lacks is played first: nominal values, the draws of
    training, and points that fill the box around them. A RUN that is a folder of seeds stands for all of them.
    """
    from gym_dr.cli.progress import EpisodeProgress  # heavy, as those below
    from gym_dr.cli.training import use_one_thread
    from gym_dr.evaluation.policies import open_policies
    from gym_dr.evaluation.report.assemble import assemble
    from gym_dr.evaluation.report.comparison import Comparison
    from gym_dr.evaluation.report.evaluation import complete_evaluation
    from gym_dr.evaluation.report.groups import group_runs
    from gym_dr.evaluation.report.page import check_installed, write_report
    from gym_dr.evaluation.results import evaluation_folder
    from gym_dr.runs.folder import expand

    check_installed()
    page = Path(output) if output else Path(runs[0] if len(runs) == 1 else ".") / "report.html"
    if page.suffix != ".html" or page.is_dir() or not page.absolute().parent.is_dir():
        raise ConfigError(f"--output: expected a file that ends in .html in a folder that exists, got {page}.")
    if evaluation is None and len(runs) > 1:
        evaluation = str(page.with_name(f"{page.stem}-evaluation"))
    folder = evaluation_folder(runs, evaluation)
    policies = open_policies([open_run(str(run.path)) for run in expand(list(runs))])
    typed = str(click.get_current_context().find_root().obj)
    use_one_thread()
    try:
        with EpisodeProgress() as progress:
            found = complete_evaluation(policies, folder, typed, progress)
    except KeyboardInterrupt:
        click.echo("Stopped. Finished episodes are kept; the same command goes on from there.", err=True)
        raise
    comparison = Comparison(groups=group_runs(policies), evaluation=found)
    write_report(assemble(comparison, typed, lambda text: click.echo(text, err=True)), page)
    click.echo(f"Wrote {page}")
