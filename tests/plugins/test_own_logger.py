"""examples/own_logger is installed like any package; tests/integrations try it with the tools themselves."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.plugins.installed import Installed, install


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return install("own_logger", tmp_path_factory)


def test_its_loggers_are_listed(example: Installed) -> None:
    listed = example.gymdr_alone("list", "loggers").out
    assert "mlflow       MLflow." in listed
    assert "wandb        Weights & Biases." in listed


@pytest.mark.skipif(importlib.util.find_spec("mlflow") is not None, reason="MLflow is installed")
@pytest.mark.parametrize("command", [["train", "a2c"], ["fit", "rides", "--env", "gym_dr/CartPoleDR-v1"]])
def test_a_tool_that_is_missing_is_named_with_its_pip_command(
    command: list[str], example: Installed, tmp_path: Path
) -> None:
    found = example.gymdr(*command, "--log", "mlflow")
    assert found.code == 2
    assert found.err == "Error: --log mlflow needs mlflow: pip install mlflow\n"
