"""TorchRL's wrapper and collector around our vector environments, as its users write it."""

from __future__ import annotations

import math
import runpy
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from gym_dr import DisturbVector, DrawContext, RecordEpisodes, ResampleParams
from gym_dr.envs.family import ENVIRONMENTS
from gym_dr.randomization.sampler import EpisodeRecord, draw
from gym_dr.wrappers.vector_params import VectorParams

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # TorchRL warns of its own classes
]

EXAMPLE = Path(__file__).parents[2] / "examples" / "torchrl_ppo.py"
DISABLED, SAME_STEP = AutoresetMode.DISABLED, AutoresetMode.SAME_STEP
NUM_ENVS, SEED, STEPS = 3, 7, 250  # two episodes at least; they never all end in the same step


def make(mode: str, autoreset: AutoresetMode, **kwargs: Any) -> Any:
    env_id, how = "gym_dr/LunarLanderDR-v3", {"autoreset_mode": autoreset}
    if mode == "native":
        return gym.make_vec(env_id, NUM_ENVS, **how, **kwargs)
    return VectorParams(gym.make_vec(env_id, NUM_ENVS, vectorization_mode=mode, vector_kwargs=how, **kwargs))


def wrap(envs: Any) -> Any:
    from torchrl.envs import GymWrapper

    env = GymWrapper(envs, categorical_action_encoding=True)
    env.set_seed(SEED)
    return env


def rollout(env: Any) -> Any:
    """A rollout over several episodes, by the same random actions at each call: ``(NUM_ENVS, STEPS)``."""
    import torch

    torch.manual_seed(SEED)
    found = env.rollout(STEPS, break_when_any_done=False)
    assert (found["next", "done"].sum(1) > 1).all()
    return found


@pytest.mark.parametrize("env_id", [*ENVIRONMENTS])
def test_its_own_constructor_takes_every_id(env_id: str) -> None:
    from torchrl.envs import GymEnv

    assert GymEnv(env_id).rollout(3)["next", "reward"].isfinite().all()


def test_the_example_trains() -> None:
    returns = runpy.run_path(str(EXAMPLE))["main"](3 * 4096)
    assert returns
    assert all(math.isfinite(value) for value in returns)


@pytest.mark.parametrize(("autoreset", "context"), [(DISABLED, "info"), (SAME_STEP, "hidden")])
def test_native_and_sync_environments_give_the_same_rollout(autoreset: AutoresetMode, context: str) -> None:
    from torchrl.envs import check_env_specs

    native, sync = (wrap(make(mode, autoreset, context=context)) for mode in ("native", "sync"))
    check_env_specs(native)
    native.set_seed(SEED)
    assert (rollout(native) == rollout(sync)).all()


def test_a_rollout_without_autoreset_is_the_one_with_it() -> None:
    left, right = (rollout(wrap(make("native", mode, context="hidden"))) for mode in (DISABLED, SAME_STEP))
    for key in left.keys(include_nested=True, leaves_only=True):
        np.testing.assert_array_equal(left[key], right[key], err_msg=str(key))


@pytest.mark.parametrize("mode", ["native", "sync"])
def test_values_of_the_draw_are_read_where_the_environment_waits_for_a_reset(mode: str) -> None:
    from torchrl.envs import default_info_dict_reader

    class ReadParams(default_info_dict_reader):  # type: ignore[misc]  # TorchRL may not be installed
        def __call__(self, info: Any, tensordict: Any) -> Any:
            return super().__call__(info["params"], tensordict)

    envs = make(mode, DISABLED)
    env = wrap(envs)
    env.set_info_dict_reader(ReadParams())
    env.set_seed(SEED)
    found = rollout(env)
    episodes = np.cumsum(found["next", "done"].squeeze(-1).numpy(), axis=1)[:, :-1]  # of all rows but the first
    for i in range(NUM_ENVS):
        seeds = np.full(STEPS - 1, SEED + i, np.uint64)
        # set_seed has used draw 0 up: it resets, and rollout resets again
        for name, expected in draw(envs.randomization, envs.param_space, seeds, episodes[i] + 1).items():
            np.testing.assert_array_equal(found[name][i, 1:], expected)


@pytest.mark.parametrize("mode", ["native", "sync"])
def test_same_step_needs_the_draw_hidden_from_info_and_gives_its_index(mode: str) -> None:
    with pytest.raises(RuntimeError, match="TensorDictPrimer"):
        wrap(make(mode, SAME_STEP))
    found = rollout(wrap(DrawContext(make(mode, SAME_STEP), "hidden")))
    ended = found["next", "done"].squeeze(-1)[:, :-1]
    steps = found["draw_index"][:, 1:] - found["draw_index"][:, :-1]
    assert (steps == ended).all()


def test_wrappers_work_below_a_collector() -> None:
    from torchrl.collectors import Collector

    records: list[EpisodeRecord] = []
    envs = ResampleParams(make("native", DISABLED), rollout_steps=STEPS)
    envs = RecordEpisodes(DisturbVector(envs, {"obs_noise": (0.0, 0.1)}), callback=records.append)
    env = wrap(DrawContext(envs, "observation", ["gravity", "obs_noise"]))
    frames = NUM_ENVS * STEPS
    for batch in Collector(env, None, frames_per_batch=frames, total_frames=2 * frames):
        assert batch["observation"].shape == (NUM_ENVS, STEPS, 8 + 2)
        assert (batch["observation"][..., 8:].abs() <= 1).all()
    assert {"gravity", "obs_noise"} <= records[0].params.keys()
    assert {record.draw_index for record in records} == {0, 1}
