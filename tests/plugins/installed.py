"""Example packages, installed as anybody's."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

Command = Callable[..., "subprocess.CompletedProcess[str]"]


def load(name: str) -> ModuleType:
    """The module of an example, imported where it lies."""
    (file,) = (EXAMPLES / name).glob("*.py")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclasses look for their types
    spec.loader.exec_module(module)
    return module


def install(name: str, tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Installs an example; returns what runs gymdr in a process of its own, where it is installed."""
    source, site = tmp_path_factory.mktemp("source") / name, tmp_path_factory.mktemp("site")
    shutil.copytree(EXAMPLES / name, source)  # so that building writes nothing into the repository
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-build-isolation", "--no-index"]
    installed = subprocess.run([*pip, "--target", str(site), str(source)], capture_output=True, text=True)
    assert installed.returncode == 0, installed.stderr

    def run(*args: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
        command = [sys.executable, "-c", "from gym_dr.cli.main import main; main()", *map(str, args)]
        return subprocess.run(command, env={**os.environ, "PYTHONPATH": path, **env}, capture_output=True, text=True)

    return run
