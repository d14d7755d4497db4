"""``gymdr bench``."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from gym_dr.bench import FULL, QUICK, learning_medians, measure
from gym_dr.cli.options import NumberList
from gym_dr.compiled.processors import usable_threads
from gym_dr.envs.families import DEFAULT_ENV
from gym_dr.envs.family import family_of
from gym_dr.errors import ConfigError, RunFolderError, as_path
from gym_dr.plugins.loading import load_plugins
from gym_dr.runs.folder import check_output, os_errors, write_atomically
from gym_dr.table import Table
from gym_dr.training.registry import find_algorithm

LARGEST = 10_000  # sub-environments; more exhaust the memory of most machines and show nothing new


@click.command()
@click.option("--env", default=DEFAULT_ENV, show_default=True, help="id of the environment to step and to train on")
@click.option("--algorithm", default="a2c", show_default=True, metavar="NAME", help="algorithm to train")
@click.option("--output", default="bench", show_default=True, metavar="FOLDER", help="folder for bench.json")
@click.option("--quick", is_flag=True, help="fewer and shorter measurements: about a minute")
@click.option("--sizes", type=NumberList(int), help="numbers of environments, such as 1,10,100  [default: 1 to 1024]")
@click.option(
    "--threads",
    type=NumberList(int),
    help="numbers of threads, such as 1,4,16  [default: 1, 2, 4, ... up to the cores]",
)
@click.option("--seeds", type=NumberList(int, ranges=True), help="training seeds  [default: 1,2,3,4,5; 1 with --quick]")
@click.option(
    "--threshold", type=float, help="mean training return to reach  [default: the environment's, if it has one]"
)
def command(
    env: str,
    algorithm: str,
    output: str,
    quick: bool,
    sizes: Sequence[int] | None,
    threads: Sequence[int] | None,
    seeds: Sequence[int] | None,
    threshold: float | None,
) -> None:
    """Benchmark this machine: steps per second, by environments and by threads, and the time to learn.

    Steps native, sync and async vector environments with random actions, and trains an algorithm with default options
    until its mean return passes a threshold. Ctrl-C keeps what was measured so far.
    """
    load_plugins()
    plan = QUICK if quick else FULL
    chosen = plan.sizes if sizes is None else sizes
    cores = usable_threads()
    counts = [1, *(2**k for k in range(1, cores.bit_length())), cores] if threads is None else threads
    for name, given in (("sizes", chosen), ("threads", counts)):
        if min(given) < 1 or max(given) > LARGEST:
            raise ConfigError(f"`{name}`: expected whole numbers from 1 to {LARGEST}, got {given}.")
    plan = replace(
        plan,
        sizes=sorted(set(chosen)),
        scaled=plan.scaled if sizes is None else max(sizes),
        threads=sorted(set(counts)),
        seeds=plan.seeds if seeds is None else seeds,
    )
    family = family_of(env)
    threshold = family.bench_threshold if threshold is None and family is not None else threshold
    if threshold is None:
        raise ConfigError(f"`threshold`: expected a mean return to reach in {env}, which has no default.")
    parts = measure(env, find_algorithm(algorithm), plan, threshold)
    folder = as_path(output)
    with os_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise RunFolderError(f"{folder}: already exists and is not empty. Choose another `output`.")
    check_output(folder / "bench.json")
    result: dict[str, Any] = {}
    try:
        for part, result in parts:
            click.echo(f"bench: {part}", err=True)
            if result["throughput"]:
                write_atomically(folder / "bench.json", (json.dumps(result, indent=2) + "\n").encode())
    finally:  # also after Ctrl-C
        if (folder / "bench.json").exists():
            _show(result, folder)
        else:
            folder.rmdir()


def _show(result: dict[str, Any], folder: Path) -> None:
    """Prints tables."""
    click.echo(f"{result['env']} on {result['machine']}\n\nSteps per second")
    rates = {(row["num_envs"], row["mode"]): row["steps_per_second"] for row in result["throughput"]}
    cells = {place: f"{statistics.median(found):,.0f}" for place, found in rates.items()}
    modes = list(dict.fromkeys(mode for _, mode in rates))
    sizes = sorted({size for size, _ in rates})
    speeds = [[str(size), *(cells.get((size, mode), "-") for mode in modes)] for size in sizes]
    click.echo(Table(columns=["N", *modes], rows=speeds))
    for mode, reason in result["left_out"].items():
        click.echo(f"Left out: {mode} {reason}")
    ones: dict[str, float] = {}  # steps per second of the fewest threads
    rows = []
    for row in result["scaling"]:
        rate, what = statistics.median(row["steps_per_second"]), row["what"]
        ratio = rate / ones.setdefault(what, rate)
        rows.append([what, str(row["num_envs"]), str(row["threads"]), f"{rate:,.0f}", f"{ratio:.2f}"])
    click.echo("\nSteps per second by threads")
    click.echo(Table(columns=["", "N", "threads", "steps/s", "ratio"], rows=rows))
    click.echo(
        f"\nSeconds until {result['algorithm']} passes a mean return of {result['threshold']:g}, median over seeds"
    )
    medians = {
        size: f"over {result['limit_seconds']:g}" if median == math.inf else f"{median:.2f}"
        for size, median in learning_medians(result).items()
    }
    click.echo(Table(columns=["N", "seconds"], rows=[[str(size), text] for size, text in medians.items()]))
    click.echo(f"\nWrote {folder / 'bench.json'}")
