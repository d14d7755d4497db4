"""Does training on ranges from a log help on the system that wrote the log?

Run it with:  python -m benchmarks.from_log lander|hopper [folder] [--draws none truth] [--seeds 0 1 2 3 4] [--csv FILE]

Each hidden system is an environment with parameters that no training knows. For each of them this

- trains PPO on nominal physics, with a seed of its own, and logs ten of its episodes on the hidden system;
- fits ranges to the log with ``gym_dr.fit``, from a broad prior;
- trains PPO on nominal physics ("none"), on the presets "default" and "wide", on the hidden system itself ("truth") and
  on the ranges from the log ("fitted"), with five seeds each;
- plays 500 episodes of each policy on the hidden system, the same ones for all policies.

Appends a row to the CSV file for each of these, and skips what the file has, so the same command continues after an
interruption. Prints a table at the end; with ``--draws`` and nothing behind it, only the table. The share recovered is
(policy - none) / (truth - none), in returns summed over systems and seeds.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pandas as pd
from scipy import stats

import gym_dr
from gym_dr import Constant, Scale, Uniform
from gym_dr.api.evaluate import record
from gym_dr.fitting.logs import read_log
from gym_dr.runs.train import limited_threads

CSV = Path(__file__).parents[1] / "docs" / "data" / "from_log.csv"
SHARED = ("none", "default", "wide")  # trained once per seed, for all systems
DRAWS = (*SHARED, "truth", "fitted")
SEEDS = (0, 1, 2, 3, 4)
LOG_SEED = 100  # of the nominal policy that flies the first system; the next one has 101
LOGGED, PLAYED = 10, 500  # episodes
KEYS = ["section", "system", "draws", "seed"]
RESAMPLES = 10_000


@dataclass(frozen=True)
class Section:
    """Hidden systems of one environment."""

    env: str
    updates: int  # of each training
    systems: Mapping[str, Mapping[str, Any]]  # name -> hidden parameters
    prior: Mapping[str, Any]  # of gym_dr.fit
    windy: Mapping[str, Any]  # added to the prior if it is known that there is wind


# Chosen with the tuning seeds 1001 and 1002, which no reported training has, among about 60 candidates that nominal
# policies flew, 16 of which were trained on: --draws none truth --seeds 1001 1002. Policies trained on these five
# return 245 to 298 there, 99 to 233 more than nominal ones. Nominal policies cope with most other physics, such as
# strong engines alone: all five have 5 to 16 % less thrust per weight than the nominal lander.
LANDERS = {
    "heavy hull, weak side engine": {"lander_density": 7.0, "main_engine_power": 16.0, "side_engine_power": 0.3},
    "strong gravity, strong main engine": {
        "gravity": -11.8,
        "lander_density": 6.8,
        "main_engine_power": 17.5,
        "side_engine_power": 0.8,
    },
    "low gravity, weak main engine": {"gravity": -6.0, "main_engine_power": 6.6},
    "light hull, strong side engine": {
        "gravity": -6.0,
        "lander_density": 3.8,
        "main_engine_power": 5.5,
        "side_engine_power": 2.0,
    },
    "strong wind, heavy hull": {
        "enable_wind": 1.0,
        "wind_power": 19.0,
        "turbulence_power": 1.9,
        "lander_density": 6.5,
        "main_engine_power": 16.0,
        "side_engine_power": 1.5,
    },
}

# not chosen by any result: parameters of the preset "wide", whose ranges are 0.5 to 1.5 of nominal
_BODIES = ("torso", "thigh", "leg", "foot")


def _hopper(masses: tuple[float, float, float, float], damping: float, friction: float) -> dict[str, Any]:
    """Parameters from factors."""
    factors = {f"body_mass:{body}": factor for body, factor in zip(_BODIES, masses, strict=True)}
    factors |= {"dof_damping": damping, "geom_friction": friction}
    return {name: Scale(Constant(factor)) for name, factor in factors.items()}


HOPPERS = {
    "heavy torso": _hopper((1.4, 0.8, 1.3, 0.7), damping=0.6, friction=0.7),
    "heavy foot": _hopper((0.7, 1.3, 0.8, 1.4), damping=1.4, friction=1.3),
}

SECTIONS = {
    "lander": Section(
        env="gym_dr/LunarLanderDR-v3",
        updates=183,  # 1.5 million steps
        systems=LANDERS,
        prior={
            "gravity": Uniform(-12.0, -5.0),
            "main_engine_power": Uniform(5.0, 20.0),
            "side_engine_power": Uniform(0.2, 2.5),
            "lander_density": Uniform(3.0, 8.0),
        },
        windy={"wind_power": Uniform(0.0, 20.0), "turbulence_power": Uniform(0.0, 2.0)},
    ),
    "hopper": Section(
        env="gym_dr/HopperDR-v5",
        updates=488,  # a million steps
        systems=HOPPERS,
        prior={
            **{f"body_mass:{body}": Scale(Uniform(0.5, 1.5)) for body in _BODIES},
            "dof_damping": Scale(Uniform(0.5, 1.5)),
            "geom_friction": Scale(Uniform(0.5, 1.5)),
        },
        windy={},
    ),
}


# ---- training and playing --------------------------------------------------------------------------------------------


class Benchmark:
    """Fills the rows of one section."""

    def __init__(self, name: str, folder: Path, path: Path) -> None:
        self.name, self.section, self.folder, self.path = name, SECTIONS[name], folder / name, path

    def fill(self, draws: str, seed: int) -> None:
        """Trains what a seed needs and appends its rows, unless they are there."""
        systems = list(self.section.systems)
        for part in [systems] if draws in SHARED else [[system] for system in systems]:
            done = read_rows(self.path).set_index(KEYS).index
            if any((self.name, system, draws, seed) not in done for system in part):
                begun = time.perf_counter()
                run = self._train(draws, seed, part[0])
                self._append(part, draws, seed, self._play(run, part), time.perf_counter() - begun)

    def _train(self, draws: str, seed: int, system: str) -> Any:
        """Trains a policy; returns its run."""
        known = None
        if draws in SHARED:
            randomization: Any = draws
        elif draws == "truth":
            randomization = dict(self.section.systems[system])
        else:
            randomization, known = self._fit(system), self._known(system) or None
        name = draws if draws in SHARED else f"{draws}-{_slug(system)}"
        return gym_dr.train(
            "ppo",
            env=self.section.env,
            randomization=randomization,
            randomize=known,
            updates=self.section.updates,
            seed=seed,
            eval_episodes=0,
            run_dir=self.folder / f"{name}-seed{seed}",
            overwrite=True,
            progress=False,
        )

    def _play(self, run: Any, systems: list[str]) -> dict[str, Any]:
        """Returns of episodes on hidden systems."""
        hidden = [gym_dr.draws(dict(self.section.systems[system]), name=system) for system in systems]
        found = gym_dr.evaluate(run, sets=hidden, episodes=PLAYED, progress=False)
        return {system: found.returns(system).ravel() for system in systems}

    def _append(self, systems: list[str], draws: str, seed: int, returns: dict[str, Any], seconds: float) -> None:
        threshold = gym.spec(self.section.env).reward_threshold
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "a", newline="") as file:
            for system in systems:
                row = {"section": self.name, "system": system, "draws": draws, "seed": seed}
                row["mean"] = round(float(returns[system].mean()), 1)
                row["solved"] = round(float((returns[system] >= threshold).mean()), 3)
                row["seconds"] = round(seconds, 1)  # of training and playing, on one core
                writer = csv.DictWriter(file, row, lineterminator="\n")
                if file.tell() == 0:
                    writer.writeheader()
                writer.writerow(row)
                print(row, flush=True)

    # ---- the log and its fit ----

    def _known(self, system: str) -> dict[str, Any]:
        """What is known of a hidden system before there is a log."""
        return {name: value for name, value in self.section.systems[system].items() if name == "enable_wind"}

    def _log(self, system: str) -> list[dict[str, Any]]:
        """Ten episodes of a nominal policy on a hidden system: what was observed and done, and nothing else."""
        seed = LOG_SEED + list(self.section.systems).index(system)
        output = self.folder / f"log-{_slug(system)}"
        if not output.exists():
            run = self._train("none", seed, system)
            record(
                run,
                dict(self.section.systems[system]),
                episodes=LOGGED,
                output=output,
                format="npz",
                seed=1000 * seed,
                states=False,
                progress=False,
            )
        return [{"observations": episode.observations, "actions": episode.actions} for episode in read_log(output)]

    def _fit(self, system: str) -> Path:
        """A file of ranges of a hidden system from its log, with a report beside it."""
        output = self.folder / f"fit-{_slug(system)}.toml"
        if not output.exists():
            known = self._known(system)
            prior = {**self.section.prior, **(self.section.windy if known else {})}
            log, begun = self._log(system), time.perf_counter()
            found = gym_dr.fit(
                log, env=self.section.env, randomize=prior, params=known, output=output, seed=0, progress=False
            )
            print(f"{system}, {time.perf_counter() - begun:.0f} s: {found}\n{found.parameters.to_string()}", flush=True)
        return output


def _slug(system: str) -> str:
    return system.replace(",", "").replace(" ", "-")


# ---- the table -------------------------------------------------------------------------------------------------------


def read_rows(path: Path) -> pd.DataFrame:
    """All rows of the CSV file."""
    return pd.read_csv(path) if path.exists() else pd.DataFrame(columns=[*KEYS, "mean", "solved", "seconds"])


def print_table(rows: pd.DataFrame) -> None:
    """Prints means over seeds and the shares recovered."""
    for column, digits in (("mean", 0), ("solved", 2)):
        print(f"\n{column}, over seeds")
        table = rows.pivot_table(index="system", columns="draws", values=column, sort=False)
        table.loc["all"] = table.mean(skipna=False)
        shown = table[[draws for draws in DRAWS if draws in table]]
        print(shown.to_string(float_format=f"{{:.{digits}f}}".format))
    cells = rows.pivot_table(index=["system", "seed"], columns="draws", values="mean")
    for draws in ("default", "wide", "fitted"):
        if not {draws, "none", "truth"} <= set(cells):
            continue
        complete = cells[[draws, "none", "truth"]].dropna()
        gained = (complete[draws] - complete["none"]).unstack().dropna().to_numpy()
        possible = (complete["truth"] - complete["none"]).unstack().dropna().to_numpy()
        if gained.size:
            low, high = interval(gained, possible)
            print(f"share recovered, {draws}: {gained.sum() / possible.sum():.0%} ({low:.0%} to {high:.0%})")


def interval(gained: Any, possible: Any) -> tuple[float, float]:
    """95 % percentile bootstrap interval of the share recovered; arrays are (systems, seeds).

    Systems and seeds are resampled independently: a seed's nominal policy flies all systems, so their pairs are no
    independent samples.
    """
    if min(gained.shape) < 2:
        return float("nan"), float("nan")

    def share(i: Any, j: Any, axis: int = -1) -> Any:
        chosen = i[..., :, None], j[..., None, :]
        return gained[chosen].sum((-2, -1)) / possible[chosen].sum((-2, -1))

    indices = [np.arange(count) for count in gained.shape]
    found = stats.bootstrap(
        indices, share, n_resamples=RESAMPLES, vectorized=True, method="percentile", rng=np.random.default_rng(0)
    )
    return found.confidence_interval.low, found.confidence_interval.high


@limited_threads(1)
def main() -> None:
    """Reads the options, fills the file and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("section", choices=sorted(SECTIONS))
    parser.add_argument("folder", nargs="?", type=Path, default=Path("from-log"), help="of runs, logs and fits")
    parser.add_argument("--draws", nargs="*", choices=DRAWS, default=DRAWS)
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS)
    parser.add_argument("--csv", type=Path, default=CSV)
    arguments = parser.parse_args()
    benchmark = Benchmark(arguments.section, arguments.folder, arguments.csv)
    for draws in arguments.draws:
        for seed in arguments.seeds:
            benchmark.fill(draws, seed)
    rows = read_rows(arguments.csv)
    rows = rows[(rows["section"] == arguments.section) & rows["seed"].isin(arguments.seeds)]
    if len(rows):
        print_table(rows)


if __name__ == "__main__":
    main()
