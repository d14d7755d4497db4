"""Opens the machine: compares its physics with the ranges from its log, and plots its flights before and after.

    python examples/machine/reveal.py RANGES.toml BEFORE AFTER PICTURE.png

BEFORE and AFTER are folders that ``fly.py`` wrote.
"""

import sys
import tomllib
from pathlib import Path

import gymnasium as gym
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from gym_dr import Param, ParamSpace, Randomization, sample

PAIR = ["lander_density", "main_engine_power"]  # the log tells little more about them than their ratio


def read(path):
    return tomllib.loads(Path(path).read_text(encoding="utf-8"))


def returns(folder):
    return [np.load(path)["rewards"].sum() for path in sorted(Path(folder).glob("*.npz"))]


def compare(possible, hidden):
    """Compares each parameter: its value in the simulator, its range from the log (90 %), and the machine's value."""
    space = gym.make_vec("gym_dr/LunarLanderDR-v3", num_envs=1).param_space
    ends = possible.quantile([0.05, 0.95])
    rows = {
        name: {
            "simulator": space[name].nominal if name in space else 0.0,  # the simulator has neither delay nor noise
            "log": " to ".join(f"{end:.4g}" for end in ends[name].unique()),
            "machine": value,
        }
        for name, value in hidden.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index")


def draw(possible, table, before, after):
    figure = Figure((9.5, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(*possible[PAIR].to_numpy().T, ".", markersize=2, alpha=0.4, label="possible after ten flights")
    left.plot(*table.loc[PAIR, "simulator"], "kx", markersize=9, label="the simulator")
    left.plot(*table.loc[PAIR, "machine"], "C3*", markersize=14, label="the machine")
    left.set(title="What the log says", xlabel="density of the hull (kg/m$^2$)", ylabel="main engine (N s/m)")
    left.legend(frameon=False)
    for place, color, values in ((0, "0.4", before), (1, "C0", after)):
        mean = np.mean(values)
        right.plot([place] * len(values), values, "o", color=color, alpha=0.6)
        right.plot([place - 0.25, place + 0.25], [mean, mean], color=color, linewidth=3)
        right.text(place + 0.28, mean, f"{mean:.0f}", va="center", color=color)
    right.axhline(200, color="0.8", linewidth=1, zorder=0)  # a landing
    right.set(title="Flights of a policy that was trained on ...", xlim=(-0.6, 1.7), ylabel="return on the machine")
    right.set_xticks([0, 1], ["the simulator", "what the log says"])
    return figure


if __name__ == "__main__":
    ranges, first, second, picture = sys.argv[1:]
    logged = Randomization.from_dict(read(ranges))
    unbounded = [Param(name=name, nominal=0.0, low=-np.inf, high=np.inf) for name in logged]
    draws = sample(logged, ParamSpace("log", unbounded), 2000)
    compared = compare(draws, read(Path(__file__).parent / "physics.toml"))
    print(compared.to_string())
    draw(draws, compared, returns(first), returns(second)).savefig(picture, dpi=110)
    print(f"Wrote {picture}")
