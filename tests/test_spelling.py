"""Code and pages are in American English, so that one word has one spelling: ``normalize`` is also an option."""

from __future__ import annotations

import re

import pytest

from tests.pages import ROOT

BRITISH = re.compile(
    r"\b\w*(?:maximis|minimis[ei]|normalis|optimis[aei]|vectoris|initialis|recognis|synchronis|standardis|colour|favour"
    r"|behaviour|centre|neighbour|labelled)\w*|\bmetres?\b|\blicences?\b",
    re.IGNORECASE,
)
FOLDERS = ("gym_dr", "docs", "examples", "benchmarks", "tests")
MADE = {"_build", "families", "saved", "data", "__pycache__"}


@pytest.mark.parametrize("folder", FOLDERS)
def test_words_are_spelled_as_in_american_english(folder: str) -> None:
    paths = [
        path for path in (ROOT / folder).rglob("*") if path.suffix in {".py", ".md", ".toml", ".jinja", ".js", ".css"}
    ]
    if folder == "docs":
        paths += [ROOT / "README.md", ROOT / "CHANGELOG.md"]
    found = {
        f"{path.relative_to(ROOT)}: {word}"
        for path in paths
        if path.name != "test_spelling.py" and not MADE & set(path.relative_to(ROOT).parts)
        for word in BRITISH.findall(path.read_text(encoding="utf-8"))
    }
    assert found == set()
