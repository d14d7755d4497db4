"""``gymdr bench``."""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from tqdm import tqdm

from gym_dr.bench.settings import FULL, QUICK, BenchSettings
from gym_dr.cli.options import NumberList
from gym_dr.envs.family import family_of
from gym_dr.errors import ConfigError
from gym_dr.plugins.loading import load_plugins
from gym_dr.reports.table import Table
from gym_dr.training.registry import find_algorithm
from gym_dr.wording import counted


@click.command()
@click.option("--env", default=FULL.env, show_default=True, help="id of the environment to step and to train on")
@click.option("--algorithm", default="a2c", show_default=True, metavar="NAME", help="algorithm to train")
@click.option("--output", default="bench", show_default=True, metavar="FOLDER", help="folder for bench.json and plots")
@click.option("--quick", is_flag=True, help="fewer and shorter measurements: under a minute")
@click.option("--sizes", type=NumberList(int), help="numbers of environments, such as 1,10,100  [default: 1 to 1024]")
@click.option("--seeds", type=NumberList(int), help="training seeds  [default: 1,2,3,4,5; 1 with --quick]")
@click.option(
    "--threshold",
    type=float,
    help=f"mean training return to reach  [default: the environment's, {FULL.threshold:g} for {FULL.env}]",
)
def command(env: str, algorithm: str, output: str, quick: bool, **given: Any) -> None:
    """Benchmark this machine and plot the results.

    Measures steps per second of native, sync and async vector environments (and of EnvPool and Stable-Baselines3, if
    installed) and how they scale, the time an algorithm with default options takes to pass a mean return, the time A2C
    and PPO take to solve the nominal environment, and the time spent in each part of an update.
    """
    from gym_dr.bench.measure import measure, prepare, reports, write  # heavy

    load_plugins()
    trained = find_algorithm(algorithm)
    settings = _settings(QUICK if quick else FULL, env, **given)
    folder = Path(output)
    prepare(folder)
    try:
        with _progress(reports(settings)) as progress:
            result = measure(settings, trained, progress)
        written = write(result, folder)
    finally:
        if not any(folder.iterdir()):  # nothing was measured
            folder.rmdir()
    _show(result)
    click.echo(f"\nWrote {', '.join(map(str, written))}")


def _settings(
    base: BenchSettings, env: str, sizes: tuple[int, ...] | None, seeds: tuple[int, ...] | None, threshold: float | None
) -> BenchSettings:
    if threshold is None:
        family = family_of(env)
        threshold = None if family is None else family.bench_threshold
        if threshold is None:
            raise ConfigError(f"--threshold: expected a mean return to reach in {env}, which has no default.")
    return replace(
        base,
        env=env,
        threshold=threshold,
        sizes=base.sizes if sizes is None else sizes,
        learning_sizes=base.learning_sizes if sizes is None else sizes,
        seeds=base.seeds if seeds is None else seeds,
    )


@contextlib.contextmanager
def _progress(total: int) -> Iterator[Callable[[str], None]]:
    """Shows a bar on a terminal, plain lines elsewhere; yields a function to call with the next part's name."""
    numbers = itertools.count(1)
    with tqdm(total=total, unit="part", dynamic_ncols=True, disable=not sys.stderr.isatty()) as bar:

        def begin(line: str) -> None:
            number = next(numbers)
            if bar.disable:
                click.echo(f"bench: {number}/{total}, {line}", err=True)
            bar.set_description_str(line, refresh=False)
            bar.update(number - 1 - bar.n)
            bar.refresh()

        yield begin
        bar.update(total - bar.n)


def _show(result: dict[str, Any]) -> None:
    """Prints the results as tables."""
    from gym_dr.bench.plots import left_out_texts  # heavy, as the next
    from gym_dr.bench.profile import PARTS

    machine, env, algorithm = result["machine"], result["settings"]["env"], result["settings"]["algorithm"]
    click.echo(f"{machine['cpu']}, {counted(machine['usable_cores'], 'core')}, {env}")
    rows = result["throughput"]["rows"]
    modes = list(dict.fromkeys(row["mode"] for row in rows))
    sizes = sorted({row["num_envs"] for row in rows})
    for title, field, form in (
        ("Steps per second", "steps_per_second", ",.0f"),
        ("Speed-up over N = 1", "speedup", ",.2f"),
        ("Karp-Flatt serial fraction", "serial_fraction", ".3f"),
        ("Maximum speed-up at that fraction", "max_speedup", ",.1f"),
    ):
        click.echo(f"\n{title}")
        cells = {(row["num_envs"], row["mode"]): _cell(row, field, form) for row in rows}
        click.echo(
            Table(columns=["N", *modes], rows=[[str(n), *(cells.get((n, mode), "-") for mode in modes)] for n in sizes])
        )
    for text in left_out_texts(result):
        click.echo(f"Left out: {text}.")
    learning = result["learning"]
    threshold = f"{learning['threshold']:g}"
    click.echo(f"\nSeconds until the mean training return of {algorithm} passes {threshold}, median over seeds")
    table = []
    for row in learning["rows"]:
        passed = f"{row['passed']} of {len(row['runs'])}"
        table.append([str(row["num_envs"]), _cell(row, "median_seconds", ".2f"), passed])
    click.echo(Table(columns=["N", "seconds", "passed"], rows=table))
    _show_solving(result["solving"])
    click.echo(f"\nMilliseconds per update of {algorithm}")
    divided = ([row["mode"], *(f"{1e3 * row[part]:.3g}" for part in PARTS)] for row in result["profile"]["rows"])
    click.echo(Table(columns=["", *PARTS], rows=list(divided)))


def _show_solving(solving: dict[str, Any]) -> None:
    if not solving["rows"]:
        return
    click.echo(
        f"\nSeconds until the mean training return on nominal physics passes {solving['threshold']:g} with default "
        "settings, median over seeds"
    )
    table = []
    for row in solving["rows"]:
        passed = f"{row['passed']} of {len(row['runs'])}"
        table.append(
            [row["algorithm"], _cell(row, "median_seconds", ".1f"), _cell(row, "median_steps", ",.0f"), passed]
        )
    click.echo(Table(columns=["", "seconds", "steps", "passed"], rows=table))


def _cell(row: dict[str, Any], field: str, form: str) -> str:
    return "-" if row[field] is None else format(row[field], form)
