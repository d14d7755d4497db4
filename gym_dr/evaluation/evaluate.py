"""Evaluates policies on sets of cells; an interrupted evaluation resumes where it stopped."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from gym_dr.arrays import Mask
from gym_dr.errors import NotFiniteError, RunFolderError
from gym_dr.evaluation.cells import CellSet
from gym_dr.evaluation.policies import FrozenPolicy
from gym_dr.evaluation.protocol import EVALUATION_SEED, play_batch
from gym_dr.evaluation.results import (
    COLUMNS,
    EPISODES,
    REGRET_TABLE,
    Evaluation,
    check_folder,
    nominal_values,
    read_document,
    read_episodes,
    write_document,
    write_episodes,
)
from gym_dr.evaluation.summary import initial_document, summarize
from gym_dr.evaluation.worst_cells import FRESH_SEED, WORST_CELLS, again, fresh_episodes, worst_of
from gym_dr.randomization.sampler import EpisodeRecord
from gym_dr.runs.durable import os_errors
from gym_dr.runs.lock import FolderLock
from gym_dr.runs.metrics import CsvLog
from gym_dr.wording import spelled

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
    progress: ProgressCallback = lambda title, done, total: None,
) -> Evaluation:
    """Plays policies on sets of cells and writes the folder of the evaluation.

    Reuses the folder's episodes whose policy (its digest) and set (its definition) are unchanged, so an interrupted
    evaluation resumes where it stopped and ends with the same files. Complete sets in the folder stay, even if ``sets``
    does not have them. At the end each policy plays its worst cell of each set again, with fresh seeds.

    Args:
        policies: From ``open_policies``, references included.
        sets: Cells to play, with distinct names.
        folder: Folder of this evaluation only; created if its parent exists.
        success: Return from which an episode is a success; None for the environment's threshold.
        command: The command line, recorded for readers; empty if there was none.
        progress: Called as episodes end.

    Raises:
        BusyFolderError: Another process evaluates into the folder.
        RunFolderError: The folder holds something else, an evaluation of other policies, one of other sets that was
            interrupted, or cannot be written.
    """
    check_folder(folder)
    with os_errors(folder):
        folder.mkdir(exist_ok=True)
    with FolderLock(folder).held():
        return _evaluate(policies, sets, folder, success, command, progress)


def _evaluate(
    policies: Sequence[FrozenPolicy],
    sets: Sequence[CellSet],
    folder: Path,
    success: float | None,
    command: str,
    progress: ProgressCallback,
) -> Evaluation:
    """See ``evaluate_policies``; the folder is locked."""
    env = policies[0].env
    old, tables = _load_previous(folder, policies)
    requested = {cells.name for cells in sets}
    kept = [  # sets that some policy has completed; the others play them too
        cells
        for cells in old
        if cells.name not in requested
        and any(_finished_episodes(tables[EPISODES], p.name, cells).all() for p in policies)
    ]
    before = read_document(folder)
    _check_nothing_lost(folder, before, tables[EPISODES], requested | {cells.name for cells in kept})
    all_sets = [*sets, *kept]
    threshold = success_threshold(env, success)
    document = initial_document(policies, all_sets, folder, threshold, command)
    if before is None:  # a folder that has only rows would be nobody's evaluation
        write_document(folder, document)
    # rows first: they must fit the digests in the document
    for name, table in tables.items():
        _write(folder / name, _reusable_rows(table, old, all_sets, document))
    write_document(folder, document)
    evaluation, fresh = _play(policies, all_sets, folder, document, progress)
    document.update(summarize(evaluation, fresh))
    if document["references"]:
        write_episodes(folder / REGRET_TABLE, evaluation.regret)
    else:
        with os_errors(folder):
            (folder / REGRET_TABLE).unlink(missing_ok=True)  # of an earlier evaluation with references
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


def with_larger(sets: Sequence[CellSet], policies: Sequence[FrozenPolicy], folder: Path) -> list[CellSet]:
    """Sets, in place of which a complete evaluation in the folder may have the same with more episodes of one cell.

    Raises:
        RunFolderError: The folder holds something else.
    """
    document = read_document(folder)
    if document is None or not document["complete"]:
        return list(sets)
    if not {policy.digest for policy in policies} <= {policy["digest"] for policy in document["policies"]}:
        return list(sets)
    known = {form["name"]: CellSet.from_dict(form) for form in document["sets"]}
    return [_larger(cells, known.get(cells.name, cells)) for cells in sets]


def _larger(cells: CellSet, known: CellSet) -> CellSet:
    """The known set if it is the same single cell with more episodes."""
    same = known.num_cells == 1 and replace(known, episodes=cells.episodes).to_dict() == cells.to_dict()
    return known if same and known.episodes > cells.episodes else cells


# ---- the episodes of an earlier evaluation ---------------------------------------------------------------------------


def _load_previous(folder: Path, policies: Sequence[FrozenPolicy]) -> tuple[list[CellSet], dict[str, pd.DataFrame]]:
    """Reads the sets of an earlier evaluation in the folder and, by file, episodes that these policies have played."""
    document = read_document(folder)
    tables = {name: read_episodes(folder / name) for name in (EPISODES, WORST_CELLS)}
    if document is None:
        return [], {name: table[:0] for name, table in tables.items()}
    if document["env"] != policies[0].env:
        raise RunFolderError(f"{folder}: holds an evaluation on {document['env']}; choose another {spelled('output')}.")
    run, names = policies[0].run, [policy.name for policy in policies]
    names_now: dict[str, str] = {}  # a run folder may have been renamed since
    for policy in document["policies"]:
        if same := [now.name for now in policies if now.digest == policy["digest"]]:
            names_now[policy["name"]] = policy["name"] if policy["name"] in same else same[0]
        elif policy["name"] not in names and (run is None or folder != run.folder.evaluation):
            known = policy["name"] in document.get("references", ())
            too = f"name it with {spelled('references')}" if known else "evaluate it too"
            raise RunFolderError(
                f"{folder}: holds an evaluation of {policy['name']}; {too}, or choose another {spelled('output')}."
            )
    for name, table in tables.items():
        rows = table[table["policy"].isin(list(names_now))]
        tables[name] = rows.assign(policy=rows["policy"].map(names_now))
    return [CellSet.from_dict(form) for form in document["sets"]], tables


def _check_nothing_lost(
    folder: Path, document: Mapping[str, Any] | None, table: pd.DataFrame, names: Collection[str]
) -> None:
    """Checks that no episode of these policies belongs to another set, which nobody has completed.

    Raises:
        RunFolderError: Some do.
    """
    lost = sorted({*table["set"]} - {*names})
    if document is not None and lost and {cells["name"] for cells in document["sets"]} & {*lost}:
        how = f"Finish it with: {document['command']}" if document["command"] else "Finish it with the same call"
        raise RunFolderError(
            f"{folder}: holds an evaluation on {', '.join(lost)} that was interrupted. {how}\n"
            f"Or choose another {spelled('output')}."
        )


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


@dataclass(frozen=True, kw_only=True)
class _Part:
    """Episodes that one policy plays."""

    title: str  # for the progress
    policy: FrozenPolicy
    cells: CellSet  # what is played
    seed: int  # of the first episode
    first_cell: int = 0  # its number in the file


def _play(
    policies: Sequence[FrozenPolicy],
    sets: Sequence[CellSet],
    folder: Path,
    document: dict[str, Any],
    progress: ProgressCallback,
) -> tuple[Evaluation, pd.DataFrame]:
    """Plays what is missing of all sets, then of the worst cells; returns the evaluation and the latter's episodes."""
    first = sum(cells.num_episodes for cells in sets) * len(policies)
    total = first + sum(map(fresh_episodes, sets)) * len(policies)
    played_again = len(read_episodes(folder / WORST_CELLS))
    parts = [
        _Part(title=f"{policy.name} on {cells.name}", policy=policy, cells=cells, seed=EVALUATION_SEED)
        for policy in policies
        for cells in sets
    ]
    _play_missing(parts, folder / EPISODES, document, lambda title, done: progress(title, played_again + done, total))
    table = _sorted(read_episodes(folder / EPISODES), document)
    _write(folder / EPISODES, table)
    evaluation = Evaluation(folder, document, table)
    parts = _worst_parts(policies, evaluation)
    table = read_episodes(folder / WORST_CELLS)
    _write(folder / WORST_CELLS, table[_belongs(table, parts)])
    _play_missing(parts, folder / WORST_CELLS, document, lambda title, done: progress(title, first + done, total))
    table = _sorted(read_episodes(folder / WORST_CELLS), document)
    _write(folder / WORST_CELLS, table)
    progress("", total, total)
    return evaluation, table


def _worst_parts(policies: Sequence[FrozenPolicy], evaluation: Evaluation) -> list[_Part]:
    """The worst cell of each policy on each set of several cells."""
    parts = []
    for cells in evaluation.sets:
        if fresh_episodes(cells):
            for policy, returns in zip(policies, evaluation.returns(cells.name), strict=True):
                worst, title = worst_of(returns), f"{policy.name} in its worst cell of {cells.name}"
                one = again(cells, worst)
                parts.append(_Part(title=title, policy=policy, cells=one, seed=FRESH_SEED, first_cell=worst))
    return parts


def _belongs(table: pd.DataFrame, parts: Sequence[_Part]) -> Mask:
    """For each row, whether it is an episode of a part: with another file of episodes, other cells may be the worst."""
    asked = {(part.policy.name, part.cells.name, part.first_cell): part.cells.episodes for part in parts}
    keys = zip(table["policy"], table["set"], table["cell"], strict=True)
    found = [row in asked and episode < asked[row] for row, episode in zip(keys, table["episode"], strict=True)]
    return np.array(found, np.bool_)


def _play_missing(
    parts: Sequence[_Part], path: Path, document: Mapping[str, Any], report: Callable[[str, int], None]
) -> None:
    """Appends the missing episodes in batches of one episode per sub-environment.

    A partly written batch is played again as a whole. Each batch restarts the policy's random numbers, so it gives the
    same episodes as without the interruption.
    """
    table = read_episodes(path)
    done = len(table)
    with contextlib.closing(CsvLog(path)) as log:
        for part in parts:
            report(part.title, done)
            finished = _finished_episodes(table, part.policy.name, part.cells, part.first_cell)
            if finished.all():
                continue
            with contextlib.closing(part.policy.make_envs(part.cells)) as envs:
                for first in range(0, part.cells.num_episodes, envs.num_envs):
                    numbers = np.arange(first, min(first + envs.num_envs, part.cells.num_episodes))
                    if not finished[numbers].all():
                        done -= int(finished[numbers].sum())
                        with _named(part.title):
                            records = play_batch(
                                part.policy.make(envs),
                                envs,
                                len(numbers),
                                part.seed + first,
                                params=part.cells.params(numbers),
                                on_finished=functools.partial(_report_new, report, part.title, done),
                            )
                        for k, record in zip(numbers.tolist(), records, strict=True):
                            log.write(_row(part, k, record, document))
                        done += len(numbers)
            report(part.title, done)


@contextlib.contextmanager
def _named(title: str) -> Iterator[None]:
    """Says whose return is not finite."""
    try:
        yield
    except NotFiniteError as error:
        raise NotFiniteError(f"{title}: {error}") from None


def _report_new(report: Callable[[str, int], None], title: str, before: int, new: int) -> None:
    report(title, before + new)


def _finished_episodes(table: pd.DataFrame, policy: str, cells: CellSet, first_cell: int = 0) -> Mask:
    """Which episodes of a set have been played, shape ``(cells.num_episodes,)``."""
    rows = table[(table["policy"] == policy) & (table["set"] == cells.name)]
    numbers = ((rows["cell"] - first_cell) * cells.episodes + rows["episode"]).to_numpy(np.int64)
    finished = np.zeros(cells.num_episodes, np.bool_)
    finished[numbers] = True
    return finished


def _row(part: _Part, k: int, record: EpisodeRecord, document: Mapping[str, Any]) -> dict[str, Any]:
    """The row of episode ``k`` of a part."""
    cells = part.cells
    cell, episode = divmod(k, cells.episodes)
    drawn = {} if cells.randomization is None else {name: record.params[name] for name in cells.parameters}
    head = (part.policy.name, cells.name, part.first_cell + cell, episode, part.seed + k)
    outcome = _outcome(record.episode_return, document["success"])
    found = (record.episode_return, record.length, int(record.terminated), outcome)
    row = dict(zip(COLUMNS, (*head, *found), strict=True))
    return {**row, **nominal_values(document), **drawn, **cells.cell(cell)}


def _write(path: Path, table: pd.DataFrame) -> None:
    """Writes a file of episodes; none for worst cells that do not exist."""
    if len(table) or path.name == EPISODES or path.exists():
        write_episodes(path, table)
