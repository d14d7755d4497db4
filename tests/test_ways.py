"""A reader who follows a value opens few files: those that it passes through, as CONTRIBUTING.md draws them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gym_dr.cli.main import main
from tests.ways import Way, same_functions, traced

LR = 0.00012345
GRAVITY = -7.1234567  # lower end of a narrow range
AXIS = -8.2345678  # of a grid
TRAIN = (
    "train ppo --updates 1 --num-envs 2 --rollout-steps 16 --minibatches 1 --epochs 1 --hidden-sizes 8 "
    f"--eval-episodes 0 --lr {LR} --randomize gravity={GRAVITY}:{GRAVITY + 1e-7} --run-dir run"
)


def is_lr(value: Any) -> bool:
    return value == str(LR) if isinstance(value, str) else type(value) is float and value == LR


def near(number: float) -> Callable[[Any], bool]:
    """Finds a number in texts and arrays too."""

    def is_it(value: Any) -> bool:
        if isinstance(value, str):
            return str(number) in value and len(value) < 60
        if isinstance(value, float | np.ndarray):
            with np.errstate(invalid="ignore"):  # an array that is not filled yet
                return np.size(value) < 1000 and bool(np.any(np.abs(np.asarray(value, np.float64) - number) < 1e-6))
        return False

    return is_it


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Way]:
    """The way of each value, by its name."""
    found = {
        "lr": Way(is_lr, "ActorCritic.__init__"),
        "draw": Way(near(GRAVITY), "ParamTable.begin"),
        "evaluate": Way(near(AXIS), "ParamTable.begin"),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("ways"))
        with traced(found["lr"], found["draw"]):
            main(TRAIN.split())
        with traced(found["evaluate"]):
            main(f"evaluate run --grid gravity={AXIS}:-3:2 --episodes 1".split())
    return found


@same_functions
@pytest.mark.parametrize(
    ("name", "command", "most"),
    [
        ("lr", "gymdr train ppo --lr 1e-4", 7),
        ("draw", "gymdr train ppo --randomize gravity=-12:-6", 7),
        ("evaluate", "gymdr evaluate RUN --grid gravity=-12:-2:11", 9),
    ],
)
def test_a_value_passes_through_few_files_which_contributing_names(
    ways: dict[str, Way], name: str, command: str, most: int
) -> None:
    ways[name].check(command, most)
