"""A small quadrotor, the Crazyflie 2.x, that hovers at a point, wherever and however it starts.

The policy commands thrust and rates of turning 50 times a second. As in the firmware, a controller of the rates makes
commands for the four rotors of them, 200 times a second; their thrusts lag behind. The policy sees everything in the
frame of the quadrotor, so that the heading does not matter, and an average of its last errors, which tells it how heavy
or weak it is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import gym_dr

ARM = 0.0325  # m, from the center to a rotor along x and along y
MOST = 0.15  # N, thrust of a rotor at action 1; 2.3 times the weight for all four
TORQUE = 0.005964552  # m, torque of a rotor about its axis for a thrust of 1 N (Förster 2015)
X, Y = np.array([[1, -1, -1, 1], [-1, -1, 1, 1]]) * ARM  # m, places of the rotors
SPIN = np.array([-1, 1, -1, 1])  # signs of their torques
MIX = np.array([np.ones(4), Y, -X, TORQUE * SPIN])  # thrusts of the rotors -> thrust and moments of the body
RATES = np.array([6.0, 6.0, 3.0])  # rad/s at action 1
STIFF = 16.0  # 1/s, angular acceleration for an error of the rates of 1 rad/s
AVERAGE = 1.0  # s, over which errors are averaged


def model(robot: str | None = None) -> Any:
    """The scene around our Crazyflie, or around the model in a file that is driven in the same way (MuJoCo Menagerie's)."""
    import mujoco  # type: ignore[import-untyped]

    spec = mujoco.MjSpec.from_file(str(robot or Path(__file__).with_name("crazyflie.xml")))
    spec.option.timestep = 0.005
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_EULER
    for axis, drive in enumerate(spec.actuators):  # menagerie's can hardly turn it
        drive.gear[:] = np.roll([0, 0, 1, 0, 0, 0], axis)
        drive.ctrlrange = (0, 4 * MOST) if axis == 0 else (-MOST * abs(MIX[axis]).sum(), MOST * abs(MIX[axis]).sum())
    spec.worldbody.add_geom(name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=(0, 0, 0.05))
    spec.worldbody.add_light(pos=(1, 1, 3))
    return spec


def frame(state: Any) -> Any:
    """Axes of the quadrotor in the world, as columns of ``(n, 3, 3)``."""
    w, x, y, z = state.qpos[:, 3:7].T / np.linalg.norm(state.qpos[:, 3:7], axis=1)
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=1)


def error(state: Any) -> Any:
    """From the quadrotor to the point, ``(n, 3)`` in m."""
    return state.memory["target"] - state.qpos[:, :3]


def reset(state: Any, rng: Any) -> Any:
    """Displaced, moving and turned: by any heading, and tilted about any level axis."""
    tilt, side, heading = (rng.uniform(name, 0, high) / 2 for name, high in (("tilt", 1), ("side", 13), ("heading", 13)))
    qpos, qvel = state.qpos.copy(), state.qvel.copy()
    state.memory["target"][:] = qpos[:, :3]
    qpos[:, :3] += rng.uniform("place", -0.5, 0.5, 3)
    turn = [np.cos(tilt) * np.cos(heading), np.sin(tilt) * np.cos(side), np.sin(tilt) * np.sin(side)]
    qpos[:, 3:7] = np.stack([*turn, np.cos(tilt) * np.sin(heading)], axis=1)
    qvel[:, :3], qvel[:, 3:] = rng.uniform("velocity", -1, 1, 3), rng.uniform("rates", -2, 2, 3)
    return qpos, qvel


def action(state: Any) -> Any:
    """Thrust and moments of rotors that approach their commands, before each simulation step."""
    moments = STIFF * state.model.body("cf2").inertia * (RATES * state.action[:, 1:] - state.qvel[:, 3:])
    thrust = 2 * MOST * (1 + state.action[:, :1])
    rotors = np.clip(np.concatenate([thrust, moments], axis=1) @ np.linalg.inv(MIX).T, 0, MOST)
    wanted = rotors * np.stack([state.params[f"rotor_{i}"] for i in range(1, 5)], axis=1) @ MIX.T
    part = 1 - np.exp(-state.model.opt.timestep / state.params["motor_time"])
    return state.ctrl + part[:, None] * (wanted - state.ctrl)


def update(state: Any, rng: Any) -> None:
    state.memory["average"] += state.dt / AVERAGE * (error(state) - state.memory["average"])
    state.memory["last_action"][:] = state.action


def observe(state: Any) -> Any:
    axes = frame(state)
    seen = {"error": error(state), "velocity": state.qvel[:, :3], "average": state.memory["average"]}
    return {name: np.einsum("nij,ni->nj", axes, vector) for name, vector in seen.items()} | {
        "up": axes[:, 2],
        "rates": state.qvel[:, 3:],
        "last_action": state.memory["last_action"],
    }


def reward(before: Any, after: Any) -> Any:
    distance = np.linalg.norm(error(after), axis=1)
    return {
        "distance": -distance,
        "there": np.exp(-np.square(distance / 0.05)),
        "rates": -0.005 * np.square(after.qvel[:, 3:]).sum(axis=1),
        "smooth": -0.02 * np.square(after.action - after.memory["last_action"]).sum(axis=1),
        "alive": np.ones(len(distance)),
    }


def terminated(state: Any) -> Any:
    """Lost, or on the floor."""
    return (np.abs(error(state)) > 1.5).any(axis=1) | (state.qpos[:, 2] < 0.05)


SIDES = gym_dr.Mirror(signs=[1, -1, 1])
