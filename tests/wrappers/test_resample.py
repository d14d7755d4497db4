from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from gym_dr import AdaptParams, RecordEpisodes, ResampleParams
from gym_dr.errors import ConfigError, EnvStateError, RandomizationError
from gym_dr.randomization.sampler import draw

ENV_ID = "gym_dr/LunarLanderDR-v3"


def make(mode: str = "native", num_envs: int = 3, **kwargs: Any) -> Any:
    options = {"rollout_steps": 10, "every": 2} | {k: kwargs.pop(k) for k in list(kwargs) if k == "every"}
    if mode == "native":  # takes as its own keywords what Gymnasium's classes take as vector_kwargs
        return ResampleParams(gym.make_vec(ENV_ID, num_envs, **kwargs.pop("vector_kwargs", {}), **kwargs), **options)
    return ResampleParams(gym.make_vec(ENV_ID, num_envs, vectorization_mode=mode, **kwargs), **options)


def step(envs: Any, times: int) -> dict[str, Any]:
    info: dict[str, Any] = {}
    for _ in range(times):
        *_, info = envs.step(np.zeros(envs.num_envs, dtype=np.int64))
    return info


def test_draws_are_those_of_seed_and_draw_index() -> None:
    envs = make()
    envs.reset(seed=30)
    seeds = np.array([30, 31, 32], dtype=np.uint64)
    for index in range(4):
        expected = draw(envs.randomization, envs.param_space, seeds, index)
        assert all((envs.pending[name] == values).all() for name, values in expected.items())
        envs.resample()
    envs.close()


def test_pending_changes_after_every_times_rollout_steps() -> None:
    envs = make(every=2)  # 2 rollouts of 10 steps
    envs.reset(seed=1)
    first = envs.pending["gravity"]
    step(envs, 19)
    assert (envs.pending["gravity"] == first).all()
    step(envs, 1)
    second = envs.pending["gravity"]
    assert (second != first).all()
    step(envs, 20)
    assert (envs.pending["gravity"] != second).all()


def test_a_draw_takes_effect_at_each_sub_environments_next_reset() -> None:
    envs = make()
    _, info = envs.reset(seed=1)
    first = info["params"]["gravity"]
    envs.resample()
    pending = envs.pending["gravity"]
    seen_old_after_resample = False
    done = np.zeros(3, dtype=bool)
    resets = np.zeros(3, dtype=int)
    for _ in range(300):
        _, _, terminated, truncated, info = envs.step(np.zeros(3, dtype=np.int64))
        resets += done  # this step was the reset of those that were done
        done = terminated | truncated
        in_force = info["params"]["gravity"]
        assert (in_force[resets == 0] == first[resets == 0]).all()
        seen_old_after_resample |= bool((resets == 0).any())
        assert (in_force == envs.params["gravity"]).all()
        if (resets == 1).all():
            break
    assert seen_old_after_resample
    assert envs.draw_index.min() >= 1
    assert pending.shape == (3,)


def test_the_environments_own_draw_at_every_episode_is_off() -> None:
    envs = make(every=1000)
    _, info = envs.reset(seed=1)
    first = {name: values.copy() for name, values in info["params"].items()}
    for _ in range(3):
        _, info = envs.reset()
        assert all((info["params"][name] == values).all() for name, values in first.items())
        assert info["draw_index"].tolist() == [0, 0, 0]


def test_all_vector_environments_have_the_same_draws_and_episodes() -> None:
    traces = []
    for mode in ("sync", "async", "native"):
        envs = make(mode)
        rows = [envs.reset(seed=3)[0].tobytes()]
        for t in range(150):
            observations, rewards, _, _, info = envs.step((np.arange(3) + t // 9) % 4)
            gravity, index = info["params"]["gravity"], info["draw_index"]
            rows += [observations.tobytes(), rewards.tobytes(), gravity.tobytes(), index.tobytes()]
        traces.append(rows)
        envs.close()
    assert traces[0] == traces[1] == traces[2]


def test_two_around_one_environment_are_refused() -> None:
    with pytest.raises(RandomizationError, match="already has this wrapper"):
        ResampleParams(make(), rollout_steps=4)
    envs: Any = RecordEpisodes(make(), lambda record: None)
    with pytest.raises(RandomizationError, match="already has this wrapper"):
        ResampleParams(envs, rollout_steps=5)


def test_draws_that_a_sampler_learns_are_not_held() -> None:
    envs: Any = AdaptParams(gym.make_vec(ENV_ID, 2), "adr")
    with pytest.raises(
        RandomizationError, match="expected draws that never change, got those of a sampler that learns"
    ):
        ResampleParams(envs, rollout_steps=5)


def test_resample_with_a_mask_leaves_the_others_alone() -> None:
    envs = make()
    envs.reset(seed=1)
    before = envs.pending["gravity"]
    envs.resample(np.array([False, False, True]))
    assert (envs.pending["gravity"] == before).tolist() == [True, True, False]
    # their next draw is the one that they would have had anyway
    envs.resample(np.array([True, True, False]))
    everyone = make()
    everyone.reset(seed=1)
    everyone.resample()
    assert (envs.pending["gravity"] == everyone.pending["gravity"]).all()


@pytest.mark.parametrize("kind", ["sync", "native"])
def test_info_tells_this_wrappers_draw_index_in_every_autoreset_mode(kind: str) -> None:
    for mode in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP):
        envs = make(kind, vector_kwargs={"autoreset_mode": mode})
        _, info = envs.reset(seed=1)
        assert info["draw_index"].tolist() == [0, 0, 0]
        seeds = np.array([1, 2, 3], dtype=np.uint64)
        for _ in range(200):
            *_, info = envs.step(np.zeros(3, dtype=np.int64))
            for told in (info, info["final_info"]) if "final_info" in info else (info,):
                expected = draw(envs.randomization, envs.param_space, seeds, told["draw_index"])["gravity"]
                mask = told["_params"]
                assert (told["params"]["gravity"][mask] == expected[mask]).all()
        assert envs.draw_index.min() > 1


@pytest.mark.parametrize("kind", ["sync", "native"])
def test_disabled_autoreset_with_a_reset_mask_puts_the_pending_draw_in_force(kind: str) -> None:
    envs = make(kind, vector_kwargs={"autoreset_mode": AutoresetMode.DISABLED})
    envs.reset(seed=1)
    envs.resample()
    pending, in_force = envs.pending["gravity"], envs.params["gravity"]
    mask = np.array([False, True, False])
    options = {"reset_mask": mask}
    envs.reset(options=options)
    assert envs.params["gravity"].tolist() == [in_force[0], pending[1], in_force[2]]
    assert envs.draw_index.tolist() == [0, 1, 0]
    assert options == {"reset_mask": mask}  # the caller's mapping is left alone


def test_seeding_again_starts_draws_and_schedule_anew() -> None:
    envs = make()
    envs.reset(seed=1)
    first = envs.pending["gravity"]
    step(envs, 15)
    envs.resample()
    envs.reset(seed=1)
    assert (envs.pending["gravity"] == first).all()
    step(envs, 19)
    assert (envs.pending["gravity"] == first).all()


def test_without_a_seed_draws_differ_between_runs() -> None:
    one, two = make(), make()
    assert (one.reset()[1]["params"]["gravity"] != two.reset()[1]["params"]["gravity"]).any()


def test_sub_environments_that_are_first_reset_later_have_seeds_of_their_own() -> None:
    first, rest = np.array([True, False, False]), np.array([False, True, True])
    seen = []
    for _ in range(2):
        envs = make("native")  # Gymnasium's sync environment must reset all of them at first
        envs.reset(seed=[1, None, None], options={"reset_mask": first})
        envs.reset(options={"reset_mask": rest})
        assert (envs.params["gravity"] == envs.pending["gravity"]).all()
        envs.resample()
        seen.append(envs.pending["gravity"])
        assert len(np.unique(seen[-1])) == 3
    assert seen[0][0] == seen[1][0]
    assert (seen[0][1:] != seen[1][1:]).all()


def test_resample_before_reset_is_refused() -> None:
    with pytest.raises(EnvStateError, match=r"expected reset\(\) before resample"):
        make().resample()


@pytest.mark.parametrize("options", [{"rollout_steps": 0}, {"rollout_steps": 2.5}, {"rollout_steps": 8, "every": 0}])
def test_impossible_schedules_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="whole number above 0"):
        ResampleParams(gym.make_vec(ENV_ID, 2, vectorization_mode="sync"), **options)


def test_an_environment_without_parameters_is_refused() -> None:
    with pytest.raises(RandomizationError, match="randomized"):
        ResampleParams(gym.make_vec("CartPole-v1", 2, vectorization_mode="sync"), rollout_steps=4)


def test_without_rollout_steps_it_re_draws_by_hand_only() -> None:
    envs = ResampleParams(gym.make_vec(ENV_ID, 3, vectorization_mode="sync"), rollout_steps=None)
    envs.reset(seed=1)
    first = envs.pending["gravity"]
    step(envs, 150)
    assert (envs.pending["gravity"] == first).all()
    envs.resample()
    assert (envs.pending["gravity"] != first).all()
