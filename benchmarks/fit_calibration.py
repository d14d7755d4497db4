"""Are the intervals of ``gym_dr.fit`` honest? Coverage over many logs, false alarms, and wrong models found out.

    python -m benchmarks.fit_calibration [LOGS] [FOLDER]

For each environment and level of noise, LOGS (20) systems are drawn from the prior, logged with random actions, and
fitted. A 90 % interval should hold the truth in 90 % of all pairs of system and parameter. The verdict should call 5 %
of these logs suspicious at most. Then systems with something that the fit does not model: another time step, actions
that arrive a step late, dry friction. Results go to FOLDER/fit_calibration.csv as they come; a second run goes on.
"""

from __future__ import annotations

import csv
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

import gym_dr
from gym_dr.randomization.spec import Rule


class Case(NamedTuple):
    """Logs of one environment."""

    env: str
    prior: dict[str, Any]
    episodes: int
    steps: int
    noises: tuple[float, ...]  # deviations of the errors of measurement


CASES = (
    Case(
        "gym_dr/CartPoleDR-v1",
        {"length": (0.25, 1.0), "force_mag": (6.0, 14.0), "masspole": (0.05, 0.2), "gravity": (8.0, 12.0)},
        40,
        60,
        (0.001, 0.01, 0.03),
    ),
    Case("gym_dr/PendulumDR-v1", {"g": (8.0, 12.0), "m": (0.5, 1.5), "l": (0.6, 1.4)}, 5, 100, (0.002, 0.02, 0.05)),
    Case(
        "gym_dr/AcrobotDR-v1",
        {"link_length_1": (0.7, 1.4), "link_mass_1": (0.6, 1.5), "link_mass_2": (0.6, 1.5), "link_moi": (0.7, 1.4)},
        5,
        60,
        (0.002, 0.02, 0.05),
    ),
    Case(
        "gym_dr/InvertedPendulumDR-v5",
        {"body_mass:pole": (3.0, 8.0), "body_mass:cart": (6.0, 15.0), "dof_damping": gym_dr.Scale((0.5, 2.0))},
        60,
        40,
        (0.0005, 0.002, 0.01),
    ),
)
# what the fit does not know: environment, its name, parameters that differ, steps of delay
CRIMES = (
    (0, "time step 10 % longer", {"tau": 0.022}, 0),
    (0, "actions a step late", {}, 1),
    (1, "time step 10 % longer", {"dt": 0.055}, 0),
    (1, "actions a step late", {}, 1),
    (2, "time step 10 % longer", {"dt": 0.22}, 0),
    (2, "actions a step late", {}, 1),
    (3, "dry friction", {"dof_frictionloss:slider": 20.0}, 0),
    (3, "actions a step late", {}, 1),
)


def logged(case: Case, params: dict[str, float], noise: float, seed: int, late: int = 0) -> list[dict[str, Any]]:
    """Episodes with random actions."""
    envs = gym.make_vec(case.env, num_envs=case.episodes, randomization="none", autoreset_mode="NextStep")
    envs.action_space.seed(seed)
    rng = np.random.default_rng(seed)
    observations, _ = envs.reset(seed=seed, options={"params": params})
    rows, actions = [observations], []
    over = np.zeros(case.episodes, np.int64)
    alive = np.ones(case.episodes, bool)
    sent = [envs.action_space.sample() for _ in range(case.steps + late)]
    for t in range(case.steps):
        observations, _, terminated, truncated, _ = envs.step(sent[t])  # chosen ``late`` steps ago
        rows.append(observations)
        actions.append(sent[t + late])
        over += alive
        alive &= ~(terminated | truncated)
    envs.close()
    seen, done = np.stack(rows, axis=1).astype(np.float64), np.stack(actions, axis=1)
    seen += noise * rng.standard_normal(seen.shape)
    return [{"observations": seen[e, : n + 1], "actions": done[e, :n]} for e, n in enumerate(over) if n > late + 1]


def results(logs: int) -> Iterator[tuple[str, ...]]:
    """What identifies a fit, and then its row: kind, environment, noise, seed, pairs, covered, suspicious."""
    for case in CASES:
        for noise in case.noises:
            for seed in range(logs):
                yield "right", case.env, str(noise), str(seed)
    for index, name, _, _ in CRIMES:
        for seed in range(logs // 2):
            yield name, CASES[index].env, str(CASES[index].noises[1]), str(seed)


def one(kind: str, env: str, noise: float, seed: int) -> tuple[int, int, int, float]:
    """Pairs, pairs covered, whether the log is suspicious, and seconds."""
    case = next(case for case in CASES if case.env == env)
    crime = next(((params, late) for i, name, params, late in CRIMES if name == kind and CASES[i] is case), ({}, 0))
    rng = np.random.default_rng([seed, len(kind)])
    ends = {name: rule.distribution.support if isinstance(rule, Rule) else rule for name, rule in case.prior.items()}
    truth = {name: float(rng.uniform(*pair)) for name, pair in ends.items()}  # all nominal values that are scaled are 1
    log = logged(case, {**truth, **crime[0]}, noise, 1000 + seed, crime[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = gym_dr.fit(log, env=env, randomize=case.prior, held_out=0.0, seed=seed, progress=False)
    inside = (found.parameters["low"] <= found.parameters.index.map(truth)) & (
        found.parameters.index.map(truth) <= found.parameters["high"]
    )
    return len(inside), int(inside.sum()), int(found.suspicious), float(found.facts["time"].split()[0])


def main(logs: int, folder: Path) -> None:
    path = folder / "fit_calibration.csv"
    columns = ("kind", "env", "noise", "seed", "pairs", "covered", "suspicious", "seconds")
    known = {tuple(row[:4]): row for row in csv.reader(path.open())} if path.exists() else {}
    with path.open("a", newline="") as file:
        writer = csv.writer(file)
        if not known:
            writer.writerow(columns)
        for key in results(logs):
            if key not in known:
                kind, env, noise, seed = key
                row = (*key, *one(kind, env, float(noise), int(seed)))
                writer.writerow(row)
                file.flush()
                known[key] = list(map(str, row))
    show([row for row in known.values() if row[0] != "kind"])


def show(rows: list[list[str]]) -> None:
    heads = f"{'noise':>8}{'logs':>6}{'pairs':>7}{'covered':>8}{'suspicious':>12}{'seconds':>9}"
    print(f"{'kind':24}{'environment':32}{heads}")
    groups: dict[tuple[str, str, str], list[list[str]]] = {}
    for row in rows:
        groups.setdefault((row[0], row[1], row[2]), []).append(row)
    for (kind, env, noise), part in groups.items():
        pairs, covered, suspicious = (sum(int(row[k]) for row in part) for k in (4, 5, 6))
        share = f"{100 * covered / pairs:.0f} %" if kind == "right" else ""
        seconds = np.median([float(row[7]) for row in part])
        alarms = f"{100 * suspicious / len(part):.0f} %"
        print(f"{kind:24}{env:32}{noise:>8}{len(part):>6}{pairs:>7}{share:>8}{alarms:>12}{seconds:>9.1f}")
    right = [row for row in rows if row[0] == "right"]
    pairs, covered, suspicious = (sum(int(row[k]) for row in right) for k in (4, 5, 6))
    print(
        f"\nAll right models: {100 * covered / pairs:.1f} % of {pairs} pairs covered by 90 % intervals; "
        f"{suspicious} of {len(right)} logs suspicious."
    )


if __name__ == "__main__":
    given = sys.argv[1:]
    main(int(given[0]) if given else 20, Path(given[1]) if len(given) > 1 else Path("."))
