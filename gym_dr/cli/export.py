"""``gymdr export RUN``."""

from __future__ import annotations

import click

from gym_dr.errors import ConfigError
from gym_dr.experiments.run import Run, load_run


@click.command()
@click.argument("run")
@click.option("--output", required=True, metavar="FILE", help="file to write, which ends in .onnx")
@click.option("--trust", multiple=True, metavar="MODULE", help="a module that the run may import; repeatable")
def command(run: str, output: str, trust: tuple[str, ...]) -> None:
    """Write the policy of a run as an ONNX file, which runs without gym_dr and without torch.

    It takes observations as the environment returns them and gives the most likely action, as the environment takes it.
    """
    found = load_run(run, trust)
    if not isinstance(found, Run):
        raise ConfigError(f"{run}: holds several runs: expected one, such as {found[0].path}.")
    click.echo(f"Wrote {found.export(output)}")
