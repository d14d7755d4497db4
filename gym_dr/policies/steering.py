"""What a user changes while a policy plays, with keys or before: a task's command, and the model."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, cast

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box

from gym_dr.arrays import Array
from gym_dr.errors import ConfigError, check_known
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Rule

# GLFW's codes of keys for which MuJoCo's viewer has no use -> an entry of the memory, and which way
_WAYS = {265: (0, 1), 264: (0, -1), ord("7"): (1, 1), ord("9"): (1, -1), 263: (2, 1), 262: (2, -1)}
_ZERO, _CHANGES = ord(" "), {ord("="): 1, ord("-"): -1}
_PARTS = 10  # of a range, of which a key goes one


class Steering:
    """Holds entries of a task's memory, such as its command, and changes the model in a running episode.

    The task may write its memory as it likes: what is held is written again before each observation. The model changes
    at once, in this one environment; the next episode begins with the same value, as one that was set.

    Attributes:
        params: name -> value; keys change the first one.
        pressed: Keys that the next ``apply`` follows; the viewer appends to it in its own thread.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        given: Mapping[str, Sequence[float]],
        space: ParamSpace,
        drawn: Mapping[str, Rule] | None = None,
        params: Mapping[str, float] | None = None,
    ) -> None:
        """Checks the entries.

        Args:
            env: A single environment.
            given: Memory -> its entries, which are held. With keys, all memory that the task lets them drive is held.
            space: Its parameters.
            drawn: Those of the training: a key changes one by a tenth of its range there, or else of its nominal value.
            params: Parameters with given values; None without keys.

        Raises:
            ConfigError: An entry is missing or out of range.
            UnknownNameError: The task has no such memory, or none that can be steered.
        """
        self.params, self.pressed = dict(params or {}), deque[int]()
        self._env, self._space, self._drawn = env, space, drawn or {}
        steer = env.get_wrapper_attr("steer") or {} if env.has_wrapper_attr("steer") else {}
        self._held: dict[str, tuple[Array, Box]] = {}  # memory -> entries (k,), and what they may be
        for name in given if params is None else dict.fromkeys((*given, *steer)):
            check_known(f"memory to steer in {env.spec.id if env.spec else env}:", name, steer)
            low, high = map(np.ravel, steer[name])
            held, box = np.array(given.get(name, np.clip(0.0, low, high)), np.float64), Box(low, high, dtype=np.float64)
            if not box.contains(held):
                raise ConfigError(f"`steer`: expected numbers for {name} in {box}, got {held.tolist()}.")
            self._held[name], cast(Any, env.unwrapped).held[name] = (held, box), held

    def apply(self) -> None:
        """Follows the keys."""
        while self.pressed:
            self._follow(self.pressed.popleft())

    def held(self) -> list[str]:
        """A line for each memory that is held."""
        return [" ".join([name, *(f"{value:.3g}" for value in held)]) for name, (held, _) in self._held.items()]

    def _follow(self, key: int) -> None:
        entry, way = _WAYS.get(key, (0, 0))
        for held, box in self._held.values():
            held[entry : entry + 1] += way * (box.high - box.low)[entry : entry + 1] / _PARTS
            held[:] = np.clip(0.0 if key == _ZERO else held, box.low, box.high)
        for name in [*self.params][: key in _CHANGES]:
            param, rule = self._space[name], self._drawn.get(name)
            low, high = rule.support(param.nominal) if rule else (0.0, abs(param.nominal) or 1.0)
            changed = self.params[name] + _CHANGES[key] * ((high - low) / _PARTS if param.kind == "float" else 1.0)
            self.params[name] = float(np.clip(changed, param.low, param.high))
            self._env.get_wrapper_attr("change")(self.params)
