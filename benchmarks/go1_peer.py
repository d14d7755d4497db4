"""PPO on Go1 with commands, beside the one-file example of mjbatch (kevinzakka/mjbatch, examples/go1_joystick.py).

Fetch that file and mjlab's model (mjlab/asset_zoo/robots/unitree_go1/xmls/go1.xml, with its assets), and run

    GO1_XML=go1.xml python -m benchmarks.go1_peer go1_joystick.py [--rounds 3] [--updates 20] [--learn 100]

Both sides train the same task on the same model, with friction alone drawn: our environment has the peer's rewards,
commands, resets and episodes. Networks (50-128-128-12, elu), epochs, minibatches, rollouts (24 x 1,024), learning
rate, time step, contacts and solver are the same, and both average the policy with its mirror image. Times whole
trainings, in rounds that alternate; then both learn for --learn updates, and play the same episodes of fresh draws.

The peer runs on mjbatch if that can be imported. It is built for one version of MuJoCo; with others the peer runs on
mujoco.batch, whose calls are nearly the same. Of its file, only the model is replaced.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import tempfile
import types
from pathlib import Path
from typing import Any
from unittest import mock

import gymnasium as gym
import mujoco  # type: ignore[import-untyped]
import numpy as np
import torch

import gym_dr
from benchmarks.timing import alternate, ppo_side, report, seconds

ID = "benchmarks.go1_peer:peer/Go1-v0"
NUM_ENVS, STEPS, EPISODE, TIME_STEP, SUBSTEPS = 1024, 24, 500, 0.004, 5
FEET, RADIUS, SCALE = ("FR", "FL", "RR", "RL"), 0.023, 2.0  # actions of the peer are in units of half a radian
STAND = np.array(2 * [0.1, 0.9, -1.8, -0.1, 0.9, -1.8])
WEIGHTS = {"track": 1.0, "turn": 0.5, "gait": 2.0, "pose": 0.5, "orient": -5.0, "bounce": -0.5} | {
    "wobble": -0.05, "limits": -1.0, "rate": -0.01, "land": -1.0
}  # fmt: skip
SETTINGS: dict[str, Any] = {
    "env": ID,
    "num_envs": NUM_ENVS,
    "rollout_steps": STEPS,
    "epochs": 5,
    "minibatches": 4,
    "hidden_sizes": (128, 128),
    "activation": "elu",
    "lr": 1e-3,
    "schedule": "constant",
    "entropy_coef": 0.005,
    "max_grad_norm": 1.0,
    "normalize_rewards": False,
    "initial_std": 0.5 / SCALE,
    "target_kl": 0.0,  # the peer never stops an update early
    "optimizer_eps": 1e-8,
}


def robot(path: str | None = None) -> Any:
    """Mjlab's Go1 with a floor, servos, sensors and contacts of the feet alone, as in the peer's file."""
    spec = mujoco.MjSpec.from_file(path or os.environ["GO1_XML"])
    spec.option.timestep, spec.option.iterations = TIME_STEP, 10
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.option.solver = mujoco.mjtSolver.mjSOL_PGS
    for geom in spec.geoms:
        foot = geom.name.removesuffix("_foot_collision")
        if foot in FEET:
            geom.name, geom.condim, geom.priority, geom.solimp = foot, 3, 1, [0.9, 0.95, 0.001, 0.5, 2.0]
        else:
            geom.contype = geom.conaffinity = 0
    spec.worldbody.add_geom(name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1])
    for joint in spec.joints[1:]:
        calf = joint.name.endswith("calf_joint")
        joint.armature = 0.000111842 * (9 if calf else 6) ** 2
        force = 35.55 if calf else 23.7
        servo = spec.add_actuator(name=joint.name, target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        servo.set_to_position(kp=35.0, kv=0.5)
        servo.forcelimited, servo.forcerange = mujoco.mjtLimited.mjLIMITED_TRUE, [-force, force]
    kind, site, body = mujoco.mjtSensor, mujoco.mjtObj.mjOBJ_SITE, mujoco.mjtObj.mjOBJ_XBODY
    spec.add_sensor(name="gyro", type=kind.mjSENS_GYRO, objtype=site, objname="imu")
    spec.add_sensor(name="vel", type=kind.mjSENS_VELOCIMETER, objtype=site, objname="imu")
    axis = {"objtype": body, "objname": "world", "reftype": body, "refname": "trunk"}
    spec.add_sensor(name="up", type=kind.mjSENS_FRAMEZAXIS, **axis)
    for foot in FEET:
        spec.add_sensor(name=foot, type=kind.mjSENS_FRAMELINVEL, objtype=site, objname=foot)
        spec.add_sensor(name=f"{foot}_touch", type=kind.mjSENS_TOUCH, objtype=site, objname=foot)
    spec.add_key(name="home", qpos=[0, 0, 0.278, 1, 0, 0, 0, *STAND], ctrl=STAND)
    return spec


# ---- the task --------------------------------------------------------------------------------------------------------


def new_command(rng: Any) -> Any:
    """Commands of which each axis is zero in part: m/s forward and sideways, and rad/s."""
    fresh = rng.uniform("command", -1.0, 1.0, (3,)) * [1.5, 0.8, 1.2]
    return fresh * (rng.uniform("on", size=(3,)) < [0.9, 0.25, 0.5])


def until(rng: Any) -> Any:
    """Steps until the next command."""
    return -np.log(rng.uniform("until")) * 5.0 / (TIME_STEP * SUBSTEPS)


def reset(state: Any, rng: Any) -> Any:
    qpos, qvel = state.qpos.copy(), state.qvel.copy()
    qpos[:, 7:] = STAND + rng.uniform("joints", -0.1, 0.1, (12,))
    qvel[:] = rng.uniform("velocities", -0.2, 0.2, (18,))
    hip, thigh, calf = np.moveaxis(qpos[:, 7:].reshape(-1, 4, 3), 2, 0)
    leg = 0.213 * (np.cos(thigh) + np.cos(thigh + calf))
    foot = np.sin(hip) * np.array([-0.08, 0.08] * 2) - np.cos(hip) * leg
    qpos[:, 2] = RADIUS + 0.001 - foot.min(axis=1)  # the lowest foot stands on the floor
    state.memory["command"][:], state.memory["until"][:] = new_command(rng), until(rng)
    state.memory["clock"][:], state.memory["down"][:] = rng.uniform("clock"), 1.0
    return qpos, qvel


def moving(state: Any) -> Any:
    return (np.linalg.norm(state.memory["command"], axis=1) > 0.01)[:, None]


def action(state: Any) -> Any:
    return STAND + 0.5 * SCALE * state.action


def observe(state: Any) -> Any:
    angle = 2 * np.pi * state.memory["clock"][:, None]
    return {
        "velocity": state.sensor("vel"),
        "gyro": state.sensor("gyro"),
        "up": state.sensor("up"),
        "joints": state.qpos[:, 7:] - STAND,
        "speeds": state.qvel[:, 6:],
        "last_action": SCALE * state.action,
        "command": state.memory["command"],
        "clock": np.concatenate([np.sin(angle), np.cos(angle)], axis=1) * moving(state),
    }


def feet(state: Any, suffix: str = "") -> Any:
    return np.stack([state.sensor(foot + suffix) for foot in FEET], axis=1)


def reward(before: Any, after: Any) -> Any:
    memory, up, gyro, joints = after.memory, after.sensor("up"), after.sensor("gyro"), after.qpos[:, 7:]
    force, speed = feet(after, "_touch")[..., 0], np.square(feet(after))
    sites = [after.model.site(foot).id for foot in FEET]
    height = after.site_xpos[:, sites, 2] - RADIUS
    swing_phase = np.sin(2 * np.pi * (memory["clock"][:, None] + [0.0, 0.5, 0.5, 0.0])) * moving(after)
    miss = np.square(np.minimum(height - 0.06 * swing_phase, 0.0)) + np.square(np.maximum(height - 0.075, 0.0))
    swings = np.exp(-force / 10.0 - miss / 0.035**2)
    touch = force > 0.0
    stands = (touch | (memory["down"] > 0)) * np.exp(-speed[..., :2].sum(axis=2) / 0.05)
    share = np.clip(0.5 + swing_phase, 0.0, 1.0) * moving(after)
    low, high = 0.95 * after.model.jnt_range[1:].T
    landing = touch & (memory["down"] == 0)
    error = after.sensor("vel")[:, :2] - memory["command"][:, :2]
    terms = {
        "track": np.exp(-np.square(error).sum(axis=1) / 0.25),
        "turn": np.exp(-np.square(gyro[:, 2] - memory["command"][:, 2]) / 0.25),
        "gait": (share * swings + (1.0 - share) * stands).mean(axis=1),
        "pose": np.exp(-(np.square(joints - STAND) * ([1.0, 1.0, 0.1] * 4)).sum(axis=1)),
        "orient": np.square(up[:, :2]).sum(axis=1),
        "bounce": np.square(after.qvel[:, 2]),
        "wobble": np.square(gyro[:, :2]).sum(axis=1),
        "limits": (np.maximum(low - joints, 0.0) + np.maximum(joints - high, 0.0)).sum(axis=1),
        "rate": SCALE**2 * np.square(after.action - before.action).sum(axis=1),
        "land": (landing * np.square(feet(before)).sum(axis=2)).sum(axis=1),
    }
    return np.maximum(sum(WEIGHTS[name] * term for name, term in terms.items()), 0.0)


def update(state: Any, rng: Any) -> None:
    memory = state.memory
    memory["clock"][:] = (memory["clock"] + 2.0 * TIME_STEP * SUBSTEPS) % 1.0
    memory["down"][:] = feet(state, "_touch")[..., 0] > 0.0
    memory["until"][:] -= 1.0
    due = memory["until"] <= 0.0
    redrawn = due[:, None] & (rng.uniform("kept", size=(3,)) >= 0.5)
    memory["command"][:] = np.where(redrawn, new_command(rng), memory["command"])
    memory["until"][:] = np.where(due, until(rng), memory["until"])


SIDES = gym_dr.Mirror(places=[3, 4, 5, 0, 1, 2, 9, 10, 11, 6, 7, 8], signs=[-1, 1, 1] * 4)
gym_dr.register_robot(
    "peer/Go1-v0",
    model=robot,
    keyframe="home",
    memory={"command": 3, "until": (), "clock": (), "down": 4},
    reset=reset,
    action=action,
    observe=observe,
    reward=reward,
    terminated=lambda state: state.sensor("up")[:, 2] < 0.0,
    update=update,
    mirror={
        "velocity": gym_dr.Mirror(signs=[1, -1, 1]),
        "gyro": gym_dr.Mirror(signs=[-1, 1, -1]),
        "up": gym_dr.Mirror(signs=[1, -1, 1]),
        "command": gym_dr.Mirror(signs=[1, -1, -1]),
        "clock": gym_dr.Mirror(signs=[-1, -1]),  # half a period later
        **dict.fromkeys(["joints", "speeds", "last_action", "action"], SIDES),
    },
    fields=["site_xpos"],
    frame_skip=SUBSTEPS,
    max_episode_steps=EPISODE,
    presets={"default": {"geom_friction:??.slide": gym_dr.Rule(gym_dr.Uniform(0.4, 1.0), shared=True)}},
)


# ---- the peer --------------------------------------------------------------------------------------------------------


def load_peer(path: str) -> Any:
    """The peer's file as a module, with the model of this one."""
    try:
        import mjbatch  # type: ignore[import-not-found]
    except ImportError:  # built for another version of MuJoCo
        from mujoco import batch

        class Batch(batch.Batch):  # type: ignore[misc]
            def sensor(self, key: Any) -> Any:
                place = self.model.sensor(key)
                return self.bind("sensordata")[:, place.adr[0] : place.adr[0] + place.dim[0]]

        mjbatch = types.SimpleNamespace(Batch=Batch)
    window = types.SimpleNamespace(**dict.fromkeys(["ARROW", "Window", "clock", "progress"]))
    spec: Any = importlib.util.spec_from_file_location("go1_joystick", path)
    peer: Any = importlib.util.module_from_spec(spec)
    with mock.patch.dict(
        sys.modules, {"mjbatch": mjbatch, "mujoco_menagerie": types.SimpleNamespace(), "window": window}
    ):
        spec.loader.exec_module(peer)
    print(f"peer: {path} on {peer.Batch.__module__}, MuJoCo {mujoco.__version__}, {peer.NUM_ENVS} x {peer.HORIZON}")
    assert (peer.NUM_ENVS, peer.HORIZON, peer.EPOCHS, peer.MINIBATCHES) == (NUM_ENVS, STEPS, 5, 4)
    peer.build_model = lambda: robot().compile()
    return peer


def train_peer(peer: Any, updates: int, seed: int = 1) -> Any:
    """Trains with the peer's rollouts and updates; returns the network."""
    torch.manual_seed(seed)
    env, net = peer.Go1(NUM_ENVS, seed=seed), peer.ActorCritic()
    optimizer = torch.optim.Adam(net.parameters(), SETTINGS["lr"], fused=True)
    for _ in range(updates):
        batch, _ = peer.rollout(net, env)
        peer.update(net, optimizer, batch, *peer.gae(batch))
    return net


# ---- what they learn -------------------------------------------------------------------------------------------------


def returns(act: Any, seed: int = 1000) -> tuple[float, float]:
    """Mean return and share of falls of 1,024 episodes of fresh draws in our environment."""
    envs = gym.make_vec(ID, NUM_ENVS, autoreset_mode="NextStep")
    observations, _ = envs.reset(seed=seed)
    alive, total, fell = np.ones(NUM_ENVS, bool), np.zeros(NUM_ENVS), np.zeros(NUM_ENVS, bool)
    for _ in range(EPISODE):
        observations, rewards, terminated, truncated, _ = envs.step(act(observations))
        total += rewards * alive
        fell |= terminated & alive
        alive &= ~(terminated | truncated)
    envs.close()
    return float(total.mean()), float(fell.mean())


def peer_policy(net: Any) -> Any:
    def act(observations: Any) -> Any:
        with torch.no_grad():
            return np.clip(net(torch.as_tensor(observations, dtype=torch.float32))[0].numpy() / SCALE, -1.0, 1.0)

    return act


def main() -> None:
    """Prints speeds, then what both learn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--updates", type=int, default=20, help="of each training in a round")
    parser.add_argument("--learn", type=int, default=100, help="updates, after which returns are compared; 0 for none")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    arguments = parser.parse_args()
    peer, updates = load_peer(arguments.peer), arguments.updates
    with tempfile.TemporaryDirectory() as folder:
        sides = {
            "mjbatch's example": lambda: updates * NUM_ENVS * STEPS / seconds(lambda: train_peer(peer, updates)),
            "gymdr train ppo": ppo_side(Path(folder) / "run", updates=updates, **SETTINGS),
        }
        report("Go1, whole trainings", alternate(sides, arguments.rounds), "mjbatch's example", "steps/s")
        if arguments.learn:
            print(f"\nAfter {arguments.learn} updates ({arguments.learn * NUM_ENVS * STEPS:,} steps)")
        for seed in arguments.seeds if arguments.learn else ():
            folder_of_seed = Path(folder) / f"seed-{seed}"
            run: Any = gym_dr.train("ppo", run_dir=folder_of_seed, seed=seed, updates=arguments.learn, eval_episodes=0,
                               progress=False, **SETTINGS)  # fmt: skip
            for name, act in (
                ("mjbatch's example", peer_policy(train_peer(peer, arguments.learn, seed))),
                ("gymdr train ppo", run.policy(deterministic=True)),
            ):
                mean, falls = returns(act)
                print(f"  seed {seed}: {name:20} return {mean:8.1f}   falls {falls:.1%}", flush=True)


if __name__ == "__main__":
    main()
