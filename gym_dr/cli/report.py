"""``gymdr report RUN ...`` and ``gymdr report --policy ...``."""

from __future__ import annotations

from typing import Any

import click

from gym_dr.api.evaluate import report
from gym_dr.cli.options import command_line, opened_policies, policy_options, reference_option, threads_option


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@policy_options
@reference_option
@click.option(
    "--randomization",
    metavar="PRESET|FILE",
    help="training randomization of --policy, a preset or a file  [default: unknown; training draws are then those of "
    "the RUNs, or of the preset default]",
)
@click.option("--output", metavar="HTML", help="file to write  [default: report.html, in RUN if there is only one]")
@click.option(
    "--evaluation",
    metavar="FOLDER",
    help="folder of the evaluation  [default: the one of gymdr evaluate; next to HTML for several policies]",
)
@threads_option
def command(
    runs: tuple[str, ...],
    others: tuple[str, ...],
    references: tuple[str, ...],
    output: str | None,
    evaluation: str | None,
    num_threads: int | None,
    stochastic: bool,
    **options: Any,
) -> None:
    """Write a robustness report as one HTML file.

    It shows how robust the policies are, which parameters matter, and where each policy is better. It opens from disk
    and needs no network. The command first plays the episodes that are missing: on nominal values, on training draws,
    and on points that fill the training distribution. A folder of several seeds stands for all of its runs.
    """
    policies = opened_policies([*runs, *others], references, stochastic=stochastic or None, **options)
    page = report(policies, output=output, evaluation=evaluation, num_threads=num_threads, command=command_line())
    click.echo(f"Wrote {page}")
