"""Compiled equations against the plain functions in Python, with numpy's random numbers; and their cache."""

from __future__ import annotations

import importlib
import sys
from collections import namedtuple
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box

import gym_dr
from gym_dr import Normal
from gym_dr.envs.equations.equations import Equations
from gym_dr.envs.equations.family import family_with
from gym_dr.envs.equations.kernels import LANES
from gym_dr.envs.equations.simulation import Simulation
from gym_dr.errors import EquationsError
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.sampler import draw
from tests.envs.equations.swing import Swing, register

NUM_ENVS = LANES + 3  # a whole block, and some


class Played:
    """One environment in Python: the equations' functions, and numpy's generator."""

    def __init__(self, equations: Equations, seed: int, params: dict[str, float]) -> None:
        self.equations, self.rng = equations, np.random.default_rng(seed)
        self.physics = equations.derive(equations.params(**params))
        self.state = equations.begin(self.physics, self.random(equations.start))

    def random(self, drawn: Any) -> Any:
        numbers = [
            self.rng.normal(d.mu, d.sigma) if isinstance(d, Normal) else self.rng.uniform(*d.support)
            for d in drawn.values()
        ]
        return namedtuple("Drawn", drawn)(*numbers)  # type: ignore[misc]

    def observe(self) -> Any:
        found = self.equations.observe(self.physics, self.state)
        return np.array(found).astype(self.equations.observation_space.dtype)

    def step(self, action: Any) -> tuple[Any, float, bool]:
        self.state, reward, ended = self.equations.step(
            self.physics, self.state, action, self.random(self.equations.process_noise)
        )
        return self.observe(), reward, ended


@pytest.mark.parametrize("module", ["examples.own_equations", "tests.envs.equations.own.tank"])
def test_noise_and_first_states_are_numpys_and_steps_those_of_the_plain_functions(module: str) -> None:
    sys.modules.pop(module, None)  # so that it registers its id, which is forgotten after this test
    env_id = importlib.import_module(module).ID
    family = family_with(env_id)
    envs = gym.make_vec(env_id, NUM_ENVS)
    first, _ = envs.reset(seed=11)
    seeds = 11 + np.arange(NUM_ENVS, dtype=np.uint64)
    drawn = draw(resolve("default", family.param_space), family.param_space, seeds, 0)
    nominal = family.param_space.nominal
    plain = [
        Played(
            family.equations,
            int(seeds[i]),
            {name: float(drawn.get(name, np.full(99, nominal[name]))[i]) for name in nominal},
        )
        for i in range(NUM_ENVS)
    ]
    np.testing.assert_allclose(first, [each.observe() for each in plain], rtol=1e-12, atol=1e-12)
    envs.action_space.seed(0)
    running = np.ones(NUM_ENVS, np.bool_)
    for _ in range(60):
        actions = envs.action_space.sample()
        observations, rewards, terminated, _, _ = envs.step(actions)
        for i in np.flatnonzero(running):
            action = actions[i].tolist() if actions.ndim == 1 else tuple(actions[i].tolist())
            expected, reward, ended = plain[i].step(action)
            np.testing.assert_allclose(observations[i], expected, rtol=1e-9, atol=1e-9)
            assert rewards[i] == pytest.approx(reward, abs=1e-9)
            assert terminated[i] == ended
            running[i] = not ended
    assert running.sum() > 5


@pytest.mark.parametrize("clip", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_numbers_are_clipped_to_the_bounds_unless_told_otherwise(clip: bool) -> None:
    register(
        action_space=Box(np.float32([-1.0, 0.0]), np.float32([1.0, np.inf])),
        step=lambda p, s, action: (Swing(action[0], action[1]), 0.0, False),
        clip_actions=clip,
    )
    envs = gym.make_vec("tests/Swing-v0", 3)
    envs.reset(seed=0)
    seen = envs.step(np.float32([[-3.0, -3.0], [0.5, 7.0], [3.0, 1e30]]))[0]
    expected = [[-1.0, 0.0], [0.5, 7.0], [1.0, 1e30]] if clip else [[-3.0, -3.0], [0.5, 7.0], [3.0, 1e30]]
    np.testing.assert_array_equal(seen, np.float32(expected))


def test_fields_may_be_called_like_functions_and_a_helper_may_serve_several() -> None:
    register(begin=lambda p, u: Named(u.angle, 0.0), step=step, observe=lambda p, s: (helper(s), s.helper))
    envs = gym.make_vec("tests/Swing-v0", 3, randomization="none")
    envs.reset(seed=0)
    assert envs.step(np.zeros(3, np.int64))[0][:, 1].tolist() == [1.0] * 3


class Named(NamedTuple):
    step: float
    helper: float


def helper(s: Any) -> Any:
    return s.helper + s.step


def step(p: Any, s: Named, action: float) -> Any:
    return Named(s.step, s.helper + 1.0), helper(s), False


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of the call from compiled code
def test_an_error_in_compiled_code_ends_a_training_instead_of_being_ignored(tmp_path: Path) -> None:
    register(step=beyond, observe=lambda p, s: (s.angle, s.speed))
    envs = gym.make_vec("tests/Swing-v0", 3)
    envs.reset(seed=0)
    for _ in range(14):
        envs.step(np.zeros(3, np.int64))
    with pytest.raises(EquationsError, match="a compiled function raised IndexError"):
        [envs.step(np.zeros(3, np.int64)) for _ in range(2)]
    pytest.importorskip("torch")
    budget: dict[str, Any] = {"updates": 2, "num_envs": 4, "rollout_steps": 32, "eval_episodes": 0}
    with pytest.raises(EquationsError, match="'tests/Swing-v0': a compiled function raised IndexError"):
        gym_dr.train("ppo", env="tests/Swing-v0", run_dir=tmp_path / "run", progress=False, **budget)


TABLE = tuple(float(k) for k in range(15))  # longer than the trial in Python


def beyond(p: Any, s: Swing, action: float) -> Any:
    return Swing(TABLE[int(s.speed)], s.speed + 1.0), 1.0, False


# ---- the cache -------------------------------------------------------------------------------------------------------

SOURCE = """
from typing import NamedTuple
import helping
from gymnasium.spaces import Box, Discrete
import numpy as np
from gym_dr import Param, equations_family
{imports}

GAIN = {gain}

class State(NamedTuple):
    x: float

def lifted(x):
    return {lifted}

def begin(p, u):
    return State(u.x)

def step(p, s, action):
    return State(lifted(s.x) * GAIN), 0.0, False

def observe(p, s):
    return (s.x,)

FAMILY = equations_family(
    "tests/Cached-v0", params=[Param(name="mass", nominal=1.0, low=0.1, high=2.0)],
    observation_space=Box(-np.inf, np.inf, (1,)), action_space=Discrete(2), start={{"x": (-1.0, {high})}},
    begin=begin, step=step, observe=observe, presets={{"default": {{}}}},
)
"""


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Loads the source above with some text in it, and says whether its kernels came from the cache."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path))

    def loaded(helping: str = "FACTOR = 1.0", **changed: Any) -> tuple[float, bool]:
        (tmp_path / "helping.py").write_text(helping)
        given = {"imports": "", "gain": 2.0, "lifted": "x + 1.0", "high": 1.0, **changed}
        (tmp_path / "cached.py").write_text(SOURCE.format(**given))
        for name in ("helping", "cached"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        importlib.invalidate_caches()
        monkeypatch.setattr(sys, "dont_write_bytecode", True)  # files of one second are the same to Python
        equations = importlib.import_module("cached").FAMILY.equations
        simulation = Simulation(equations, 1)
        simulation.begin(np.zeros(1, np.int64), ((0.25, 0.25),))
        simulation.stepper.step()
        kernel: Any = simulation.stepper.job.compiled
        return float(simulation.stepper.buffers.observations[0, 0]), bool(sum(kernel._cache_hits.values()))

    return loaded


def test_equations_are_compiled_once_and_again_when_what_they_compute_changes(load: Any) -> None:
    # what makes a change is tested of descriptions, in tests/compiled/test_formula.py
    calling = {"lifted": "x + 2.0 * helping.FACTOR"}
    assert load(**calling) == (4.5, False)  # (0.25 + 2) * 2
    assert load(**calling, imports="# a comment, a line further down\n") == (4.5, True)
    assert load(**calling, helping="FACTOR = 3.0") == (12.5, False)  # a constant of another module
    assert load(**calling) == (4.5, True)


@pytest.mark.slow  # its siblings are the descriptions of closures in tests/compiled/test_formula.py
def test_equations_in_the_same_file_do_not_share_their_code() -> None:
    """Lambdas on one line have the same name and the same line."""
    found = []
    for gain in (1.0, 2.0):
        register(step=lambda p, s, action, gain=gain: (Swing(gain * s.angle, 0.0), 0.0, False))
        envs = gym.make_vec("tests/Swing-v0", 4, randomization="none")
        first = envs.reset(seed=0)[0][:, 0]
        found.append(envs.step(np.zeros(4, np.int64))[0][:, 0] / first)
    np.testing.assert_allclose(found, [[1.0] * 4, [2.0] * 4], rtol=1e-6)


@pytest.mark.slow  # its siblings are the descriptions of globals in tests/compiled/test_formula.py
def test_a_change_of_what_functions_name_is_seen_by_the_next_environment_of_a_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    register(step=gained, observe=lambda p, s: (s.angle, s.speed))
    seen = []
    for gain in (1.0, 7.0):
        monkeypatch.setattr(sys.modules[__name__], "GAIN", gain)  # as one who runs a cell again
        envs = gym.make_vec("tests/Swing-v0", 1)
        envs.reset(seed=0)
        seen.append(envs.step(np.zeros(1, np.int64))[0][0, 1])
    assert seen == [1.0, 7.0]


GAIN = 1.0


def gained(p: Any, s: Swing, action: float) -> Any:
    return Swing(s.angle, GAIN), 0.0, False
