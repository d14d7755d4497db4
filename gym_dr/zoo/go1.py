"""Unitree's Go1 follows a joystick: servos of its joints, a clock for the trot, commands that change now and then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import gym_dr

LEGS = ("FR", "FL", "RR", "RL")
STAND, REACH = np.array([0.1, 0.9, -1.8, -0.1, 0.9, -1.8] * 2), 0.75  # rad; how far an action of 1 reaches from there
SLOWEST, FASTEST = (-1.0, -0.8, -1.2), (1.5, 0.8, 1.2)  # forward and to the left, m/s; turning to the left, rad/s
MOVING, COMMAND_SECONDS, RAMP = (0.9, 0.3, 0.5), 5.0, 2.0  # how often each is not 0; mean time to the next; per s^2
TROT_HZ, PHASES, LIFT, FOOT, FOLD = 2.5, np.array([0.0, 0.5, 0.5, 0.0]), 0.06, 0.023, (0.0, 0.18, -0.36)  # m, m, rad


def model(robot: Any = None) -> Any:
    """The Go1 in this folder, or a stock one (a file or an ``MjSpec``), on a floor, with what the task needs."""
    import mujoco  # type: ignore[import-untyped]

    own, kinds, site = Path(__file__).with_suffix(".xml"), mujoco.mjtSensor, mujoco.mjtObj.mjOBJ_SITE
    spec = robot if isinstance(robot, mujoco.MjSpec) else mujoco.MjSpec.from_file(str(robot or own))
    for part in (*spec.sensors, *spec.actuators, *spec.keys):
        spec.delete(part)
    spec.add_key(name="home", qpos=[0, 0, 0.305, 1, 0, 0, 0, *STAND], ctrl=STAND)
    spec.option.timestep, spec.option.iterations, spec.option.impratio = 0.004, 6, 1.0
    spec.option.integrator, spec.option.solver = mujoco.mjtIntegrator.mjINT_EULER, mujoco.mjtSolver.mjSOL_PGS
    spec.option.cone, spec.visual.global_.bvactive = mujoco.mjtCone.mjCONE_PYRAMIDAL, 0  # all of them the fastest
    for geom in spec.geoms:  # feet alone collide, with the floor alone, whose friction is one number for all
        foot = geom.type == mujoco.mjtGeom.mjGEOM_SPHERE and geom.parent.name.endswith("calf")
        geom.contype, geom.conaffinity, geom.margin = int(foot), 0, 0.0
    floor = {"size": (0, 0, 0.05), "condim": 3, "priority": 9, "friction": (0.7, 0.005, 0.0001), "contype": 0}
    spec.worldbody.add_geom(name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, rgba=(0.6, 0.65, 0.7, 1), **floor)
    for joint in spec.joints[1:]:
        gear = 9 if "calf" in joint.name else 6
        joint.damping, joint.frictionloss, joint.armature = np.zeros_like(joint.damping), 0.0, 0.000111842 * gear**2
        kind = mujoco.mjtTrn.mjTRN_JOINT
        servo = spec.add_actuator(name=joint.name.removesuffix("_joint"), target=joint.name, trntype=kind)
        servo.set_to_position(kp=35.0, kv=0.5, inheritrange=1.0)
        servo.forcerange = (-3.95 * gear, 3.95 * gear)  # N m
    spec.site("imu").pos = (0, 0, 0)  # stock models do not agree on it
    spec.add_sensor(name="velocity", type=kinds.mjSENS_VELOCIMETER, objtype=site, objname="imu")
    spec.add_sensor(name="gyro", type=kinds.mjSENS_GYRO, objtype=site, objname="imu")
    for leg in LEGS:
        spec.add_sensor(name=leg, type=kinds.mjSENS_FRAMEPOS, objtype=site, objname=leg)
    up = {"objtype": mujoco.mjtObj.mjOBJ_XBODY, "objname": "world", "reftype": site, "refname": "imu"}
    spec.add_sensor(name="up", type=kinds.mjSENS_FRAMEZAXIS, **up)
    return spec


def _new_command(rng: Any) -> Any:
    return rng.uniform("command", SLOWEST, FASTEST, 3) * (rng.uniform("moving", 0.0, 1.0, 3) < MOVING)


def reset(state: Any, rng: Any) -> Any:
    """Stands; the command grows from 0."""
    state.memory["target"][:] = _new_command(rng)
    places = np.hstack([state.qpos[:, :7], STAND + rng.uniform("joints", -0.1, 0.1, 12)])
    return places, rng.uniform("velocities", -0.2, 0.2, 18)


def update(state: Any, rng: Any) -> None:
    """A trot goes on or begins; now and then a part of the target is another, to which the command moves in a ramp."""
    memory, step = state.memory, RAMP * state.dt
    memory["last_action"][:] = state.action
    memory["clock"][:] = (memory["clock"] + TROT_HZ * state.dt) % 1.0 * memory["command"].any(axis=1)
    changed = rng.uniform("changed", 0.0, 1.0, 3) < state.dt / COMMAND_SECONDS
    memory["target"][changed] = _new_command(rng)[changed]
    memory["command"][:] += np.clip(memory["target"] - memory["command"], -step, step)


def swing(state: Any) -> Any:
    """How high each foot should be, (n, 4), from 0 to 1."""
    return np.maximum(np.sin(2.0 * np.pi * (state.memory["clock"][:, None] + PHASES)), 0.0)


def observe(state: Any) -> Any:
    """Joints come first, so that ``obs_offset:0`` to ``11`` are errors of their encoders."""
    clock, command = 2.0 * np.pi * state.memory["clock"][:, None], state.memory["command"]
    return {
        "joints": state.qpos[:, 7:] - STAND,
        "joint_velocities": 0.05 * state.qvel[:, 6:],
        "velocity": state.sensor("velocity"),
        "gyro": 0.25 * state.sensor("gyro"),
        "up": state.sensor("up"),
        "last_action": state.memory["last_action"],
        "command": command,
        "clock": np.hstack([np.sin(clock), np.cos(clock)]) * command.any(axis=1, keepdims=True),  # it stands without
    }


def reward(before: Any, after: Any) -> Any:
    """Its terms."""
    command, velocity, gyro = after.memory["command"], after.sensor("velocity"), after.sensor("gyro")
    heights = np.hstack([after.sensor(leg)[:, 2:] for leg in LEGS]) - FOOT
    return {
        "velocity": 1.5 * np.exp(-np.linalg.norm(velocity[:, :2] - command[:, :2], axis=1) / 0.5),
        "turn": 0.75 * np.exp(-np.abs(gyro[:, 2] - command[:, 2]) / 0.5),
        "gait": 1.5 - 1.5 * np.abs(heights / LIFT - swing(after)).mean(axis=1),
        "upright": -6.0 * np.square(after.sensor("up")[:, :2]).sum(axis=1),
        "calm": -0.3 * np.square(velocity[:, 2]) - 0.05 * np.square(gyro[:, :2]).sum(axis=1),
        "pose": -0.1 * np.square((after.qpos[:, 7:] - STAND) * ([1.0, 0.5, 0.2] * 4)).sum(axis=1),
        "smooth": -0.01 * np.square(after.action - after.memory["last_action"]).sum(axis=1),
    }


def preset(friction: Any, payload: Any, center: float, gains: Any, delay: Any, push: Any, every: Any) -> Any:
    """What varies: the floor's friction; kg and m at the trunk; factors; s; m/s, steps; and errors of sensors."""
    disturbances = {"push_speed": push, "push_interval": every, "obs_noise": (0.0, 0.02)}
    return disturbances | {
        "geom_friction:floor.slide": friction,
        "body_mass:trunk": gym_dr.Add(payload),
        **{f"body_ipos:trunk.{axis}": gym_dr.Add((-center, center)) for axis in "xyz"},
        **dict.fromkeys(("actuator_kp:*", "actuator_kd:*"), gym_dr.Scale(gains)),
        "actuator_delay:*": gym_dr.Add(delay, shared=True),
        **{f"obs_offset:{joint}": (-0.015, 0.015) for joint in range(12)},
    }


SIDES = gym_dr.Mirror(places=[3, 4, 5, 0, 1, 2, 9, 10, 11, 6, 7, 8], signs=[-1, 1, 1] * 4)
SIGNS = {"velocity": (1, -1, 1), "gyro": (-1, 1, -1), "up": (1, -1, 1), "command": (1, -1, -1), "clock": (-1, -1)}
PPO = {"num_envs": 256, "rollout_steps": 24, "epochs": 5, "minibatches": 4, "lr": 0.001, "gamma": 0.98, "updates": 1200}
NETS = {"entropy_coef": 0.005, "initial_std": 0.35, "hidden_sizes": (128, 128), "activation": "elu", "max_grad_norm": 1}
gym_dr.register_robot(
    "gym_dr/Go1JoystickDR-v0",
    model=model,
    keyframe="home",
    memory={"target": 3, "command": 3, "clock": (), "last_action": 12},
    reset=reset,
    action=lambda state: STAND + REACH * state.action + np.kron(swing(state), FOLD),  # changes a trot on the spot
    observe=observe,
    critic=lambda s: np.hstack([s.sensor("velocity")[:, :2], s.sensor("gyro")[:, 2:], s.memory["target"]]),  # no noise
    reward=reward,
    terminated=lambda state: (state.sensor("up")[:, 2] < 0.34) | (state.qpos[:, 2] < 0.12),
    update=update,
    mirror=dict.fromkeys(("joints", "joint_velocities", "last_action", "action"), SIDES)
    | {name: gym_dr.Mirror(signs=signs) for name, signs in SIGNS.items()},
    steer={"target": (SLOWEST, FASTEST)},
    frame_skip=5,
    max_episode_steps=500,
    actuator_history=8,
    defaults={"ppo": {**PPO, **NETS}},
    presets={  # friction, center: MuJoCo Playground; payload: Isaac Lab; encoders, pushes: mjlab, Rudin et al. 2022
        "default": preset((0.4, 1.0), (-1.0, 2.0), 0.03, (0.8, 1.2), (0.0, 0.02), (0.0, 0.3), gym_dr.Integer(200, 400)),
        "wide": preset((0.3, 1.25), (-1.0, 3.0), 0.05, (0.7, 1.3), (0.0, 0.03), (0.0, 1.0), gym_dr.Integer(150, 300)),
        "harder": preset((0.3, 0.5), (2.0, 4.0), 0.04, (0.65, 0.8), (0.016, 0.02), 0.3, gym_dr.Integer(150, 300)),
    },
)
