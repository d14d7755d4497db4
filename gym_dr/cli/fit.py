"""``gymdr fit LOG --env ID``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from gym_dr.api.fit import check, fit
from gym_dr.cli.options import command_line, read_params, read_randomize
from gym_dr.cli.typed import as_typed
from gym_dr.errors import ConfigError
from gym_dr.fitting.problem import METHODS, Question


@click.command()
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option("--env", required=True, metavar="ID", help="environment with the physics of the logged system")
@click.option(
    "--randomize",
    multiple=True,
    metavar="NAME=PRIOR",
    help="a parameter to find and its prior, such as gravity=-12:-6; also action_delay=integer:0:3 or obs_delay, "
    "obs_noise=0:1, and obs_gain:NAME, obs_offset:NAME and obs_delay:NAME of a sensor; repeatable",
)
@click.option(
    "--randomization", metavar="PRESET|FILE", help="a whole prior; --randomize replaces single parameters of it"
)
@click.option(
    "--set",
    "params",
    multiple=True,
    metavar="NAME=VALUE",
    help="known value of a parameter, if it is not nominal; repeatable",
)
@click.option(
    "--time-step",
    metavar="NAME",
    help="the parameter that is the duration of a step, which then lasts as long as the log's times need; without it, "
    "logged intervals take the nearest whole number of steps",
)
@click.option(
    "--average-actions", is_flag=True, help="let the mean act where actions change within a step of the environment"
)
@click.option(
    "--varies",
    multiple=True,
    metavar="NAME",
    help="a parameter that varies between episodes: its distribution is found; the others are shared; repeatable",
)
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default="auto",
    show_default=True,
    help="likelihood explains each step, with noise; simulation is least squares over simulated stretches, for models "
    "that err a little everywhere; auto takes the one that predicts held-out motion better",
)
@click.option(
    "--held-out",
    type=click.FloatRange(0.0, 0.5),
    default=0.2,
    show_default=True,
    help="share of the episodes, spread over the log, to hold out of the fit and to replay as a test",
)
@click.option(
    "--margin",
    type=click.FloatRange(1.0, 100.0),
    default=1.0,
    show_default=True,
    help="factor by which to widen the ranges that the log allows",
)
@click.option(
    "--output",
    metavar="FILE.toml",
    help="file for the ranges; particles and report go next to it  [default: fitted.toml]",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="seed of random numbers")
@click.option("--check", "only_check", is_flag=True, help="say what can be fitted from the log, and stop")
def command(
    logs: tuple[str, ...],
    randomize: tuple[str, ...],
    params: tuple[str, ...],
    output: str | None,
    only_check: bool,
    env: str,
    randomization: str | None,
    time_step: str | None,
    average_actions: bool,
    **options: Any,
) -> None:
    """Find the ranges of physics that logs of the real system leave possible.

    LOG is an .npz file of one episode (observations, actions), a folder of them, or a Minari data set. The results are
    a TOML file with ranges and correlations, which every --randomization takes, and a report. The command also says
    what the log does not identify.
    """
    asked: dict[str, Any] = {
        "env": env,
        "randomize": read_randomize(randomize),
        "randomization": randomization,
        "params": read_params(params),
        "time_step": time_step,
        "average_actions": average_actions,
    }
    if only_check:
        if output is not None:
            raise ConfigError("--check writes nothing: leave out `output`.")
        for sentence in check(list(logs), Question(**asked)):
            click.echo(sentence)
        return
    path = output or "fitted.toml"
    result = fit(
        list(logs),
        output=path,
        command=command_line(),
        **asked,
        **options,
    )
    click.echo(result.table)
    for sentence in result.findings:
        click.echo(as_typed(sentence))
    if len(result.replay):
        click.echo(replace(result.prediction_table, caption="", notes=[]))
    click.echo(f"Wrote {path}")
