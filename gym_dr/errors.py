"""The exceptions that users see: each says what was expected, what was got and how to fix it."""

from __future__ import annotations

import difflib
import signal
from collections.abc import Iterable, Mapping

MAX_LENGTH = 200  # of a value in a message


class GymDrError(Exception):
    """Base of all errors that gym_dr raises on purpose; the command line prints them without a traceback."""


class UnknownNameError(GymDrError, ValueError):
    """An unknown name of an environment, algorithm, parameter, preset, ..."""


class RandomizationError(GymDrError, ValueError):
    """An impossible distribution, parameter space or randomization, or a value outside its bounds."""


class InvalidActionError(GymDrError, ValueError):
    """An action of the wrong type, shape or range, or one that is not finite."""


class EnvStateError(GymDrError, RuntimeError):
    """A call that is not possible in the environment's current state, such as a step before the first reset."""


class RobotError(GymDrError, ValueError):
    """A robot whose model cannot be used, or whose functions return what they must not."""


class ConfigError(GymDrError, ValueError):
    """A configuration file or option that cannot be used."""


class RunFolderError(GymDrError, OSError):
    """A run folder that exists already, is missing, is incomplete or cannot be written."""


class BusyFolderError(RunFolderError):
    """A run folder that another process is writing into."""


class CheckpointError(GymDrError, OSError):
    """A checkpoint that is missing, truncated or not one of gym_dr's."""


class PluginError(GymDrError, RuntimeError):
    """A plugin that cannot be used, or two plugins that claim the same name."""


class NameClashError(PluginError):
    """Two packages that add the same name: which is meant is for the user to say."""


class PluginWarning(UserWarning):
    """A plugin that is broken and left out."""


class TrainingError(GymDrError, RuntimeError):
    """Training cannot go on, for example because a loss is not finite."""


class LostRunError(TrainingError):
    """Runs whose processes were killed before or while they trained; ``gymdr resume`` continues them."""


class Interrupted(KeyboardInterrupt):
    """A signal has stopped what was going on; what is finished is kept, and the message says how to go on.

    Attributes:
        number: Of the signal.
    """

    def __init__(self, message: str, number: int = signal.SIGINT) -> None:
        """Keeps the message and the number."""
        super().__init__(message, int(number))
        self.number = int(number)

    def __str__(self) -> str:
        return str(self.args[0])


class NotFiniteError(TrainingError):
    """An observation, reward, loss or gradient that is NaN or infinite; raised before it changes anything."""


class SkippedUpdateWarning(UserWarning):
    """An update that was skipped because something in it was not finite."""


class WorkerError(GymDrError, RuntimeError):
    """A sub-environment's process was killed, raised an error, hung, or returned a wrong shape.

    All processes of its vector environment have been ended.

    Attributes:
        env_index: Of the sub-environment.
        seed: What it was seeded with; None before its first reset.
        draw_index: The draw of its last observation, counted since it was seeded; None before the first and where
            there are no draws.
        params: Its parameter values.
    """

    def __init__(
        self,
        message: str,
        *,
        env_index: int,
        seed: int | None,
        draw_index: int | None,
        params: Mapping[str, float] | None,
    ) -> None:
        """Stores the message and the episode that was lost."""
        super().__init__(message)
        self.env_index, self.seed, self.draw_index, self.params = env_index, seed, draw_index, dict(params or {})


class WorkerWarning(UserWarning):
    """A worker failed and was replaced; its episode was truncated."""


class RandomizationWarning(UserWarning):
    """A randomization that is possible but probably not intended."""


def shortened(value: object) -> str:
    """The repr of a value, truncated for a message."""
    text = repr(value)
    return text if len(text) <= MAX_LENGTH else f"{text[:MAX_LENGTH]}..."


def unknown_name(kind: str, name: object, known: Iterable[str], listing: str | None = None) -> UnknownNameError:
    """Builds the error for an unknown name, with the nearest known one.

    Args:
        kind: What was looked up, for example ``"parameter"``.
        name: The unknown name.
        known: All known names.
        listing: A command that lists them, if there are too many for the message.
    """
    names = sorted(known)
    # comparing takes quadratic time, and a name may come from an untrusted file
    close = difflib.get_close_matches(str(name)[:MAX_LENGTH], names, n=1, cutoff=0.5)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    rest = f" See '{listing}'." if listing else f" Known: {', '.join(names)}." if names else ""
    return UnknownNameError(f"Unknown {kind} {shortened(name)}.{hint}{rest}")
