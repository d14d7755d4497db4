"""README, the pages and the examples, followed in one folder one after the other, never meet a folder that is taken."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

from tests.pages import ROOT, pages

EXAMPLES = [*(ROOT / "examples").rglob("*.py"), *(ROOT / "examples").rglob("*.toml")]
DOCSTRINGS = sorted((ROOT / "gym_dr" / "experiments").glob("*.py"))  # of the functions that write folders
TEXTS = [*pages(), *sorted(EXAMPLES), *DOCSTRINGS]

MADE = re.compile(r"""(?:--run-dir |--output |run_dir="|(?<!\w)output=")([a-z][\w./-]*)""")
# it goes on with what is there, wherever it is typed
STUDY = re.compile(r"""(?:study|tune)[ (]"?([\w./]+\.toml)"?,? (?:--output |output=")([\w./-]+)""")
USED = re.compile(r"\bruns/[a-z]\w*")
LINK = re.compile(r"\]\(([\w./]+\.md)[^)]*\)")


def made_in(text: str) -> dict[str, str]:
    """Folders and files that the commands and calls of a text make -> the study that makes them, or nothing."""
    return dict.fromkeys(MADE.findall(text), "") | {path: file for file, path in STUDY.findall(text)}


def test_what_one_page_makes_no_other_page_makes() -> None:
    makers = defaultdict(list)
    for path in TEXTS:
        for made, study in made_in(path.read_text(encoding="utf-8")).items():
            makers[made].append((path.relative_to(ROOT).as_posix(), study))
    twice = {made: found for made, found in makers.items() if len(found) > 1}
    assert {made: found for made, found in twice.items() if len({study or name for name, study in found}) > 1} == {}


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_uses_runs_that_it_makes_or_names_the_page_that_does(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    linked = [page.parent / target for target in LINK.findall(text)]
    near = "".join([text, *(path.read_text(encoding="utf-8") for path in linked if path.exists())])
    assert set(USED.findall(text)) - made_in(near).keys() == set()
