"""Stable-Baselines3's own algorithms, wrappers and helpers on our vector environments."""

from __future__ import annotations

import importlib
import runpy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
import pytest
import torch
from gymnasium.envs.registration import load_env_creator
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import TimeAwareObservation

import gym_dr
from gym_dr.errors import ConfigError
from gym_dr.wrappers.vector_params import VectorParams
from tests.pages import ROOT, blocks, run_program

pytest.importorskip("stable_baselines3")

from stable_baselines3 import A2C, PPO, SAC
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.env_util import make_vec_env as make_dummy
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor, load_results
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize, VecVideoRecorder

from gym_dr.integrations.sb3 import GymnasiumVecEnv, make_vec_env

pytestmark = pytest.mark.integration

LANDER, CONTINUOUS, HOPPER = "gym_dr/LunarLanderDR-v3", "gym_dr/LunarLanderContinuousDR-v3", "gym_dr/HopperDR-v5"
SAME_STEP, DISABLED, NEXT_STEP = AutoresetMode.SAME_STEP, AutoresetMode.DISABLED, AutoresetMode.NEXT_STEP
EXAMPLES = Path(__file__).parents[2] / "examples"
N, SEED, LIMIT = 3, 7, 80  # the limit truncates some episodes, the ground ends others
GRAVITY = {"gravity": (-11.5, -5)}


def make(mode: str = "native", autoreset: AutoresetMode = SAME_STEP, env_id: str = LANDER, **kwargs: Any) -> Any:
    if mode == "native":
        return gym.make_vec(env_id, N, autoreset_mode=autoreset, **kwargs)
    vector = {"autoreset_mode": autoreset}
    return gym.make_vec(env_id, N, vectorization_mode=mode, vector_kwargs=vector, **kwargs)


def actions_of(venv: Any, steps: int) -> list[npt.NDArray[Any]]:
    rng = np.random.default_rng(1)
    if isinstance(venv.action_space, gym.spaces.Discrete):
        return list(rng.integers(0, venv.action_space.n, (steps, venv.num_envs)))
    return list(rng.uniform(-1, 1, (steps, venv.num_envs, *venv.action_space.shape)).astype(np.float32))


def ended(infos: list[dict[str, Any]], dones: npt.NDArray[np.bool_]) -> list[dict[str, Any]]:
    return [infos[i] for i in np.flatnonzero(dones)]


def assert_same(ours: Any, theirs: Any, close: float = 0.0) -> None:
    """Equal, or within ``close``; wall times are left out."""
    if isinstance(theirs, dict):
        assert set(ours) == set(theirs)
        for key in set(theirs) - {"t"}:
            assert_same(ours[key], theirs[key], close)
    elif close:
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=close)
    else:
        assert np.array_equal(ours, theirs)


def assert_same_episodes(ours: Any, theirs: Any, steps: int = 200, close: float = 0.0) -> int:
    """Plays both, from a seed and then on from where they are; returns how many episodes have ended."""
    count = 0
    for _ in range(2):
        assert_same(ours.reset(), theirs.reset(), close)
        for i in range(theirs.num_envs):
            assert_same(ours.reset_infos[i], theirs.reset_infos[i], close)
        for actions in actions_of(theirs, steps):
            (*arrays, infos), (*expected, their_infos) = ours.step(actions), theirs.step(actions)
            for ours_array, their_array in zip(arrays, expected, strict=True):
                assert_same(ours_array, their_array, close)
                assert ours_array.dtype == their_array.dtype
            for i, done in enumerate(expected[2]):
                if done:
                    assert_same(infos[i], their_infos[i], close)
                    assert_same(ours.reset_infos[i], theirs.reset_infos[i], close)
                    count += 1
                else:
                    draw = {key: their_infos[i][key] for key in ("params", "draw_index") if key in their_infos[i]}
                    assert_same({**infos[i], **draw}, their_infos[i], close)
    return count


# ---- the same episodes as DummyVecEnv --------------------------------------------------------------------------------


@pytest.mark.parametrize("env_id", [LANDER, CONTINUOUS])
def test_native_landers_play_the_episodes_of_dummy_vec_env_bit_for_bit(env_id: str) -> None:
    kwargs = {"max_episode_steps": LIMIT}
    ours, theirs = (f(env_id, N, seed=SEED, env_kwargs=kwargs) for f in (make_vec_env, make_dummy))
    assert isinstance(ours, GymnasiumVecEnv)
    assert isinstance(theirs, DummyVecEnv)
    assert assert_same_episodes(ours, theirs) > 2 * N


@pytest.mark.parametrize(
    ("mode", "autoreset"),
    [("native", DISABLED), ("sync", SAME_STEP), ("sync", DISABLED), ("async", SAME_STEP)],
)
def test_any_vector_environment_plays_the_episodes_of_dummy_vec_env(mode: str, autoreset: AutoresetMode) -> None:
    ours = GymnasiumVecEnv(make(mode, autoreset, max_episode_steps=LIMIT))
    theirs = make_dummy(LANDER, N, seed=SEED, env_kwargs={"max_episode_steps": LIMIT})
    ours.seed(SEED)
    assert assert_same_episodes(ours, theirs, steps=100) >= N
    ours.close()


def test_native_mujoco_plays_the_episodes_of_dummy_vec_env_to_1e_6() -> None:
    ours, theirs = (f(HOPPER, N, seed=SEED) for f in (make_vec_env, make_dummy))
    assert assert_same_episodes(ours, theirs, steps=60, close=1e-6) > N


def test_a2c_learns_the_same_weights_as_on_dummy_vec_env() -> None:
    weights = []
    for function in (make_vec_env, make_dummy):
        envs = function(LANDER, N, env_kwargs={"max_episode_steps": LIMIT})
        model = A2C("MlpPolicy", envs, seed=SEED, device="cpu").learn(1500)
        weights.append(torch.nn.utils.parameters_to_vector(model.policy.parameters()).detach())
    assert torch.equal(*weights)


# ---- algorithms ------------------------------------------------------------------------------------------------------


def test_ppo_learns_with_all_wrappers_below() -> None:
    records: list[gym_dr.EpisodeRecord] = []
    envs = gym_dr.ResampleParams(make(randomization=GRAVITY, max_episode_steps=40), rollout_steps=32, every=2)
    envs = gym_dr.DisturbVector(envs, {"obs_noise": (0, 0.1), "action_delay": gym_dr.Integer(0, 2)})
    venv = GymnasiumVecEnv(gym_dr.DrawContext(gym_dr.RecordEpisodes(envs, records.append), "observation"))
    assert venv.observation_space.shape == (8 + 3,)  # gravity, noise and delay
    model = PPO("MlpPolicy", venv, seed=SEED, n_steps=128, batch_size=64, n_epochs=2, device="cpu")
    model.learn(128 * N)
    assert len(records) >= 3 * N
    drawn = [{r.params["gravity"] for r in records if r.env_index == i} for i in range(N)]
    assert all(1 < len(values) < len(records) / N for values in drawn)  # re-drawn, but not every episode
    assert [e["r"] for e in model.ep_info_buffer] == pytest.approx([r.episode_return for r in records], abs=1e-6)
    venv.close()


def test_sac_learns_on_mujoco_and_goes_on_from_its_file(tmp_path: Path) -> None:
    envs = make_vec_env(HOPPER, N, env_kwargs={"randomization": {"body_mass:torso": gym_dr.Scale((0.8, 1.2))}})
    small = {"net_arch": [16, 16]}
    model = SAC("MlpPolicy", envs, seed=SEED, learning_starts=50, batch_size=16, policy_kwargs=small, device="cpu")
    model.learn(120)
    model.save(tmp_path / "model")
    loaded = SAC.load(tmp_path / "model", env=envs, device="cpu")
    observations = envs.reset()
    assert np.array_equal(*(m.predict(observations, deterministic=True)[0] for m in (model, loaded)))
    before = loaded.num_timesteps
    assert loaded.learn(60, reset_num_timesteps=False).num_timesteps >= before + 60


def test_evaluation_and_normalization_work_and_statistics_are_shared(tmp_path: Path) -> None:
    train, evaluate = (VecNormalize(make_vec_env(LANDER, N, seed=s), training=s == 0) for s in (0, 100))
    callback = EvalCallback(evaluate, n_eval_episodes=4, eval_freq=64, best_model_save_path=str(tmp_path), verbose=0)
    model = PPO("MlpPolicy", train, seed=SEED, n_steps=64, batch_size=64, n_epochs=1, device="cpu")
    model.learn(128 * N, callback=callback)
    assert (tmp_path / "best_model.zip").exists()
    assert np.array_equal(evaluate.obs_rms.mean, train.obs_rms.mean)
    train.save(str(tmp_path / "statistics.pkl"))
    loaded = VecNormalize.load(str(tmp_path / "statistics.pkl"), make_vec_env(LANDER, N))
    assert np.array_equal(loaded.obs_rms.mean, train.obs_rms.mean)
    returns, lengths = evaluate_policy(model, evaluate, n_eval_episodes=5, return_episode_rewards=True)
    assert len(returns) == len(lengths) == 5
    assert min(returns) < -10  # of the environment itself, not those that VecNormalize has scaled


# ---- attributes, methods, seeds, options -----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["native", "sync"])
def test_parameters_are_read_and_fixed_by_index(mode: str) -> None:
    venv = GymnasiumVecEnv(make(mode, randomization=GRAVITY))
    venv.seed(SEED)
    venv.reset()
    before = venv.get_attr("params")
    assert [p["gravity"] for p in before] == [info["params"]["gravity"] for info in venv.reset_infos]
    assert venv.get_attr("draw_index", indices=[2, 0]) == [0, 0]
    assert venv.get_attr("params", indices=1) == [before[1]]
    venv.env_method("set_params", {"gravity": -7.5}, indices=[0, 2])
    venv.env_method("set_params", {"gravity": -6.5}, indices=1)
    assert venv.get_attr("params") == before  # until the next episode
    venv.reset()
    assert [p["gravity"] for p in venv.get_attr("params")] == [-7.5, -6.5, -7.5]
    assert venv.get_attr("render_mode") == [None] * N
    assert venv.get_attr("observation_space") == [venv.observation_space] * N
    assert [list(r) for r in venv.get_attr("randomization")] == [["gravity"]] * N


def test_what_all_share_is_set_for_all_only() -> None:
    envs = gym_dr.ResampleParams(make(randomization=GRAVITY), rollout_steps=32)
    venv = GymnasiumVecEnv(envs)
    venv.set_attr("interval", 64)
    assert envs.interval == 64
    venv.set_attr("params", {"gravity": -8.0}, indices=[1])  # by set_params
    assert np.array_equal(np.isnan(envs.pinned["gravity"]), [True, False, True])
    venv.reset()
    venv.env_method("resample", indices=[0])
    assert -12.0 < venv.get_attr("pending")[0]["gravity"] < -2.0
    assert venv.get_attr("params")[1]["gravity"] == -8.0
    with pytest.raises(ConfigError, match="all sub-environments share"):
        venv.set_attr("interval", 32, indices=[0])
    for method, indices in (("render", [0]), ("reset", None)):
        with pytest.raises(ConfigError, match="at once"):
            venv.env_method(method, indices=indices)


@pytest.mark.parametrize("mode", ["native", "sync", "async"])
def test_an_unknown_attribute_is_named_and_harms_nothing(mode: str) -> None:
    venv = GymnasiumVecEnv(make(mode))
    assert not venv.has_attr("gravitation")
    with pytest.raises(AttributeError, match="'gravitation'"):
        venv.get_attr("gravitation")
    assert venv.reset().shape == (N, 8)
    venv.close()


def test_attributes_of_sub_environments_are_set_by_index() -> None:
    venv = GymnasiumVecEnv(make("sync", env_id="CartPole-v1"))
    venv.set_attr("length", 0.7, indices=[1])
    assert venv.get_attr("length") == [0.5, 0.7, 0.5]
    assert venv.env_method("has_wrapper_attr", "length", indices=[2]) == [True]
    processes = GymnasiumVecEnv(make("async"))
    assert processes.env_method("has_wrapper_attr", "params") == [True] * N
    with pytest.raises(ConfigError, match="at once"):
        processes.env_method("has_wrapper_attr", "params", indices=[0])
    processes.close()


def test_wrappers_are_found_around_sub_environments_and_around_all() -> None:
    native = GymnasiumVecEnv(VectorParams(make("sync")))
    assert native.env_is_wrapped(VectorParams, indices=[0, 1]) == [True, True]
    assert native.env_is_wrapped(gym.wrappers.TimeLimit) == [True] * N
    assert native.env_is_wrapped(TimeAwareObservation) == [False] * N
    assert make_vec_env(LANDER, N).env_is_wrapped(Monitor, indices=0) == [True]
    assert make_vec_env(LANDER, N).env_is_wrapped(gym.wrappers.TimeLimit) == [False] * N


def test_a_seed_takes_effect_at_the_next_reset_and_once() -> None:
    venv = make_vec_env(LANDER, N, seed=SEED)
    assert venv.get_attr("np_random_seed") == [None] * N
    first = venv.reset()
    assert venv.get_attr("np_random_seed") == [SEED, SEED + 1, SEED + 2]
    assert not np.array_equal(venv.reset(), first)
    assert list(venv.seed(SEED)) == [SEED, SEED + 1, SEED + 2]
    assert np.array_equal(venv.reset(), first)


@pytest.mark.parametrize("mode", ["native", "sync"])
def test_options_take_effect_at_the_next_reset(mode: str) -> None:
    envs = make(mode, randomization=GRAVITY)
    venv = GymnasiumVecEnv(VectorParams(envs) if mode == "sync" else envs)
    venv.seed(SEED)
    venv.set_options({"params": {"gravity": -6.0}})
    venv.reset()
    assert [info["params"]["gravity"] for info in venv.reset_infos] == [-6.0] * N
    venv.reset()  # options count once; this is the second draw
    drawn = [info["params"]["gravity"] for info in venv.reset_infos]
    assert len({-6.0, *drawn}) == N + 1

    venv.set_options({"params": {"gravity": [-7.0, -6.0, -8.0]}})
    venv.reset()
    assert [info["params"]["gravity"] for info in venv.reset_infos] == [-7.0, -6.0, -8.0]
    venv.set_options([{"params": {"gravity": -7.0}}, {}, {}])
    with pytest.raises(ConfigError, match="same options for all"):
        venv.reset()


# ---- pictures and files ----------------------------------------------------------------------------------------------


def test_frames_are_drawn_tiled_and_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    venv = make_vec_env(LANDER, N, seed=SEED)
    venv.reset()
    assert [image.shape for image in venv.get_images()] == [(400, 600, 3)] * N
    assert venv.render().shape == (2 * 400, 2 * 600, 3)  # three frames in a square
    recorder = VecVideoRecorder(venv, str(tmp_path), lambda step: step == 0, video_length=3)
    assert recorder.frames_per_sec == 50
    recorder.reset()
    for actions in actions_of(venv, 5):
        recorder.step(actions)
    recorder.close()
    assert (tmp_path / "rl-video-step-0-to-step-3.mp4").stat().st_size > 1000
    with pytest.warns(UserWarning, match="render_mode"):
        assert GymnasiumVecEnv(make()).render() is None


@pytest.mark.filterwarnings("ignore:The inplace keyword:DeprecationWarning")  # of load_results, by pandas
def test_monitor_files_hold_what_dummy_vec_env_writes(tmp_path: Path) -> None:
    keywords = {"info_keywords": ("draw_index",)}
    tables = []
    for function in (make_vec_env, make_dummy):
        folder = str(tmp_path / function.__module__)
        envs = function(LANDER, N, seed=SEED, start_index=4, monitor_dir=folder, monitor_kwargs=keywords)
        envs.reset()
        for actions in actions_of(envs, 150):
            envs.step(actions)
        envs.close()
        assert sorted(p.name for p in Path(folder).iterdir()) == [f"{rank}.monitor.csv" for rank in (4, 5, 6)]
        tables.append(load_results(folder).drop(columns="t").sort_values(["r"], ignore_index=True))
    assert len(tables[0]) > N
    assert tables[0].equals(tables[1])


# ---- refusals --------------------------------------------------------------------------------------------------------


def test_what_stable_baselines_cannot_learn_from_is_refused() -> None:
    with pytest.raises(ConfigError, match="autoreset_mode='SameStep'"):
        GymnasiumVecEnv(make("native", NEXT_STEP))
    with pytest.raises(ConfigError, match="vector environment"):
        GymnasiumVecEnv(gym.make(LANDER))


@pytest.mark.parametrize(
    "arguments",
    [
        {"wrapper_class": TimeAwareObservation},
        {"vec_env_cls": DummyVecEnv},
        {"monitor_kwargs": {"allow_early_resets": False}},
    ],
    ids=lambda arguments: next(iter(arguments)),
)
def test_what_needs_single_environments_gets_them_with_a_warning(arguments: dict[str, Any]) -> None:
    with pytest.warns(UserWarning, match=f"{next(iter(arguments))} needs single environments"):
        venv = make_vec_env(LANDER, N, seed=SEED, **arguments)
    assert isinstance(venv, DummyVecEnv)
    venv.reset()
    assert venv.env_is_wrapped(TimeAwareObservation) == ["wrapper_class" in arguments] * N


@pytest.fixture
def variant() -> Iterator[Callable[..., str]]:
    def register(**changes: Any) -> str:
        ours = gym.spec(LANDER)
        given = {"entry_point": ours.entry_point, "vector_entry_point": ours.vector_entry_point, **changes}
        gym.register("test/Moon-v0", kwargs={"gravity": -1.6}, max_episode_steps=7, **given)
        return "test/Moon-v0"

    yield register
    gym.registry.pop("test/Moon-v0", None)


def test_a_variant_that_a_user_registers_is_native(variant: Callable[..., str]) -> None:
    envs = make_vec_env(variant(), N, seed=SEED)
    assert isinstance(envs, GymnasiumVecEnv)
    envs.reset()
    assert [row["gravity"] for row in envs.get_attr("params")] == [-1.6] * N
    for _ in range(7):
        dones = envs.step(np.zeros(N, np.int64))[2]
    assert dones.all()


@pytest.mark.parametrize("single", [str, load_env_creator])
def test_a_variant_that_has_only_single_environments_is_warned_of(variant: Callable[..., str], single: Any) -> None:
    env_id = variant(vector_entry_point=None, entry_point=single(gym.spec(LANDER).entry_point))
    with pytest.warns(UserWarning, match="vector_entry_point="):
        assert isinstance(make_vec_env(env_id, N), DummyVecEnv)


def test_the_module_before_an_id_is_imported_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = f"import gymnasium as gym\nours = gym.spec({LANDER!r})\nentry = ours.entry_point, ours.vector_entry_point\n"
    lines += "gym.register('test/Own-v0', entry_point=entry[0], vector_entry_point=entry[1])\n"
    (tmp_path / "own_moon.py").write_text(lines)
    monkeypatch.syspath_prepend(tmp_path)
    assert isinstance(make_vec_env("own_moon:test/Own-v0", N), GymnasiumVecEnv)
    gym.registry.pop("test/Own-v0")


def test_other_ids_and_constructors_are_left_to_stable_baselines() -> None:
    for env in ("CartPole-v1", lambda **kwargs: gym.make(LANDER, **kwargs)):
        assert isinstance(make_vec_env(env, N, seed=SEED), DummyVecEnv)
    assert isinstance(make_vec_env(f"gym_dr:{LANDER}", N), GymnasiumVecEnv)


def test_without_stable_baselines_the_import_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "gym_dr.integrations.sb3")
    for name in [name for name in sys.modules if name.startswith("stable_baselines3")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'gym-dr\[sb3\]'"):
        importlib.import_module("gym_dr.integrations.sb3")


def test_the_example_of_draws_that_learn_trains_and_evaluates(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["sb3_adapt.py", "20000"])
    runpy.run_path(str(EXAMPLES / "sb3_adapt.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert any(
        "% of 112 episodes succeeded" in line and line.endswith("the sampler waits") for line in lines
    )  # of 16 environments
    assert lines[-1].startswith("Return over 100 draws of the whole box: ")


def test_the_example_trains_evaluates_and_says_what_was_drawn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example = EXAMPLES / "sb3_ppo.py"
    assert len(example.read_text().splitlines()) <= 40
    monkeypatch.setattr(sys, "argv", ["sb3_ppo.py", "100"])
    runpy.run_path(str(example), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert lines[-3].startswith("Return over 100 draws: ")
    assert lines[-2].startswith("Worst: ")
    assert "gravity" in lines[-1]


def test_the_first_page_trains_and_evaluates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (script,) = blocks(ROOT / "docs" / "index.md", "py")
    exec(script, {"gym_dr": gym_dr})
    assert (tmp_path / "sb3" / "evaluation.json").exists()


def test_the_tutorial_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_program(ROOT / "docs" / "tutorials" / "stable_baselines3.md")
    assert (tmp_path / "ppo.zip").exists()
