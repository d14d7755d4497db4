"""A small quadrotor, the Crazyflie 2.x, that hovers at a point, wherever and however it starts.

The policy commands thrust and rates of turning 50 times a second. As in the firmware, a controller of the rates makes
commands for the rotors of them, 200 times a second; thrusts lag behind. The policy sees its own frame, so that heading
does not matter, and an average of its last errors, which tells it how heavy or weak it is.
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
UNMIX = np.linalg.inv(MIX)
RATES, STIFF = np.array([6.0, 6.0, 3.0]), 16.0  # rad/s at action 1; 1/s, acceleration for an error of 1 rad/s
ROTORS = ("rotor_1", "rotor_2", "rotor_3", "rotor_4")
HEIGHT, LOST = 1.5, 1.5  # m: of the point, and from it along an axis
AVERAGE = 1.0  # s, over which errors are averaged


def model(robot: str | None = None) -> Any:
    """The scene around our Crazyflie, or around the model in a file, driven in the same way (MuJoCo Menagerie's)."""
    import mujoco  # type: ignore[import-untyped]

    spec = mujoco.MjSpec.from_file(str(robot or Path(__file__).with_name("crazyflie.xml")))
    spec.option.timestep = 0.005
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_EULER
    for axis, drive in enumerate(spec.actuators):  # menagerie's can hardly turn it
        drive.gear[:] = np.roll([0, 0, 1, 0, 0, 0], axis)
        drive.ctrlrange = np.array([-1 if axis else 0, 1]) * MOST * abs(MIX[axis]).sum()
    spec.worldbody.add_geom(name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=(0, 0, 0.05))
    spec.worldbody.add_light(pos=(0, 0, 4))
    spec.key("hover").qpos[2] = HEIGHT
    return spec


def error(state: Any) -> Any:
    """From the quadrotor to the point, ``(n, 3)`` in m."""
    return state.memory["target"] - state.qpos[:, :3]


def reset(state: Any, rng: Any) -> Any:
    """Displaced, moving and turned: by any heading, and tilted about any level axis."""
    tilt, (side, heading) = rng.uniform("tilt", 0, 0.5), rng.uniform("turn", -np.pi, np.pi, 2).T  # tilt is a half angle
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
    rotors = np.clip(np.concatenate([thrust, moments], axis=1) @ UNMIX.T, 0, MOST)
    wanted = rotors * np.stack([state.params[name] for name in ROTORS], axis=1) @ MIX.T
    part = 1 - np.exp(-state.model.opt.timestep / state.params["motor_time"])
    return state.ctrl + part[:, None] * (wanted - state.ctrl)


def update(state: Any, rng: Any) -> None:
    """The average of the errors goes on."""
    state.memory["average"] += state.dt / AVERAGE * (error(state) - state.memory["average"])
    state.memory["last_action"][:] = state.action


def observe(state: Any) -> Any:
    """In the frame of the quadrotor."""
    axes = state.xmat[:, state.model.body("cf2").id].reshape(-1, 3, 3)  # as columns
    seen = {"error": error(state), "velocity": state.qvel[:, :3], "average": state.memory["average"]}
    seen["near"] = seen["error"] / (0.1 + np.linalg.norm(seen["error"], axis=1, keepdims=True))  # finer there
    return {name: np.einsum("nij,ni->nj", axes, vector) for name, vector in seen.items()} | {
        "up": axes[:, 2],
        "rates": state.qvel[:, 3:],
        "last_action": state.memory["last_action"],
    }


def reward(before: Any, after: Any) -> Any:
    """Its terms."""
    distance = np.linalg.norm(error(after), axis=1)
    return {
        "alive": np.ones(len(distance)),
        "distance": -distance,
        "there": np.exp(-np.square(distance / 0.05)),
        "rates": -0.005 * np.square(after.qvel[:, 3:]).sum(axis=1),
        "smooth": -0.02 * np.square(after.action - after.memory["last_action"]).sum(axis=1),
    }


def preset(load: Any, inertia: Any, strength: Any, rotor: Any, lag: Any, wind: float, gust: Any) -> Any:
    """What varies: factors for mass, inertia, all rotors and each; s; m; m/s; N; and what disturbs."""
    return {
        "body_mass:cf2": gym_dr.Scale(load),
        "body_inertia": gym_dr.Scale(inertia),
        "actuator_strength": gym_dr.Scale(strength),
        "actuator_gear:z_moment.rz": gym_dr.Scale((0.8, 1.5)),
        **dict.fromkeys(ROTORS, rotor),
        "motor_time": lag,
        **{f"wind.{axis}": (-wind, wind) for axis in "xy"},
        **{"wrench_force": gust, "wrench_interval": 10, "action_delay": gym_dr.Integer(0, 1), "obs_noise": (0, 0.01)},
    }


# rotors, their sum (1.8 to 2.5 times the weight) and sensors: Molchanov et al. 2019, "Sim-to-(Multi)-Real"; mass and
# motors: also Eschmann et al. 2024, "Learning to Fly in Seconds"; inertia: what others measured; wind and gusts: ours
PRESETS = {
    "default": preset((0.95, 1.2), (0.6, 1.2), (0.8, 1.1), (0.9, 1.1), (0.03, 0.07), 1.0, (0, 0.01)),
    "wide": preset((0.9, 1.3), (0.4, 1.3), (0.75, 1.15), (0.85, 1.15), (0.02, 0.11), 3.0, (0, 0.03)),
}
PPO = {"num_envs": 512, "rollout_steps": 32, "minibatches": 16, "epochs": 4, "lr": 1e-3, "updates": 120}
gym_dr.register_robot(
    "gym_dr/CrazyflieHoverDR-v0",
    model=model,
    keyframe="hover",
    memory={"target": 3, "average": 3, "last_action": 4},
    parameters=[
        *(gym_dr.Param(name=name, nominal=1.0, low=0.0, high=2.0, unit="x", doc="its thrust") for name in ROTORS),
        gym_dr.Param(name="motor_time", nominal=0.05, low=0.001, high=1.0, unit="s", doc="time constant of the rotors"),
    ],
    reset=reset,
    action=action,
    action_size=4,
    substep_action=True,
    observe=observe,
    reward=reward,
    terminated=lambda state: (np.abs(error(state)) > LOST).any(axis=1) | (state.qpos[:, 2] < 0.05),
    update=update,
    fields=["xmat"],
    mirror=dict.fromkeys(("error", "velocity", "average", "near", "up"), gym_dr.Mirror(signs=[1, -1, 1]))
    | {"rates": gym_dr.Mirror(signs=[-1, 1, -1])}
    | dict.fromkeys(("last_action", "action"), gym_dr.Mirror(signs=[1, -1, 1, -1])),
    steer={"target": ((-1.0, -1.0, 0.5), (1.0, 1.0, 2.0))},
    frame_skip=4,
    max_episode_steps=200,
    presets=PRESETS,
    defaults={"ppo": PPO | {"activation": "elu"}},
)
