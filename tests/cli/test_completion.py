"""What shells offer for a word that is typed in part; ``test_imports.py`` tests that it loads nothing heavy."""

from __future__ import annotations

import pytest
from click.shell_completion import ShellComplete

from gym_dr.cli.main import cli
from gym_dr.envs.family import ENVIRONMENTS


def offered(*typed: str) -> list[str]:
    """The words that shells offer in place of the last one."""
    *before, last = typed
    found = ShellComplete(cli, {}, "gymdr", "_GYMDR_COMPLETE").get_completions(before, last)
    return [item.value for item in found if item.type == "plain"]


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["train", "pp"], ["ppo"]),
        (["train", "a2c", "--env", "gym_dr/Hop"], ["gym_dr/HopperDR-v5"]),
        (["params", "gym_dr/Acro"], ["gym_dr/AcrobotDR-v1"]),
        (["train", "ppo", "--activation", ""], ["relu", "tanh", "elu"]),
        (["train", "ppo", "--sampler", "dor"], ["doraemon"]),
        (["bench", "--algorithm", "rein"], ["reinforce"]),
        (["train", "a2c", "--randomize", "wind"], ["wind_power="]),
        (["train", "a2c", "--env", "gym_dr/AcrobotDR-v1", "--randomize", "wind"], []),
        (["train", "a2c", "--env", "no_such_module:Foo-v1", "--randomize", ""], []),
        (["play", "--pretrained", "lander_"], ["lander_memory"]),
    ],
    ids=str,
)
def test_names_are_completed(typed: list[str], words: list[str]) -> None:
    assert offered(*typed) == words


def test_an_empty_word_offers_every_environment() -> None:
    assert offered("train", "a2c", "--env", "") == list(ENVIRONMENTS)


@pytest.mark.parametrize("typed", [["evaluate", "runs/"], ["train", "ppo", "--config", "a"], ["fit", "lo"]], ids=str)
def test_files_are_left_to_the_shell(typed: list[str]) -> None:
    found = ShellComplete(cli, {}, "gymdr", "_GYMDR_COMPLETE").get_completions(typed[:-1], typed[-1])
    assert [(item.type, item.value) for item in found] == [("file", typed[-1])]
