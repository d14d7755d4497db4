"""Commands take the id of a function as ``module:id``, and a run finds it again in another process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.command import TINY, gymdr, refused, train
from tests.registered import forgotten_afterwards

SLIDE = """
import gym_dr
from tests.envs.slide import make

gym_dr.register("mine/Slide-v0", make, randomization={"slope": (0.0, 0.3)})
"""


@pytest.fixture
def own_slide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that nobody has imported."""
    (tmp_path / "own_slide.py").write_text(SLIDE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "own_slide", raising=False)
    return "own_slide"


def test_commands_train_and_play_the_id_of_a_function(own_slide: str) -> None:
    env = f"{own_slide}:mine/Slide-v0"
    with forgotten_afterwards():
        assert "slope = Uniform(0.0, 0.3)" in gymdr("params", env).out
        assert train(Path("run"), "--env", env, "--vectorization", "sync").code == 0
    sys.modules.pop(own_slide)
    with forgotten_afterwards():  # as in another process
        assert f"--trust {own_slide}" in refused(gymdr("evaluate", "run"))
        assert own_slide not in sys.modules
        shared = ("run", "--trust", own_slide, "--episodes", "2")
        for command in (
            ("evaluate", *shared, "--grid", "mass=0.5:2:2"),
            ("record", *shared, "--output", "log", "--format", "npz"),
            ("play", *shared, "--video", "slide.gif", "--set", "mass=3"),
            ("resume", "run", "--trust", own_slide),
        ):
            assert gymdr(*command).code == 0
    sys.modules.pop(own_slide)


def test_a_function_that_makes_no_randomized_environment_is_named_without_a_traceback(own_slide: str) -> None:
    Path(f"{own_slide}.py").write_text(SLIDE.replace("make, r", "lambda: None, r"))
    with forgotten_afterwards():
        message = refused(gymdr("train", "a2c", *TINY, "--env", f"{own_slide}:mine/Slide-v0"))
        assert "Environment 'mine/Slide-v0': expected" in message
        assert "mine/Slide-v0" in refused(gymdr("params", f"{own_slide}:mine/Slid-v0"))
    sys.modules.pop(own_slide)


def test_a_registration_that_is_refused_is_named_without_a_traceback(own_slide: str) -> None:
    Path(f"{own_slide}.py").write_text(SLIDE.replace("make, r", "3, r"))
    with forgotten_afterwards():
        assert "Environment 'mine/Slide-v0': expected" in refused(gymdr("params", f"{own_slide}:mine/Slide-v0"))
