"""Policies of Stable-Baselines3 and sb3-contrib that remember or observe the draw act here as in their own package."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gym_dr.errors import CheckpointError, ConfigError
from gym_dr.evaluation import suite
from gym_dr.evaluation.results import Evaluation
from gym_dr.policies.frozen import Draws, FrozenPolicy, drive
from gym_dr.policies.open import open_policies
from gym_dr.randomization.presets import resolve
from gym_dr.runs.environments import param_space_of
from tests.cli.command import gymdr
from tests.policies.opened import evaluate as evaluated

pytest.importorskip("sb3_contrib")

from sb3_contrib import RecurrentPPO
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecFrameStack, VecNormalize

from gym_dr.integrations.sb3 import make_vec_env

pytestmark = pytest.mark.integration

# its mean actions change with all that a policy sees; a choice would hide most of it
LANDER, POLE = "gym_dr/LunarLanderContinuousDR-v3", "gym_dr/CartPoleDR-v1"
GRAVITY = {"gravity": (-11.5, -5.0), "lander_density": (4.0, 6.0)}
N, SEED, STEPS = 4, 3, 400  # an episode of these policies takes about 100 steps


@dataclasses.dataclass(frozen=True)
class Case:
    """How a policy was trained, and what is said of that when it is evaluated."""

    wrappers: tuple[str, ...] = ()  # "frames" and "normal", the innermost first
    algorithm: Any = PPO
    shown: dict[str, Any] = dataclasses.field(default_factory=dict)  # ``context`` of the environments

    def wrap(self, venv: Any, statistics: Path | None = None) -> Any:
        """The wrappers around environments, with saved statistics if there are any."""
        for name in self.wrappers:
            if name == "frames":
                venv = VecFrameStack(venv, 3)
            elif statistics is None:
                venv = VecNormalize(venv)
            else:
                venv = VecNormalize.load(str(statistics), venv)
                venv.training = False
        return venv


SHOWN = {"context": "observation"}
CASES = {
    "plain": Case(),
    "shown": Case(shown=SHOWN),
    "one_shown": Case(shown={**SHOWN, "context_params": {"lander_density": (3.0, 9.0)}}),
    "stacked": Case(("frames",)),
    "stacked_normal": Case(("frames", "normal")),
    "normal_stacked": Case(("normal", "frames")),
    "recurrent": Case(algorithm=RecurrentPPO),
    "everything": Case(("normal", "frames"), RecurrentPPO, SHOWN),
}


def environments(case: Case, count: int, seed: int) -> Any:
    return make_vec_env(LANDER, count, seed=seed, env_kwargs={"randomization": GRAVITY, **case.shown})


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of policies that were trained for a few steps, with their statistics."""
    folder = tmp_path_factory.mktemp("saved")
    for name, case in CASES.items():
        recurrent = case.algorithm is RecurrentPPO
        kwargs = {"net_arch": [8], **({"lstm_hidden_size": 6} if recurrent else {})}
        policy = "MlpLstmPolicy" if recurrent else "MlpPolicy"
        venv = case.wrap(environments(case, 2, 1))
        model = case.algorithm(policy, venv, n_steps=64, batch_size=32, seed=1, policy_kwargs=kwargs).learn(256)
        model.save(folder / f"{name}.zip")
        if statistics := model.get_vec_normalize_env():
            statistics.save(str(folder / f"{name}_vecnormalize.pkl"))
    return folder


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def options(saved: Path, name: str) -> dict[str, Any]:
    given = {"env": LANDER, "randomization": GRAVITY, **CASES[name].shown}
    return {**given, "trust": [str(path) for path in saved.glob(f"{name}*")]}


def opened(saved: Path, name: str, **others: Any) -> FrozenPolicy:
    (policy,) = open_policies(f"sb3:{saved / name}.zip", **{**options(saved, name), **others})
    return policy


class Taken(gym.vector.VectorWrapper):
    """Notes the actions of each sub-environment, but not those at an episode's end, which reset steps ignore."""

    def __init__(self, envs: Any) -> None:
        super().__init__(envs)
        self.actions: list[list[Any]] = [[] for _ in range(envs.num_envs)]
        self.episodes = np.zeros(envs.num_envs, np.int64)
        self._ended = np.zeros(envs.num_envs, np.bool_)

    def step(self, actions: Any) -> Any:
        for i in np.flatnonzero(~self._ended):
            self.actions[i].append(actions[i].copy())
        found = self.env.step(actions)
        self._ended = found[2] | found[3]
        self.episodes += self._ended
        return found


def ours(policy: FrozenPolicy) -> Taken:
    """The actions of our evaluation."""
    space = param_space_of(LANDER)
    assert space is not None
    taken = Taken(policy.make_envs(Draws(randomization=resolve(GRAVITY, space), episodes=N)))
    steps = drive(policy.make(taken), taken, seed=SEED)
    for _ in range(STEPS + 1):
        next(steps)
    taken.close()
    return taken


def theirs(saved: Path, name: str) -> list[list[Any]]:
    """The actions of the loop that Stable-Baselines3's documentation shows, on the same episodes."""
    case = CASES[name]
    venv = case.wrap(environments(case, N, SEED), saved / f"{name}_vecnormalize.pkl")
    model = case.algorithm.load(saved / f"{name}.zip", device="cpu")
    observations, states, starts = venv.reset(), None, np.ones(N, np.bool_)
    actions: list[list[Any]] = [[] for _ in range(N)]
    for _ in range(STEPS):
        chosen, states = model.predict(observations, state=states, episode_start=starts, deterministic=True)
        for i in range(N):
            actions[i].append(chosen[i].copy())
        observations, _, starts, _ = venv.step(chosen)
    venv.close()
    return actions


@pytest.mark.parametrize("name", CASES)
def test_actions_are_those_of_its_own_package_on_the_same_episodes(saved: Path, name: str) -> None:
    found, expected = ours(opened(saved, name)), theirs(saved, name)
    assert (found.episodes >= 2).all()  # so that its memory was cleared in between
    for mine, other in zip(found.actions, expected, strict=True):
        np.testing.assert_array_equal(np.array(mine), np.array(other)[: len(mine)])


def evaluate(saved: Path, name: str, **others: Any) -> Evaluation:
    return evaluated(f"sb3:{saved / name}.zip", **{"episodes": 2, **options(saved, name), **others})


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("plain", {"algorithm": "PPO"}),
        (
            "everything",
            {
                "algorithm": "RecurrentPPO",
                "frames": 3,
                "context": {"gravity": [-11.5, -5.0], "lander_density": [4.0, 6.0]},
                "statistics": "everything_vecnormalize.pkl",
            },
        ),
    ],
)
def test_what_a_policy_sees_is_recorded(saved: Path, name: str, expected: dict[str, Any]) -> None:
    (entry,) = evaluate(saved, name).document["policies"]
    got = {key: entry.get(key) for key in ("algorithm", "frames", "context", "statistics")}
    assert {key: value for key, value in got.items() if value is not None} == expected


def test_commands_take_them_all(saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("REPORT_EPISODES", 2), ("REPORT_POINTS", 2), ("POINT_EPISODES", 2)):
        monkeypatch.setattr(suite, name, value)
    (tmp_path / "gravity.toml").write_text("gravity = [-11.5, -5.0]\nlander_density = [4.0, 6.0]\n")
    trust = [part for path in options(saved, "everything")["trust"] for part in ("--trust", path)]
    file = ["--policy", f"sb3:{saved}/everything.zip", "--env", LANDER, *trust]
    given = [*file, "--randomization", "gravity.toml", "--context", "observation"]
    evaluated = gymdr("evaluate", *given, "--episodes", "2", "--grid", "gravity=-11:-6:2")
    assert evaluated.code == 0, evaluated.err
    reported = gymdr("report", *given)
    assert reported.code == 0, reported.err
    page = Path("report.html").read_text()
    assert "frames 3" in page
    assert "observes gravity from -11.5 to -5" in page
    monkeypatch.setattr("gym_dr.policies.play._picture", lambda envs: np.zeros((16, 16, 3), np.uint8))
    played = gymdr("play", *given, "--episodes", "2", "--video", "flight.gif")
    assert played.code == 0, played.err
    assert "gravity -" in played.out


# what is refused


def refusal(saved: Path, name: str, **others: Any) -> str:
    with pytest.raises((ConfigError, CheckpointError)) as refused:
        evaluate(saved, name, **others)
    return str(refused.value)


def test_a_missing_package_of_a_file_is_named_with_the_extra_that_has_it(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "sb3_contrib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sb3_contrib", None)
    assert "needs the package 'sb3_contrib', which is not installed: pip install 'gym-dr[sb3]'" in refusal(
        saved, "recurrent"
    )


def test_a_policy_that_observes_the_draw_says_how_to_show_it(saved: Path) -> None:
    message = refusal(saved, "shown", context="info")
    assert "of shape (10,). If it was trained with context='observation', add `context='observation'`, and" in message
    message = refusal(saved, "plain", context="observation")
    assert "of shape (8,). Of the 10 numbers of an observation, 2 are parameters: was it trained with others" in message


def test_as_many_parameters_as_observations_are_no_frames(saved: Path, tmp_path: Path) -> None:
    """CartPole has four numbers; shown four parameters it has eight, as two frames have."""
    four = ["force_mag", "gravity", "length", "masscart"]
    venv = make_vec_env(POLE, 2, env_kwargs={"context": "observation", "context_params": four})
    PPO("MlpPolicy", venv, n_steps=16, batch_size=16, policy_kwargs={"net_arch": [8]}).save(tmp_path / "pole.zip")
    given = {"env": POLE, "trust": ["pole.zip"], "progress": False, "episodes": 2}
    with pytest.raises(CheckpointError, match=r"2 times as many numbers, but without the bounds that VecFrameStack"):
        evaluated("sb3:pole.zip", **given)
    found = evaluated("sb3:pole.zip", **given, randomization="default", context="observation", context_params=four)
    assert "frames" not in found.document["policies"][0]


def test_statistics_of_neither_order_are_refused(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "stacked.zip").write_bytes((saved / "stacked.zip").read_bytes())
    other = VecNormalize(VecFrameStack(environments(CASES["plain"], 1, 1), 2))  # 16 numbers: neither 8 nor 24
    other.save(str(tmp_path / "vecnormalize.pkl"))
    with pytest.raises(ConfigError, match=r"is beside stacked\.zip, which was trained without VecNormalize"):
        evaluate(tmp_path, "stacked")
    (tmp_path / "stacked_normal.zip").write_bytes((saved / "stacked_normal.zip").read_bytes())
    other.save(str(tmp_path / "stacked_normal_vecnormalize.pkl"))
    with pytest.raises(CheckpointError, match=r"expected statistics of observations of shape \(24,\), got \(16,\)"):
        evaluate(tmp_path, "stacked_normal")
