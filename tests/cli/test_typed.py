"""Messages name Python's arguments; the command line shows the options that are typed."""

from __future__ import annotations

import warnings

import pytest

from gym_dr.cli.typed import as_typed, short_warnings
from gym_dr.errors import RandomizationWarning


@pytest.mark.parametrize(
    ("message", "typed"),
    [
        ("`run_dir`: exists", "--run-dir: exists"),
        ("expected `references`, `policies`, `params` or `loggers`", "expected --reference, --policy, --set or --log"),
        ("add `overwrite=True`", "add --overwrite"),
        ("add `normalize_observations=False`", "add --no-normalize-observations"),
        ("add `trust=['a', 'b c']`", "add --trust a --trust 'b c'"),
        ("add `hidden_sizes=(8, 4)`", "add --hidden-sizes 8,4"),
        ("add `ignored_sensors=()`", "add --ignored-sensors ''"),
        ("add `memory='gru'`", "add --memory gru"),
        ("add `seed=3`", "add --seed 3"),
        ("add `randomize={'gravity': '-12:-6'}`", "add --randomize gravity=-12:-6"),
        ("add `context_params=NAME`", "add --context-params NAME"),
        ("add `env=...`", "add --env ..."),
        ("grid: expected 'x', got `", "grid: expected 'x', got `"),
    ],
)
def test_an_argument_in_backticks_is_shown_as_its_option(message: str, typed: str) -> None:
    assert as_typed(message) == typed


def test_a_warning_takes_a_line_and_is_shown_once_whatever_filters_change(capsys: pytest.CaptureFixture[str]) -> None:
    with short_warnings():
        for text in ("new", "new", "leave out `run_dir`"):
            with warnings.catch_warnings():
                pass
            warnings.warn(text, RandomizationWarning, stacklevel=1)
    assert capsys.readouterr().err == "Warning: new\nWarning: leave out --run-dir\n"
