"""Exceptions that users see, how messages word names and numbers, and the checks that every module needs.

Each message says what was expected, what was given and how to fix it.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import os
import re
import signal
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

MAX_LENGTH = 200  # of a value in a message

# control characters, which steer terminals, and bytes of file names that are not UTF-8, which cannot be written
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """Text that may hold a stranger's names, with escapes for characters that cannot be shown."""
    return _UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class GymDrError(Exception):
    """Base class of gym_dr's own errors; the command line prints them without a traceback."""

    def __str__(self) -> str:
        return printable(super().__str__())


class UnknownNameError(GymDrError, ValueError):
    """An unknown environment, algorithm, parameter, preset or other name."""


class RandomizationError(GymDrError, ValueError):
    """An impossible distribution, parameter space or randomization, or a value outside its bounds."""


class InvalidActionError(GymDrError, ValueError):
    """An action of the wrong type, shape or range, or one that is not finite."""


class EnvStateError(GymDrError, RuntimeError):
    """A call that the environment's current state does not allow, such as a step before the first reset."""


class RobotError(GymDrError, ValueError):
    """A robot whose model cannot be used, or whose functions return invalid values."""


class EquationsError(GymDrError, ValueError):
    """Equations that cannot be compiled, or whose functions return invalid values."""


class LogError(GymDrError, ValueError):
    """A log that cannot be used."""


class ConfigError(GymDrError, ValueError):
    """A configuration file or option that cannot be used."""


class RunFolderError(GymDrError, OSError):
    """A run folder that already exists, is missing or incomplete, or cannot be written."""


class BusyFolderError(RunFolderError):
    """A run folder that another process is writing to."""


class CheckpointError(GymDrError, OSError):
    """A checkpoint that is missing, truncated or not written by gym_dr."""


class PluginError(GymDrError, RuntimeError):
    """A plugin that cannot be used, or two plugins that claim the same name."""


class NameClashError(PluginError):
    """Two packages that add the same name; the user must choose one."""


class PluginWarning(UserWarning):
    """A logger that failed and is disabled."""


class TrainingError(GymDrError, RuntimeError):
    """Training cannot continue, for example because a loss is not finite."""


class LostRunError(TrainingError):
    """Runs whose processes were killed before or during training; ``gymdr resume`` continues them."""


class Interrupted(KeyboardInterrupt):
    """A signal stopped the work; finished results are kept, and the message says how to continue.

    Attributes:
        number: The signal's number.
    """

    def __init__(self, message: str, number: int = signal.SIGINT) -> None:
        """Stores the message and the signal's number."""
        super().__init__(message, int(number))
        self.number = int(number)

    def __str__(self) -> str:
        return printable(str(self.args[0]))


class NotFiniteError(TrainingError):
    """A NaN or infinite observation, reward, return, loss or gradient; raised before it changes anything."""


class RandomizationWarning(UserWarning):
    """A possible randomization that is probably not intended."""


# ---- words -----------------------------------------------------------------------------------------------------------


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issues a warning at the user's line: the innermost call outside gym_dr and Gymnasium."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals["__name__"].partition(".")[0] in ("gym_dr", "gymnasium"):
        frame, level = frame.f_back, level + 1
    warnings.warn(printable(message), category, stacklevel=level)


def say(text: str, end: str = "\n") -> None:
    """Shows a line on standard error, which may be None, closed, or an object with nothing but ``write``.

    With a carriage return as its end, the next line replaces it on a terminal, and nothing is shown elsewhere.
    """
    with contextlib.suppress(AttributeError, OSError, ValueError):
        if end == "\n" or sys.stderr.isatty():
            sys.stderr.write(f"{printable(text)}{end}")
            sys.stderr.flush()


def shortened(value: object) -> str:
    """The repr of a value, truncated to fit a message."""
    text = repr(value)
    return text if len(text) <= MAX_LENGTH else f"{text[:MAX_LENGTH]}..."


def counted(number: int, noun: str) -> str:
    """A number and its noun, in the plural unless the number is 1: ``1 core``, ``1,200 episodes``."""
    return f"{number:,} {noun if number == 1 else f'{noun}s'}"


def listed(names: Sequence[str], most: int = 4) -> str:
    """Names separated by commas; "and N more" replaces those beyond ``most``."""
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"


def percent(share: float) -> str:
    """A share with two digits, or with all before the point: ``0.12 %``, ``12 %``, ``1,200 %``."""
    value = 100.0 * share
    return f"{value:,.0f} %" if abs(value) >= 99.5 else f"{value:.2g} %"


def exact_text(value: float) -> str:
    """The shortest text that reads back as the same number."""
    short = f"{value:g}"
    return short if float(short) == value else repr(float(value))


def unknown_name(kind: str, name: object, known: Iterable[str], listing: str | None = None) -> UnknownNameError:
    """Builds the error for an unknown name and suggests the nearest known one.

    Args:
        kind: What was looked up, for example ``"parameter"``.
        name: The unknown name.
        known: All known names.
        listing: A command that lists them, in place of the known names.
    """
    names = sorted(known)
    hint = did_you_mean(name, names)
    rest = f" See '{listing}'." if listing else f" Known: {', '.join(names)}." if names else ""
    return UnknownNameError(f"Unknown {kind} {shortened(name)}.{hint}{rest}")


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """The question after an unknown name, for the end of a message; empty if no known name is near it."""
    return f" Did you mean {' or '.join(map(repr, found))}?" if (found := near(name, known)) else ""


def near(name: object, known: Iterable[str]) -> list[str]:
    """The known names of which a name is a word, as ``lr`` of ``actor_lr``, or else the most similar one."""
    wanted, names = str(name)[:MAX_LENGTH], sorted(known)  # matching takes quadratic time, and files may hold the name
    longer = [one for one in names if wanted in re.split("[^A-Za-z0-9]", one)]
    return longer[:4] or difflib.get_close_matches(wanted, names, n=1, cutoff=0.5)


# ---- checks ----------------------------------------------------------------------------------------------------------


def check_known(kind: str, name: object, known: Collection[str]) -> None:
    """Checks a name that a user chose.

    Raises:
        UnknownNameError: It is not among the known ones; see ``unknown_name``.
    """
    if name not in known:
        raise unknown_name(kind, name, known)


def as_path(given: str | os.PathLike[str]) -> Path:
    """A path as users write it, where ``~`` is the home folder.

    Raises:
        ConfigError: There is no such user, or no home folder.
    """
    try:
        return Path(given).expanduser()
    except RuntimeError as error:
        raise ConfigError(f"{os.fspath(given)}: {error}") from None


def needs(what: str, extra: str, *packages: str) -> None:
    """Checks that packages of an extra are installed.

    Args:
        what: What needs them: "A report".
        extra: The extra of gym-dr that has them.
        *packages: The modules to look for.

    Raises:
        ConfigError: One is missing.
    """
    for package in packages:
        try:
            importlib.import_module(package)
        except ImportError as error:
            missing = error.name or package
            raise ConfigError(
                f"{what} needs the package {missing!r}, which is not installed: pip install 'gym-dr[{extra}]'"
            ) from None


@contextlib.contextmanager
def located(place: object) -> Iterator[None]:
    """Begins the message of an error with the place where it occurred."""
    try:
        yield
    except GymDrError as error:
        error.args = (f"{place}: {error}",)
        raise


@contextlib.contextmanager
def raised_as(
    kind: type[GymDrError], what: str, errors: type[Exception] | tuple[type[Exception], ...] = Exception
) -> Iterator[None]:
    """Raises errors of others in the block as one of gym_dr's own, whose message begins with ``what``.

    Args:
        kind: The error to raise.
        what: What is wrong, and with what.
        errors: Those of others; by default any, as strangers' files and packages may raise, which
            are named in the message. gym_dr's own pass unchanged.
    """
    try:
        yield
    except GymDrError:
        raise
    except errors as error:
        said = shortened(str(error))[1:-1]
        raise kind(f"{what}: {f'{type(error).__name__} ({said})' if errors is Exception else said}") from error
