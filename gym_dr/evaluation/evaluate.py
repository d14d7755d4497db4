"""Evaluates policies on sets of cells; an interrupted evaluation resumes where it stopped."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from gym_dr.arrays import Mask
from gym_dr.errors import RunFolderError
from gym_dr.evaluation.cells import CellSet
from gym_dr.evaluation.knowledge import find_knowledge, known_before, missing_knowledge
from gym_dr.evaluation.policies import FrozenPolicy
from gym_dr.evaluation.protocol import EVALUATION_SEED, play_batch
from gym_dr.evaluation.results import (
    COLUMNS,
    EPISODES,
    Evaluation,
    check_folder,
    nominal_values,
    read_document,
    read_episodes,
    write_document,
    write_episodes,
)
from gym_dr.evaluation.summary import initial_document, summarize
from gym_dr.runs.durable import os_errors
from gym_dr.runs.metrics import CsvLog
from gym_dr.wording import spelled
from gym_dr.wrappers.record import EpisodeRecord

if TYPE_CHECKING:
    import pandas as pd

ProgressCallback = Callable[[str, int, int], None]  # policy and set, episodes finished, episodes in total


def success_threshold(env_id: str, success: float | None) -> float | None:
    """The return from which an episode is a success: ``success``, else the environment's reward threshold, if any."""
    return success if success is not None else gym.spec(env_id.rpartition(":")[2]).reward_threshold


def evaluate_policies(
    policies: Sequence[FrozenPolicy],
    sets: Sequence[CellSet],
    folder: Path,
    *,
    success: float | None = None,
    command: str = "",
    memories: bool = False,
    progress: ProgressCallback = lambda title, done, total: None,
) -> Evaluation:
    """Plays policies on sets of cells and writes the folder of the evaluation.

    Reuses the folder's episodes whose policy (its digest) and set (its definition) are unchanged, so an interrupted
    evaluation resumes where it stopped and ends with the same files. Complete sets in the folder stay, even if ``sets``
    does not have them.

    Args:
        policies: From ``open_policies``.
        sets: Cells to play, with distinct names.
        folder: Folder of this evaluation only; created if its parent exists.
        success: Return from which an episode is a success; None for the environment's threshold.
        command: The command line, recorded for readers; empty if there was none.
        memories: Whether to find out what the memories of policies know, if the folder does not say so already. That
            takes up to twice as long as 100 episodes on nominal values and on training draws.
        progress: Called as episodes end.

    Raises:
        RunFolderError: The folder holds something else, an evaluation of other policies, or cannot be written.
    """
    env = policies[0].env
    check_folder(folder)
    old, table = _load_previous(folder, policies)
    requested = {cells.name for cells in sets}
    kept = [  # sets that some policy has completed; the others play them too
        cells
        for cells in old
        if cells.name not in requested and any(_finished_episodes(table, p.name, cells).all() for p in policies)
    ]
    all_sets = [*sets, *kept]
    threshold = success_threshold(env, success)
    document = initial_document(policies, all_sets, folder, threshold, command)
    before = read_document(folder)
    document["knowledge"] = known_before(before, document)
    with os_errors(folder):
        folder.mkdir(exist_ok=True)
    if before is None:  # a folder that has only rows would be nobody's evaluation
        write_document(folder, document)
    # rows first: they must fit the digests in the document
    write_episodes(folder / EPISODES, _reusable_rows(table, old, all_sets, document))
    write_document(folder, document)
    _play_missing(policies, all_sets, folder, document, progress)
    if memories:
        _ask_memories(policies, all_sets, document, progress)
    table = _sorted(read_episodes(folder / EPISODES), document)
    write_episodes(folder / EPISODES, table)
    evaluation = Evaluation(folder, document, table)
    document.update(summarize(evaluation))
    write_document(folder, document)
    return evaluation


def forget_others(folder: Path, policies: Sequence[FrozenPolicy], sets: Sequence[CellSet]) -> None:
    """Removes all but these policies and sets from the evaluation in a folder, if there is one.

    Raises:
        RunFolderError: The folder holds something else, or cannot be written.
    """
    document = read_document(folder)
    if document is None:
        return
    digests, names = {policy.digest for policy in policies}, {cells.name for cells in sets}
    kept = {
        "policies": [policy for policy in document["policies"] if policy["digest"] in digests],
        "sets": [cells for cells in document["sets"] if cells["name"] in names],
    }
    if any(len(kept[key]) < len(document[key]) for key in kept):
        write_document(folder, {**document, **kept, "complete": False})


# ---- the episodes of an earlier evaluation ---------------------------------------------------------------------------


def _load_previous(folder: Path, policies: Sequence[FrozenPolicy]) -> tuple[list[CellSet], pd.DataFrame]:
    """Reads the sets of an earlier evaluation in the folder and the episodes that these policies have played."""
    document, table = read_document(folder), read_episodes(folder / EPISODES)
    if document is None:
        return [], table[:0]
    if document["env"] != policies[0].env:
        raise RunFolderError(f"{folder}: holds an evaluation on {document['env']}; choose another {spelled('output')}.")
    run, names = policies[0].run, [policy.name for policy in policies]
    names_now: dict[str, str] = {}  # a run folder may have been renamed since
    for policy in document["policies"]:
        if same := [now.name for now in policies if now.digest == policy["digest"]]:
            names_now[policy["name"]] = policy["name"] if policy["name"] in same else same[0]
        elif policy["name"] not in names and (run is None or folder != run.folder.evaluation):
            raise RunFolderError(
                f"{folder}: holds an evaluation of {policy['name']}; evaluate it too, or choose "
                f"another {spelled('output')}."
            )
    rows = table[table["policy"].isin(list(names_now))]
    sets = [CellSet.from_dict(form) for form in document["sets"]]
    return sets, rows.assign(policy=rows["policy"].map(names_now))


def _reusable_rows(
    table: pd.DataFrame, old: list[CellSet], new: list[CellSet], document: dict[str, Any]
) -> pd.DataFrame:
    """The rows of sets whose definition is unchanged, with the columns of the new document."""
    definitions = {cells.name: cells.to_dict() for cells in new}
    same = [cells.name for cells in old if definitions.get(cells.name) == cells.to_dict()]
    kept = table[table["set"].isin(same)]
    nominal = nominal_values(document)
    kept = kept.assign(**{name: value for name, value in nominal.items() if name not in kept})
    return _sorted(kept[[*COLUMNS, *nominal]], document)


def _sorted(table: pd.DataFrame, document: dict[str, Any]) -> pd.DataFrame:
    """Sorts rows as the document's policies and sets, drops duplicate episodes and sets the outcomes."""
    orders = {
        "policy": [policy["name"] for policy in document["policies"]],
        "set": [cells["name"] for cells in document["sets"]],
    }
    keys = ["policy", "set", "cell", "episode"]
    ordered = table.drop_duplicates(keys).sort_values(
        keys, key=lambda column: column.map(orders[column.name].index) if column.name in orders else column
    )
    outcome = [_outcome(value, document["success"]) for value in ordered["return"]]
    return ordered.assign(outcome=outcome).reset_index(drop=True)


def _outcome(episode_return: float, success: float | None) -> str:
    return "" if success is None else "success" if episode_return >= success else "failure"


# ---- playing -------------------------------------------------------------------------------------------------------


def _play_missing(
    policies: Sequence[FrozenPolicy],
    sets: Sequence[CellSet],
    folder: Path,
    document: Mapping[str, Any],
    progress: ProgressCallback,
) -> None:
    """Appends the missing episodes in batches of one episode per sub-environment.

    A partly written batch is played again as a whole. Each batch restarts the policy's random numbers, so it gives the
    same episodes as without the interruption.
    """
    table = read_episodes(folder / EPISODES)
    total = sum(cells.num_episodes for cells in sets) * len(policies)
    done, title = len(table), ""

    def report(new: int = 0) -> None:
        progress(title, done + new, total)

    with contextlib.closing(CsvLog(folder / EPISODES)) as log:
        for policy, cells in itertools.product(policies, sets):
            title = f"{policy.name} on {cells.name}"
            report()
            finished = _finished_episodes(table, policy.name, cells)
            if finished.all():
                continue
            with contextlib.closing(policy.make_envs(cells)) as envs:
                for first in range(0, cells.num_episodes, envs.num_envs):
                    numbers = np.arange(first, min(first + envs.num_envs, cells.num_episodes))
                    if not finished[numbers].all():
                        done -= int(finished[numbers].sum())
                        records = play_batch(
                            policy.make(envs),
                            envs,
                            len(numbers),
                            EVALUATION_SEED + first,
                            params=cells.params(numbers),
                            on_finished=report,
                        )
                        for k, record in zip(numbers.tolist(), records, strict=True):
                            log.write(_row(policy.name, cells, k, record, document))
                        done += len(numbers)
    progress("", done, total)


def _ask_memories(
    policies: Sequence[FrozenPolicy],
    sets: Sequence[CellSet],
    document: Mapping[str, Any],
    progress: ProgressCallback,
) -> None:
    """Completes the document's entries on what memories know, in the order of the policies."""
    entries, order = document["knowledge"], [policy.name for policy in policies]
    total = sum(cells.num_episodes for cells in sets) * len(policies)  # all are played
    for policy in missing_knowledge(policies, entries):
        title = f"what the memory of {policy.name} knows"
        entries.append(find_knowledge(policy, functools.partial(progress, title, total, total)))
    entries.sort(key=lambda entry: order.index(entry["policy"]))
    progress("", total, total)


def _finished_episodes(table: pd.DataFrame, policy: str, cells: CellSet) -> Mask:
    """Which episodes of a set have been played, shape ``(cells.num_episodes,)``."""
    rows = table[(table["policy"] == policy) & (table["set"] == cells.name)]
    finished = np.zeros(cells.num_episodes, np.bool_)
    finished[(rows["cell"] * cells.episodes + rows["episode"]).to_numpy(np.int64)] = True
    return finished


def _row(policy: str, cells: CellSet, k: int, record: EpisodeRecord, document: Mapping[str, Any]) -> dict[str, Any]:
    """The row of episode ``k`` of a set."""
    cell, episode = divmod(k, cells.episodes)
    drawn = {} if cells.randomization is None else {name: record.params[name] for name in cells.parameters}
    head = (policy, cells.name, cell, episode, EVALUATION_SEED + k, record.episode_return, record.length)
    outcome = _outcome(record.episode_return, document["success"])
    row = dict(zip(COLUMNS, (*head, int(record.terminated), outcome), strict=True))
    return {**row, **nominal_values(document), **drawn, **cells.cell(cell)}
