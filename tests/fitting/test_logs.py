"""Logs of episodes: what is read, what is refused, and how they fit an environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from gymnasium.spaces import Box, Dict, Discrete

from gym_dr.errors import LogError
from gym_dr.fitting.log_checks import check_log
from gym_dr.fitting.logs import read_log

STEPS = 6


def parts(steps: int = STEPS, **changes: Any) -> dict[str, Any]:
    """What an archive of one episode holds: 3 numbers in each observation, 2 in each action."""
    rng = np.random.default_rng(steps)
    found = {"observations": rng.normal(size=(steps + 1, 3)), "actions": rng.uniform(-1, 1, (steps, 2))}
    return {**found, **changes}


def refusal(source: Any) -> str:
    with pytest.raises(LogError) as refused:
        read_log(source)
    return str(refused.value)


# ---- reading ----


def test_an_archive_is_one_episode(tmp_path: Path) -> None:
    saved = parts(time=np.arange(STEPS + 1.0), qpos=np.zeros((STEPS + 1, 2), np.float32), **{"params/gravity": -9.5})
    np.savez(tmp_path / "flight.npz", **saved)
    (episode,) = read_log(str(tmp_path / "flight.npz"))
    np.testing.assert_array_equal(episode.observations, saved["observations"])
    np.testing.assert_array_equal(episode.actions, saved["actions"])
    assert episode.time is not None
    assert episode.time.tolist() == list(range(STEPS + 1))
    assert episode.others["params/gravity"] == -9.5
    assert episode.others["qpos"].dtype == np.float32
    assert (len(episode), episode.source) == (STEPS, str(tmp_path / "flight.npz"))


def test_a_folder_of_archives_is_read_in_the_order_of_names(tmp_path: Path) -> None:
    for name, steps in (("b.npz", 3), ("a.NPZ", 2), ("c.npz", 4)):
        with open(tmp_path / name, "wb") as file:
            np.savez_compressed(file, **parts(steps))
    (tmp_path / "README.md").write_text("of May")
    (tmp_path / ".hidden").write_text("")
    assert [len(episode) for episode in read_log(tmp_path)] == [2, 3, 4]


def test_mappings_episodes_and_lists_of_all_forms_are_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **parts())
    first = read_log(parts(qpos=np.zeros(2), rewards=[0.0] * STEPS))[0]
    assert set(first.others) == {"qpos", "rewards"}
    found = read_log([first, parts(2), [tmp_path / "a.npz"], np.load(tmp_path / "a.npz")])
    assert [len(episode) for episode in found] == [STEPS, 2, STEPS, STEPS]
    assert found[0].others.keys() == first.others.keys()


def test_an_observation_that_is_nan_was_not_measured() -> None:
    (episode,) = read_log(parts(observations=NAN))
    np.testing.assert_array_equal(episode.observations, NAN)


def test_whole_numbers_and_float32_are_read_as_int64_and_float64() -> None:
    given = parts(actions=np.array([0, 1, 2, 3, 0, 1], np.uint8))
    (episode,) = read_log({**given, "observations": given["observations"].astype(np.float32)})
    assert (episode.observations.dtype, episode.actions.dtype) == (np.float64, np.int64)


def test_reading_leaves_the_users_arrays_alone() -> None:
    given = parts()
    (episode,) = read_log(given)
    episode.observations[:] = 0.0
    assert given["observations"].any()


INFINITE = np.array([[0.0, 0.0, 0.0]] * STEPS + [[0.0, np.inf, 0.0]])
NAN = np.array([[0.0, 0.0, 0.0]] * STEPS + [[0.0, np.nan, 0.0]])

BAD: dict[str, tuple[Any, str]] = {
    "nothing": ([], "Expected a log of at least one episode, got an empty list."),
    "no log": (3.5, "Expected a log: an .npz file, a folder of .npz files, a pandas DataFrame"),
    "no actions": ({"observations": np.zeros((3, 1))}, "got no actions: observations"),
    "one dimension": (parts(observations=np.zeros(7)), "shape (T + 1, n), or values[:, None] if each is a single"),
    "pictures": (parts(observations=np.zeros((7, 8, 8))), "observations: expected shape (T + 1, n), got (7, 8, 8)"),
    "wide actions": (parts(actions=np.zeros((6, 1, 1))), "actions: expected shape (T, m), or (T,) for discrete"),
    "no steps": (parts(observations=np.zeros((1, 3)), actions=np.zeros((0, 2))), "got 1 observations and 0 actions"),
    "equal lengths": (parts(actions=np.zeros((7, 2))), "leave out the last action; if after it, put"),
    "other lengths": (parts(actions=np.zeros((4, 2))), "got 7 observations and 4 actions."),
    "infinity": (parts(observations=INFINITE), "expected finite numbers, got inf in row 6"),
    "objects": (parts(actions=np.array([{}] * STEPS)), "actions: expected numbers, got Python objects"),
    "ragged": (parts(actions=[[0.0], [0.0, 1.0]] * 3), "actions: expected an array of numbers, got"),
    "time of the steps": (parts(time=np.arange(STEPS)), "time: expected shape (7,), one for each observation"),
    "time that repeats": (parts(time=[0, 1, 2, 2, 3, 4, 5]), "got 2 s in row 2 and 2 s in row 3"),
    "time that is nan": (parts(time=[0, 1, 2, np.nan, 3, 4, 5]), "time: expected finite numbers, got nan in row 3"),
    "other objects": (parts(note={"a": object()}), "note: expected numbers or texts, got object"),
}


@pytest.mark.parametrize(("source", "message"), BAD.values(), ids=BAD)
def test_a_bad_log_is_refused_with_the_reason(source: Any, message: str) -> None:
    assert message in refusal(source)


def test_messages_name_the_episode_and_the_file(tmp_path: Path) -> None:
    assert refusal([parts(), parts(observations=INFINITE)]).startswith("episode 1: observations: ")
    np.savez(tmp_path / "a.npz", **parts())
    np.savez(tmp_path / "b.npz", **parts(observations=INFINITE))
    assert refusal(tmp_path).startswith(f"{tmp_path / 'b.npz'}: observations: ")


# ---- tables ----


def table(**changes: Any) -> pd.DataFrame:
    """Two episodes of two steps and one step; the last action of each is missing."""
    columns = {
        "episode": [0, 0, 0, 1, 1],
        "time": [0.0, 0.1, 0.2, 0.0, 0.1],
        "observation_0": [1.0, 2.0, 3.0, 4.0, 5.0],
        "observation_1": [0.1, 0.2, 0.3, 0.4, 0.5],
        "action": [0.0, 1.0, np.nan, 1.0, np.nan],
        "current": [1, 1, 1, 2, 2],
        "motor": ["a", "a", "a", "b", "b"],
    }
    return pd.DataFrame({name: values for name, values in {**columns, **changes}.items() if values is not None})


def test_a_table_has_a_row_for_each_observation_and_the_action_after_it() -> None:
    first, second = read_log(table())
    assert first.observations.tolist() == [[1.0, 0.1], [2.0, 0.2], [3.0, 0.3]]
    assert (first.actions.tolist(), second.actions.tolist()) == ([[0.0], [1.0]], [[1.0]])
    assert second.time is not None
    assert second.time.tolist() == [0.0, 0.1]
    assert {name: values.tolist() for name, values in second.others.items()} == {"current": [2.0, 2.0]}
    assert (first.source, second.source) == ("the table, episode 0", "the table, episode 1")


def test_a_table_without_episodes_is_one() -> None:
    given = table(episode=None, time=None, action=None, action_0=[0, 1, 2, 3, 4], action_1=[0.5] * 5)
    (episode,) = read_log(given)
    assert episode.actions.tolist() == [[0.0, 0.5], [1.0, 0.5], [2.0, 0.5], [3.0, 0.5]]
    assert episode.source == "the table"


def test_columns_are_taken_in_the_order_of_their_numbers() -> None:
    given = pd.DataFrame({f"observation_{i}": [i, i] for i in (10, 2, *range(2), *range(3, 10))} | {"action": [1, 1]})
    assert read_log(given)[0].observations[0].tolist() == list(range(11))


def test_nullable_and_whole_columns_are_numbers() -> None:
    given = table(action=pd.array([0, 1, None, 1, None], dtype="Int64"), observation_0=[True, False, True, True, True])
    assert read_log(given)[0].actions.tolist() == [[0.0], [1.0]]


def test_episodes_whose_rows_alternate_are_taken_apart() -> None:
    given = table(episode=[0, 1, 0, 1, 0], time=None, action=[0, 10, 1, 11, 2])
    assert [episode.actions.ravel().tolist() for episode in read_log(given)] == [[0.0, 1.0], [10.0]]


BAD_TABLES = {
    "no rows": (table()[:0], "Expected a log of at least one episode"),
    "no action": (table(action=None), "expected numbers in columns action_0, ... or action, got ['episode'"),
    "words": (table(action=["left"] * 5), "expected numbers in columns action_0, ... or action"),
    "dates": (table(time=pd.date_range("2026-01-01", periods=5)), "(t - t.iloc[0]).dt.total_seconds()"),
    "a hole": (table(action=[np.nan, 1.0, np.nan, 1.0, np.nan]), "actions: expected finite numbers, got nan in row 0"),
    "one row": (
        table(episode=[0, 0, 0, 0, 1], action=[0] * 5, time=None),
        "got 1 observations and 0 actions",
    ),
}


@pytest.mark.parametrize(("given", "message"), BAD_TABLES.values(), ids=BAD_TABLES)
def test_a_bad_table_is_refused_with_the_reason(given: pd.DataFrame, message: str) -> None:
    assert message in refusal(given)


# ---- checks against an environment ----

SEEN = Box(-np.inf, np.inf, (3,))
ACTED = Box(np.array([-1.0, -1.0], np.float32), np.array([1.0, 0.4], np.float32))


def check_refusal(observation_space: Any = SEEN, action_space: Any = ACTED, **changes: Any) -> str:
    with pytest.raises(LogError) as refused:
        check_log(read_log(parts(**changes)), observation_space, action_space)
    return str(refused.value)


def test_actions_come_out_as_the_environment_takes_them() -> None:
    single = Box(-2.0, 2.0, (1,))
    (flat,) = check_log(read_log(parts(actions=np.linspace(-2, 2, STEPS))), SEEN, single)
    assert (flat.actions.shape, flat.actions.dtype) == ((STEPS, 1), np.float64)
    for given in (np.array([[0], [1], [2], [3], [1], [2]]), np.array([0.0, 1.0, 2.0, 3.0, 1.0, 2.0])):
        (chosen,) = check_log(read_log(parts(actions=given)), SEEN, Discrete(4))
        assert (chosen.actions.tolist(), chosen.actions.dtype) == ([0, 1, 2, 3, 1, 2], np.int64)
    assert check_log(read_log(parts(actions=[-1, 1, 0, 0, 0, 0])), SEEN, Discrete(3, start=-1))


def test_rounding_to_float32_is_no_action_beyond_the_bounds() -> None:
    (episode,) = check_log(read_log(parts(actions=np.full((STEPS, 2), 0.4 + 1e-7))), SEEN, ACTED)
    assert (episode.actions <= ACTED.high).all()


def test_what_does_not_fit_the_environment_is_refused_with_the_place() -> None:
    outside = np.zeros((STEPS, 2))
    outside[3, 1] = 0.5
    assert "actions: expected values from -1 to 0.4, got 0.5 in step 3, column 1." in check_refusal(actions=outside)
    assert "expected 2 in each step" in check_refusal(actions=np.zeros(STEPS))
    assert "expected 4 numbers in each, as the environment observes, got 3" in check_refusal(Box(-1, 1, (4,)))
    assert "expected 1 in each step" in check_refusal(action_space=Discrete(2))
    for wrong, shown in ((4, "4"), (1.5, "1.5"), (-1, "-1")):
        message = check_refusal(action_space=Discrete(4), actions=[0, 1, wrong, 0, 0, 0])
        assert f"expected whole numbers from 0 to 3, got {shown} in step 2, column 0." in message
    for space in (Dict({"a": SEEN}), Box(0, 255, (8, 8, 3), np.uint8), Discrete(3)):
        assert "Expected an environment whose observations are rows of numbers" in check_refusal(space)
    assert "actions are rows of numbers or discrete" in check_refusal(action_space=Box(-1, 1, (2, 2)))
