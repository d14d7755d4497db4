"""A body on two legs that remembers a command, a clock and its last action; each leg mirrors the other."""

from __future__ import annotations

from typing import Any

import numpy as np

import gym_dr

XML = """
<mujoco>
  <option timestep="0.004"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1"/>
    <body name="trunk" pos="0 0 0.3">
      <freejoint/>
      <geom name="trunk" size=".1" mass="1"/>
      <body name="left" pos="0 .1 0">
        <joint name="left" axis="0 1 0"/>
        <geom name="left" type="capsule" fromto="0 0 0 0 0 -.2" size=".02"/>
      </body>
      <body name="right" pos="0 -.1 0">
        <joint name="right" axis="0 1 0"/>
        <geom name="right" type="capsule" fromto="0 0 0 0 0 -.2" size=".02"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position name="left" joint="left" kp="5" kv=".1"/>
    <position name="right" joint="right" kp="5" kv=".1"/>
  </actuator>
  <keyframe>
    <key name="home" qpos="0 0 .3 1 0 0 0 .2 .2" ctrl=".2 .2"/>
  </keyframe>
</mujoco>
"""
SIDES = gym_dr.Mirror(places=[1, 0])


def observe(state: Any) -> Any:
    return {"joints": state.qpos[:, 7:], "command": state.memory["command"], "spin": state.qvel[:, 5]}


def reward(before: Any, after: Any) -> Any:
    error = after.qvel[:, 0] - after.memory["command"][:, 0]
    return {"track": -abs(error), "effort": -0.01 * np.square(after.action).sum(axis=1)}


def reset(state: Any, rng: Any) -> Any:
    fastest = state.params["fastest"][:, None]
    state.memory["command"][:] = rng.uniform("command", -fastest, fastest, 1)
    return state.qpos, state.qvel + rng.normal("velocities", 0.0, 0.1, state.model.nv)


def update(state: Any, rng: Any) -> None:
    state.memory["last_action"][:] = state.action
    state.memory["clock"][:] += state.dt
    new = rng.uniform("when") < 0.1
    state.memory["command"][new] = rng.uniform("command", -1, 1, 1)[new]


def action(state: Any) -> Any:
    return 0.2 + 0.5 * state.action


def torque(state: Any) -> Any:
    return action(state) - 0.1 * state.qpos[:, 7:]


TASK: dict[str, Any] = {
    "model": XML,
    "keyframe": "home",
    "memory": {"command": 1, "clock": (), "last_action": 2},
    "parameters": [gym_dr.Param(name="fastest", nominal=1.0, low=0.0, high=2.0, unit="m/s")],
    "observe": observe,
    "reward": reward,
    "reset": reset,
    "update": update,
    "action": action,
    "critic": lambda state: state.qvel[:, :3],
    "mirror": {"joints": SIDES, "action": SIDES, "spin": gym_dr.Mirror(signs=[-1])},
    "steer": {"command": ((-1,), (1,))},
    "frame_skip": 5,
    "max_episode_steps": 12,
    "actuator_history": 5,
    "presets": {"default": {"body_mass:trunk": gym_dr.Scale((0.5, 2.0)), "fastest": (0, 2), "obs_noise": (0, 0.1)}},
}
