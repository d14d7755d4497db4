"""Handling of Ctrl-C and SIGTERM."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gym_dr.errors import Interrupted

_DEFAULTS: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


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
