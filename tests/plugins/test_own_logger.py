"""examples/own_logger is installed like any package; tests/integrations try it with the tools themselves."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.plugins.installed import Command, install


@pytest.fixture(scope="module")
def gymdr(tmp_path_factory: pytest.TempPathFactory) -> Command:
    return install("own_logger", tmp_path_factory)


def test_its_loggers_are_listed(gymdr: Command) -> None:
    listed = gymdr("list", "loggers").stdout
    assert "mlflow       MLflow." in listed
    assert "wandb        Weights & Biases." in listed


@pytest.mark.skipif(importlib.util.find_spec("mlflow") is not None, reason="MLflow is installed")
@pytest.mark.parametrize("command", [["train", "a2c"], ["fit", "rides", "--env", "gym_dr/CartPoleDR-v1"]])
def test_a_tool_that_is_missing_is_named_with_its_pip_command(
    command: list[str], gymdr: Command, tmp_path: Path
) -> None:
    found = gymdr(*command, "--log", "mlflow")
    assert found.returncode == 2
    assert found.stderr == "Error: --log mlflow needs mlflow: pip install mlflow\n"
