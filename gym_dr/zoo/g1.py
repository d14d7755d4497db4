"""Unitree's G1 walks at a commanded speed: its legs move, its waist and arms are fixed. Actions correct a march."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import gym_dr

# kp, kd; limit (N m); armature (kg m^2); home, lift (rad); torque under the weight (N m, left); sign in the mirror
LEG = {
    "hip_pitch": (100, 2, 88, 0.0101775, -0.312, -0.25, 3, 1),
    "hip_roll": (100, 2, 139, 0.0251019, 0.0, 0.0, 32, -1),
    "hip_yaw": (100, 2, 88, 0.0101775, 0.0, 0.0, -17, -1),
    "knee": (150, 4, 139, 0.0251019, 0.669, 0.5, -25, 1),
    "ankle_pitch": (40, 2, 50, 0.0072194, -0.363, -0.25, 8, 1),
    "ankle_roll": (40, 2, 50, 0.0072194, 0.0, 0.0, 2, -1),
}
KP, _, _, _, HOME, LIFT, CARRY, SIGNS = np.array(list(LEG.values())).T
OWN, LEGS, SWING = Path(__file__).with_suffix(".xml"), ("left", "right"), np.array([1, 0, 0, 0, -1, 0])
ARMS = {"shoulder_pitch": 0.2, "shoulder_roll": 0.2, ("right", "shoulder_roll"): -0.2, "elbow": 1.28}  # rad
HEIGHT, CLEARANCE, PERIOD, REACH = 0.757, 0.06, 0.68, 0.4  # m, m, s, rad


def model(robot: Any = None) -> Any:
    """The G1 in this folder, or a stock one (a file or an ``MjSpec``), on a floor, with what the task needs."""
    import mujoco  # type: ignore[import-untyped]

    spec = robot if isinstance(robot, mujoco.MjSpec) else mujoco.MjSpec.from_file(str(robot or OWN))
    for part in (*spec.actuators, *spec.sensors, *spec.keys):
        spec.delete(part)
    spec.add_key(name="home", qpos=[0, 0, HEIGHT, 1, 0, 0, 0, *HOME, *HOME], ctrl=[*HOME, *HOME])
    spec.option.timestep, spec.option.integrator = 0.005, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    for geom in spec.geoms:  # soles alone collide, with the floor alone, whose friction is one number for all
        geom.contype = geom.conaffinity = 0
    floor = {"size": (0, 0, 0.05), "condim": 3, "priority": 9, "friction": (0.8, 0.005, 0.0001), "contype": 0}
    spec.worldbody.add_geom(name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, rgba=(0.6, 0.65, 0.7, 1), **floor)
    sole = {"type": mujoco.mjtGeom.mjGEOM_BOX, "size": (0.085, 0.03, 0.01), "pos": (0.035, 0, -0.025), "mass": 0}
    for leg in LEGS:  # its four corners touch the floor
        spec.body(f"{leg}_ankle_roll_link").add_geom(name=f"{leg}_sole", contype=1, conaffinity=0, group=3, **sole)
    for joint in spec.joints:
        side, _, part = joint.name.removesuffix("_joint").partition("_")
        if part in LEG:
            kp, kd, limit, joint.armature, *_ = LEG[part]
            servo = spec.add_actuator(name=joint.name, target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
            servo.set_to_position(kp=kp, kv=kd, inheritrange=1.0)
            servo.forcerange = (-limit, limit)
        elif joint.type != mujoco.mjtJoint.mjJNT_FREE:
            half, quat = ARMS.get((side, part), ARMS.get(part, 0.0)) / 2, joint.parent.quat
            mujoco.mju_mulQuat(quat, quat.copy(), np.array([np.cos(half), *(np.sin(half) * joint.axis)]))
            spec.delete(joint)
    return spec


def reset(state: Any, rng: Any) -> Any:
    """Stands, and is about to lift its left foot."""
    state.memory["command"][:, 0] = state.params["command_speed"]
    return state.qpos, rng.uniform("velocities", -0.2, 0.2, 18)


def update(state: Any, rng: Any) -> None:
    """Time goes on."""
    state.memory["last_action"][:] = state.action
    state.memory["clock"][:] = (state.memory["clock"] + state.dt / PERIOD) % 1.0


def march(state: Any) -> Any:
    """How high each foot should be (0 to 1), how far behind (-1 to 1), and its part of the weight, (n, 2) each."""
    clock = 2 * np.pi * (state.memory["clock"][:, None] + (0.0, 0.5))
    return np.clip((np.sin(clock) - 0.15) / 0.85, 0, 1), np.cos(clock), np.clip(0.5 - np.sin(clock), 0, 1)


def action(state: Any) -> Any:
    """Targets of the joints, (n, 12)."""
    lift, behind, load = (each[..., None] for each in march(state))
    stride = 0.35 * PERIOD * state.memory["command"][..., None] * behind
    legs = HOME + lift * LIFT + stride * SWING + load * (CARRY / KP * np.stack([np.ones(6), SIGNS]))
    return legs.reshape(-1, 12) + REACH * state.action


def observe(state: Any) -> Any:
    """Joints come first, so that ``obs_offset:0`` to ``11`` are errors of their encoders."""
    clock = 2 * np.pi * state.memory["clock"][:, None]
    return {
        "joints": state.qpos[:, 7:] - np.tile(HOME, 2),
        "joint_velocities": 0.05 * state.qvel[:, 6:],
        "velocity": np.einsum("nji,nj->ni", state.xmat[:, 1].reshape(-1, 3, 3), state.qvel[:, :3]),
        "gyro": 0.25 * state.qvel[:, 3:6],
        "up": state.xmat[:, 1, 6:],
        "last_action": state.memory["last_action"],
        "command": state.memory["command"],
        "clock": np.hstack([np.sin(clock), np.cos(clock)]),
    }


def reward(before: Any, after: Any) -> Any:
    """Follows the command, lifts the feet by the clock, and is upright, calm and close to where it stood."""
    seen, feet = observe(after), after.site_xpos[:, [after.model.site(f"{leg}_foot").id for leg in LEGS], 2]
    off, bent = seen["velocity"][:, :2] - seen["command"] * (1, 0), np.tile((0.05, 1, 1, 0.05, 0.05, 0.5), 2)
    return {
        "speed": 2 * np.exp(-8 * np.square(off).sum(axis=1)),
        "feet": np.exp(-400 * np.square(feet - CLEARANCE * march(after)[0]).sum(axis=1)),
        "upright": 0.5 - 3 * np.square(seen["up"][:, :2]).sum(axis=1),
        "pose": -10 * np.square(after.qpos[:, 2] - HEIGHT) - np.square(seen["joints"]) @ bent,
        "calm": -np.square(after.qvel[:, 2:6]) @ (0.5, 0.05, 0.05, 0.3),  # up and down; rolling, pitching and turning
        "smooth": -0.02 * np.square(after.action - seen["last_action"]).sum(axis=1),
    }


def preset(wide: float) -> Any:
    """Mjlab's friction, centers and encoders, unitree_rl_gym's payload; the other ranges are ours."""
    sensors = {f"obs_offset:{k}": (-0.015 * wide, 0.015 * wide) for k in range(12)} | {"obs_noise": (0.0, 0.02 * wide)}
    return sensors | {
        "command_speed": (0.3, 0.7),
        "geom_friction:floor.slide": (0.8 - 0.5 * wide, 0.8 + 0.4 * wide),
        "body_mass:torso_link": gym_dr.Add((-1.0 * wide, 3.0 * wide)),
        **{f"body_ipos:torso_link.{axis}": gym_dr.Add((-0.025 * wide, 0.025 * wide)) for axis in "xyz"},
        **dict.fromkeys(("actuator_kp:*", "actuator_kd:*"), gym_dr.Scale((1 - 0.1 * wide, 1 + 0.1 * wide))),
        "actuator_delay:*": gym_dr.Add((0.0, 0.02 * wide), shared=True),
        "push_speed": (0.0, 0.25 * wide),
        "push_interval": gym_dr.Integer(200, 400),
    }


SIDES = gym_dr.Mirror(places=[*range(6, 12), *range(6)], signs=[*SIGNS, *SIGNS])
TURNED = {"velocity": (1, -1, 1), "up": (1, -1, 1), "gyro": (-1, 1, -1), "clock": (-1, -1)}
PPO = {"num_envs": 256, "rollout_steps": 24, "updates": 700, "minibatches": 6, "epochs": 5, "lr": 1e-3}
gym_dr.register_robot(
    "gym_dr/G1WalkDR-v0",
    model=model,
    actuator_history=6,
    keyframe="home",
    memory={"command": 1, "clock": (), "last_action": 12},
    parameters=[gym_dr.Param(name="command_speed", nominal=0.5, low=0.0, high=1.0, unit="m/s", doc="forward")],
    reset=reset,
    update=update,
    action=action,
    observe=observe,
    critic=lambda state: np.hstack([observe(state)["velocity"], state.qpos[:, 2:]]),  # without noise
    reward=reward,
    terminated=lambda state: (state.xmat[:, 1, 8] < 0.8) | (state.qpos[:, 2] < 0.55),  # it falls
    mirror=dict.fromkeys(("joints", "joint_velocities", "last_action", "action"), SIDES)
    | {name: gym_dr.Mirror(signs=signs) for name, signs in TURNED.items()},
    fields=("xmat", "site_xpos"),
    steer={"command": ((0.0,), (1.0,))},
    frame_skip=4,
    presets={"default": preset(1.0), "wide": preset(1.4)},
    defaults={"ppo": PPO | {"initial_std": 0.3, "hidden_sizes": (128, 128)}},
)
