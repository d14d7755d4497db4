"""The files of a fit: randomization, particles and report; and where an unfinished one stands."""

from __future__ import annotations

import io
import os
import shlex
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gym_dr.arrays import Array, Mask
from gym_dr.errors import ConfigError
from gym_dr.fitting.results import Fit
from gym_dr.randomization.files import randomization_text
from gym_dr.runs.durable import os_errors, write_atomically
from gym_dr.wording import flag, spelled

if TYPE_CHECKING:  # heavy
    from gym_dr.fitting.estimate import Round

_LARGEST = 2**30  # bytes of an unfinished fit that are read


class FitFiles:
    """Paths next to each other: ``fitted.toml``, ``fitted.npz``, ``fitted.html``, and ``.fitted.unfinished.npz``."""

    def __init__(self, path: Path, logs: Collection[Path] = ()) -> None:
        """Checks that everything can be written, before anything is fitted.

        Args:
            path: Of the randomization.
            logs: Files and folders of the log, see ``log_paths``.

        Raises:
            ConfigError: The path does not end in .toml, its folder does not exist, a folder is where a file would be
                written, or a file would replace one of the log or lie between them.
        """
        if path.suffix != ".toml":
            raise ConfigError(f"{spelled('output')}: expected a file that ends in .toml, got {str(path)!r}.")
        if not path.parent.is_dir():
            raise ConfigError(f"{spelled('output')}: expected a file in an existing folder, got {str(path)!r}.")
        self.loggers = path.with_suffix(".loggers")
        self.randomization, self.particles, self.report = path, path.with_suffix(".npz"), path.with_suffix(".html")
        for file in (self.randomization, self.particles, self.report):
            if file.is_dir():
                raise ConfigError(f"{spelled('output')}: expected to write a file, got the folder {str(file)!r}.")
            _check_apart(file, logs)
        self._unfinished = path.with_name(f".{path.stem}.unfinished.npz")

    def write(self, found: Fit, command: str) -> None:
        """Writes particles, randomization and report, and removes what was unfinished.

        Without the packages for reports there is none, and the randomization's comment says so.

        Raises:
            RunFolderError: A file cannot be written.
        """
        from gym_dr.evaluation.report.fitting import fit_report  # heavy
        from gym_dr.evaluation.report.page import write_report

        columns = {str(name): found.particles[name].to_numpy() for name in found.particles}
        write_atomically(self.particles, _packed(columns))
        comment = [f"Found by: {command}" if command else "Found by gym_dr.fit", *found.findings]
        missing = _missing_packages()
        if missing:
            comment.append(f"There is no report: {missing}")
        write_atomically(self.randomization, randomization_text(found.randomization, "\n".join(comment)).encode())
        if not missing:
            write_report(fit_report(found, command, self._next(found)), self.report)
        with os_errors(self._unfinished, "removed"):
            self._unfinished.unlink(missing_ok=True)

    def _next(self, found: Fit) -> list[tuple[str, str]]:
        train = ["gymdr", "train", "ppo", flag("env"), found.env, flag("randomization"), str(self.randomization)]
        return [("Train on what was found", shlex.join([*train, flag("run_dir"), "runs/fitted"]))]

    # ---- unfinished --------------------------------------------------------------------------------------------------

    def save_round(self, key: str, saved: Unfinished) -> None:
        """Saves where an estimate stands; ``key`` is that of the log and of what is asked.

        The last round is not saved. A fit that goes on repeats it from the one before, with all that depends on it.
        """
        done = saved.round
        if done.ended:
            return
        state = {
            "key": np.array(key),
            "number": np.array(done.number),
            "u": done.u,
            "errors": done.errors,
            "measured": done.sizes.measured,
            "process": done.sizes.process,
            "own": np.array(done.sizes.own),
            "way": np.array(done.way),
            "root": done.root,
            "guessed": saved.guessed,
            "moving": saved.moving,
            "rounds": saved.rounds,
            **({} if saved.phases is None else {"phases": saved.phases}),
        }
        write_atomically(self._unfinished, _packed(state))

    def begin(self, key: str) -> None:
        """Removes what loggers have of an earlier fit, unless it is one with a key that begins so and it goes on."""
        try:
            with open(self._unfinished, "rb") as file, np.load(file, allow_pickle=False) as saved:
                goes_on = str(saved["key"]).startswith(key)
        except Exception:  # there is none, or it is damaged
            goes_on = False
        if not goes_on:
            shutil.rmtree(self.loggers, ignore_errors=True)

    def load_round(self, key: str) -> Unfinished | None:
        """What ``save_round`` saved with the same key; None if there is nothing, or it is damaged."""
        from gym_dr.fitting.chain import Sizes
        from gym_dr.fitting.estimate import Round

        try:
            if self._unfinished.stat().st_size > _LARGEST:
                return None
            with open(self._unfinished, "rb") as file, np.load(file, allow_pickle=False) as saved:
                state = dict(saved)
            if str(state["key"]) != key:
                return None
            sizes = Sizes(measured=state["measured"], process=state["process"], own=float(state["own"]))
            done = Round(
                number=int(state["number"]),
                u=state["u"],
                errors=state["errors"],
                sizes=sizes,
                way=float(state["way"]),
                root=state["root"],
            )
            return Unfinished(
                round=done,
                guessed=state["guessed"],
                moving=state["moving"],
                phases=state.get("phases"),
                rounds=state.get("rounds", np.empty((0, 2 + len(state["u"])))),  # an older version saved none
            )
        except Exception:  # a damaged archive raises errors of zipfile, zlib and numpy; the fit begins again
            return None


@dataclass(frozen=True, kw_only=True, eq=False)
class Unfinished:
    """Where an estimate stands."""

    round: Round  # the last one
    guessed: Array  # parameters with which hidden numbers of states were simulated, a point of the prior
    moving: Mask  # see ``Likelihood.moving``
    phases: npt.NDArray[np.int64] | None  # see ``Likelihood.phases``
    rounds: Array  # (rounds, 2 + parameters) of all of them: number, way and u


def _missing_packages() -> str:
    """What a report lacks; empty if it can be written."""
    from gym_dr.evaluation.report.page import check_installed  # heavy

    try:
        check_installed()
    except ConfigError as error:
        return str(error)
    return ""


def _check_apart(file: Path, logs: Collection[Path]) -> None:
    """Raises ConfigError if a file would replace one of a log, or be read as part of it the next time."""
    place = Path(os.path.realpath(file))
    if place in logs:
        raise ConfigError(
            f"{spelled('output')}: expected a name of its own, got one with which {str(file)!r}, a file of the log, "
            "would be replaced."
        )
    if place.parent in logs:
        raise ConfigError(
            f"{spelled('output')}: expected a file outside of the log's folder, got one with which {str(file)!r} would "
            "lie among the episodes."
        )


def _packed(arrays: dict[str, Any]) -> bytes:
    """Arrays as the content of an .npz file."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()
