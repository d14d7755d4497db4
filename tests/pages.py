"""Code blocks of README and of the pages in docs."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
BUILT = {"_build", "families"}  # by Sphinx


def pages() -> list[Path]:
    """README and the pages that people wrote."""
    return [ROOT / "README.md", *sorted(path for path in (ROOT / "docs").rglob("*.md") if not BUILT & set(path.parts))]


def blocks(page: Path, language: str) -> list[str]:
    """What stands in the fences of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def run_program(page: Path) -> None:
    """Runs the Python blocks of a page as one program, in the current folder."""
    exec(compile("\n".join(blocks(page, "python")), str(page), "exec"), {})
