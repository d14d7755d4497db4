"""The ``gymdr`` command; subcommands are imported on use."""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any, TextIO, cast

import click

from gym_dr.cli.typed import as_typed, short_warnings
from gym_dr.errors import GymDrError, Interrupted, near, printable, unknown_name

_COMMANDS = {  # name -> one line for --help; each is the function ``command`` of a module of that name
    "train": "Train an algorithm on a randomized environment.",
    "resume": "Resume an interrupted run.",
    "evaluate": "Evaluate trained policies.",
    "report": "Write a robustness report as one HTML file.",
    "study": "Train, evaluate and compare variants over seeds, from one file.",
    "tune": "Search for good options of an algorithm with Optuna.",
    "plot": "Plot the training of one or several runs.",
    "play": "Watch a trained policy, or play yourself.",
    "export": "Write a policy as a file that runs without gym_dr.",
    "record": "Record episodes of a policy as a log.",
    "fit": "Find ranges of physics from logs of the real system.",
    "bench": "Benchmark this machine: stepping, threads and learning.",
    "list": "List environments, algorithms, samplers, loggers or plugins.",
    "params": "Show the parameters and presets of an environment.",
}
_MODULES = {"list": "listing"}


class _Commands(click.Group):
    """Subcommands that are imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"gym_dr.cli.{_MODULES.get(cmd_name, cmd_name)}")
        command: click.Command = module.command
        for param in command.params if ctx.resilient_parsing else ():  # a shell completes a line
            if param.type is click.STRING:
                param.type = importlib.import_module("gym_dr.cli.options").TEXT
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            ctx.fail(str(unknown_name("command", args[0], _COMMANDS)))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="gym-dr", prog_name="gymdr")
def cli() -> None:
    """Domain randomization for Gymnasium: train, evaluate and watch policies under varying physics."""


class _Printable:
    """A stream in which names of files and policies reach the terminal as text, whatever they hold."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        return self._stream.write(printable(text))


def _show_error(message: str) -> None:
    click.echo(f"Error: {as_typed(message)}", err=True)


def _flush() -> None:
    """Writes what is left of the output, or drops it where that fails; Python would complain about it at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _options_like(option: str, command: click.Command) -> str:
    """The question after an unknown option, for the end of a message; empty if no option of the command is like it."""
    name = option.lstrip("-")
    helps = {param.opts[0].lstrip("-"): getattr(param, "help", "") for param in command.params}
    told = [flag for flag, help in helps.items() if "-" in name and name.replace("-", " ") in help]
    found = told or near(name, helps) or [flag for flag in helps if flag in name.split("-")]
    return f" Did you mean {' or '.join(repr(f'--{flag}') for flag in found)}?" if found else ""


def main(args: Sequence[str] | None = None, *, tell: Callable[[str], object] = _show_error) -> None:
    """Runs the command line; ``tell`` gets the message of a user's error, which ends it with exit code 2."""
    typed = list(sys.argv[1:] if args is None else args)
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:  # closed streams, whose numbers the run's files would get
        pass
    os.close(number)
    sys.stdout, sys.stderr = (
        stream or os.fdopen(number, "w", closefd=False) for number, stream in ((1, sys.stdout), (2, sys.stderr))
    )
    try:
        with short_warnings(), contextlib.redirect_stdout(cast(TextIO, _Printable(sys.stdout))):
            # the root context has the command line, which run folders record
            cli.main(args=typed, prog_name="gymdr", standalone_mode=False, obj=printable(shlex.join(["gymdr", *typed])))
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as error:
        if isinstance(error, click.NoSuchOption) and error.ctx:
            hint = _options_like(error.option_name, error.ctx.command)
            error = click.UsageError(f"No such option {error.option_name!r}.{hint}", error.ctx)
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt) as stop:
        cause = stop.__cause__ or stop  # click wraps interrupts in Abort
        click.echo(
            f"{as_typed(str(cause))}\nInterrupted." if isinstance(cause, Interrupted) else "Interrupted.", err=True
        )
        sys.exit(128 + (cause.args[-1] if cause.args else signal.SIGINT))  # 130; 143 for SIGTERM
    except (GymDrError, MemoryError) as error:
        tell(str(error) or "Not enough memory.")
        sys.exit(2)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        tell("Policies and trainings need PyTorch, which is not installed: pip install torch")
        sys.exit(2)
    except BrokenPipeError:  # the reader closed our output, as in `gymdr list envs | head`
        sys.exit(0)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.ENAMETOOLONG, errno.EACCES):
            raise
        tell(f"{error.filename or 'Output'} cannot be {'read or ' if error.filename else ''}written: {error.strerror}.")
        sys.exit(2)
    finally:
        _flush()
