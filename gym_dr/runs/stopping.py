"""Ctrl-C and SIGTERM."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

from gym_dr.errors import Interrupted

_DEFAULTS: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


class StopRequest:
    """A handler for ``stop_signals``: the first signal requests a stop, the second stops at once.

    Attributes:
        number: Of the first signal; 0 before it.
    """

    def __init__(self) -> None:
        self.number = 0

    def __call__(self, number: int) -> None:
        if self.number:
            raise KeyboardInterrupt(number)
        self.number = number
        # not click.echo, which the signal may have interrupted
        os.write(2, b"\nStopping after the current update or episode; once more to stop at once.\n")

    def check(self) -> None:
        """Stops here if that was requested.

        Raises:
            KeyboardInterrupt: A signal has arrived; its number is the argument.
        """
        if self.number:
            raise KeyboardInterrupt(self.number)


@contextlib.contextmanager
def stop_signals(handler: Callable[[int], None]) -> Iterator[None]:
    """Routes SIGINT and SIGTERM to a handler.

    Signals that are already handled or ignored stay so, as do all outside the main thread.

    Args:
        handler: Called with the signal's number in the main thread.
    """
    mine = []
    if threading.current_thread() is threading.main_thread():
        mine = [number for number, default in _DEFAULTS.items() if signal.getsignal(number) == default]
    for number in mine:
        signal.signal(number, lambda number, _: handler(number))
    try:
        yield
    finally:
        for number in mine:
            signal.signal(number, _DEFAULTS[number])


@contextlib.contextmanager
def explain_interrupt(message: str) -> Iterator[None]:
    """Raises an interrupt as ``Interrupted`` with a message that says how to go on."""
    try:
        yield
    except KeyboardInterrupt as stopped:
        raise Interrupted(message, *stopped.args[-1:]) from None


@contextlib.contextmanager
def children_end_with_us() -> Iterator[None]:
    """Processes started in here ignore Ctrl-C, which this process handles; SIGTERM ends them.

    Signals that arrive meanwhile end this process or are lost, so do little else in here.
    """
    if threading.current_thread() is not threading.main_thread():  # Python sets signals in the main thread only
        yield
        return
    before = {number: signal.getsignal(number) for number in _DEFAULTS}
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
