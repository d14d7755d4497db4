"""What the user of a running command sees and does: progress, Ctrl-C and SIGTERM."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from gym_dr.errors import Interrupted, printable, say

LINES = 20  # plain lines in a whole run or evaluation

Display = Literal["bar", "lines", "nothing"]

_DEFAULTS: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


class Progress(contextlib.AbstractContextManager["Progress"]):
    """A context manager that shows progress, speed and the time left.

    Speed and time left are measured from the end of the first unit, which includes making environments and compiling.
    """

    def __init__(self, unit: str, display: Display = "bar") -> None:
        """Shows nothing until the first call.

        Args:
            unit: What is counted, such as "update".
            display: "bar" for a bar if possible, else lines; "lines"; or "nothing".
        """
        self._unit, self._display = unit, display
        self._bar: Any = None
        self._first, self._lines = -1, 0  # units and lines at the first call
        self._measured_from: tuple[float, int, float] | None = None  # time, units, work

    def __call__(self, title: str, done: int, total: int, *, steps: float | None = None, result: str = "") -> None:
        """Updates the display; the first call starts it.

        Args:
            title: The current activity.
            done: Units so far; units of the first call do not count for the speed.
            total: Total units, as far as they are known.
            steps: Environment steps so far, to show the speed in steps.
            result: Other text to show.
        """
        if self._display == "nothing":
            return
        if self._first < 0:
            self._first, self._lines = done, done * LINES // max(total, 1)
        if self._bar is None and self._display == "bar" and done > self._first and _has_bars():
            from tqdm.auto import tqdm  # heavy

            # not before the first unit is done, which may include compiling, a line of its own
            form = "{desc}{percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"
            self._bar = tqdm(
                desc=printable(title), total=total, initial=done, bar_format=form, dynamic_ncols=True, mininterval=0.2
            )
        speed, left = self._measure(done, total, steps)
        state = ", ".join(filter(None, [speed, result, left]))
        if self._bar is not None:
            self._bar.total = total
            self._bar.set_description(printable(title), refresh=False)
            self._bar.set_postfix_str(state, refresh=False)
            self._bar.update(done - self._bar.n)
        elif done * LINES // max(total, 1) > self._lines:
            self._lines = done * LINES // total
            self.note(", ".join(filter(None, [f"{title}: {self._unit} {done}/{total}", state])))

    def note(self, text: str) -> None:
        """Shows a separate line."""
        if self._bar is not None:
            self._bar.write(printable(text), file=sys.stderr)
        elif self._display != "nothing":
            say(text)

    def __exit__(self, *_: object) -> None:
        """Ends the display."""
        if self._bar is not None:
            self._bar.close()

    def _measure(self, done: int, total: int, steps: float | None) -> tuple[str, str]:
        """Speed and time left as text; empty while they are unknown."""
        now, work = time.perf_counter(), done if steps is None else steps
        if self._measured_from is None:
            if done > self._first:
                self._measured_from = now, done, work
            return "", ""
        began, units, work_before = self._measured_from
        seconds = now - began
        if done == units or seconds <= 0:
            return "", ""
        unit = self._unit if steps is None else "step"
        made = work - work_before
        speed = f"{made / seconds:,.{0 if made >= seconds else 1}f} {unit}s/s" if unit else ""
        return speed, f"{(total - done) * seconds / (done - units):.0f} s left"


def _has_bars() -> bool:
    """Whether this is a notebook, or a terminal with a size; those of some CI systems have none."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is not None and "IPKernelApp" in shell.config:
        return True
    try:
        return sys.stderr.isatty() and min(os.get_terminal_size(sys.stderr.fileno())) > 0
    except (AttributeError, OSError, ValueError):  # see ``say``
        return False


# ---- signals ---------------------------------------------------------------------------------------------------------


class StopRequest:
    """A handler for ``stop_signals``: the first signal requests a stop, the second stops at once.

    Attributes:
        number: The first signal's number; 0 before.
    """

    def __init__(self) -> None:
        self.number = 0

    def __call__(self, number: int) -> None:
        if self.number:
            raise KeyboardInterrupt(number)
        self.number = number
        # not click.echo, which a signal may interrupt
        os.write(2, b"\nStopping after the current update or episode. Press Ctrl-C again to stop at once.\n")

    def check(self) -> None:
        """Stops here if a signal requested it.

        Raises:
            KeyboardInterrupt: A signal has arrived; its number is the argument.
        """
        if self.number:
            raise KeyboardInterrupt(self.number)


@contextlib.contextmanager
def _handled(handlers: Mapping[int, Any]) -> Iterator[None]:
    """Sets signal handlers and restores the previous ones; in the main thread only, as Python requires."""
    in_main_thread = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, new) for number, new in handlers.items()} if in_main_thread else {}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


@contextlib.contextmanager
def stop_signals(handler: Callable[[int], None]) -> Iterator[None]:
    """Routes SIGINT and SIGTERM to a handler, which is called with the signal's number in the main thread.

    Signals that are already handled or ignored keep their handlers. Outside the main thread this does nothing.
    """
    free = [number for number, default in _DEFAULTS.items() if signal.getsignal(number) == default]
    with _handled(dict.fromkeys(free, lambda number, _: handler(number))):
        yield


@contextlib.contextmanager
def explain_interrupt(message: str) -> Iterator[None]:
    """Raises an interrupt as ``Interrupted``, with a message that says how to continue."""
    try:
        yield
    except KeyboardInterrupt as stopped:
        raise Interrupted(message, *stopped.args[-1:]) from None


@contextlib.contextmanager
def children_end_with_us() -> Iterator[None]:
    """Makes processes started in the block ignore Ctrl-C, which this process handles; SIGTERM ends them.

    Signals that arrive during the block end this process or are lost, so keep it short.
    """
    with _handled({signal.SIGINT: signal.SIG_IGN, signal.SIGTERM: signal.SIG_DFL}):
        yield
