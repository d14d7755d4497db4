"""``gymdr`` in a process that a launcher started, see ``gym_dr.runs.launch``."""

from __future__ import annotations

import os
import sys
import threading
import traceback

from gym_dr.cli import main as command_line

LONGEST = 16_000  # characters of a message, which must fit into a pipe, since it is read at the end


def main() -> None:
    """Runs the command line; the message of an error is the only output, and other prints go to standard error."""
    message = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    threading.Thread(target=_end_with_launcher, daemon=True).start()
    try:
        command_line.main(sys.argv[1:], tell=lambda text: message.write(text[:LONGEST]))
    except Exception:  # a bug in a plugin or in gym_dr
        message.write(traceback.format_exc()[-LONGEST:])
        sys.exit(1)
    finally:
        message.close()


def _end_with_launcher() -> None:
    """Ends this process when its input closes: its launcher has ended or no longer needs it."""
    os.read(0, 1)
    os._exit(1)
