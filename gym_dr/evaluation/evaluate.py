"""Evaluates policies on sets of cells; an interrupted evaluation resumes where it stopped."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from gym_dr.arrays import Mask
from gym_dr.errors import ConfigError, NotFiniteError, RunFolderError, shortened
from gym_dr.evaluation.episodes import EpisodeTable, outcome_of
from gym_dr.evaluation.results import (
    COLUMNS,
    EPISODES,
    REGRET_TABLE,
    Evaluation,
    check_folder,
    finite,
    nominal_values,
    read_document,
    write_document,
    write_episodes,
)
from gym_dr.evaluation.sets import CellSet
from gym_dr.evaluation.summary import EVALUATION_SEED, initial_document, summarize
from gym_dr.evaluation.worst_cells import FRESH_SEED, WORST_CELLS, again, fresh_episodes, worst_of
from gym_dr.options import is_number
from gym_dr.policies.acting import play_batch
from gym_dr.policies.draws import Draws
from gym_dr.policies.frozen import FrozenPolicy
from gym_dr.randomization.sampler import EpisodeRecord
from gym_dr.runs.durable import os_errors
from gym_dr.runs.lock import locked
from gym_dr.runs.progress import Progress
from gym_dr.runs.stopping import explain_interrupt
from gym_dr.runs.train import one_thread

if TYPE_CHECKING:
    import pandas as pd

ProgressCallback = Callable[[str, int, int], None]  # policy and set, episodes finished, episodes in total


def check_success(success: float | None) -> None:
    """Checks the return from which an episode is a success.

    Raises:
        ConfigError: It is not a finite number.
    """
    if success is not None and not is_number(success):
        raise ConfigError(f"`success`: expected a finite return, got {shortened(success)}.")


@contextlib.contextmanager
def playing(
    progress: bool, interrupted: str = "Finished episodes are saved; run the same again to continue."
) -> Iterator[Progress]:
    """Plays episodes in the block on one thread, with a progress display and a message for interrupts.

    Raises:
        Interrupted: Instead of ``KeyboardInterrupt``.
    """
    with (
        one_thread(),
        Progress("episode", "bar" if progress else "nothing") as display,
        explain_interrupt(f"Stopped. {interrupted}"),
    ):
        yield display


def success_threshold(env_id: str, success: float | None) -> float | None:
    """The return from which an episode is a success: ``success``, else the environment's reward threshold, if any."""
    return success if success is not None else gym.spec(env_id.rpartition(":")[2]).reward_threshold


def evaluate_policies(
    policies: Sequence[FrozenPolicy],
    sets: Sequence[CellSet],
    folder: Path,
    *,
    success: float | None = None,
    only: bool = False,
    command: str = "",
    progress: ProgressCallback = lambda title, done, total: None,
) -> Evaluation:
    """Plays policies on sets of cells and writes the folder of the evaluation.

    Reuses the folder's episodes whose policy (its digest) and set (its definition) are unchanged, so an interrupted
    evaluation resumes where it stopped and ends with the same files. At the end each policy plays its worst cell of
    each set again, with fresh seeds.

    Args:
        policies: From ``open_policies``, references included.
        sets: Cells to play, with distinct names.
        folder: Folder of this evaluation only; created if its parent exists.
        success: Return from which an episode is a success; None for the folder's, or else the environment's threshold.
        only: Whether the folder is to hold these policies, sets and threshold alone. Otherwise what an evaluation in it
            has completed stays: other sets, more of the same draws, and its threshold.
        command: The command line, recorded for readers after those before it; empty if there was none.
        progress: Called as episodes end.

    Raises:
        BusyFolderError: Another process evaluates into the folder.
        RunFolderError: The folder holds something else, an evaluation of other policies, one of other sets that was
            interrupted, or cannot be written.
    """
    check_folder(folder)
    with os_errors(folder):
        folder.mkdir(exist_ok=True)
    with locked(folder):
        before = read_document(folder)
        if before is not None and only:
            before = _without_others(folder, before, policies, sets)
        elif before is not None:
            success = before["success"] if success is None else success
            sets = _with_larger(sets, policies, before)
            command = " && ".join(filter(None, dict.fromkeys([*str(before.get("command", "")).split(" && "), command])))
        tables = {name: EpisodeTable(folder / name) for name in (EPISODES, WORST_CELLS)}
        return _evaluate(policies, sets, folder, before, tables, success, command, progress)


def _evaluate(
    policies: Sequence[FrozenPolicy],
    sets: Sequence[CellSet],
    folder: Path,
    before: Mapping[str, Any] | None,
    tables: Mapping[str, EpisodeTable],
    success: float | None,
    command: str,
    progress: ProgressCallback,
) -> Evaluation:
    """See ``evaluate_policies``; the folder is locked, and ``before`` and ``tables`` are what it holds."""
    old: list[CellSet] = []
    if before is None:
        for table in tables.values():  # of nobody's evaluation
            table.keep(lambda rows: rows[:0])
    else:
        names = _names_now(folder, before, policies)
        for table in tables.values():
            table.keep(lambda rows: rows[rows["policy"].isin(list(names))])
            table.keep(lambda rows: rows.assign(policy=rows["policy"].map(names)))
        old = [CellSet.from_dict(form) for form in before["sets"]]
    requested = {cells.name for cells in sets}
    kept = [  # sets that some policy has completed; the others play them too
        cells
        for cells in old
        if cells.name not in requested and any(tables[EPISODES].finished(p.name, cells).all() for p in policies)
    ]
    all_sets = [*sets, *kept]
    if before is not None:
        _check_nothing_lost(folder, before, tables[EPISODES], all_sets)
    document = initial_document(policies, all_sets, folder, success_threshold(policies[0].env, success), command)
    if before is None:  # a folder that has only rows would be nobody's evaluation
        write_document(folder, document)
    elif before["complete"] and _same(before, document):
        evaluation = Evaluation(folder, dict(before), tables[EPISODES].rows)
        if _all_played(evaluation, tables[WORST_CELLS], policies):
            return evaluation
    # rows first: they must fit the digests in the document
    definitions = {cells.name: cells.to_dict() for cells in all_sets}
    same = [cells.name for cells in old if definitions.get(cells.name) == cells.to_dict()]
    for table in tables.values():
        table.keep(lambda rows: rows[rows["set"].isin(same)])
        table.write(document)
    write_document(folder, document)
    evaluation = _play(policies, all_sets, folder, document, tables, progress)
    document.update(summarize(evaluation, tables[WORST_CELLS].rows))
    if document["references"]:
        write_episodes(folder / REGRET_TABLE, evaluation.regret)
    else:
        with os_errors(folder):
            (folder / REGRET_TABLE).unlink(missing_ok=True)  # of an earlier evaluation with references
    write_document(folder, document)
    return evaluation


# ---- an earlier evaluation in the folder ----------------------------------------------------------------------------


def _without_others(
    folder: Path, before: dict[str, Any], policies: Sequence[FrozenPolicy], sets: Sequence[CellSet]
) -> dict[str, Any]:
    """The document without all but these policies and sets; also in the folder, which lacks their episodes soon."""
    digests, names = {policy.digest for policy in policies}, {cells.name for cells in sets}
    kept = {
        "policies": [policy for policy in before["policies"] if policy["digest"] in digests],
        "sets": [cells for cells in before["sets"] if cells["name"] in names],
    }
    if any(len(kept[key]) < len(before[key]) for key in kept):
        before = {**before, **kept, "complete": False}
        write_document(folder, before)
    return before


def _with_larger(sets: Sequence[CellSet], policies: Sequence[FrozenPolicy], before: Mapping[str, Any]) -> list[CellSet]:
    """Sets, in place of which a complete evaluation may have the same draws with more episodes or points."""
    if not before["complete"] or not {p.digest for p in policies} <= {p["digest"] for p in before["policies"]}:
        return list(sets)
    known = {form["name"]: CellSet.from_dict(form) for form in before["sets"]}
    return [known[cells.name] if cells.name in known and _covers(known[cells.name], cells) else cells for cells in sets]


def _covers(known: CellSet, cells: CellSet) -> bool:
    """Whether a known set has the draws of another one, and at least as many."""
    alike = known.kind == cells.kind and (cells.num_cells == 1 or cells.kind == "sobol")
    same = all(known.definition.get(key) == cells.definition.get(key) for key in ("randomization", "fixed"))
    return alike and same and known.episodes >= cells.episodes and (known.points or 0) >= (cells.points or 0)


def _same(before: Mapping[str, Any], document: Mapping[str, Any]) -> bool:
    """Whether documents are of the same policies, sets and threshold."""
    keys = ("env", "policies", "references", "sets", "success", "parameters")
    now = finite({key: document[key] for key in keys})
    return all(before.get(key) == now[key] for key in keys)


def _all_played(evaluation: Evaluation, worst: EpisodeTable, policies: Sequence[FrozenPolicy]) -> bool:
    """Whether no episode is missing, of the sets and of their worst cells."""
    if len(evaluation.episodes) != len(policies) * sum(cells.num_episodes for cells in evaluation.sets):
        return False
    parts = _worst_parts(policies, evaluation)
    there = _among(worst.rows, parts)
    return bool(there.all()) and len(there) == sum(part.cells.episodes for part in parts)


def _names_now(folder: Path, before: Mapping[str, Any], policies: Sequence[FrozenPolicy]) -> dict[str, str]:
    """The names of policies in an earlier evaluation -> their names now: a run folder may have been renamed since.

    Raises:
        RunFolderError: The evaluation is of another environment, or of a policy that is missing now.
    """
    if before["env"] != policies[0].env:
        raise RunFolderError(f"{folder}: holds an evaluation on {before['env']}; choose another `output`.")
    run, names = policies[0].run, [policy.name for policy in policies]
    found: dict[str, str] = {}
    for policy in before["policies"]:
        if same := [now.name for now in policies if now.digest == policy["digest"]]:
            found[policy["name"]] = policy["name"] if policy["name"] in same else same[0]
        elif policy["name"] not in names and (run is None or folder != run.folder.evaluation):
            known = policy["name"] in before.get("references", ())
            too = "name it with `references`" if known else "evaluate it too"
            raise RunFolderError(
                f"{folder}: holds an evaluation of {policy['name']}; {too}, or choose another `output`."
            )
    return found


def _check_nothing_lost(folder: Path, before: Mapping[str, Any], table: EpisodeTable, sets: Sequence[CellSet]) -> None:
    """Checks that no episode of these policies belongs to another set, which nobody has completed.

    Raises:
        RunFolderError: Some do.
    """
    lost = sorted({*table.rows["set"]} - {cells.name for cells in sets})
    if lost and {cells["name"] for cells in before["sets"]} & {*lost}:
        how = f"Finish it with: {before['command']}" if before["command"] else "Finish it with the same call"
        raise RunFolderError(
            f"{folder}: holds an evaluation on {', '.join(lost)} that was interrupted. {how}\n"
            "Or choose another `output`."
        )


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
    tables: Mapping[str, EpisodeTable],
    progress: ProgressCallback,
) -> Evaluation:
    """Plays what is missing of all sets, then of the worst cells."""
    first = sum(cells.num_episodes for cells in sets) * len(policies)
    total = first + sum(map(fresh_episodes, sets)) * len(policies)
    episodes, worst = tables[EPISODES], tables[WORST_CELLS]
    parts = [
        _Part(title=f"{policy.name} on {cells.name}", policy=policy, cells=cells, seed=EVALUATION_SEED)
        for policy in policies
        for cells in sets
    ]
    before = len(worst.rows)
    _play_missing(parts, episodes, document, lambda title, done: progress(title, before + done, total))
    evaluation = Evaluation(folder, document, episodes.rows)
    parts = _worst_parts(policies, evaluation)
    worst.keep(lambda rows: rows[_among(rows, parts)])  # with other episodes than before, other cells may be the worst
    worst.write(document)
    _play_missing(parts, worst, document, lambda title, done: progress(title, first + done, total))
    progress("", total, total)
    return evaluation


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


def _play_missing(
    parts: Sequence[_Part], table: EpisodeTable, document: Mapping[str, Any], report: Callable[[str, int], None]
) -> None:
    """Plays the missing episodes in batches of one episode per sub-environment, and writes the table.

    A partly written batch is played again as a whole. Each batch restarts the policy's random numbers, so it gives the
    same episodes as without the interruption.
    """
    done = len(table.rows)
    with table.growing() as add:
        for part in parts:
            report(part.title, done)
            finished = table.finished(part.policy.name, part.cells, part.first_cell)
            if finished.all():
                continue
            draws = part.cells.draws
            with contextlib.closing(part.policy.make_envs(draws)) as envs:
                for first in range(0, draws.episodes, envs.num_envs):
                    before = finished[first : first + envs.num_envs]
                    if before.all():
                        continue
                    done -= int(before.sum())
                    with _named(part.title):
                        records = play_batch(
                            part.policy.make(envs),
                            envs,
                            draws,
                            seed=part.seed,
                            first=first,
                            on_finished=functools.partial(_report_new, report, part.title, done),
                        )
                    for k, record in enumerate(records, first):
                        add(_row(part, draws, k, record, document))
                    done += len(records)
            report(part.title, done)
    table.write(document)


@contextlib.contextmanager
def _named(title: str) -> Iterator[None]:
    """Says whose return is not finite."""
    try:
        yield
    except NotFiniteError as error:
        raise NotFiniteError(f"{title}: {error}") from None


def _report_new(report: Callable[[str, int], None], title: str, before: int, new: int) -> None:
    report(title, before + new)


def _row(part: _Part, draws: Draws, k: int, record: EpisodeRecord, document: Mapping[str, Any]) -> dict[str, Any]:
    """The row of episode ``k`` of a part."""
    cells = part.cells
    cell, episode = divmod(k, cells.episodes)
    drawn = {name: record.params[name] for name in draws.randomization}
    values = {name: float(column[k]) for name, column in draws.values.items()}
    head = (part.policy.name, cells.name, part.first_cell + cell, episode, part.seed + k)
    outcome = outcome_of(record.episode_return, document["success"])
    found = (record.episode_return, record.length, int(record.terminated), outcome)
    row = dict(zip(COLUMNS, (*head, *found), strict=True))
    return {**row, **nominal_values(document), **drawn, **values}


def _among(rows: pd.DataFrame, parts: Sequence[_Part]) -> Mask:
    """Whether each row is an episode of a part."""
    asked = {(part.policy.name, part.cells.name, part.first_cell): part.cells.episodes for part in parts}
    cells = zip(rows["policy"], rows["set"], rows["cell"], strict=True)
    found = [episode < asked.get(cell, 0) for cell, episode in zip(cells, rows["episode"], strict=True)]
    return np.array(found, np.bool_)
