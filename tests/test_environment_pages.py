"""The pages that the documentation makes from the registry say what is true of each family."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gym_dr.envs.family import FAMILIES
from gym_dr.errors import ConfigError
from gym_dr.policies import play
from tests.pages import ROOT, blocks

EXTENSION = ROOT / "docs" / "_extensions" / "environment_pages.py"


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    spec = importlib.util.spec_from_file_location("environment_pages", EXTENSION)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", list(FAMILIES))
def test_a_page_offers_play_by_hand_where_there_are_keys(
    name: str, pages: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text(pages.page(FAMILIES.get(name), ROOT / "docs" / "environments"), encoding="utf-8")
    offered = [line.split()[-1] for block in blocks(page, "sh") for line in block.splitlines() if "--human" in line]

    def playable(env_id: str) -> bool:
        try:
            play.play_by_hand(env_id, seed=0)
        except ConfigError:
            return False
        return True

    opened: list[Any] = []
    module: Any = ModuleType("gymnasium.utils.play")  # the real one asks matplotlib for a window toolkit
    module.play = lambda env, **_: opened.append(env)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    assert offered == [env_id for env_id in [FAMILIES.get(name).ids[0].id] if playable(env_id)]
    assert len(opened) == len(offered)
