"""From a log to a policy: a system with unknown physics writes a log, and a fit of the log gives ranges to train on.

    python examples/from_log.py lander runs/loop        # or hopper, or cart, a robot of our own
    python examples/from_log.py lander runs/quick 2     # two updates only, to see all steps

Here the system is a simulator with hidden parameters. If yours is a machine, leave out ``record`` and fit its log.
"""

import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import gym_dr
from gym_dr import Scale, Uniform


class System(NamedTuple):
    """A system: its hidden parameters, and what we know before the fit."""

    env: str
    hidden: dict[str, Any]  # parameters of the system, which only ``record`` and the last step may see
    prior: dict[str, Any]  # where they might be
    updates: int  # of each training


def upright(state: Any) -> Any:
    """Height of the pole's tip over its length, (n,)."""
    return np.cos(state.qpos[:, 1])


gym_dr.register_robot(
    "mine/Cart-v0",
    model="cart.xml",
    observe=lambda state: np.concatenate([state.qpos, state.qvel], axis=1),  # so a log determines the state
    reward=lambda before, after: upright(after) - 0.1 * np.square(after.qpos[:, 0]),
    reset=lambda state, rng: (rng.uniform("positions", -0.1, 0.1, 2), rng.uniform("velocities", -0.1, 0.1, 2)),
    terminated=lambda state: (upright(state) < 0.5) | (abs(state.qpos[:, 0]) > 1.4),
    frame_skip=4,
    max_episode_steps=500,
)

SYSTEMS = {
    "lander": System(
        env="gym_dr/LunarLanderDR-v3",
        hidden={"gravity": -11.5, "lander_density": 6.8, "main_engine_power": 17.0, "side_engine_power": 0.4},
        prior={
            "gravity": Uniform(-12, -6),
            "lander_density": Uniform(3, 8),
            "main_engine_power": Uniform(8, 20),
            "side_engine_power": Uniform(0.2, 1.2),
        },
        updates=180,
    ),
    "hopper": System(
        env="gym_dr/HopperDR-v5",
        hidden={"body_mass:torso": 4.6, "body_mass:foot": 3.7, "geom_friction": 0.8},
        prior={name: Scale(Uniform(0.5, 1.5)) for name in ("body_mass:torso", "body_mass:foot", "geom_friction")},
        updates=480,
    ),
    "cart": System(
        env="mine/Cart-v0",
        hidden={"body_mass:cart": 1.8, "body_mass:pole": 0.45, "dof_damping:rail": 2.5},
        prior={
            "body_mass:cart": Uniform(0.5, 3.0),
            "body_mass:pole": Uniform(0.1, 0.6),
            "dof_damping:rail": Uniform(0.1, 4.0),
        },
        updates=100,
    ),
}


def main(name: str, folder: Path, updates: int) -> None:
    """Trains, logs, fits, trains again, and compares both policies on the hidden system."""
    system = SYSTEMS[name]
    common: dict[str, Any] = {"env": system.env, "updates": updates, "seed": 1}
    nominal = gym_dr.train("ppo", randomization="none", run_dir=folder / "nominal", **common)

    hidden = gym_dr.draws(**system.hidden, name="hidden")
    log = gym_dr.record(nominal, hidden, episodes=10, output=folder / "log", format="npz", states=False)

    found = gym_dr.fit(log, env=system.env, randomize=system.prior, output=folder / "fitted.toml")
    print(found)
    table = found.parameters[["low", "high", "unit"]]
    print(table.assign(hidden=[system.hidden[name] for name in table.index]).to_string(float_format="{:.4g}".format))

    fitted = gym_dr.train("ppo", randomization=folder / "fitted.toml", run_dir=folder / "fitted", **common)

    played = gym_dr.evaluate([nominal, fitted], sets=hidden, episodes=200, output=folder / "evaluation")
    print("Return on the hidden system:")
    print(played.episodes_of("hidden").groupby("policy")["return"].mean().round(1).to_string())


if __name__ == "__main__":
    chosen_name, chosen_folder = sys.argv[1], Path(sys.argv[2])
    chosen_folder.mkdir(parents=True, exist_ok=True)
    main(chosen_name, chosen_folder, int(sys.argv[3]) if len(sys.argv) > 3 else SYSTEMS[chosen_name].updates)
