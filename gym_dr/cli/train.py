"""``gymdr train ALGORITHM``: a subcommand for each algorithm, with its configuration as options."""

from __future__ import annotations

import click
from click.core import ParameterSource

from gym_dr.api.train import train
from gym_dr.cli.options import TEXT, NumberList, command_line, field_options, read_randomize, sampler_options
from gym_dr.cli.resume import show_training
from gym_dr.plugins.loading import load_plugins
from gym_dr.runs.config import RunSettings
from gym_dr.runs.configure import option_names
from gym_dr.runs.launch import LAUNCHERS
from gym_dr.training.api import Algorithm
from gym_dr.training.registry import ALGORITHMS, find_algorithm


class _Algorithms(click.Group):
    """The installed algorithms as subcommands."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        load_plugins()
        return sorted(ALGORITHMS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        load_plugins()
        return _algorithm_command(find_algorithm(cmd_name))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Algorithms"):
            formatter.write_dl([(name, ALGORITHMS.get(name).summary) for name in self.list_commands(ctx)])


@click.command(cls=_Algorithms)
def command() -> None:
    """Train an algorithm on a randomized environment.

    Writes the resolved configuration, metrics, each episode's draw and return, checkpoints, plots and an evaluation
    into the run folder.
    """


class _Grouped(click.Command):
    """A command whose help has a heading for each group of options."""

    groups: dict[str, list[click.Parameter]]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, options in self.groups.items():
            with formatter.section(title):
                formatter.write_dl([text for option in options if (text := option.get_help_record(ctx))])


def _algorithm_command(algorithm: Algorithm) -> click.Command:
    """Builds ``gymdr train NAME`` with its options."""
    option_names(algorithm)  # checks for name clashes
    settings = {str(option.name): option for option in field_options(RunSettings, num_envs=algorithm.num_envs)}
    groups: dict[str, list[click.Parameter]] = {
        "Task": [
            settings.pop(name)
            for name in ("env", "context", "stack_observations", "observe_reward", "num_envs", "vectorization")
        ],
        "Randomization": [
            click.Option(
                ["--randomize"],
                type=TEXT,
                multiple=True,
                metavar="NAME=DIST",
                help="randomize one parameter, such as gravity=-12:-2, gravity=scale:normal:1:0.1:0.8:1.2 or "
                "wind_power=10; without --randomization, nothing else varies; repeatable",
            ),
            click.Option(
                ["--randomization"],
                type=TEXT,
                metavar="PRESET|FILE",
                help="a preset or a TOML file  [default: default]",
            ),
            *(settings.pop(name) for name in ("sampler", "resample_every")),
            *sampler_options(),
        ],
        "Algorithm": [
            click.Option(
                ["--total-steps"], type=int, help="environment steps, instead of --updates; rounded up to whole updates"
            ),
            *field_options(algorithm.config_class()),
        ],
        "Run": [
            settings.pop("seed"),
            click.Option(
                ["--seeds"],
                type=NumberList(int, ranges=True),
                help="several seeds, such as 1,2,3 or 1-3, with one run for each",
            ),
            click.Option(["--run-dir"], type=TEXT, metavar="FOLDER", help="folder of the run  [default: runs/...]"),
            click.Option(["--overwrite"], is_flag=True, help="replace an existing run in the folder"),
            click.Option(
                ["--config"],
                type=TEXT,
                metavar="FILE",
                help="TOML or JSON file with these settings; options override it",
            ),
            click.Option(
                ["--trust"], multiple=True, metavar="MODULE", help="a module that --config may import; repeatable"
            ),
            click.Option(
                ["--launcher"],
                metavar="|".join(LAUNCHERS),
                default="local",
                show_default=True,
                help="where several seeds train",
            ),
            click.Option(
                ["--workers"], type=click.IntRange(min=1), help="seeds in parallel on this machine  [default: cores]"
            ),
            click.Option(
                ["--num-threads"],
                type=click.IntRange(min=1),
                help="threads of native environments and compiled learners; results do not depend on it  [default: "
                "cores, divided by the seeds in parallel]",
            ),
            click.Option(
                ["--ray-address"], help="address of a running Ray cluster  [default: start one on this machine]"
            ),
            *settings.values(),
        ],
    }
    params = [option for options in groups.values() for option in options]
    command = _Grouped(algorithm.name, params=params, callback=lambda **_: _train(algorithm), help=algorithm.summary)
    command.groups = groups
    return command


def _train(algorithm: Algorithm) -> None:
    ctx = click.get_current_context()
    options = {
        name: value
        for name, value in ctx.params.items()
        if ctx.get_parameter_source(name) == ParameterSource.COMMANDLINE
    }
    randomize = read_randomize(options.pop("randomize", ()))
    show_training(train(algorithm.name, randomize=randomize, command=command_line(), **options))
