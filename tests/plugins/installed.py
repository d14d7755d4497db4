"""Example packages, installed as anybody's."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from gym_dr.plugins.loading import load_plugins
from tests.cli.command import Result, gymdr
from tests.registered import forgotten_afterwards

EXAMPLES = Path(__file__).parents[2] / "examples"


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


@dataclass(frozen=True)
class Installed:
    """Examples, installed into a folder of their own."""

    site: Path

    def gymdr(self, *args: str | Path, **env: str) -> Result:
        """``gymdr ARGS`` in this process, which finds the examples as installed packages and forgets them again."""
        with forgotten_afterwards(), pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(str(self.site))
            for name in [name for name in sys.modules if name.startswith("gym_dr_")]:  # that were loaded elsewhere
                patch.delitem(sys.modules, name)
            for name, value in env.items():
                patch.setenv(name, value)
            load_plugins.cache_clear()
            try:
                return gymdr(*args)
            finally:
                load_plugins.cache_clear()

    def gymdr_alone(self, *args: str | Path) -> Result:
        """``gymdr ARGS`` in a process of its own, as users run it."""
        path = os.pathsep.join(filter(None, [str(self.site), os.environ.get("PYTHONPATH")]))
        command = [sys.executable, "-c", "from gym_dr.cli.main import main; main()", *map(str, args)]
        done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
        return Result(done.returncode, done.stdout, done.stderr)


def install(tmp_path_factory: pytest.TempPathFactory, *names: str) -> Installed:
    """Installs examples with pip."""
    sources, site = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("site")
    for name in names:
        shutil.copytree(EXAMPLES / name, sources / name)  # so that building writes nothing into the repository
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-build-isolation", "--no-index", "--no-compile"]
    command = [*pip, "--target", str(site), *(str(sources / name) for name in names)]
    installed = subprocess.run(command, capture_output=True, text=True)
    assert installed.returncode == 0, installed.stderr
    return Installed(site)
