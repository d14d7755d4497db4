"""The contributor's page names what exists."""

from __future__ import annotations

import importlib
import re
from functools import reduce
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "CONTRIBUTING.md").read_text()
SVG = "{http://www.w3.org/2000/svg}"


def stations(picture: str) -> list[tuple[str, str]]:
    """The stations of a way: (name, file)."""
    texts = ElementTree.parse(ROOT / "docs" / "pictures" / f"{picture}.svg").iter(f"{SVG}text")
    code = [text.text or "" for text in texts if "monospace" in text.get("font-family", "")]
    return list(zip(code[::2], code[1::2], strict=True))


@pytest.mark.parametrize("picture", ["way_of_a_draw", "way_of_an_update"])
def test_each_station_of_a_way_is_where_its_picture_says(picture: str) -> None:
    assert f"pictures/{picture}.svg" in PAGE
    assert len(stations(picture)) == 10
    for name, file in stations(picture):
        module = importlib.import_module("gym_dr." + file.removesuffix(".py").replace("/", "."))
        found = reduce(getattr, name.split("."), module)
        assert found.__module__ == module.__name__, f"{file}: {name} comes from {found.__module__}"


def test_the_table_has_each_folder_and_each_module_of_the_package() -> None:
    rows = re.findall(r"^\| (`[^|]+`) \|", PAGE, re.M)
    named = {name.strip("/").removesuffix(".py") for row in rows for name in re.findall(r"`([^`]+)`", row)}
    package = ROOT / "gym_dr"
    present = {path.stem for path in package.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert named == present - {"__init__"}
