"""Plays policies on sets of test conditions; an interrupted evaluation resumes where it stopped."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gym_dr.arrays import Mask
from gym_dr.envs.played import TERM
from gym_dr.errors import RunFolderError, located
from gym_dr.evaluation.failures import FRESH_SEED, WORST_CELLS, again, fresh_episodes, nearest_suspects, worst_of
from gym_dr.evaluation.question import EVALUATION_SEED, Question
from gym_dr.evaluation.results import (
    COLUMNS,
    EPISODES,
    Evaluation,
    check_folder,
    finite,
    read_document,
    read_episodes,
    typed,
    write_document,
    write_episodes,
)
from gym_dr.evaluation.sets import CellSet
from gym_dr.evaluation.summary import fails_at_nominal, summarize
from gym_dr.policies.frozen import Draws, FrozenPolicy, play_batch
from gym_dr.randomization.sampler import EpisodeRecord
from gym_dr.runs.folder import locked, os_errors
from gym_dr.runs.metrics import CsvLog
from gym_dr.runs.terminal import Progress, explain_interrupt
from gym_dr.runs.train import limited_threads

if TYPE_CHECKING:
    import pandas as pd


ProgressCallback = Callable[[str, int, int], None]  # policy and set, episodes finished, episodes in total

KEYS = ["policy", "set", "cell", "episode"]  # of a row


@contextlib.contextmanager
def playing(
    progress: bool,
    sets: Sequence[CellSet] = (),
    interrupted: str = "Finished episodes are saved; run the same again to continue.",
    num_threads: int | None = None,
) -> Iterator[Progress]:
    """Limits threads in the block, shows the notes of sets and progress, and explains interrupts.

    Raises:
        ConfigError: The number of threads is impossible.
        Interrupted: Instead of ``KeyboardInterrupt``.
    """
    with (
        limited_threads(num_threads),
        Progress("episode", "bar" if progress else "nothing") as display,
        explain_interrupt(f"Stopped. {interrupted}"),
    ):
        for note in [note for cells in sets for note in cells.notes]:
            display.note(note)
        yield display


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
    """Plays policies on sets of test conditions and writes the folder of the evaluation.

    Reuses the folder's episodes whose policy (its digest) and set (its definition) are unchanged, so an interrupted
    evaluation resumes where it stopped and ends with the same files. At the end each policy plays its worst cell of
    each set again, and the nearest that seem to fail, with fresh seeds.

    Args:
        policies: From ``open_policies``, including references.
        sets: With distinct names.
        folder: Folder for this evaluation alone; created if its parent exists.
        success: Return from which an episode counts as solved; None for the folder's threshold, or else the
            environment's.
        only: Whether the folder is to hold only these policies, sets and threshold. Otherwise it keeps what an earlier
            evaluation has completed: other sets, more of the same draws, and the threshold.
        command: The command line, recorded after earlier ones; empty if there was none.
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
        if before is not None and not only:
            success = before["success"] if success is None else success
            sets = _with_larger(sets, policies, before)
            command = " && ".join(filter(None, dict.fromkeys([*str(before.get("command", "")).split(" && "), command])))
        held = _Held(folder, before, policies, only)
        further = [] if only else held.further(sets, policies)
        asked = Question.of(policies, [*sets, *further], folder, success=success, command=command)
        if not only:
            held.check_nothing_lost(asked)
        return _evaluate(policies, asked, held, progress)


def _evaluate(
    policies: Sequence[FrozenPolicy], question: Question, held: _Held, progress: ProgressCallback
) -> Evaluation:
    """See ``evaluate_policies``; the folder is locked."""
    document = question.to_document()
    if held.document is None:  # rows without a document belong to no evaluation
        write_document(held.folder, document)
    elif held.document["complete"] and _same(held.document, document):
        evaluation = Evaluation(held.folder, dict(held.document), held.episodes.rows)
        if evaluation.in_order and len(held.worst.rows) == sum(
            part.cells.episodes for part in _parts_again(policies, evaluation)
        ):
            return evaluation
    # rows first: they must fit the digests in the document
    held.keep_same(question)
    write_document(held.folder, document)
    evaluation = _play(policies, question, document, held, progress)
    document.update(summarize(evaluation, held.worst.rows))
    write_document(held.folder, document)
    return evaluation


# ---- an earlier evaluation in the folder ----------------------------------------------------------------------------


class _Held:
    """A folder's earlier evaluation of the present policies."""

    def __init__(
        self, folder: Path, document: dict[str, Any] | None, policies: Sequence[FrozenPolicy], only: bool
    ) -> None:
        names = {} if document is None else _names_now(folder, document, policies, only)
        self.folder, self.document = folder, document
        self.sets = [] if document is None else [CellSet.from_dict(form) for form in document["sets"]]
        self.episodes, self.worst = EpisodeTable(folder / EPISODES), EpisodeTable(folder / WORST_CELLS)
        for table, episodes in ((self.episodes, lambda cells: cells.episodes), (self.worst, fresh_episodes)):
            table.check(self.sets, episodes)
            table.rename(names)

    def further(self, sets: Sequence[CellSet], policies: Sequence[FrozenPolicy]) -> list[CellSet]:
        """Further sets that a policy has completed; the other policies play them too."""
        asked = {cells.name for cells in sets}
        return [
            cells
            for cells in self.sets
            if cells.name not in asked and any(self.episodes.finished(p.name, cells).all() for p in policies)
        ]

    def check_nothing_lost(self, question: Question) -> None:
        """Checks that these policies have no episodes on further sets that no policy has completed.

        Raises:
            RunFolderError: They have.
        """
        lost = sorted({*self.episodes.rows["set"]} - {cells.name for cells in question.sets})
        if self.document is not None and {cells.name for cells in self.sets} & {*lost}:
            command = self.document["command"]
            how = f"Finish it with: {command}" if command else "Finish it with the same call"
            raise RunFolderError(
                f"{self.folder}: holds an evaluation on {', '.join(lost)} that was interrupted. {how}\n"
                "Or choose another `output`."
            )

    def keep_same(self, question: Question) -> None:
        """Drops episodes of sets that have changed, also in the files."""
        definitions = {cells.name: cells.to_dict() for cells in question.sets}
        same = [cells.name for cells in self.sets if definitions.get(cells.name) == cells.to_dict()]
        for table in (self.episodes, self.worst):
            table.rows = table.rows[table.rows["set"].isin(same)]
            table.write(question)


def _with_larger(sets: Sequence[CellSet], policies: Sequence[FrozenPolicy], before: Mapping[str, Any]) -> list[CellSet]:
    """The sets, each replaced by a completed one that has the same draws and more episodes or points."""
    if not before["complete"] or not {p.digest for p in policies} <= {p["digest"] for p in before["policies"]}:
        return list(sets)
    known = {form["name"]: CellSet.from_dict(form) for form in before["sets"]}
    return [known[cells.name] if cells.name in known and _covers(known[cells.name], cells) else cells for cells in sets]


def _covers(known: CellSet, cells: CellSet) -> bool:
    """Whether a known set has all draws of another one."""
    alike = known.kind == cells.kind and (cells.num_cells == 1 or cells.kind == "sobol")
    same = all(known.definition.get(key) == cells.definition.get(key) for key in ("randomization", "fixed"))
    return alike and same and known.episodes >= cells.episodes and (known.points or 0) >= (cells.points or 0)


def _same(before: Mapping[str, Any], document: Mapping[str, Any]) -> bool:
    """Whether documents ask the same question, apart from the command."""
    now = finite(document)
    return all(
        before.get(key) == now[key] for key in ("env", "policies", "references", "sets", "success", "parameters")
    )


def _names_now(folder: Path, before: Mapping[str, Any], policies: Sequence[FrozenPolicy], only: bool) -> dict[str, str]:
    """Names of policies in an earlier evaluation -> present names: a run folder may have been renamed.

    Raises:
        RunFolderError: The evaluation is of another environment, or of a policy that is missing now, unless ``only``.
    """
    if before["env"] != policies[0].env:
        raise RunFolderError(f"{folder}: holds an evaluation on {before['env']}; choose another `output`.")
    run, names = policies[0].run, [policy.name for policy in policies]
    found: dict[str, str] = {}
    for policy in before["policies"]:
        if same := [now.name for now in policies if now.digest == policy["digest"]]:
            found[policy["name"]] = policy["name"] if policy["name"] in same else same[0]
        elif not only and policy["name"] not in names and (run is None or folder != run.folder.evaluation):
            known = policy["name"] in before.get("references", ())
            too = "name it with `references`" if known else "evaluate it too"
            raise RunFolderError(
                f"{folder}: holds an evaluation of {policy['name']}; {too}, or choose another `output`."
            )
    return found


# ---- playing -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Part:
    """Episodes that one policy plays."""

    title: str  # for the progress
    policy: FrozenPolicy
    cells: CellSet  # what is played
    seed: int  # of the first episode
    first_cell: int = 0  # number of the first cell in the file


def _play(
    policies: Sequence[FrozenPolicy],
    question: Question,
    document: dict[str, Any],
    held: _Held,
    progress: ProgressCallback,
) -> Evaluation:
    """Plays the missing episodes of all sets, then of the cells that they choose."""
    first, worst = question.episodes, held.worst
    before = len(worst.rows)
    total = first + max(before, len(policies) * sum(map(fresh_episodes, question.sets)))
    parts = [
        _Part(title=f"{policy.name} on {cells.name}", policy=policy, cells=cells, seed=EVALUATION_SEED)
        for policy in policies
        for cells in question.sets
    ]
    _play_missing(parts, held.episodes, question, lambda title, done: progress(title, before + done, total))
    evaluation = Evaluation(held.folder, document, held.episodes.rows)
    parts = _parts_again(policies, evaluation)
    total = first + sum(part.cells.episodes for part in parts)
    worst.rows = worst.rows[_among(worst.rows, parts)]  # after new episodes, they may choose other cells
    worst.write(question)
    _play_missing(parts, worst, question, lambda title, done: progress(title, first + done, total))
    progress("", total, total)
    return evaluation


def _parts_again(policies: Sequence[FrozenPolicy], evaluation: Evaluation) -> list[_Part]:
    """Of each policy on each set of several cells, the worst cell and the nearest that seem to fail."""
    parts, question, fails = [], evaluation.question, fails_at_nominal(evaluation)
    for cells in filter(fresh_episodes, evaluation.sets):
        for policy, returns, failed in zip(policies, evaluation.returns(cells.name), fails, strict=True):
            success = None if failed else question.success
            suspects = nearest_suspects(returns, cells, question.nominal, success, question.needs)
            for cell in sorted({worst_of(returns), *suspects}):
                title, one = f"{policy.name} again in a cell of {cells.name}", again(cells, cell)
                parts.append(_Part(title=title, policy=policy, cells=one, seed=FRESH_SEED, first_cell=cell))
    return parts


def _play_missing(
    parts: Sequence[_Part], table: EpisodeTable, question: Question, report: Callable[[str, int], None]
) -> None:
    """Plays the missing episodes in batches of one episode per sub-environment, and writes the table.

    A partly written batch is played again as a whole. Each batch restarts the policy's random numbers, so episodes do
    not depend on interruptions.
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
                    with located(part.title):
                        records = play_batch(part.policy.make(envs), envs, draws, seed=part.seed, first=first)
                    for k, record in enumerate(records, first):
                        add(_row(part, draws, k, record, question))
                    done += len(records) - int(before.sum())
                    report(part.title, done)
    table.write(question)


def _row(part: _Part, draws: Draws, k: int, record: EpisodeRecord, question: Question) -> dict[str, Any]:
    """The row of episode ``k`` of a part."""
    cells = part.cells
    cell, episode = divmod(k, cells.episodes)
    drawn = {name: record.params[name] for name in draws.randomization}
    values = {name: float(column[k]) for name, column in draws.values.items()}
    head = (part.policy.name, cells.name, part.first_cell + cell, episode, part.seed + k)
    found = (record.episode_return, record.length, int(record.terminated), question.outcome(record.episode_return))
    row = dict(zip(COLUMNS, (*head, *found), strict=True))
    return {**row, **question.nominal, **record.reward_terms, **drawn, **values}


def _among(rows: pd.DataFrame, parts: Sequence[_Part]) -> Mask:
    """Whether each row is an episode of a part."""
    asked = {(part.policy.name, part.cells.name, part.first_cell): part.cells.episodes for part in parts}
    cells = zip(rows["policy"], rows["set"], rows["cell"], strict=True)
    found = [episode < asked.get(cell, 0) for cell, episode in zip(cells, rows["episode"], strict=True)]
    return np.array(found, np.bool_)


# ---- the table of episodes -------------------------------------------------------------------------------------------


class EpisodeTable:
    """Rows of a file of episodes."""

    def __init__(self, path: Path) -> None:
        """Reads the file, if there is one.

        Raises:
            RunFolderError: It cannot be read or was not written by an evaluation.
        """
        self.path, self.rows = path, read_episodes(path)

    def check(self, sets: Sequence[CellSet], episodes: Callable[[CellSet], int]) -> None:
        """Checks that rows of these sets are of their cells; ``episodes`` is the number of episodes of a cell.

        Raises:
            RunFolderError: A row is not.
        """
        for cells in sets:
            own, count = self.rows[self.rows["set"] == cells.name], episodes(cells)
            fits = own["cell"].between(0, cells.num_cells - 1) & own["episode"].between(0, count - 1)
            if not fits.all():
                got = "cell {}, episode {}".format(*own.loc[~fits, ["cell", "episode"]].iloc[0])
                raise RunFolderError(
                    f"{self.path}: expected {cells.name} to have cells 0 to {cells.num_cells - 1} and episodes 0 to "
                    f"{count - 1} of each, got {got}. Delete the file to play its episodes again."
                )

    def rename(self, names: Mapping[str, str]) -> None:
        """Renames policies and drops the rows of policies without a new name; in memory only."""
        self.rows = self.rows.assign(policy=self.rows["policy"].map(names)).dropna(subset=["policy"])

    def finished(self, policy: str, cells: CellSet, first_cell: int = 0) -> Mask:
        """Which episodes of a set have been played, shape ``(cells.num_episodes,)``."""
        last = first_cell + cells.num_cells - 1
        own = (self.rows["policy"] == policy) & (self.rows["set"] == cells.name)
        rows = self.rows[own & self.rows["cell"].between(first_cell, last)]
        numbers = ((rows["cell"] - first_cell) * cells.episodes + rows["episode"]).to_numpy(np.int64)
        return np.isin(np.arange(cells.num_episodes), numbers)

    @contextlib.contextmanager
    def growing(self) -> Iterator[Callable[[Mapping[str, Any]], None]]:
        """Yields a function that appends a row to the file; ``rows`` has the new rows after the block."""
        import pandas as pd  # heavy

        new: list[Mapping[str, Any]] = []
        columns = list(map(str, self.rows)) if len(self.rows) else []
        if not columns:  # which terms of the reward there are is known with the first episode
            self.path.unlink(missing_ok=True)
        with contextlib.closing(CsvLog(self.path)) as log:

            def add(row: Mapping[str, Any]) -> None:
                columns.extend(() if columns else row)
                new.append({name: row.get(name, 0.0) for name in columns})  # a term may be missing or new
                log.write(new[-1])

            yield add
        if new:
            grown = typed(pd.DataFrame(new))
            self.rows = pd.concat([self.rows, grown]) if len(self.rows) else grown

    def write(self, question: Question) -> None:
        """Writes the file, with the question's parameters, order and outcomes; none if there are no worst cells."""
        nominal = question.nominal
        rows = self.rows.assign(**{name: value for name, value in nominal.items() if name not in self.rows})
        orders = {"policy": question.names, "set": [cells.name for cells in question.sets]}

        def place(column: Any) -> Any:
            return column.map(orders[column.name].index) if column.name in orders else column

        terms = [name for name in map(str, rows) if name.startswith(TERM) and name not in nominal]
        ordered = rows[[*COLUMNS, *nominal, *terms]].drop_duplicates(KEYS).sort_values(KEYS, key=place)
        self.rows = ordered.assign(outcome=ordered["return"].map(question.outcome)).reset_index(drop=True)
        if len(self.rows) or self.path.name == EPISODES or self.path.exists():
            write_episodes(self.path, self.rows)
