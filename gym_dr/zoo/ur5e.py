"""An arm, the Universal Robots UR5e, that brings its tool to a point and stays there.

Each episode draws the point in front of the arm, and joints to start from. The policy sets speeds of the joints, 25
times a second; position servos follow, as those of the real controller do, which also compensates gravity.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import gym_dr

SPEED = 1.5  # rad/s at action 1, half of what the joints can do
GAINS = {"shoulder_pan": 2000, "shoulder_lift": 2000, "elbow": 2000, "wrist_1": 500, "wrist_2": 500, "wrist_3": 500}
LAG = 0.05  # s, that a servo is behind its target: kd / kp
SHOULDER = np.array([0.0, 0.0, 0.163])  # m, the middle of what is in reach
NEAR, FAR = (0.4, -0.4, -0.1), (0.8, 3.5, 0.9)  # m, rad, rad: distance, azimuth and elevation of points from there


def model(robot: str | None = None) -> Any:
    """The scene around our UR5e, or around the model in a file, with the same joints (MuJoCo Menagerie's)."""
    import mujoco  # type: ignore[import-untyped]

    spec = mujoco.MjSpec.from_file(str(robot or Path(__file__).with_name("ur5e.xml")))
    spec.option.timestep = 0.01
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    for servo in spec.actuators:
        servo.set_to_position(kp=GAINS[servo.name], kv=GAINS[servo.name] * LAG)
        joint = spec.joint(servo.target)
        joint.damping = np.zeros_like(joint.damping)  # that of menagerie's is the servo's
    for body in spec.bodies:
        body.gravcomp = 1
    spec.worldbody.add_geom(name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=(0, 0, 0.05))
    spec.worldbody.add_light(pos=(0, 0.3, 4))
    tool = {"objtype": mujoco.mjtObj.mjOBJ_SITE, "objname": "attachment_site"}
    spec.add_sensor(name="tool", type=mujoco.mjtSensor.mjSENS_FRAMEPOS, **tool)
    return spec


def point(distance: Any, azimuth: Any, elevation: Any) -> Any:
    """Points ``(n, 3)`` around the shoulder, in m."""
    level = np.cos(elevation)
    direction = np.stack([level * np.cos(azimuth), level * np.sin(azimuth), np.sin(elevation)], axis=-1)
    return SHOULDER + distance[..., None] * direction


def reset(state: Any, rng: Any) -> Any:
    """Other joints than at home, and a point."""
    qpos = state.qpos + rng.uniform("start", -0.5, 0.5, state.model.nq)
    state.memory["goal"][:] = qpos
    state.memory["target"][:] = point(*rng.uniform("target", NEAR, FAR, 3).T)
    return qpos, state.qvel


def action(state: Any) -> Any:
    """Moves the targets of the servos at the chosen speeds."""
    goal = state.memory["goal"] + SPEED * state.dt * state.action
    return np.clip(goal, *state.model.actuator_ctrlrange.T)


def update(state: Any, rng: Any) -> None:
    """The next step moves the targets of the servos from where they are."""
    state.memory["goal"][:] = state.ctrl
    state.memory["last_action"][:] = state.action


def observe(state: Any) -> Any:
    """Joints come first, so that ``obs_offset:0`` to ``5`` are errors of their encoders; places turn with the first."""
    turn, error = np.exp(-1j * state.qpos[:, 0]), state.memory["target"] - state.sensor("tool")
    near = error / (0.05 + distance(state)[:, None])  # a millimeter counts only near the point
    seen = {"tool": state.sensor("tool"), "target": error, "near": near}
    level = {name: turn * (place[:, 0] + 1j * place[:, 1]) for name, place in seen.items()}
    return {
        "joints": state.qpos,
        "speeds": state.qvel,
        "goal": state.memory["goal"] - state.qpos,
        **{name: np.stack([level[name].real, level[name].imag, place[:, 2]], axis=1) for name, place in seen.items()},
        "last_action": state.memory["last_action"],
    }


def distance(state: Any) -> Any:
    """From the tool to the point, ``(n,)`` in m."""
    return np.linalg.norm(state.memory["target"] - state.sensor("tool"), axis=1)


def reward(before: Any, after: Any) -> Any:
    """Its terms."""
    return {
        "distance": -distance(after),
        "there": np.exp(-np.square(distance(after) / 0.03)),
        "speed": -0.02 * np.square(after.action).sum(axis=1),
        "smooth": -0.02 * np.square(after.action - after.memory["last_action"]).sum(axis=1),
    }


def preset(mass: Any, gains: Any, friction: Any, delay: Any, noise: float) -> Any:
    """What varies: factors for masses and for gains; N m; steps; and errors of sensors."""
    return {
        "body_mass:*": gym_dr.Scale(mass),
        "actuator_kp:*": gym_dr.Scale(gains),
        "actuator_kd:*": gym_dr.Scale(gains),
        "dof_frictionloss:*": friction,
        "action_delay": delay,
        "obs_noise": (0, noise),
        **{f"obs_offset:{joint}": (-noise, noise) for joint in range(6)},  # of encoders
    }


# masses and gains of "wide": Peng et al. 2018, "Sim-to-Real Transfer of Robotic Control with Dynamics Randomization";
# the rest: ours
PRESETS = {
    "default": preset((0.7, 1.5), (0.8, 1.25), (0, 1), gym_dr.Integer(0, 1), 0.002),
    "wide": preset((0.25, 4), (0.5, 2), (0, 3), gym_dr.Integer(0, 2), 0.005),
}
PPO = {"num_envs": 512, "rollout_steps": 32, "minibatches": 16, "epochs": 4, "lr": 1e-3, "updates": 100}
gym_dr.register_robot(
    "gym_dr/UR5eReachDR-v0",
    model=model,
    keyframe="home",
    memory={"target": 3, "goal": 6, "last_action": 6},
    reset=reset,
    action=action,
    observe=observe,
    reward=reward,
    update=update,
    steer={"target": ((-0.5, 0.3, 0.1), (0.5, 0.6, 0.5))},
    frame_skip=4,
    max_episode_steps=100,
    presets=PRESETS,
    defaults={"ppo": PPO | {"activation": "elu", "gamma": 0.97}},
)
