from __future__ import annotations

import sys

import pytest

from gym_dr.errors import ConfigError, NameClashError, UnknownNameError, needs
from gym_dr.registry import Registry, all_or_nothing


@pytest.fixture
def tools() -> Registry[int]:
    registry: Registry[int] = Registry("tool")
    registry.add("hammer", 1, "pkg-a 1.0")
    return registry


def test_an_item_is_found_by_its_name_and_knows_its_owner(tools: Registry[int]) -> None:
    assert (tools.get("hammer"), tools.owner("hammer")) == (1, "pkg-a 1.0")
    assert (list(tools), tools.values(), "hammer" in tools) == (["hammer"], [1], True)


def test_an_unknown_name_is_answered_with_the_nearest(tools: Registry[int]) -> None:
    with pytest.raises(UnknownNameError, match=r"Unknown tool 'hamer'\. Did you mean 'hammer'"):
        tools.get("hamer")


def test_the_same_item_of_the_same_owner_may_be_added_again(tools: Registry[int]) -> None:
    tools.add("hammer", 1, "pkg-a 1.0")
    assert tools.values() == [1]


@pytest.mark.parametrize(("item", "owner"), [(2, "pkg-a 1.0"), (1, "pkg-b 2.0")])
def test_another_item_or_owner_of_a_name_is_refused_and_the_first_stays(
    item: int, owner: str, tools: Registry[int]
) -> None:
    with pytest.raises(NameClashError, match=f"Two plugins add the tool 'hammer': pkg-a 1.0 and {owner}"):
        tools.add("hammer", item, owner)
    assert (tools.get("hammer"), tools.owner("hammer")) == (1, "pkg-a 1.0")


def test_a_block_that_fails_adds_nothing(tools: Registry[int]) -> None:
    with pytest.raises(NameClashError), all_or_nothing(tools):  # noqa: PT012  the block is what is tested
        tools.add("saw", 2, "pkg-b 2.0")
        tools.add("hammer", 2, "pkg-b 2.0")
    assert list(tools) == ["hammer"]


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    needs("A test", "dev", "json")
    monkeypatch.setitem(sys.modules, "plotly", None)
    expected = r"A report needs the package 'plotly', which is not installed: pip install 'gym-dr\[report\]'"
    with pytest.raises(ConfigError, match=expected):
        needs("A report", "report", "json", "plotly")
