"""Ctrl-C and SIGTERM."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

_DEFAULTS: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


class StopRequest:
    """A handler for ``stop_signals``: the first signal is kept until somebody looks, a second stops at once.

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
        os.write(2, b"\nStopping after the update or episode under way; once more to stop at once.\n")

    def check(self) -> None:
        """Called where it is good to stop.

        Raises:
            KeyboardInterrupt: A signal has come; its number is the argument.
        """
        if self.number:
            raise KeyboardInterrupt(self.number)


@contextlib.contextmanager
def stop_signals(handler: Callable[[int], None]) -> Iterator[None]:
    """Gives SIGINT and SIGTERM to a handler.

    A signal that somebody else handles or ignores stays theirs, and so it is in threads, where Python sets none.

    Args:
        handler: Called with the signal's number in the main thread, between two steps of whatever that does.
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
def children_end_with_us() -> Iterator[None]:
    """Processes that are started in here leave Ctrl-C, which reaches all of a terminal, to this one; SIGTERM ends them.

    Signals that arrive meanwhile end this process at once or are lost, so little else should be done in here.
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
