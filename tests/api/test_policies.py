"""``gym_dr.evaluate`` and ``report`` with policies that are no runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gym_dr
from gym_dr.envs.box2d.lunar_lander.params import LUNAR_LANDER
from gym_dr.errors import ConfigError
from gym_dr.evaluation import suite
from gym_dr.evaluation.results import Evaluation
from gym_dr.evaluation.tables import number
from gym_dr.randomization.presets import resolve
from tests.policies import opened, own_policies
from tests.policies.own_policies import brake, coast
from tests.policies.tiny_run import train_tiny_run

LANDER = "gym_dr/LunarLanderDR-v3"
MODULE = "tests.policies.own_policies"
BRAKE = f"{MODULE}:brake"


def evaluate(policies: Any, sets: Any = (), **options: Any) -> Evaluation:
    return opened.evaluate(policies, sets, **{"env": LANDER, "episodes": 2, **options})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_tiny_run(
        tmp_path_factory.mktemp("runs") / "first", "--updates", "50", "--randomize", "gravity=uniform:-11:-9"
    )


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_callable_is_evaluated_in_a_folder_of_its_name(tmp_path: Path) -> None:
    found = evaluate(brake, sets=[gym_dr.grid(gravity=(-11, -3, 3))])
    assert found.folder == Path("brake-evaluation")
    assert [cells.name for cells in found.sets] == ["nominal", "default", "grid"]
    (entry,) = found.document["policies"]
    kept = ("name", "kind", "path", "algorithm", "actions", "trained_on", "ranges")
    assert [entry[key] for key in kept] == ["brake", "callable", None, None, None, "unknown", {}]


def test_an_evaluation_is_short_as_text_and_tables_in_a_notebook() -> None:
    found = evaluate(
        {"brakes": brake, "rests": coast}, sets=[gym_dr.grid(gravity=(-11, -3, 3))], output="out", success=200
    )
    assert repr(found) == f"Evaluation('out': brakes, rests on {LANDER}, 20 episodes of nominal, default, grid)"
    shown = found._repr_html_()
    assert "<caption>grid: 3 cells of 2 episodes</caption>" in shown
    assert f'<th scope="row">brakes</th><td>{number(found.returns("grid")[0].mean())}<br>' in shown


def test_runs_and_others_meet_the_same_draws_and_are_compared(run: Path) -> None:
    found = evaluate([run, brake, f"slow={BRAKE}"], env=None, trust=[MODULE], output="both")
    assert found.policies == ["first", "brake", "slow"]
    assert [cells.name for cells in found.sets] == ["nominal", "training"]  # of the run
    one, other, again = (found.episodes[found.episodes["policy"] == name] for name in found.policies)
    for column in ("seed", "gravity"):
        assert one[column].tolist() == other[column].tolist()
    assert other["return"].tolist() == again["return"].tolist()
    assert [row["policy"] for row in found.document["differences"]] == ["first", "first"] * 2
    to_first = [row["statistics"]["mean"] for row in found.document["differences"]]
    assert to_first[::2] == to_first[1::2]


def test_what_a_policy_was_trained_on_is_the_users_to_say() -> None:
    found = evaluate(coast, randomization={"gravity": (-11, -9), "enable_wind": False}, sets=[gym_dr.sobol(4)])
    assert {cells.name: cells.num_cells for cells in found.sets} == {"nominal": 1, "training": 1, "sobol": 12}
    (entry,) = found.document["policies"]
    assert (entry["name"], entry["trained_on"], entry["ranges"]["gravity"]) == ("Coast", "own", [-11.0, -9.0])


# what is played again, and what is not


def episodes_played(policies: Any, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many episodes an evaluation into the same folder plays."""
    counted: list[int] = []

    def count(self: object, title: str, done: int, total: int) -> None:
        counted.append(done)

    with monkeypatch.context() as patch:
        patch.setattr("gym_dr.runs.terminal.Progress.__call__", count)
        evaluate(policies, trust=[MODULE], output="out")
    return counted[-1] - counted[0] if counted else 0


@pytest.mark.parametrize("policy", [brake, BRAKE], ids=["callable", "function"])
def test_a_function_is_played_each_time(policy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [episodes_played(policy, monkeypatch) for _ in range(2)] == [4, 4]


# policies that remember, or observe the draw


def test_a_policy_that_remembers_forgets_at_the_start_of_each_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    def count(observations: Any, episode_starts: Any) -> Any:
        nonlocal steps
        steps = np.zeros(len(observations)) if episode_starts.all() else np.where(episode_starts, 0, steps + 1)
        return np.where(steps % 4 == 3, 2, 0)

    steps = np.zeros(0)
    returns = []
    for size in (6, 4, 1):  # sub-environments
        monkeypatch.setattr("gym_dr.policies.frozen.NATIVE_ENVS", size)
        returns.append(evaluate(count, episodes=6, output=f"{size}", randomization="none").returns("nominal").tolist())
    assert returns[0] == returns[1] == returns[2]
    assert len(set(returns[0][0][0])) > 1


def seen_by(monkeypatch: pytest.MonkeyPatch, **options: Any) -> Any:
    """What a policy observes at its first call in an evaluation on a grid of gravity, shape (6, ...)."""
    seen: list[Any] = []

    def look(observations: Any) -> Any:
        seen.append(observations)
        return np.zeros(len(observations), np.int64)

    evaluate(look, episodes=2, output="out", sets=[gym_dr.grid(gravity=(-12, -8, 3))], **options)
    return next(rows for rows in seen if len(rows) == 6)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"context_params": {"gravity": (-12.0, -4.0)}}, [[-1], [-0.5], [0]]),
        # beyond what it was trained on it sees the nearest end
        ({"randomization": {"gravity": (-11, -9)}}, [[-1], [0], [1]]),
        ({"randomization": "wide", "context_params": {"gravity": (-12, -8), "wind_power": None}}, None),
    ],
)
def test_a_policy_observes_what_its_environments_showed(
    monkeypatch: pytest.MonkeyPatch, options: Any, expected: Any
) -> None:
    rows = seen_by(monkeypatch, context="observation", **options)[::2, 8:]
    if expected is None:  # wind power, nominal 15, between the ends of "wide"
        low, high = resolve("wide", LUNAR_LANDER)["wind_power"].support(15.0)
        other = 2 * (15.0 - low) / (high - low) - 1
        expected = [[gravity, pytest.approx(other, abs=1e-6)] for gravity in (-1, 0, 1)]
    assert rows.tolist() == expected


def test_ranges_are_recorded_and_other_ranges_are_another_policy() -> None:
    found = [
        evaluate(f"{MODULE}:show", trust=[MODULE], context="observation", context_params=ranges, output=place)
        for place, ranges in (("a", {"gravity": (-12, -8)}), ("b", {"gravity": (-12, -7)}))
    ]
    entries = [one.document["policies"][0] for one in found]
    assert [entry["context"] for entry in entries] == [{"gravity": [-12.0, -8.0]}, {"gravity": [-12.0, -7.0]}]
    assert entries[0]["digest"] != entries[1]["digest"]


# what is refused


@pytest.mark.parametrize(
    ("policies", "options", "message"),
    [
        (BRAKE, {}, rf"importing {MODULE} runs its code. If you trust it: `trust=\['{MODULE}'\]`"),
        (BRAKE, {"trust": ["tests"]}, "If you trust it"),
        ("no_such_module:act", {"trust": ["no_such_module"]}, "cannot be imported: ModuleNotFoundError"),
        (f"{MODULE}:limit", {"trust": [MODULE]}, "expected a function, got 3"),
        (object(), {}, "Expected a policy: a run, a callable"),
        ([], {}, "Expected a run or a policy"),
        (brake, {"env": None}, "Expected `env`: only runs and files of"),
        ([brake, brake], {"output": "out"}, "Two policies are named 'brake'"),
        ([brake, coast], {}, "Expected `output` for"),
        (brake, {"stochastic": True}, "`stochastic` is for runs and policies of Stable-Baselines3"),
        (brake, {"env": "CartPole-v1", "sets": [gym_dr.sobol(4)]}, "CartPole-v1 has no parameters to vary"),
        (brake, {"context": "observation"}, "`context='observation'`: what a policy observes is scaled by the ranges"),
        (brake, {"context": "observation", "context_params": ["gravity"]}, "Give its training randomization"),
        (brake, {"context_params": ["gravity"]}, "Expected .*context_params.* with .*context='observation'.* only"),
        (lambda a, b, c: a, {}, r"policy 'lambda': expected a function \(observations\) or \(observations, episode_st"),
        (lambda observations: observations @ np.ones(9), {}, "policy 'lambda': fails on gym_dr/LunarLanderDR-v3"),
    ],
)
def test_what_cannot_be_evaluated_is_refused_before_it_is_played(policies: Any, options: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        evaluate(policies, **options)
    assert not list(Path().iterdir())


def test_an_environment_that_is_not_the_runs_is_refused(run: Path) -> None:
    with pytest.raises(ConfigError, match=r"first: was trained on gym_dr/LunarLanderDR-v3, not on CartPole-v1"):
        evaluate([run, brake], env="CartPole-v1", output="out")
    with pytest.raises(ConfigError, match="`randomization` is for policies that are not runs"):
        gym_dr.open_policy(run, randomization="wide")
    with pytest.raises(ConfigError, match="`context` is for policies that do not record"):
        evaluate(run, env=None, context="observation")


# pages


@pytest.fixture
def few_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("REPORT_EPISODES", 2), ("REPORT_POINTS", 2), ("POINT_EPISODES", 2)):
        monkeypatch.setattr(suite, name, value)


def test_a_page_of_runs_and_others_says_what_the_others_lack(run: Path, few_episodes: None) -> None:
    page = gym_dr.report([run, brake, own_policies.pulse], env=LANDER, output="both.html", progress=False)
    text = page.read_text()
    assert "Robustness of 3 policies" in text
    assert "policy &#39;brake&#39; (kind callable). It was trained elsewhere" in text
    assert Path("both-evaluation/evaluation.json").is_file()
