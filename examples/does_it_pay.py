"""Does randomization pay? One job trained in several ways, each with the same steps and seeds, meets the same episodes.

python examples/does_it_pay.py lander runs/pay
python examples/does_it_pay.py hopper runs/pay_hopper --workers 2

Trains, evaluates, prints tables in Markdown and draws the grid into FOLDER/grid.png. What is there already is kept, so
that an interrupted experiment goes on with the same command.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from scipy import stats

import gym_dr
from gym_dr.evaluation.results import Evaluation

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Job:
    """An environment, how long to train on it, and where to look."""

    options: Mapping[str, Any]  # of gym_dr.train, for all variants
    grid: Mapping[str, tuple[float, float, int]]  # of gym_dr.evaluate; what the picture shows is the first two
    success: float | None = None  # where the environment's own threshold is out of reach


JOBS = {
    "lander": Job(
        options={"env": "gym_dr/LunarLanderDR-v3"}, grid={"gravity": (-11.5, -3.5, 9), "wind_power": (0, 20, 6)}
    ),
    "hopper": Job(
        # the defaults were searched on LunarLander; Hopper wants more and smaller gradient steps
        options={
            **{"env": "gym_dr/HopperDR-v5", "updates": 500, "minibatches": 8, "optimizer": "adam"},
            **{"actor_lr": 3e-4, "critic_lr": 1e-3, "gamma": 0.99, "gae_lambda": 0.95},
            **{"entropy_coef": 0.0, "activation": "tanh"},
        },
        grid={"body_mass": (0.5, 1.5, 5), "geom_friction": (0.25, 1.75, 5)},
        success=1500,  # standing still returns 1000; the environment's 3800 is out of reach
    ),
}
VARIANTS: dict[str, dict[str, Any]] = {  # name -> options
    "nominal": {"randomization": "none"},
    "default": {"randomization": "default"},
    "wide": {"randomization": "wide"},
    "resampled": {"randomization": "wide", "resample_every": 4},
    "critic": {"randomization": "wide", "critic_context": True},
    "shown": {"randomization": "wide", "context": "observation"},
    "random": {"randomization": "random"},  # what the protocol trains on beside nominal values
}


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How much of it."""

    seeds: Sequence[int] = (1, 2, 3, 4, 5)
    workers: int = 2  # trainings at a time
    episodes: int | None = None  # of each cell and set, instead of those of gym_dr.evaluate
    options: Mapping[str, Any] = field(default_factory=dict)  # of gym_dr.train, put over the job's


def train(job: Job, folder: Path, budget: Budget) -> None:
    """Trains each variant that is not there, or goes on with it."""
    for name, variant in VARIANTS.items():
        if (folder / name / "summary.json").is_file():
            continue
        if (folder / name).is_dir():
            gym_dr.load_run(folder / name).resume()
        else:
            options = {**job.options, **variant, **budget.options}
            gym_dr.train("a2c", run_dir=folder / name, seeds=budget.seeds, workers=budget.workers, **options)


def evaluate(job: Job, folder: Path, budget: Budget) -> Evaluation:
    """Plays all runs on nominal values, all that was trained on, the protocol's versions and the grid."""
    return gym_dr.evaluate(
        [folder / name for name in VARIANTS],
        protocol="dre",
        grid=job.grid,
        success=job.success,
        episodes=budget.episodes,
        output=folder / "evaluation",
    )


def by_variant(evaluation: Evaluation, name: str) -> dict[str, Array]:
    """Returns of a set: variant -> (seeds, cells, episodes)."""
    returns = evaluation.returns(name)
    variants = [path.parent.name for path in evaluation.runs]
    return {v: returns[[i for i, other in enumerate(variants) if other == v]] for v in dict.fromkeys(variants)}


def with_interval(*samples: Array) -> str:
    """The mean over seeds, or the difference of two such means, and its 95 % bootstrap interval over seeds."""

    def mean(first: Array, second: Array | float = 0.0, axis: int = -1) -> Array:
        other = np.mean(second, axis=axis) if isinstance(second, np.ndarray) else second
        return np.asarray(first.mean(axis=axis) - other)

    found = stats.bootstrap(samples, mean, method="percentile", rng=np.random.default_rng(0)).confidence_interval
    return f"{mean(*samples):.0f} ({found.low:.0f} to {found.high:.0f})"


def tables(evaluation: Evaluation) -> str:
    """Mean return, its difference from that of the nominal policies, and how many episodes are solved, per set."""
    sets = [cells.name for cells in evaluation.sets]
    means = {name: {v: r.mean(axis=(1, 2)) for v, r in by_variant(evaluation, name).items()} for name in sets}
    threshold = evaluation.document["success"]
    solved = {name: {v: (r >= threshold).mean() for v, r in by_variant(evaluation, name).items()} for name in sets}
    cell = by_variant(evaluation, "grid")
    worst = {variant: returns.mean(axis=2).min(axis=1) for variant, returns in cell.items()}
    columns = {**means, "worst cell of the grid": worst}
    text = []
    for title, entry in (
        ("mean return", lambda column, v: with_interval(column[v])),
        ("less nominal", lambda column, v: with_interval(column[v], column["nominal"])),
    ):
        rows = [[v, *(entry(column, v) for column in columns.values())] for v in VARIANTS]
        text.append(markdown([title, *columns], rows))
    rows = [[v, *(f"{100 * solved[name][v]:.0f} %" for name in sets)] for v in VARIANTS]
    return "\n\n".join([*text, markdown([f"solved ({threshold:g} or more)", *sets], rows)])


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """A table."""
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, ["---"] * len(header), *rows])


def draw_grid(evaluation: Evaluation, path: Path) -> None:
    """A heat map of mean returns for each variant, all in one scale."""
    axes = evaluation.cell_set("grid").definition["axes"]
    (y, rows), (x, columns) = list(axes.items())[:2]
    figure = Figure(figsize=(2.2 * len(VARIANTS), 2.6), layout="constrained")
    places = figure.subplots(1, len(VARIANTS), sharey=True)
    maps = {v: r.mean(axis=(0, 2)).reshape(len(rows), len(columns)) for v, r in by_variant(evaluation, "grid").items()}
    low, high = min(m.min() for m in maps.values()), max(m.max() for m in maps.values())
    for place, (variant, values) in zip(places, maps.items(), strict=True):
        image = place.pcolormesh(columns, rows, values, vmin=low, vmax=high, cmap="cividis", shading="nearest")
        place.set(title=variant, xlabel=with_unit(evaluation, x))
    places[0].set_ylabel(with_unit(evaluation, y))
    figure.colorbar(image, ax=places, label="mean return")
    figure.savefig(path, dpi=80)


def with_unit(evaluation: Evaluation, name: str) -> str:
    """A parameter's name as a label."""
    unit = evaluation.document["parameters"][name]["unit"]
    return f"{name}, {unit}" if unit else name


def run(job: Job, folder: Path, budget: Budget) -> None:
    """The whole experiment."""
    folder.mkdir(parents=True, exist_ok=True)
    train(job, folder, budget)
    evaluation = evaluate(job, folder, budget)
    draw_grid(evaluation, folder / "grid.png")
    print(tables(evaluation))


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("job", choices=list(JOBS))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(Budget.seeds))
    parser.add_argument("--workers", type=int, default=Budget.workers, help="trainings at a time")
    parser.add_argument("--episodes", type=int, help="of each cell and set, instead of those of gymdr evaluate")
    parser.add_argument("--updates", type=int, help="of each training, instead of the job's")
    given = parser.parse_args()
    options = {} if given.updates is None else {"updates": given.updates}
    budget = Budget(seeds=given.seeds, workers=given.workers, episodes=given.episodes, options=options)
    run(JOBS[given.job], given.folder, budget)


if __name__ == "__main__":
    main()
