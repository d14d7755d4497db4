"""Code blocks of README and of the pages in docs, run as a reader types them, and what they print.

A fence of ``text`` that follows a block of code is what that block prints, and, as at a prompt, the value of a Python
block's last expression. ``...`` stands for anything. After the comment ``<!-- numbers vary -->``, which readers do not
see, numbers may be others: those of a training differ from machine to machine.

As a program, this runs pages with their whole budgets, in the current folder and with the gym_dr that is installed:
    python tests/pages.py PAGE...
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
BUILT = {"_build", "families"}  # by Sphinx

# a person's hands are played by test_play.py; copies of the repository are made and installed by .ci/run
NOT_TYPED = ("gymdr play --human", "git clone", "pip install -c constraints.txt")

VARIES = "<!-- numbers vary -->"
LIKE_DOCTEST = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
_NUMBER = re.compile(r"-?\d+(,\d{3})*(\.\d+)?(e[+-]?\d+)?|\bnan\b", flags=re.IGNORECASE)


class Block(NamedTuple):
    """A fence of a page."""

    language: str
    code: str
    line: int  # of the page, before the code
    output: str | None  # what the page says that it prints
    varies: bool  # whether numbers of the output may be others


def pages() -> list[Path]:
    """README and the pages that people wrote."""
    return [ROOT / "README.md", *sorted(path for path in (ROOT / "docs").rglob("*.md") if not BUILT & set(path.parts))]


def shown(page: Path) -> list[Block]:
    """The fences of a page, without those of output, which belong to the block above."""
    text, found = page.read_text(encoding="utf-8"), []
    fences = list(_FENCE.finditer(text))
    for fence, after in itertools.zip_longest(fences, fences[1:]):
        between = "" if after is None else text[fence.end() : after.start()].strip()
        output = after[2] if after is not None and after[1] == "text" and between in ("", VARIES) else None
        if fence[1] != "text":
            line = text.count("\n", 0, fence.start(2))
            found.append(Block(fence[1], fence[2], line, output, between == VARIES))
    return found


def blocks(page: Path, language: str) -> list[str]:
    """What stands in the fences of a language."""
    return [block.code for block in shown(page) if block.language == language]


def outputs(page: Path) -> int:
    """How many fences of output a page has."""
    return sum(fence[1] == "text" for fence in _FENCE.finditer(page.read_text(encoding="utf-8")))


def check_printed(block: Block, printed: str) -> None:
    """Compares what a block has printed with what the page shows, if it shows something.

    Raises:
        AssertionError: They differ.
    """
    if block.output is None:
        return
    wanted, got = (_NUMBER.sub("#", text) if block.varies else text for text in (block.output, printed))
    if not doctest.OutputChecker().check_output(wanted, got, LIKE_DOCTEST):
        raise AssertionError(f"The block\n{block.code}\nprints\n{printed}\nand the page shows\n{block.output}")


def run_python(block: Block, page: Path, names: dict[str, Any]) -> str:
    """Runs a block of Python and returns what it prints, with the value of its last expression as at a prompt."""
    tree = ast.increment_lineno(ast.parse(block.code), block.line)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, str(page), "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), str(page), "eval"), names)
            if value is not None:
                print(repr(value))
    return printed.getvalue()


def run_program(page: Path) -> list[str]:
    """Runs the Python blocks of a page as one program, in the current folder.

    Returns:
        What each block has printed.

    Raises:
        AssertionError: A block prints something else than the page shows.
    """
    names: dict[str, Any] = {}
    all_printed = []
    for block in shown(page):
        if block.language == "python":
            all_printed.append(run_python(block, page, names))
            check_printed(block, all_printed[-1])
    return all_printed


def run_page(page: Path) -> None:
    """Runs all blocks of a page as a reader types them: commands of the shell with their whole budget, and Python.

    Raises:
        AssertionError: A block prints something else than the page shows.
        CalledProcessError: A command fails.
    """
    names: dict[str, Any] = {}
    for block in shown(page):
        print(f"{page.name}, line {block.line}: {block.language}", flush=True)
        if block.language == "python":
            check_printed(block, run_python(block, page, names))
        elif block.language in ("sh", "console"):
            typed = [line for line in block.code.splitlines() if not line.startswith(NOT_TYPED)]
            done = subprocess.run(["bash", "-ec", "\n".join(typed)], stdout=subprocess.PIPE, check=True, text=True)
            print(done.stdout, flush=True)
            check_printed(block, done.stdout)


if __name__ == "__main__":
    # progress goes to stderr, and an interpreter's own folder is no place to import from
    sys.path[0] = os.getcwd()
    for name in sys.argv[1:]:
        run_page(Path(name))
