from __future__ import annotations

import gc
import os
import threading
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from gym_dr import Scale, VectorParams
from gym_dr.compiled.policy import TWO_HEADS, SmallPolicy
from gym_dr.compiled.steps import Steps
from gym_dr.envs.mujoco.memory import ScatteredField
from gym_dr.errors import ConfigError, EnvStateError, InvalidActionError
from gym_dr.randomization.episode import EpisodeParams
from gym_dr.randomization.sampler import FixedSampler
from gym_dr.randomization.table import ParamTable
from tests.envs.mujoco.names import NAMES, assert_same, native, sync

MASSES = {"body_mass:*": Scale((0.5, 2.0))}


def actions_of(envs: Any) -> Any:
    return np.full(envs.action_space.shape, 0.2, np.float32)


@pytest.mark.parametrize("name", NAMES)
def test_make_vec_picks_the_native_environment(name: str) -> None:
    envs = native(name, 2)
    assert type(envs.unwrapped).__name__ == f"{name}VectorEnv"
    assert envs.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    assert envs.spec.id == f"gym_dr/{name}DR-v5"
    assert envs.unwrapped._max_steps == envs.spec.max_episode_steps
    envs.close()


def test_masses_reach_the_simulations() -> None:
    for name in ("Hopper", "Ant"):
        envs = native(name, 3, randomization={"body_mass:torso": Scale((0.5, 2.0))})
        _, info = envs.reset(seed=2)
        assert (envs.unwrapped._backend.engine.body_mass[:, 1] == info["params"]["body_mass:torso"]).all()
        envs.close()


@pytest.mark.parametrize("name", ["Hopper", "Ant"])
def test_pins_and_exact_values_do_what_they_do_in_a_sync_environment(name: str) -> None:
    ours, theirs = native(name, 3, max_episode_steps=4), VectorParams(sync(name, 3, max_episode_steps=4))
    mask = np.array([True, False, True])
    for envs in (ours, theirs):
        envs.set_params({"gravity.z": [-5.0, -6.0, -7.0]})
        envs.set_params({"body_mass": 1.5}, mask=mask)
    assert_same(ours.reset(seed=1), theirs.reset(seed=1))
    assert ours.params["gravity.z"].tolist() == [-5.0, -6.0, -7.0]
    assert ours.params["body_mass"].tolist() == [1.5, 1.0, 1.5]
    assert_same(ours.params, theirs.params)
    for t in range(14):
        if t == 6:
            for envs in (ours, theirs):
                envs.set_params(None, mask=~mask)
        if t == 10:
            options = {"params": {"body_mass:torso": [0.4, 0.5, 0.6]}, "reset_mask": np.array([False, True, True])}
            assert_same(ours.reset(options=dict(options)), theirs.reset(options=dict(options)))
        assert_same(ours.step(actions_of(ours)), theirs.step(actions_of(ours)))
        assert_same(ours.params, theirs.params)
        assert ours.draw_index.tolist() == theirs.draw_index.tolist()


def test_what_was_handed_back_is_reported_no_more() -> None:
    for envs in (native("Ant", 2, randomization="none"), VectorParams(sync("Ant", 2, randomization="none"))):
        nominal = envs.reset(seed=1)[0]
        envs.set_params({"body_mass:torso": 2.0})
        envs.reset(seed=1)
        assert envs.params["body_mass:torso"].tolist() == [2.0, 2.0]
        envs.set_params(None)
        observations, info = envs.reset(seed=1)
        assert envs.params == {} == info["params"]
        np.testing.assert_array_equal(observations, nominal)


@pytest.mark.parametrize(
    "bad",
    [{"num_threads": 0}, {"max_episode_steps": 0}, {"render_mode": "human"}],
)
def test_impossible_constructor_arguments_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="Expected"):
        native("Hopper", **{"num_envs": 2, **bad})


def threads() -> int:
    return len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else threading.active_count()


def memory() -> int:
    """Resident memory in bytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def make_and_close(name: str) -> None:
    envs = native(name, 4, num_threads=3)
    envs.reset(seed=1)
    envs.step(actions_of(envs))
    envs.close()


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="reads /proc")
@pytest.mark.parametrize("name", ["Hopper", "Ant"])
@pytest.mark.parametrize("rounds", [5, pytest.param(1000, marks=pytest.mark.slow)])
def test_closing_gives_threads_and_memory_back(name: str, rounds: int) -> None:
    for _ in range(10):
        make_and_close(name)
    gc.collect()
    threads_before, memory_before = threads(), memory()
    for _ in range(rounds):
        make_and_close(name)
    gc.collect()
    assert threads() <= threads_before
    assert memory() - memory_before < 15e6


@pytest.mark.parametrize("name", ["Hopper", "Ant"])
def test_the_number_of_threads_is_what_was_asked_for(name: str) -> None:
    before = threads()
    envs = native(name, 8, num_threads=3)
    envs.reset(seed=1)
    envs.step(actions_of(envs))
    assert envs.unwrapped.num_threads == 3
    assert threads() - before <= 2  # the caller's is the third
    envs.close()
    assert native(name, 2, num_threads=5).unwrapped.num_threads == 2


def test_a_table_of_episodes_draws_what_single_environments_draw() -> None:
    envs = native("Hopper", 3)
    table = ParamTable(envs.param_space, FixedSampler(envs.param_space, envs.randomization), 3)
    table.seed(np.arange(3), np.array([5, 6, 7], dtype=np.uint64))
    singles = [EpisodeParams(envs.param_space, envs.randomization) for _ in range(3)]
    rng = np.random.default_rng(0)
    first = True
    for _ in range(300):
        chosen = np.arange(3) if first else np.flatnonzero(rng.random(3) < 0.5)
        table.begin(chosen, {})
        for i in chosen.tolist():
            singles[i].begin(seed=5 + i if first else None, np_random_seed=5 + i, exact={})
        first = False
        for i, episode in enumerate(singles):
            assert episode.draw_index == table.index[i]
            assert dict(episode.current) == {name: float(v[i]) for name, v in table.params().items()}


def test_scattered_fields_read_and_write_in_place() -> None:
    blocks = [np.arange(24.0).reshape(4, 6) + 100 * i for i in range(5)]
    field = ScatteredField([block[1:, ::2] for block in blocks])
    out = np.zeros((5, 3, 3))
    field.read(out)
    np.testing.assert_array_equal(out, [block[1:, ::2] for block in blocks])
    field.write(7.0)
    assert all((block[1:, ::2] == 7).all() and (block[0] < 500).all() for block in blocks)
    assert blocks[2][0].tolist() == [200.0, 201.0, 202.0, 203.0, 204.0, 205.0]
    field.read_rows(out, np.array([1, 3]))
    assert (out[[1, 3]] == 7).all()
    assert (out[0] != 7).any()


@pytest.mark.parametrize("name", ["InvertedPendulum", "Ant"])
def test_every_sub_environment_is_drawn_as_it_is(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    envs = native(name, 2, render_mode="rgb_array", width=64, height=48)
    stock = envs.unwrapped._backend.stock
    # in place of OpenGL, which not every machine has: what the renderer would see
    monkeypatch.setattr(stock, "render", lambda: (stock.data.qpos.copy(), stock.model.geom_size.copy()))
    envs.reset(seed=1)
    envs.step(actions_of(envs))
    frames = envs.render()
    for i, (qpos, sizes) in enumerate(frames):
        np.testing.assert_array_equal(qpos, envs.unwrapped._backend.engine.qpos[i])
        if name == "InvertedPendulum":
            assert sizes[2, 1] == pytest.approx(0.3 * envs.params["body_length:pole"][i], rel=1e-4)
    nominal = envs.unwrapped.param_space["body_mass:pole" if name == "InvertedPendulum" else "body_mass:torso"].nominal
    envs.set_params({"gravity.z": -5.0})  # new fields start from nominal, not from what was drawn
    envs.reset()
    assert envs.unwrapped._backend.model_fields.nominal["body_mass"][2 if name == "InvertedPendulum" else 1] == nominal
    envs.close()


def test_play_is_refused_before_a_reset_and_where_episodes_end_otherwise() -> None:
    policy = SmallPolicy.allocate(
        sizes=[4, 2],
        tanh=True,
        kind=TWO_HEADS,
        low=np.full(1, -3.0, np.float32),
        high=np.full(1, 3.0, np.float32),
        floor=0.0,
        num_envs=2,
    )
    noise, steps = np.zeros((3, 2, 1), np.float32), Steps.allocate(3, 2, inputs=4, actions=1)
    steps.observations[0] = 0.0
    envs: Any = native("InvertedPendulum", 2)
    with pytest.raises(EnvStateError, match="reset"):
        envs.rollout(policy, noise, steps, 0, 3)
    envs.reset(seed=0)
    with pytest.raises(InvalidActionError, match="finite"):
        envs.rollout(policy, np.full_like(noise, np.nan), steps, 0, 3)
    assert envs.rollout(policy, noise, steps, 0, 3)[0] == 3
    other: Any = native("InvertedPendulum", 2, autoreset_mode=AutoresetMode.SAME_STEP)
    other.reset(seed=0)
    with pytest.raises(EnvStateError, match="NEXT_STEP"):
        other.rollout(policy, noise, steps, 0, 3)
