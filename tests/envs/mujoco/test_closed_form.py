from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from hypothesis import given, settings
from hypothesis import strategies as st

from gym_dr import Scale
from gym_dr.compiled.policy import TWO_HEADS, SmallPolicy
from gym_dr.compiled.steps import Steps
from gym_dr.envs.mujoco import inverted_pendulum
from gym_dr.envs.mujoco.closed_form import ClosedFormBackend
from gym_dr.envs.mujoco.space import ModelSpace
from gym_dr.errors import RandomizationWarning
from tests.envs.mujoco.names import assert_same, assert_same_episodes, native, single, sync

pytest.importorskip("mujoco.batch", reason="older versions of MuJoCo make every step themselves")
NAME = "InvertedPendulum"
NUM_ENVS = 8


def compiled(num_envs: int = NUM_ENVS, **kwargs: Any) -> Any:
    envs = native(NAME, num_envs, **kwargs)
    assert isinstance(envs.unwrapped._backend, ClosedFormBackend)
    return envs


def in_mujoco(num_envs: int = NUM_ENVS, **kwargs: Any) -> Any:
    """MuJoCo makes every step: a ``frame_skip``, though Gymnasium's own, asks for it."""
    return native(NAME, num_envs, frame_skip=2, **kwargs)


SPACE = ModelSpace(NAME, single(NAME).unwrapped.model)
OTHERS = ("wind", "body_length", "actuator_strength", "timestep")  # fields that the equations lack, or follow in part
VARIED_FIELDS = {*dict(inverted_pendulum.PLACES.values()), *OTHERS}
VARIED = sorted(name for name in SPACE if name.partition(":")[0].partition(".")[0] in VARIED_FIELDS)


def put(envs: Any, states: Any) -> None:
    """Moves the sub-environments of either kind to states ``(num_envs, 4)``; MuJoCo's solver begins with zeros."""
    backend = envs.unwrapped._backend
    if isinstance(backend, ClosedFormBackend):
        backend.simulation.put(np.arange(len(states)), np.pad(states, ((0, 0), (0, 2))))
    else:
        backend.engine.qpos[:], backend.engine.qvel[:] = states[:, :2], states[:, 2:]
        backend.engine._batch.bind("qacc_warmstart")[:] = 0.0


def values_of(name: str, param: Any, rng: np.random.Generator) -> Any:
    """Values of a parameter that every model can have, shape ``(NUM_ENVS,)``."""
    if name == "timestep":
        return param.nominal * rng.uniform(0.5, 1.5, NUM_ENVS)
    if param.unit == "x":
        return rng.uniform(0.7, 1.3, NUM_ENVS)
    if name.startswith("body_inertia"):  # a moment may not be larger than the other two together
        return param.nominal * rng.uniform(0.99, 1.01, NUM_ENVS)
    if name.startswith("body_mass"):
        return param.nominal * rng.uniform(0.1, 4.0, NUM_ENVS)
    wide = {"gravity": 15.0, "wind": 5.0, "density": 500.0, "body_ipos": 0.2, "actuator_gear": 300.0, "jnt_stiff": 50.0}
    width = next((width for start, width in wide.items() if name.startswith(start)), 2.0)
    return np.clip(param.nominal + rng.uniform(-width, width, NUM_ENVS), param.low, param.high)


@pytest.fixture(scope="module")
def pair() -> Any:
    made = compiled(randomization="none"), in_mujoco(randomization="none")
    yield made
    for envs in made:
        envs.close()


def test_a_push_on_a_cart_turns_the_pole_the_other_way() -> None:
    # an upright pole without weight on 3 kg with a moment of 2 kg m^2 and a lever of 1 kg m, pushed by 10 N:
    # 3 a + b = 10 and a + 2 b = 0, so a = 4 m/s^2 and b = -2 rad/s^2
    nothing = dict.fromkeys(inverted_pendulum.Physics._fields, 0.0)
    physics = inverted_pendulum.Physics(**{**nothing, "mass": 3.0, "moment": 2.0, "lever_z": 1.0})
    assert inverted_pendulum.accelerations(physics, 0.0, 0.0, 0.0, 0.0, 10.0) == pytest.approx((4.0, -2.0))


def test_nothing_moves_without_gravity_and_a_free_pole_keeps_its_momentum(pair: Any) -> None:
    envs, _ = pair
    envs.reset(seed=0, options={"params": {"gravity": 0.0, "dof_damping": 0.0}})
    states = np.zeros((NUM_ENVS, 4))
    states[1:, 1:] = np.random.default_rng(0).uniform(-0.3, 0.3, (NUM_ENVS - 1, 3))
    put(envs, states)
    physics = envs.unwrapped._backend.simulation.physics(0)

    def momentum(x: Any) -> Any:
        turned = physics.lever_z * np.cos(x[:, 1]) - physics.lever_x * np.sin(x[:, 1])
        return physics.mass * x[:, 2] + turned * x[:, 3]

    after = envs.step(np.zeros((NUM_ENVS, 1)))[0]
    assert (after[0] == 0.0).all()
    np.testing.assert_allclose(momentum(after), momentum(states), atol=1e-6)  # Runge-Kutta's error
    assert not np.allclose(after[1:, 3], states[1:, 3])


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_a_step_from_any_state_under_any_values_is_mujocos(pair: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    space = pair[0].unwrapped._backend.space
    names = rng.choice([name for name in VARIED if not space[name].needs], 6, replace=False)
    params = {str(name): values_of(str(name), space[str(name)], rng) for name in names}
    states = rng.uniform((-1.05, -0.25, -2.0, -4.0), (1.05, 0.25, 2.0, 4.0), (NUM_ENVS, 4))
    actions = rng.uniform(-4.0, 4.0, (NUM_ENVS, 1))
    results = []
    for envs in pair:
        envs.reset(seed=seed, options={"params": params})
        put(envs, states)
        results.append(envs.step(actions)[:4])
    assert_same(*results)


def test_every_parameter_there_is_does_what_it_does_in_mujoco() -> None:
    space = compiled(1).unwrapped._backend.space
    names = VARIED
    both = compiled(len(names), randomization="none"), in_mujoco(len(names), randomization="none")
    rng = np.random.default_rng(0)
    for row, name in enumerate(names):  # each sub-environment has one of them
        needed = dict.fromkeys(space[name].needs[:1], 0.5) | ({"density": 100.0} if name.startswith("wind") else {})
        values = {**needed, name: float(values_of(name, space[name], rng)[0])}
        for envs in both:
            envs.set_params(values, mask=np.arange(len(names)) == row)
    assert assert_same_episodes(*both, 20) > len(names)


@pytest.mark.parametrize("mode", list(AutoresetMode)[:2])
@pytest.mark.parametrize(
    "randomization", ["wide", {"body_mass:*": Scale((0.5, 2.0)), "dof_frictionloss:hinge": (0, 1)}]
)
def test_whole_episodes_and_resets_are_mujocos(randomization: Any, mode: AutoresetMode) -> None:
    kwargs = {"randomization": randomization, "max_episode_steps": 9, "autoreset_mode": mode}
    assert assert_same_episodes(in_mujoco(**kwargs), compiled(**kwargs), 60) > 40


def test_at_the_end_of_the_rail_the_cart_is_stopped_as_in_mujoco() -> None:
    both = compiled(randomization="wide"), in_mujoco(randomization="wide")
    states = np.tile([0.97, 0.0, 1.0, 0.0], (NUM_ENVS, 1)) * np.linspace(0.9, 1.1, NUM_ENVS)[:, None]
    for envs in both:
        envs.reset(seed=3)
        put(envs, states)
    beyond = 0
    for _ in range(8):
        left, right = (envs.step(np.full((NUM_ENVS, 1), 0.5)) for envs in both)
        assert_same(left, right)
        beyond += int((left[0][:, 0] > 1.0).sum())
    assert beyond > 10
    assert (left[0][:, 2] < 0.5).any()


@pytest.mark.parametrize("keywords", [{"frame_skip": 2}, {"xml_file": "inverted_pendulum.xml"}])
def test_other_models_and_other_steps_are_left_to_mujoco(keywords: dict[str, Any]) -> None:
    envs = native(NAME, 2, **keywords)
    assert not isinstance(envs.unwrapped._backend, ClosedFormBackend)
    envs.close()


def play(envs: Any, num_steps: int, *, in_one_call: bool) -> tuple[Steps, list[Any]]:
    """Steps of a policy that draws its actions, ten a call, and what each call reports."""
    n = envs.num_envs
    low, high = np.full(1, -3.0, np.float32), np.full(1, 3.0, np.float32)
    policy = SmallPolicy.allocate(
        sizes=[4, 2], activation="tanh", kind=TWO_HEADS, low=low, high=high, floor=2.0, num_envs=n
    )
    noise = np.random.default_rng(0).standard_normal((num_steps, n, 1)).astype(np.float32)
    steps = Steps.allocate(num_steps, n, inputs=4, actions=1)
    steps.observations[0], _ = envs.reset(seed=1)
    if not in_one_call:
        episodes = envs.unwrapped._episodes
        episodes._rollout_compiled = episodes._rollout_by_steps
    return steps, [envs.rollout(policy, noise, steps, row, row + 10) for row in range(0, num_steps, 10)]


@pytest.mark.parametrize("wild", [False, True])
def test_a_rollout_stops_for_the_steps_that_mujoco_makes(wild: bool) -> None:
    """Half of the sub-environments have friction; and where gears are so strong that simulations diverge."""
    played = []
    for in_one_call in (True, False):
        envs = compiled(4, randomization="default", max_episode_steps=12)
        envs.set_params({"dof_frictionloss:slider": 0.5}, mask=np.arange(4) % 2 == 0)
        if wild:
            envs.set_params({"actuator_gear:slide": 1e6})
            with pytest.warns(RandomizationWarning, match="diverged"):
                played.append(play(envs, 40, in_one_call=in_one_call))
        else:
            played.append(play(envs, 40, in_one_call=in_one_call))
    (one, calls), (other, others) = played
    for name in ("rewards", "terminated", "truncated", "raw_actions", "observations"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert_same(dict(enumerate(calls)), dict(enumerate(others)))
    assert any(np.any(call.diverged) for call in calls) == wild
    assert one.truncated.any()
    assert one.terminated.any()


def test_a_push_moves_the_cart_as_in_mujoco() -> None:
    both = compiled(), in_mujoco()
    for envs in both:
        envs.reset(seed=2)
        envs.push(np.array([[1.5], [-1.0]]), np.array([0, 3]))
    assert_same(*(envs.step(np.zeros((NUM_ENVS, 1)))[:2] for envs in both))


def test_generators_go_on_as_those_of_single_environments() -> None:
    ours, theirs = compiled(3), sync(NAME, 3)
    for envs in (ours, theirs):
        envs.reset(seed=4)
    assert [rng.random() for rng in ours.np_random] == [rng.random() for rng in theirs.np_random]
