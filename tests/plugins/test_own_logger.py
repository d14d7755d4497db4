"""examples/own_logger is installed like any package; tests/integrations try it with the tools themselves."""

from __future__ import annotations

import importlib.util

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
def test_a_tool_that_is_missing_is_named_with_its_pip_command(example: Installed) -> None:
    found = example.gymdr("train", "a2c", "--log", "mlflow")
    assert found.code == 2
    assert found.err == "Error: --log mlflow needs mlflow: pip install mlflow\n"
