"""What Disturb promises, written plainly: one environment, Python lists, and the formula of each random number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from gym_dr import Randomization
from gym_dr.randomization.normal import normal_ppf
from gym_dr.randomization.sampler import draw, seed_word, uniforms
from gym_dr.wrappers.disturbances import DISTURBANCES


class PlainDisturb(gym.Wrapper[Any, Any, Any, Any]):
    """Disturbs an environment whose observations and actions are vectors; without pushes. Sensors are indices."""

    def __init__(self, env: gym.Env[Any, Any], rules: Mapping[str, Any], scale: Any) -> None:
        super().__init__(env)
        self.rules, self.scale = Randomization(rules), np.asarray(scale)
        self.word: int | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed)
        if seed is not None or self.word is None:
            self.word, self.index = seed_word(self.env.unwrapped.np_random_seed), -1
        self.index += 1
        drawn = draw(self.rules, DISTURBANCES, np.array([self.word], np.uint64), self.index)
        exact = (options or {}).get("params", {})
        self.values = {**DISTURBANCES.nominal, **{name: float(v[0]) for name, v in drawn.items()}, **exact}
        self.age = 0
        self.sent: list[Any] = []
        self.seen: list[Any] = []
        self.readings: Any = None
        self.held = np.zeros(self.action_space.shape or (), np.float32)
        self.bias = self.values["obs_bias"] * self.scale * self.normals("obs_bias", len(observation), 0)
        for name, places in self.places("obs_offset"):
            self.bias[places] += self.values[name]
        return self.observe(observation), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self.sent.append(np.array(action))
        delay = int(self.values["action_delay"])
        arrived = self.sent[-1 - delay] if len(self.sent) > delay else np.zeros_like(self.sent[0])
        if self.uniforms(["action_drop"], self.age + 1)[0] < self.values["action_drop"]:
            arrived = self.held
        self.held = arrived
        noise = self.values["action_noise"] * self.normals("action_noise", len(action), self.age + 1)
        interval = int(self.values["action_gain_interval"])
        times = self.age // interval if interval else 0
        gain = 1.0 + self.values["action_gain"] * self.normals("action_gain", len(action), times)
        box: Any = self.action_space
        applied = np.clip(arrived * gain + noise, box.low, box.high).astype(np.float32)
        observation, reward, terminated, truncated, info = self.env.step(applied)
        self.age += 1
        return self.observe(observation), reward, terminated, truncated, info

    def observe(self, observation: Any) -> Any:
        noise = self.values["obs_noise"] * self.scale * self.normals("obs_noise", len(observation), self.age + 1)
        self.seen.append((observation + (self.bias + noise)).astype(np.float32))
        reading = self.seen[max(0, len(self.seen) - 1 - int(self.values["obs_delay"]))].copy()
        for name, places in self.places("obs_drop"):
            if self.age > 0 and self.uniforms([name], self.age + 1)[0] < self.values[name]:
                reading[places] = self.readings[places]
        self.readings = reading
        shown = reading.copy()
        for name, places in self.places("obs_hide"):
            shown[places] *= 1 - self.values[name]
        return shown

    def places(self, kind: str) -> Iterator[tuple[str, list[int] | slice]]:
        """The numbers that each disturbance of a kind is about."""
        for name in self.rules:
            if name.partition(":")[0] == kind:
                index = name.partition(":")[2]
                yield name, [int(index)] if index else slice(None)

    def uniforms(self, names: list[str], step: int) -> Any:
        return uniforms(np.array([self.word], np.uint64), np.array([self.index | step << 32]), names)[:, 0]

    def normals(self, name: str, count: int, step: int) -> Any:
        return normal_ppf(self.uniforms([f"{name}:{i}" for i in range(count)], step))
