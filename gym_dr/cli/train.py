"""``gymdr train ALGORITHM``: a subcommand for each algorithm, with its configuration as options."""

from __future__ import annotations

import dataclasses
import os
import time
from pathlib import Path
from typing import Any

import click

from gym_dr.cli.options import NumberList, field_options, given, read_randomize
from gym_dr.cli.runs import plugin_host
from gym_dr.errors import ConfigError, GymDrError, LostRunError, PluginError, shortened
from gym_dr.plugins.manager import load_plugins
from gym_dr.runs.config import RunConfig, RunSettings, build_config, check_device, check_fields, read_config_file
from gym_dr.runs.environments import check_module
from gym_dr.runs.folder import RunFolder
from gym_dr.training.api import Algorithm


class _Algorithms(click.Group):
    """The algorithms of this installation as subcommands."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(load_plugins().algorithms)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return _algorithm_command(plugin_host().algorithm(cmd_name))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Algorithms"):
            formatter.write_dl([(a.name, a.summary) for _, a in sorted(load_plugins().algorithms.items())])


@click.command(cls=_Algorithms)
def command() -> None:
    """Train an algorithm on a randomized environment.

    The run folder gets the resolved configuration, metrics, every draw with its episode's return, checkpoints, plots
    and an evaluation.
    """


def _algorithm_command(algorithm: Algorithm) -> click.Command:
    """Builds ``gymdr train NAME`` with its options."""
    options = [
        *field_options(RunSettings, num_envs=algorithm.num_envs),
        click.Option(["--seeds"], type=NumberList(int), help="several seeds, such as 1,2,3: a run for each"),
        click.Option(
            ["--launcher"], default="local", show_default=True, help="what trains several seeds: local or ray"
        ),
        click.Option(
            ["--workers"], type=click.IntRange(min=1), help="seeds at a time on this machine  [default: cores]"
        ),
        click.Option(["--ray-address"], help="of a running Ray cluster  [default: one is started on this machine]"),
        click.Option(
            ["--randomize"],
            multiple=True,
            metavar="NAME=DIST",
            help="one parameter, such as gravity=uniform:-12:-2, gravity=scale:uniform:0.8:1.2 or wind_power=10; "
            "repeatable; adds to --randomization or else stands alone",
        ),
        click.Option(["--randomization"], metavar="PRESET|FILE", help="a preset or a TOML file  [default: default]"),
        click.Option(["--config"], metavar="FILE", help="TOML or JSON with these settings; options here override it"),
        click.Option(["--trust"], multiple=True, metavar="MODULE", help="a module that the file may have imported"),
        click.Option(["--run-dir"], metavar="FOLDER", help="the run's own folder  [default: runs/...]"),
        click.Option(["--overwrite"], is_flag=True, help="replace the run that is in the folder"),
        *field_options(algorithm.config_class()),
    ]
    names = [option.name for option in options]
    taken = sorted({str(name) for name in names if names.count(name) > 1})
    if taken:
        raise PluginError(f"Algorithm {algorithm.name!r}: every run has an option {', '.join(taken)}; rename its own.")
    return click.Command(
        algorithm.name, params=list(options), callback=lambda **_: _train(algorithm), help=algorithm.summary
    )


def _train(algorithm: Algorithm) -> None:
    from gym_dr.cli.launch import check_launcher, launch, sum_up  # heavy, as those below
    from gym_dr.cli.training import run_training

    ctx = click.get_current_context()
    seeds = given(ctx, ["seeds"]).get("seeds")
    if seeds is None:
        for name in given(ctx, ["launcher", "workers", "ray_address"]):
            raise ConfigError(f"--{name.replace('_', '-')}: expected with --seeds, which it is for.")
    else:
        if "seed" in given(ctx, ["seed"]):
            raise ConfigError("Expected --seed or --seeds, got both.")
        if len(set(seeds)) != len(seeds):
            raise ConfigError(f"--seeds: expected each seed once, got {','.join(map(str, seeds))}.")
    configs = [_resolve(ctx, algorithm, seed) for seed in seeds or [None]]
    check_device(configs[0].settings.device)
    check_launcher(ctx.params["launcher"])
    root = Path(ctx.params["run_dir"] or _default_folder(configs[0], several=bool(seeds)))
    paths = [root / f"seed-{config.settings.seed}" for config in configs] if seeds else [root]
    if seeds and (root / "config.json").is_file():
        raise ConfigError(f"{root}: is the folder of a single run; choose another --run-dir for several seeds.")
    others = sorted({child.name for child in root.glob("seed-*")} - {path.name for path in paths}) if seeds else []
    if others:
        raise ConfigError(f"{root}: holds the runs {', '.join(others)} of another command; choose another --run-dir.")
    overwrite = ctx.params["overwrite"]
    for path in paths:  # all of them before the first is touched
        RunFolder(path).check_free(overwrite=overwrite)
    folders = [
        RunFolder.create(path, config.to_json(), overwrite=overwrite, command=str(ctx.find_root().obj))
        for path, config in zip(paths, configs, strict=True)
    ]
    try:
        if seeds:
            trusted = [configs[0].settings.env.rpartition(":")[0]]  # imported here already, when it was resolved
            launch(folders, ctx.params["launcher"], ctx.params["workers"], ctx.params["ray_address"], trusted)
            sum_up(folders, root)
            click.echo(f"Run folders: {root}/seed-*")
        else:
            run_training(folders[0], configs[0], algorithm, resume=False)
    except LostRunError:
        raise  # nothing is wrong with those that had not begun: gymdr resume begins them
    except GymDrError:
        for folder in folders:
            folder.discard_if_unused()
        raise
    finally:
        for folder in folders:
            folder.delete_replaced()


def _resolve(ctx: click.Context, algorithm: Algorithm, seed: int | None) -> RunConfig:
    """Command line over file over defaults."""
    path = ctx.params["config"]
    from_file = _read_file(path, algorithm) if path else {}
    settings_fields = [f.name for f in dataclasses.fields(RunSettings)]
    option_fields = [f.name for f in dataclasses.fields(algorithm.config_class())]
    settings = {**from_file.get("settings", {}), **given(ctx, settings_fields)}
    if seed is not None:
        settings["seed"] = seed
    if "env" not in given(ctx, ["env"]):
        check_module(settings.get("env", ""), ctx.params["trust"])
    options = check_fields(algorithm.config_class(), given(ctx, option_fields))
    return build_config(
        algorithm,
        settings,
        {**from_file.get("options", {}), **options},
        _randomization(ctx, from_file.get("randomization"), settings.get("env", RunSettings.env)),
    )


def _read_file(path: str, algorithm: Algorithm) -> dict[str, Any]:
    """Reads ``--config``; errors name the file, and a file that it names lies beside it."""
    table = read_config_file(path, algorithm)
    try:
        RunSettings(**table["settings"])
        algorithm.config_class()(**table["options"])
    except GymDrError as error:
        raise type(error)(f"{path}: {error}") from None
    named = table.get("randomization")
    if isinstance(named, str) and (named.endswith((".toml", ".json")) or {"/", os.sep} & set(named)):
        folder = Path(path).parent
        if not (folder / named).resolve().is_relative_to(folder.resolve()):
            raise ConfigError(
                f"{path}: randomization: expected a file beside or below this one, got {shortened(named)}. "
                "Name it on the command line: --randomization FILE."
            )
        table["randomization"] = str(folder / named)
    return table


def _randomization(ctx: click.Context, from_file: Any, env_id: str) -> Any:
    """What varies: --randomization, else the file; single parameters by --randomize are put over it."""
    whole = ctx.params["randomization"] if ctx.params["randomization"] is not None else from_file
    rules = read_randomize(ctx.params["randomize"])
    if not rules:
        return whole
    if whole is None:
        return rules
    from gym_dr.randomization.presets import resolve
    from gym_dr.runs.environments import param_space_of

    space = param_space_of(env_id)
    if space is None:
        return rules
    return {**resolve(whole, space).to_dict(), **rules}


def _default_folder(config: RunConfig, *, several: bool) -> str:
    env = config.settings.env.rpartition("/")[2]
    seeds = "seeds" if several else f"seed{config.settings.seed}"
    return f"runs/{config.algorithm}-{env}-{seeds}-{time.strftime('%Y%m%d-%H%M%S')}"
