"""Evaluates policies on sets of cells, and goes on where an evaluation was interrupted."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from gym_dr.errors import RunFolderError
from gym_dr.evaluation.cells import CellSet
from gym_dr.evaluation.policies import RunPolicy
from gym_dr.evaluation.protocol import EVALUATION_SEED, play_wave
from gym_dr.evaluation.results import (
    COLUMNS,
    EPISODES,
    Evaluation,
    check_folder,
    read_document,
    read_episodes,
    write_document,
    write_episodes,
)
from gym_dr.evaluation.summary import describe, sum_up
from gym_dr.runs.environments import param_space_of
from gym_dr.runs.metrics import CsvLog
from gym_dr.wrappers.record import EpisodeRecord

if TYPE_CHECKING:
    import pandas as pd

Report = Callable[[str, int, int], None]  # what is played, episodes finished, episodes in all


def success_threshold(env_id: str, success: float | None) -> float | None:
    """The return from which an episode is a success: what the user says, else the environment's own, if it has one."""
    return success if success is not None else gym.spec(env_id.rpartition(":")[2]).reward_threshold


def evaluate_policies(
    policies: Sequence[RunPolicy],
    sets: Sequence[CellSet],
    folder: Path,
    *,
    success: float | None = None,
    command: str = "",
    report: Report = lambda title, done, total: None,
) -> Evaluation:
    """Plays policies in sets of cells and writes the folder of the evaluation.

    Episodes that the folder holds already are kept where policy (the checkpoint's bytes) and set (its definition) are
    the same; so an interrupted evaluation goes on where it stopped and ends with the same files. Complete sets that are
    in the folder but not asked for now stay in it.

    Args:
        policies: From ``open_policies``.
        sets: Where to look; their names differ.
        folder: Of this evaluation alone; made if its parent is there.
        success: Return from which an episode is a success; None for the environment's threshold.
        command: That asks for the evaluation, for its readers; empty if none does.
        report: Called as episodes end.

    Raises:
        RunFolderError: The folder holds something else, an evaluation of other runs, or cannot be written.
    """
    env = policies[0].env
    check_folder(folder)
    old, table = _what_is_there(folder, policies)
    asked = {cells.name for cells in sets}
    kept = [cells for cells in old if cells.name not in asked and _is_complete(table, cells, policies)]
    everything = [*sets, *kept]
    document = describe(policies, everything, folder, param_space_of(env), success_threshold(env, success), command)
    _write_start(folder, document, _matching(table, old, everything, document))
    _play(policies, everything, folder, document, report)
    table = _sorted(read_episodes(folder / EPISODES), document)
    write_episodes(folder / EPISODES, table)
    evaluation = Evaluation(folder, document, table)
    document.update(sum_up(evaluation))
    write_document(folder, document)
    return evaluation


# ---- what is there already -----------------------------------------------------------------------------------------


def _what_is_there(folder: Path, policies: Sequence[RunPolicy]) -> tuple[list[CellSet], pd.DataFrame]:
    """The sets of an earlier evaluation in the folder and the episodes that these policies have played."""
    document, table = read_document(folder), read_episodes(folder / EPISODES)
    if document is None:
        return [], table[:0]
    if document["env"] != policies[0].env:
        raise RunFolderError(f"{folder}: holds an evaluation on {document['env']}; choose another --output.")
    names = {policy.digest: policy.name for policy in policies}
    names_now: dict[str, str] = {}  # a run folder may have another name by now
    for policy in document["policies"]:
        if policy["digest"] in names:
            names_now[policy["name"]] = names[policy["digest"]]
        elif policy["name"] not in names.values() and folder != policies[0].folder.evaluation:
            raise RunFolderError(
                f"{folder}: holds an evaluation of {policy['name']}; name that run too, or choose another --output."
            )
    rows = table[table["policy"].isin(list(names_now))]
    sets = [CellSet.from_dict(form) for form in document["sets"]]
    return sets, rows.assign(policy=rows["policy"].map(names_now))


def _is_complete(table: pd.DataFrame, cells: CellSet, policies: Sequence[RunPolicy]) -> bool:
    """Whether some policy has played all of a set: then it is kept, and the others play it too."""
    counts = table[table["set"] == cells.name].groupby("policy").size()
    return any(counts.get(policy.name, 0) == cells.total for policy in policies)


def _matching(table: pd.DataFrame, old: list[CellSet], new: list[CellSet], document: dict[str, Any]) -> pd.DataFrame:
    """The rows of sets that are still defined as they were, with the columns that there are now."""
    definitions = {cells.name: cells.to_dict() for cells in new}
    same = [cells.name for cells in old if definitions.get(cells.name) == cells.to_dict()]
    kept = table[table["set"].isin(same)]
    nominal = {name: parameter["nominal"] for name, parameter in document["parameters"].items()}
    kept = kept.assign(**{name: value for name, value in nominal.items() if name not in kept})
    return _sorted(kept[[*COLUMNS, *nominal]], document)


def _sorted(table: pd.DataFrame, document: dict[str, Any]) -> pd.DataFrame:
    """Rows in the order of the document's policies and sets, each episode once, with what is a success now."""
    orders = {
        "policy": {policy["name"]: k for k, policy in enumerate(document["policies"])},
        "set": {cells["name"]: k for k, cells in enumerate(document["sets"])},
    }
    keys = ["policy", "set", "cell", "episode"]
    ordered = table.drop_duplicates(keys).sort_values(
        keys, key=lambda column: column.map(orders[column.name]) if column.name in orders else column
    )
    outcome = [_outcome(value, document["success"]) for value in ordered["return"]]
    return ordered.assign(outcome=outcome).reset_index(drop=True)


def _outcome(episode_return: float, success: float | None) -> str:
    if success is None:
        return ""
    return "success" if episode_return >= success else "failure"


def _write_start(folder: Path, document: dict[str, Any], kept: pd.DataFrame) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise RunFolderError(f"{folder}: cannot be made: {error.strerror or error}.") from None
    write_episodes(folder / EPISODES, kept)  # before the document, whose digests the rows must fit
    write_document(folder, document)


# ---- playing -------------------------------------------------------------------------------------------------------


def _play(
    policies: Sequence[RunPolicy], sets: Sequence[CellSet], folder: Path, document: Mapping[str, Any], report: Report
) -> None:
    """Appends the episodes that are missing, wave by wave: what a vector environment plays at a time.

    A wave that was written in part is played again as a whole, with a policy whose random numbers begin anew, so that
    it gives what it would have given without the interruption.
    """
    table = read_episodes(folder / EPISODES)
    total = sum(cells.total for cells in sets) * len(policies)
    done = len(table)
    with contextlib.closing(CsvLog(folder / EPISODES)) as log:
        for policy, cells in itertools.product(policies, sets):
            title = f"{policy.name} on {cells.name}"
            report(title, done, total)
            present = _present(table, policy.name, cells)
            if present.all():
                continue
            with contextlib.closing(policy.make_envs(cells)) as envs:
                for first in range(0, cells.total, envs.num_envs):
                    numbers = np.arange(first, min(first + envs.num_envs, cells.total))
                    if not present[numbers].all():
                        done -= int(present[numbers].sum())
                        records = play_wave(
                            policy.make(envs),
                            envs,
                            len(numbers),
                            EVALUATION_SEED + first,
                            params=cells.params(numbers),
                            finished=_counting_from(done, title, total, report),
                        )
                        for k, record in zip(numbers.tolist(), records, strict=True):
                            log.write(_row(policy.name, cells, k, record, document))
                        done += len(numbers)
    report("", done, total)


def _counting_from(done: int, title: str, total: int, report: Report) -> Callable[[int], None]:
    """Reports a wave's episodes beside those before it."""
    return lambda over: report(title, done + over, total)


def _present(table: pd.DataFrame, policy: str, cells: CellSet) -> npt.NDArray[np.bool_]:
    """Which episodes of a set have been played, shape ``(cells.total,)``."""
    rows = table[(table["policy"] == policy) & (table["set"] == cells.name)]
    present = np.zeros(cells.total, np.bool_)
    present[(rows["cell"] * cells.episodes + rows["episode"]).to_numpy(np.int64)] = True
    return present


def _row(policy: str, cells: CellSet, k: int, record: EpisodeRecord, document: Mapping[str, Any]) -> dict[str, Any]:
    """The row of episode ``k`` of a set."""
    cell, episode = divmod(k, cells.episodes)
    nominal = {name: parameter["nominal"] for name, parameter in document["parameters"].items()}
    drawn = {name: record.params[name] for name in cells.randomization or ()}
    head = (policy, cells.name, cell, episode, EVALUATION_SEED + k, record.episode_return, record.length)
    outcome = _outcome(record.episode_return, document["success"])
    return {
        **dict(zip(COLUMNS, (*head, int(record.terminated), outcome), strict=True)),
        **{**nominal, **drawn, **cells.cell(cell)},
    }
