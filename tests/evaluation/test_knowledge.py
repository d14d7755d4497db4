from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gym_dr.arrays import Array
from gym_dr.evaluation import cells, knowledge, policies
from gym_dr.evaluation.evaluate import evaluate_policies
from gym_dr.evaluation.knowledge import explained_shares, find_knowledge, known_before, missing_knowledge, summarized
from gym_dr.evaluation.policies import FrozenPolicy, open_policies
from gym_dr.evaluation.protocol import EVALUATION_SEED, play_batch
from gym_dr.evaluation.report import evaluation as report_evaluation
from gym_dr.evaluation.report.comparison import Comparison, group_policies
from gym_dr.evaluation.report.evaluation import complete_evaluation
from gym_dr.evaluation.report.memories import what_memories_know
from gym_dr.evaluation.report.style import SERIES
from gym_dr.evaluation.results import Evaluation
from gym_dr.runs.configure import open_run
from gym_dr.runs.environments import make_vector_env
from gym_dr.training.behavior import RememberingPolicy
from tests.cli.command import gymdr
from tests.evaluation.tiny_run import train_tiny_run

POLE, PENDULUM = "gym_dr/CartPoleDR-v1", "gym_dr/PendulumDR-v1"
MEMORY = ("--memory", "gru", "--memory-size", "6", "--sequence-length", "4")
VARIED = ("--randomize", "length=0.3:0.9", "--randomize", "obs_noise=0:0.1", "--randomize", "gravity=9")


# ---- shares: known answers


def test_a_memory_that_holds_the_draw_explains_all_of_it() -> None:
    rng = np.random.default_rng(0)
    draws = rng.uniform(2, 9, (200, 2))
    mixed = np.column_stack([draws, rng.normal(size=(200, 30))]) @ rng.normal(size=(32, 32)) + 1000.0
    np.testing.assert_allclose(explained_shares(mixed, draws), 1.0, atol=1e-5)


@pytest.mark.parametrize(("episodes", "size", "at_most"), [(512, 64, 0.02), (64, 64, 0.12), (64, 256, 0.12)])
def test_a_memory_of_noise_explains_nothing_however_large_it_is(episodes: int, size: int, at_most: float) -> None:
    rng = np.random.default_rng(1)
    found = [explained_shares(rng.normal(size=(episodes, size)), rng.normal(size=(episodes, 2))) for _ in range(50)]
    assert np.mean(found) < at_most / 4
    assert np.quantile(found, 0.95) < at_most


@pytest.mark.parametrize(("noise", "share"), [(0.5, 0.8), (1.0, 0.5), (3.0, 0.1)])
def test_of_a_noisy_signal_it_finds_the_share_of_the_variance_that_is_signal(noise: float, share: float) -> None:
    rng = np.random.default_rng(2)
    draws = rng.normal(size=(4000, 1))
    memory = np.column_stack([draws[:, 0] + noise * rng.normal(size=4000), rng.normal(size=(4000, 20))])
    np.testing.assert_allclose(explained_shares(memory, draws), share, atol=0.03)


@pytest.mark.parametrize("penalty", [1e-4, 1e-1, 1.0])
@pytest.mark.parametrize("size", [5, 59, 90])
def test_leaving_one_out_equals_fitting_again_without_it(
    penalty: float, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(knowledge, "_PENALTIES", np.array([penalty]))
    rng = np.random.default_rng(3)
    features, draws = rng.normal(3, 2, (60, size)), rng.uniform(size=(60, 2))
    draws[:, 0] += features[:, 0]
    scaled = (features - features.mean(0)) / features.std(0)
    errors, spreads = np.zeros(2), np.zeros(2)
    for i in range(60):
        others = np.arange(60) != i
        x, y = scaled[others], draws[others]
        center, mean = x.mean(0), y.mean(0)
        gram = (x - center).T @ (x - center) + 60 * penalty * np.eye(size)
        slopes = np.linalg.solve(gram, (x - center).T @ (y - mean))
        errors += (draws[i] - mean - (scaled[i] - center) @ slopes) ** 2
        spreads += (draws[i] - mean) ** 2
    np.testing.assert_allclose(explained_shares(features, draws), np.maximum(1 - errors / spreads, 0), atol=1e-9)


def test_shares_do_not_depend_on_units() -> None:
    rng = np.random.default_rng(4)
    features = rng.normal(size=(100, 5))
    draws = features[:, :2] + rng.normal(size=(100, 2))
    units = np.array([1e-6, 1.0, 1e6, -3.0, 2.0])
    found = explained_shares(features * units + 7 * units, 1e9 * draws - 5)
    np.testing.assert_allclose(found, explained_shares(features, draws), rtol=1e-6)


def test_what_is_the_same_in_all_episodes_explains_nothing_and_cannot_be_explained() -> None:
    rng = np.random.default_rng(5)
    varied = rng.normal(size=(100, 2))
    np.testing.assert_allclose(explained_shares(np.full((100, 3), 0.1), varied), 0.0, atol=1e-12)
    draws = rng.integers(0, 2, (100, 1)).astype(np.float64)
    last_digit = np.where(draws == 1, np.float32(0.7), np.nextafter(np.float32(0.7), np.float32(1))).astype(np.float64)
    np.testing.assert_allclose(explained_shares(last_digit, draws), 0.0, atol=1e-12)  # is rounding, not knowledge
    found = explained_shares(varied, np.column_stack([varied[:, 0], np.full(100, 3.0)]))
    assert found[0] > 0.99
    assert np.isnan(found[1])


def test_too_few_episodes_tell_nothing() -> None:
    rng = np.random.default_rng(6)
    draws = rng.normal(size=(knowledge.MIN_EPISODES, 2))
    assert explained_shares(draws, draws).min() > 0.99
    assert np.isnan(explained_shares(draws[1:], draws[1:])).all()
    assert np.isnan(explained_shares(draws[:0], draws[:0])).all()


# ---- policies whose memory is known


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    train_tiny_run(folder / "pole", "--env", POLE, *MEMORY, *VARIED)
    train_tiny_run(folder / "pendulum", "--env", PENDULUM, *MEMORY, "--randomize", "m=0.5:1.5")
    train_tiny_run(folder / "constant", "--env", POLE, *MEMORY, "--randomize", "gravity=9")
    train_tiny_run(folder / "memoryless", "--env", POLE, *VARIED)
    return folder


def opened(*paths: Path) -> list[FrozenPolicy]:
    return open_policies([open_run(str(path)) for path in paths])


class Clairvoyant(RememberingPolicy):
    """Remembers nothing for two steps, and the length of the pole from then on; moves at random."""

    memory_size = 2

    def __init__(self, envs: Any) -> None:
        self.envs, self.calls, self.rng = envs, 0, np.random.default_rng(0)

    def __call__(self, observations: Any, episode_starts: Any) -> Any:
        self.calls += 1
        return self.rng.integers(0, 2, len(observations))

    @property
    def state(self) -> Any:
        noise, length = self.rng.normal(size=len(self.envs.params["length"])), self.envs.params["length"]
        last_action = length  # must not count
        return np.column_stack([noise, length if self.calls > 2 else noise, last_action]).astype(np.float32)


def shares_of(entry: dict[str, Any], what: str) -> Array:
    return np.array(entry[what], np.float64)


def test_it_finds_what_a_policy_knows_from_the_step_on_at_which_it_knows_it(runs: Path) -> None:
    (policy,) = opened(runs / "pole")
    entry = find_knowledge(dataclasses.replace(policy, load=Clairvoyant))
    assert entry["parameters"] == ["length", "obs_noise"]  # a constant gravity is none
    assert entry["steps"][:5] == [1, 2, 4, 8, 16]
    enough = [alive >= knowledge.MIN_EPISODES for alive in entry["alive"]]
    found = shares_of(entry, "memory")
    np.testing.assert_allclose(found[enough, 0], [0, 0, *[1.0] * (sum(enough) - 2)], atol=0.05)
    assert np.nanmax(found[:, 1]) < 0.1
    assert np.isnan(found[np.logical_not(enough)]).all()
    assert json.loads(json.dumps(entry, allow_nan=False)) == entry


def test_episodes_count_at_a_step_only_while_they_go_on(runs: Path) -> None:
    (policy,) = opened(runs / "pole")
    clairvoyant = dataclasses.replace(policy, load=Clairvoyant)
    entry = find_knowledge(clairvoyant)
    assert policy.randomization is not None
    with_draws = cells.distribution("training", policy.randomization, knowledge.EPISODES)
    envs = policy.make_envs(with_draws)
    act: Any = Clairvoyant(envs)

    def acting(observations: Any, episode_starts: Any) -> Any:
        actions = act(observations, episode_starts)
        if act.calls.bit_count() == 1:
            act.state  # noqa: B018  draws as many random numbers
        return actions

    lengths = np.array([r.length for r in play_batch(acting, envs, envs.num_envs, EVALUATION_SEED)])
    envs.close()
    assert entry["alive"] == [int((lengths >= step).sum()) for step in entry["steps"]]
    assert entry["steps"][-1] <= lengths.max()
    assert entry["alive"][0] == knowledge.EPISODES


def test_in_batches_it_finds_the_same_as_all_at_once(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (policy,) = opened(runs / "pendulum")
    monkeypatch.setattr(knowledge, "EPISODES", 120)
    whole = find_knowledge(policy)
    monkeypatch.setattr(policies, "NATIVE_ENVS", 50)  # the last batch has 20 episodes
    parts = find_knowledge(policy)
    assert parts["alive"] == whole["alive"] == [120] * 8
    for what in ("memory", "observation"):
        np.testing.assert_allclose(shares_of(parts, what), shares_of(whole, what), atol=1e-3)


def test_environments_in_python_tell_the_same(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train_tiny_run(runs / "lagging", "--env", PENDULUM, *MEMORY, "--randomize", "action_delay=integer:0:4")
    (policy,) = opened(runs / "lagging")
    monkeypatch.setattr(knowledge, "EPISODES", 60)
    native = find_knowledge(policy)
    monkeypatch.setattr(policies, "make_vector_env", lambda env, n, _, rules: make_vector_env(env, n, "sync", rules))
    monkeypatch.setattr(policies, "NATIVE_ENVS", 25)
    found = find_knowledge(policy)
    assert found["parameters"] == ["action_delay"]
    assert found["alive"] == native["alive"]
    np.testing.assert_allclose(shares_of(found, "memory"), shares_of(native, "memory"), atol=0.05)


def test_even_an_untrained_memory_knows_more_than_the_observation(runs: Path) -> None:
    """It holds several observations, and how fast a pole turns says how long it is."""
    (policy,) = opened(runs / "pole")
    entry = find_knowledge(policy)
    memory, observation = shares_of(entry, "memory")[:, 0], shares_of(entry, "observation")[:, 0]
    best = np.nanargmax(memory)
    assert memory[best] > 0.1
    assert memory[best] > 2 * observation[best]


def test_only_policies_with_memory_whose_draws_vary_are_asked(runs: Path) -> None:
    found = opened(runs / "pole", runs / "constant", runs / "memoryless")
    assert [policy.name for policy in missing_knowledge(found, [])] == ["pole"]
    assert missing_knowledge(found, [{"policy": "pole"}]) == []


def test_a_table_has_the_best_known_parameters_first() -> None:
    nan = None
    entry = {
        "parameters": ["a", "b", "c"],
        "steps": [1, 2, 4],
        "memory": [[0.1, 0.4, nan], [0.2, 0.9, nan], [0.3, 0.8, nan]],
        "observation": [[0.0, 0.1, nan], [0.0, 0.2, nan], [0.05, 0.3, nan]],
    }
    early, rows = summarized(entry)
    assert early == 4  # the last one before 16
    assert [row[0] for row in rows] == ["b", "a", "c"]
    assert rows[0][1:] == (0.8, 0.9, 2, 0.2)
    assert rows[1][1:] == (0.3, 0.3, 4, 0.05)
    assert np.isnan(rows[2][1:3]).all()


# ---- in an evaluation


def play(policies: list[FrozenPolicy], folder: Path, **options: Any) -> Evaluation:
    return evaluate_policies(policies, [cells.nominal(2)], folder, memories=True, **options)


@pytest.fixture(scope="module")
def evaluated(runs: Path) -> Evaluation:
    return play(opened(runs / "pole", runs / "memoryless"), runs / "out")


def test_an_evaluation_has_a_row_for_each_parameter_and_step(evaluated: Evaluation) -> None:
    for found in (evaluated, Evaluation.load(evaluated.folder)):
        table = found.knowledge
        assert set(table["policy"]) == {"pole"}
        assert set(table["parameter"]) == {"length", "obs_noise"}
        assert table["step"].tolist()[:3] == [1, 2, 4]
        assert table["episodes"].max() == knowledge.EPISODES
        assert table[["memory", "observation"]].max().max() <= 1.0
        assert table.loc[table["episodes"] < knowledge.MIN_EPISODES, "memory"].isna().all()


def refuse(*args: Any) -> Any:
    raise AssertionError("asked again")


def test_a_memory_is_asked_once_whatever_its_folder_is_called(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = play(opened(runs / "pole"), tmp_path / "out").document["knowledge"]
    monkeypatch.setattr("gym_dr.evaluation.evaluate.find_knowledge", refuse)
    assert play(opened(runs / "pole"), tmp_path / "out").document["knowledge"] == before
    (policy,) = opened(runs / "pole")
    renamed = dataclasses.replace(policy, name="renamed")
    assert play([renamed], tmp_path / "out").document["knowledge"] == [{**before[0], "policy": "renamed"}]
    trained_further = dataclasses.replace(policy, name="renamed", digest="other")
    with pytest.raises(AssertionError, match="asked again"):
        play([trained_further], tmp_path / "out")


def test_entries_are_found_again_in_a_file_whatever_the_draws(runs: Path, tmp_path: Path) -> None:
    """Two copies of a run are two policies, and a file has neither infinities nor tuples."""
    rules = ("--randomize", "obs_noise=normal:0:0.1:0:inf", "--randomize", "length=choice:0.3,0.6,0.9")
    found = opened(*(train_tiny_run(tmp_path / name, "--env", POLE, *MEMORY, *rules) for name in "ab"))
    before = play(found, tmp_path / "out").document
    written = json.loads((tmp_path / "out" / "evaluation.json").read_text())
    assert [entry["policy"] for entry in known_before(written, before)] == ["a", "b"]
    assert known_before(written, before) == before["knowledge"]
    assert known_before(None, before) == []


def test_stopped_while_memories_are_asked_it_goes_on_to_the_same_result(evaluated: Evaluation, tmp_path: Path) -> None:
    found = opened(*evaluated.runs)

    def stop(title: str, done: int, total: int) -> None:
        assert done <= total == 4
        if title == "what the memory of pole knows":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play(found, tmp_path / "out", progress=stop)
    assert play(found, tmp_path / "out").document["knowledge"] == evaluated.document["knowledge"]


def without_knowledge(folder: Path) -> None:
    """Makes an evaluation one that version 0.2 could have written."""
    document = json.loads((folder / "evaluation.json").read_text())
    del document["knowledge"]
    (folder / "evaluation.json").write_text(json.dumps(document))


def test_evaluations_of_before_can_be_read_and_are_completed(runs: Path, tmp_path: Path) -> None:
    found = opened(runs / "pole")
    after = play(found, tmp_path / "out").document["knowledge"]
    without_knowledge(tmp_path / "out")
    old = Evaluation.load(tmp_path / "out")
    assert old.knowledge.empty
    assert list(old.knowledge) == ["policy", "parameter", "step", "episodes", "memory", "observation"]
    assert what_memories_know(Comparison(groups=group_policies(found), evaluation=old)).views == []
    assert play(found, tmp_path / "out").document["knowledge"] == after


@pytest.fixture
def few_points(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("EPISODES", 2), ("POINTS", 4), ("POINT_EPISODES", 1)):
        monkeypatch.setattr(report_evaluation, name, value)


def test_only_a_report_asks_and_its_evaluation_keeps_the_answer(runs: Path, tmp_path: Path, few_points: None) -> None:
    found, folder = opened(runs / "pole"), tmp_path / "out"
    assert evaluate_policies(found, [cells.nominal(2)], folder).document["knowledge"] == []
    completed = complete_evaluation(found, folder, "", lambda title, done, total: None)
    assert [entry["policy"] for entry in completed.document["knowledge"]] == ["pole"]
    assert complete_evaluation(found, folder, "", refuse).document == Evaluation.load(folder).document
    kept = evaluate_policies(found, [cells.nominal(2)], folder).document
    assert kept["knowledge"] == completed.document["knowledge"]
    without_knowledge(folder)  # nothing else is missing
    again = complete_evaluation(found, folder, "", lambda title, done, total: None)
    assert again.document["knowledge"] == completed.document["knowledge"]


def test_a_command_prints_what_the_memory_knows(runs: Path, tmp_path: Path) -> None:
    assert "memory" not in gymdr("evaluate", runs / "pole", "--episodes", "2", "--output", tmp_path / "out").out
    play(opened(runs / "pole"), tmp_path / "out")
    lines = gymdr("evaluate", runs / "pole", "--episodes", "2", "--output", tmp_path / "out").out.splitlines()
    head = "pole: share of a parameter's variance that its memory explains (512 episodes, leave-one-out)"
    start = lines.index(head)
    assert " ".join(lines[start + 1].split()) == "parameter at step 16 at its best the observation alone then"
    assert {line.split()[0] for line in lines[start + 2 : start + 4]} == {"length", "obs_noise"}


# ---- in a report


def comparison(evaluation: Evaluation, policies: list[FrozenPolicy]) -> Comparison:
    return Comparison(groups=group_policies(policies), evaluation=evaluation)


def test_a_report_draws_memory_solid_and_the_observation_dashed(evaluated: Evaluation) -> None:
    section = what_memories_know(comparison(evaluated, opened(*evaluated.runs)))
    assert [view.name for view in section.views] == ["pole"]  # the other remembers nothing
    (panel,) = section.views[0].panels
    assert [(trace.line.dash, trace.showlegend) for trace in panel.figure.data] == [
        ("solid", True),
        ("dash", False),
    ] * 2
    table = evaluated.knowledge
    for trace in panel.figure.data:
        rows = table[table["parameter"] == trace.name]
        assert list(trace.x) == rows["step"].tolist()
        np.testing.assert_array_equal(
            np.array(trace.y, np.float64), rows["memory" if trace.line.dash == "solid" else "observation"]
        )
    assert panel.figure.layout.xaxis.type == "log"
    assert section.how_to_read.startswith("512 episodes with training draws")


def entries_of(names: list[str], shares: Callable[[int], float], policy: str) -> dict[str, Any]:
    row = [shares(k) for k in range(len(names))]
    head = {"policy": policy, "parameters": names, "episodes": 512, "steps": [1, 2], "alive": [512, 512]}
    return {**head, "memory": [row, row], "observation": [row, row]}


def test_more_parameters_than_colors_are_in_several_plots_the_best_known_first(evaluated: Evaluation) -> None:
    names = [f"p{k}" for k in range(len(SERIES) + 2)]
    document = {**evaluated.document, "knowledge": [entries_of(names, lambda k: k / 10, "pole")]}
    found = Evaluation(evaluated.folder, document, evaluated.episodes)
    first, second = what_memories_know(comparison(found, opened(*evaluated.runs))).views[0].panels
    assert [trace.name for trace in (*first.figure.data[::2], *second.figure.data[::2])] == names[::-1]
    assert len(first.figure.data) == 2 * len(SERIES)


def test_lines_of_several_seeds_are_their_mean(tmp_path: Path, few_points: None) -> None:
    seeds = [train_tiny_run(tmp_path / f"seed-{s}", "--env", POLE, *MEMORY, *VARIED, "--seed", str(s)) for s in (1, 2)]
    found = opened(*seeds)
    evaluation = play(found, tmp_path / "out")
    section = what_memories_know(comparison(evaluation, found))
    one, two = (shares_of(entry, "memory") for entry in evaluation.document["knowledge"])
    count = min(len(one), len(two))
    mean = (one[:count] + two[:count]) / 2
    (panel,) = section.views[0].panels
    column = evaluation.document["knowledge"][0]["parameters"].index(panel.figure.data[0].name)
    np.testing.assert_allclose(np.array(panel.figure.data[0].y, np.float64), mean[:, column])
    assert section.how_to_read.endswith("Lines are means over seeds.")
