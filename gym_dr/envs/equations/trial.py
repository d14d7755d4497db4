"""Short episodes of new equations in plain Python, before they are compiled, which find errors in the user's lines."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from gym_dr.envs.equations.checks import made_of
from gym_dr.envs.equations.equations import Equations, fields_of
from gym_dr.envs.equations.functions import called, check_numbers, place_of
from gym_dr.envs.equations.kernels import content_of
from gym_dr.errors import EquationsError, located, shortened
from gym_dr.randomization.distributions import Distribution
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.sampler import draw
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization

_STEPS = 10
_EPISODES = 3  # with nominal values; the draws of each preset get one more

# in this process: the content and the parameters of equations that were tried
_tried: WeakKeyDictionary[Equations, set[Any]] = WeakKeyDictionary()


def try_out(
    equations: Equations, space: ParamSpace, rest: tuple[float, ...], presets: Mapping[str, Randomization]
) -> None:
    """Plays short episodes with random actions, with nominal values and with draws of each preset.

    Args:
        equations: Tried once in a process, and again if their content has changed.
        space: Its parameters.
        rest: The other fields of ``equations.params``.
        presets: By name.

    Raises:
        EquationsError: A function fails, returns nan or anything but numbers, or draws random numbers itself; or an
            observation is outside its space.
    """
    key = content_of(equations), tuple(space.nominal.values()), rest
    if key in _tried.setdefault(equations, set()):
        return
    rng, before = np.random.default_rng(0), _random_states()
    for values in [*[tuple(space.nominal.values())] * _EPISODES, *_drawn(space, presets)]:
        params = equations.params(*values, *rest)
        with located(f"Equations {equations.name!r}"):
            _Trial(equations, rng).play(params)
    if _random_states() != before:
        raise EquationsError(
            f"Equations {equations.name!r}: a function draws random numbers, which no seed of an environment repeats. "
            "Declare them: start={'x': Normal(0, 1)} for begin(c, u), process_noise={'gust': Normal(0, 1)} for "
            "step(c, state, action, w)."
        )
    _tried[equations].add(key)


def _random_states() -> Any:
    """Changes when functions use the random numbers of Python or of numpy."""
    return random.getstate(), str(np.random.get_state())  # noqa: NPY002  what users' functions may call


def _drawn(space: ParamSpace, presets: Mapping[str, Randomization]) -> Iterator[tuple[float, ...]]:
    """Parameters drawn from each preset."""
    for randomization in presets.values():
        found = draw(resolve(randomization.without(space.constants), space), space, np.zeros(1, np.uint64), 0)
        yield tuple(float(found[name][0]) if name in found else space[name].nominal for name in space)


class _Trial:
    """Plays episodes of equations in Python."""

    def __init__(self, equations: Equations, rng: np.random.Generator) -> None:
        self.equations, self.rng = equations, rng
        self.actions = deepcopy(equations.action_space)  # a copy has its own generator
        self.actions.seed(0)

    def play(self, params: Any) -> None:
        """One episode, at most ``_STEPS`` long."""
        e = self.equations
        physics = called(e.derive, "derive", params)
        numbers = check_numbers("derive", e.derive, physics, fields_of(e.physics))
        self._check_nan("derive", e.derive, numbers, physics, params)
        state = called(e.begin, "begin", physics, self._random("Start", e.start))
        known = np.isfinite(check_numbers("begin", e.begin, state, fields_of(e.state)))
        state = _of_floats(state)
        self._observe(physics, state, "the first state")
        for t in range(1, _STEPS + 1):
            before, action = state, self._action()
            noise = (self._random("ProcessNoise", e.process_noise),) if e.process_noise else ()
            found = called(e.step, "step", physics, state, action, *noise)
            if not e.rewarded:
                found = found, 0.0, False
            if not (isinstance(found, tuple) and len(found) == 3):
                raise self._wrong(
                    "step", e.step, "three things, next state, reward and whether the episode ends", found
                )
            state, reward, ended = found
            numbers = check_numbers("step", e.step, state, fields_of(e.state))
            self._check_nan("step", e.step, numbers[known], state, before, action)
            if isinstance(reward, bool | np.bool_) or not isinstance(reward, int | float | np.number):
                raise self._wrong("step", e.step, "a number as reward", reward)
            self._check_nan("step", e.step, np.array([reward]), f"reward {reward}", before, action)
            if not isinstance(ended, bool | np.bool_):
                raise self._wrong("step", e.step, "True or False as whether the episode ends", ended)
            state = _of_floats(state)
            self._observe(physics, state, f"the state after step {t}")
            if ended:
                return

    def _action(self) -> Any:
        """A random action as ``step`` gets it."""
        numbers = np.atleast_1d(self.actions.sample()).astype(np.float64).tolist()
        return numbers[0] if len(numbers) == 1 else tuple(numbers)

    def _random(self, name: str, drawn: Mapping[str, Distribution]) -> Any:
        return made_of(name, drawn, (float(each.ppf(self.rng.uniform(1e-3, 1.0 - 1e-3))) for each in drawn.values()))

    def _observe(self, physics: Any, state: Any, when: str) -> None:
        e = self.equations
        found, size = called(e.observe, "observe", physics, state), e.observation_space.shape[0]
        if not isinstance(found, tuple) or len(found) != size:
            what = f"a tuple of {size} number{'s' if size > 1 else ''}, as many as observation_space has"
            raise self._wrong("observe", e.observe, what, found)
        try:
            with np.errstate(over="ignore"):  # it will be outside of the space
                numbers = np.array(found, np.float64).astype(e.observation_space.dtype)
        except (TypeError, ValueError):
            raise self._wrong("observe", e.observe, "numbers", found) from None
        self._check_nan("observe", e.observe, numbers, found, state)
        outside = np.flatnonzero((numbers < e.observation_space.low) | (numbers > e.observation_space.high))
        if len(outside):
            k = int(outside[0])
            low, high = float(e.observation_space.low[k]), float(e.observation_space.high[k])
            raise EquationsError(
                f"expected observe at {place_of(e.observe)} to return number {k} from {low:g} to {high:g}, the bounds "
                f"of observation_space, got {found[k]:g} for {when}, {shortened(state)}. Widen the space, or clip."
            )

    def _check_nan(self, name: str, function: Any, numbers: Any, found: Any, *given: Any) -> None:
        if np.isnan(numbers).any():
            raise EquationsError(
                f"expected {name} at {place_of(function)} to return numbers, got nan in {shortened(found)}, called "
                f"with {', '.join(map(shortened, given))}."
            )

    def _wrong(self, name: str, function: Any, expected: str, got: Any) -> EquationsError:
        return EquationsError(f"expected {name} at {place_of(function)} to return {expected}, got {shortened(got)}.")


def _of_floats(state: Any) -> Any:
    """A state as compiled code keeps it: of floats."""
    return type(state)(*map(float, state))
