"""``gymdr export RUN`` and ``gymdr export sb3:FILE.zip``."""

from __future__ import annotations

from typing import Any

import click

from gym_dr.cli.options import one_policy, read_context_params
from gym_dr.policies.export import export_policy
from gym_dr.randomization.context import INFO
from gym_dr.runs.config import CONTEXTS


@click.command()
@click.argument("policy", metavar="RUN|sb3:FILE.zip")
@click.option("--output", required=True, metavar="FILE", help="file to write, ending in .onnx")
@click.option("--env", metavar="ID", help="environment of an sb3 file, which does not record it")
@click.option("--randomization", metavar="PRESET|FILE", help="training randomization of an sb3 file, to record")
@click.option(
    "--context",
    metavar="|".join(CONTEXTS),
    default=INFO,
    show_default=True,
    help="observation if an sb3 file was trained on environments with context='observation'",
)
@click.option(
    "--context-params",
    multiple=True,
    metavar="NAME[=LOW:HIGH]",
    callback=lambda ctx, param, texts: read_context_params(texts),
    help="a parameter that an sb3 file observes; see gymdr evaluate; repeatable",
)
@click.option(
    "--trust",
    multiple=True,
    metavar="MODULE|FILE",
    help="a module of a run, or an sb3 or VecNormalize file, whose code may run; repeatable",
)
def command(policy: str, output: str, **options: Any) -> None:
    """Write a policy as an ONNX file, which runs without gym_dr, Stable-Baselines3 and torch.

    The policy is that of a run or of a Stable-Baselines3 file. The ONNX file takes observations as the environment
    returns them, and returns the most likely action as the environment takes it.
    """
    click.echo(f"Wrote {export_policy(one_policy([policy], **options), output)}")
