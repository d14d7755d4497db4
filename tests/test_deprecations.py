"""Old public names work for a version, and say which name to use now."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

OLD_NAMES = [
    ("gym_dr", "SupervisedVectorEnv", "gym_dr.envs.workers.vector_env", "WorkerVectorEnv"),
    ("gym_dr.envs.backend", "Rollout", "gym_dr.envs.backend", "PlayRollout"),
    ("gym_dr.randomization.adaptive.box", "Box", "gym_dr.randomization.adaptive.box", "QuantileBox"),
]


@pytest.mark.parametrize(("module", "old", "home", "new"), OLD_NAMES)
def test_an_old_name_is_the_new_class_and_warns_of_its_new_name(module: str, old: str, home: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=new) as caught:
        found = getattr(importlib.import_module(module), old)
    assert found is getattr(importlib.import_module(home), new)
    assert caught[0].filename == __file__  # the warning points to the line of the user


@pytest.mark.parametrize("module", sorted({module for module, *_ in OLD_NAMES}))
def test_other_names_are_missing_as_ever(module: str) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Supervised'"):
        _ = importlib.import_module(module).Supervised


def test_importing_an_old_name_warns_where_it_is_imported() -> None:
    code = "import warnings; warnings.simplefilter('error', DeprecationWarning); from gym_dr import SupervisedVectorEnv"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "DeprecationWarning: gym_dr.SupervisedVectorEnv is now gym_dr.WorkerVectorEnv." in done.stderr
