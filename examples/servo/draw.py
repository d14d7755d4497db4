"""Draws a motion beside what the equations say of it, with the data sheet's values and with those from a log.

    python draw.py MOTION.npz RANGES.npz PICTURE.png

MOTION.npz is from ``read.py``; RANGES.npz has the draws of ``gymdr fit``. All simulations begin in the first measured
angle, at rest, and see no other.
"""

import sys
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
from matplotlib.figure import Figure
from servo import ID, State, step

DRAWS = 10


def simulate(motion, values):
    """Angles of the whole motion."""
    state, angles = State(motion["observations"][0, 0], 0.0), []
    for row, (dt, goal) in enumerate(zip(np.diff(motion["time"]), motion["actions"][:, 0], strict=True)):
        told = {"kp": motion["params/kp"].item(), "dt": dt}
        told |= {name: motion[f"params/{name}"][row] for name in ("volts", "enabled")}
        angles.append(state.q)
        state, _, _ = step(SimpleNamespace(**values | told), state, goal)
    return np.array([*angles, state.q])


motion, ranges = (dict(np.load(path)) for path in sys.argv[1:3])
sheet = gym.make_vec(ID, num_envs=1).param_space.nominal
names = [name for name in ranges if name in sheet]
draws = [{**sheet, **{name: ranges[name][k] for name in names}} for k in range(DRAWS)]
measured = motion["observations"][:, 0]
before, after = simulate(motion, sheet), np.array([simulate(motion, values) for values in draws])
figure = Figure((9.5, 3.2), layout="constrained")
axes = figure.subplots()
axes.plot(motion["time"], before, color="0.6", label="simulated with the data sheet")
names = ["simulated with the log's ranges"] + [None] * (DRAWS - 1)
axes.plot(motion["time"], after.T, color="C0", linewidth=0.8, alpha=0.4, label=names)
axes.plot(motion["time"], measured, "k:", label="measured")
axes.set(xlabel="time (s)", ylabel="angle (rad)")
axes.legend(frameon=False)
figure.savefig(sys.argv[3], dpi=80)
for name, simulated in (("data sheet", before), ("log", after)):
    print(f"{name}: angles wrong by {np.sqrt(np.mean((simulated - measured) ** 2)):.3f} rad (root mean square)")
print(f"Wrote {sys.argv[3]}")
