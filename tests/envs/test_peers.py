"""Gymnasium's own tests and wrappers on every vector environment of ours: what was tried, as a table that runs.

Rows are ``WRAPPERS``, columns ``KINDS`` (native, sync, ...) and ``AutoresetMode``; a cell says whether the wrapper is
expected to work there. Where it is not, the reason is Gymnasium's and stands in ``REFUSED``, or native observations are
flat, see ``INNER``. ``pytest -v`` on this file prints the table with what came out.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import vector as wrappers
from gymnasium.wrappers.vector.array_conversion import ArrayConversion
from gymnasium.wrappers.vector.numpy_to_torch import NumpyToTorch

import gym_dr
from gym_dr.testing.playing import interface

LANDER, HOPPER = "gym_dr/LunarLanderContinuousDR-v3", "gym_dr/HopperDR-v5"
NUM_ENVS, STEPS = 2, 30
PICTURES = 12  # steps where each is drawn: an episode, and the beginning of the next
MODES = list(AutoresetMode)


Inner = Sequence[Callable[[Any], Any]]


class LeavesOptions(gym.vector.VectorWrapper):  # type: ignore[type-arg]  # not generic before 1.4
    """Keeps Gymnasium's environments from removing the mask, which its RecordEpisodeStatistics reads afterwards."""

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        return self.env.reset(seed=seed, options=options and dict(options))


def make(kind: str, mode: AutoresetMode, env_id: str = LANDER, inner: Inner = (), **kwargs: Any) -> Any:
    """A vector environment of a kind, each of its sub-environments in the wrappers ``inner``; native ones have none."""
    kwargs = {"max_episode_steps": 10, **kwargs}
    if kind == "native":
        return gym.make_vec(env_id, NUM_ENVS, autoreset_mode=mode, **kwargs)
    modes = {"vectorization_mode": kind, "vector_kwargs": {"autoreset_mode": mode}}
    return gym.make_vec(env_id, NUM_ENVS, wrappers=inner, **modes, **kwargs)


KINDS = ["native", "sync", "async"]

# name -> how it is put around an environment
WRAPPERS: dict[str, Callable[[Any], Any]] = {
    "RecordEpisodeStatistics": wrappers.RecordEpisodeStatistics,
    "DictInfoToList": wrappers.DictInfoToList,
    "NormalizeObservation": wrappers.NormalizeObservation,
    "NormalizeReward": wrappers.NormalizeReward,
    "ClipReward": lambda envs: wrappers.ClipReward(envs, -1.0, 1.0),
    "TransformReward": lambda envs: wrappers.TransformReward(envs, lambda rewards: 2 * rewards),
    "VectorizeTransformReward": lambda envs: wrappers.VectorizeTransformReward(
        envs, gym.wrappers.TransformReward, func=lambda reward: 2 * reward
    ),
    "ClipAction": wrappers.ClipAction,
    "RescaleAction": lambda envs: wrappers.RescaleAction(envs, np.float32(-0.5), np.float32(0.5)),
    "TransformAction": lambda envs: wrappers.TransformAction(envs, lambda actions: actions / 2),
    "VectorizeTransformAction": lambda envs: wrappers.VectorizeTransformAction(envs, gym.wrappers.ClipAction),
    "FlattenObservation": wrappers.FlattenObservation,
    "ReshapeObservation": lambda envs: wrappers.ReshapeObservation(envs, (2, 4)),
    "RescaleObservation": lambda envs: wrappers.RescaleObservation(envs, np.float32(-1), np.float32(1)),
    "DtypeObservation": lambda envs: wrappers.DtypeObservation(envs, np.float64),
    "TransformObservation": lambda envs: wrappers.TransformObservation(
        envs,
        lambda observations: observations * 2,
        Box(-np.inf, np.inf, (NUM_ENVS, 8), np.float32),
        Box(-np.inf, np.inf, (8,), np.float32),
    ),
    "VectorizeTransformObservation": lambda envs: wrappers.VectorizeTransformObservation(
        envs, gym.wrappers.ReshapeObservation, shape=(4, 2)
    ),
    "ArrayConversion": lambda envs: ArrayConversion(envs, env_xp=np, target_xp=torch),
    "NumpyToTorch": NumpyToTorch,
    "FilterObservation": lambda envs: wrappers.FilterObservation(envs, ["state"]),
    "GrayscaleObservation": wrappers.GrayscaleObservation,
    "ResizeObservation": lambda envs: wrappers.ResizeObservation(envs, (40, 60)),
    "HumanRendering": wrappers.HumanRendering,  # on the dummy display of conftest.py
    "ResampleParams": lambda envs: gym_dr.ResampleParams(envs, rollout_steps=5),
    "RecordEpisodes": lambda envs: gym_dr.RecordEpisodes(envs, lambda record: None),
}
# RecordVideo has a test of its own below

# FilterObservation needs a Dict, the next two need pictures: another wrapper gives them to each sub-environment. Native
# environments have none that could be wrapped, and their observations are flat: they have no such cells.
PICTURE = gym.wrappers.AddRenderObservation
INNER: dict[str, Inner] = {
    "FilterObservation": [partial(PICTURE, render_only=False)],  # {"state": ..., "pixels": ...}
    "GrayscaleObservation": [PICTURE],
    "ResizeObservation": [PICTURE],
}
RENDERED = {*INNER, "HumanRendering"}

# What Gymnasium's wrappers cannot do around any vector environment, its own included: wrappers of observations refuse
# SAME_STEP, NormalizeObservation DISABLED too, and tensors cannot hold the object array ``final_obs``.
SAME, NOT_RESET = AutoresetMode.SAME_STEP, AutoresetMode.DISABLED
NO_MESSAGE = "^$"  # before 1.4 Gymnasium refuses by bare assertions
REFUSED = {(name, SAME) for name in WRAPPERS if name.endswith("Observation")} | {
    ("NormalizeObservation", NOT_RESET),
    ("ArrayConversion", SAME),
    ("NumpyToTorch", SAME),
}


def play(envs: Any, mode: AutoresetMode, steps: int = STEPS) -> list[Any]:
    """Some episodes; everything that came back."""
    rows = [envs.reset(seed=3)]
    for t in range(steps):
        actions: Any = np.full((NUM_ENVS, 2), np.sin(t), np.float32)
        if isinstance(rows[0][0], torch.Tensor):
            actions = torch.as_tensor(actions)
        rows.append(envs.step(actions))
        done = np.asarray(rows[-1][2]) | np.asarray(rows[-1][3])
        if mode == AutoresetMode.DISABLED and done.any():
            rows.append(envs.reset(options={"reset_mask": done}))
    return rows


def plain(value: Any) -> Any:
    """What can be compared with ``==``, of arrays and tensors of any depth with their types; without times."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items() if key != "t"}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, torch.Tensor):
        return ("tensor", plain(value.numpy()))
    if isinstance(value, np.ndarray):  # pictures are long, as lists
        content = plain(value.tolist()) if value.dtype == object else value.tobytes()
        return (str(value.dtype), value.shape, content)
    return value


# (wrapper, kind, mode) with worker processes; the others are slow
QUICK = {(name, "async", AutoresetMode.NEXT_STEP) for name in ("RecordEpisodeStatistics", "FilterObservation")}

NO_CV2 = importlib.util.find_spec("cv2") is None


def marks(name: str, kind: str, mode: AutoresetMode) -> list[pytest.MarkDecorator]:
    found = []
    if kind == "native":
        slow = name == "HumanRendering" and mode != AutoresetMode.NEXT_STEP  # the same pictures take long
    else:
        slow = (name, kind, mode) not in QUICK
    if slow:
        found.append(pytest.mark.slow)
    if name in ("ResizeObservation", "HumanRendering"):  # Gymnasium resizes pictures with OpenCV
        found.append(pytest.mark.skipif(NO_CV2, reason="opencv-python-headless is not installed"))
    return found


CELLS = [
    pytest.param(name, kind, mode, marks=marks(name, kind, mode), id=f"{name}-{kind}-{mode.value}")
    for name in WRAPPERS
    for kind in KINDS
    for mode in MODES
    if kind != "sync" and not (kind == "native" and name in INNER)
]


# DtypeObservation makes a float64 Box of float32 bounds; Gymnasium's Box compares these with the greatest float64, and
# that is infinite as a float32. Nothing is out of bounds there.
@pytest.mark.filterwarnings(r"ignore:overflow encountered in cast:RuntimeWarning:gymnasium\.spaces\.box")
@pytest.mark.parametrize(("name", "kind", "mode"), CELLS)
def test_every_wrapper_of_gymnasium_gives_the_same_as_around_a_sync_environment(
    name: str, kind: str, mode: AutoresetMode
) -> None:
    outcomes, steps = [], PICTURES if name in RENDERED else STEPS
    for which in (kind, "sync"):
        envs = make(which, mode, inner=INNER.get(name, ()), render_mode="rgb_array" if name in RENDERED else None)
        try:
            if (name, mode) in REFUSED:
                with pytest.raises(
                    (ValueError, BufferError, AssertionError), match=rf"autoreset_mode|DLPack|{NO_MESSAGE}"
                ):
                    play(WRAPPERS[name](envs), mode, steps)
            else:
                counted = name == "RecordEpisodeStatistics" and which != "native"
                envs = WRAPPERS[name](LeavesOptions(envs) if counted else envs)
                outcomes.append(plain(play(envs, mode, steps)))
        finally:
            envs.close()
    assert not outcomes or outcomes[0] == outcomes[1]


@pytest.mark.parametrize(
    "kind",
    ["native", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("sync", "async"))],  # both are Gymnasium's
)
def test_videos_are_recorded(kind: str, tmp_path: Path) -> None:
    envs = wrappers.RecordVideo(
        make(kind, AutoresetMode.NEXT_STEP, render_mode="rgb_array"), str(tmp_path / "videos"), video_length=5
    )
    play(envs, AutoresetMode.NEXT_STEP, PICTURES)
    envs.close()
    assert list(tmp_path.glob("videos/*.mp4"))


def checked(env_id: str) -> list[str]:
    """What Gymnasium's checker warns of; whatever else is a warning remains an error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", r".*WARN: .*Box (observation|action) space", UserWarning)
        warnings.filterwarnings("ignore", ".*different from the unwrapped version", UserWarning)
        check_env(interface(gym.make(env_id)), skip_render_check=True)
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize("env_id", ["gym_dr/LunarLanderDR-v3", LANDER, HOPPER, "gym_dr/InvertedPendulumDR-v5"])
def test_gymnasiums_checker_finds_nothing_new(env_id: str) -> None:
    if "Lander" in env_id:
        pytest.importorskip("Box2D")
    found, stock = (checked(name) for name in (env_id, env_id.removeprefix("gym_dr/").replace("DR", "")))
    assert found == stock  # of Hopper-v5 too it says that observations have no bounds
