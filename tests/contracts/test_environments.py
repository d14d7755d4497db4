"""Every registered environment in every mode keeps every contract: ids come from the registry, so new ones do too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.envs.mujoco.mujoco_rendering import MujocoRenderer

from gym_dr.plugins.manager import load_plugins
from gym_dr.testing import environments as contracts
from gym_dr.testing.environments import ENVIRONMENT_CONTRACTS, Contract, Mode

MODES = ("native", "single", "sync", "async")
ENTRIES = load_plugins().environments.values()
FAMILIES = {entry.entry_point.partition(":")[0]: entry.id for entry in reversed(ENTRIES)}  # module -> its first id


def cells() -> list[Any]:
    found = []
    for entry in ENTRIES:
        for name in MODES:
            if name == "native" and entry.vector_entry_point is None:
                continue
            for contract in ENVIRONMENT_CONTRACTS:
                marks = [] if name in ("native", "single") or entry.id in FAMILIES.values() else [pytest.mark.slow]
                found.append(
                    pytest.param(
                        Mode(env_id=entry.id, name=name),
                        contract,
                        marks=marks,
                        id=f"{entry.id.removeprefix('gym_dr/')}-{name}-{contract.__name__}",
                    )
                )
    return found


@pytest.fixture(autouse=True)
def frames_without_opengl(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not every machine can draw MuJoCo's scenes; that it is asked to is what counts here."""

    def render(self: Any, render_mode: str | None) -> Any:
        if render_mode is None:
            raise AttributeError("Unexpected mode: None")  # as Gymnasium's
        return np.resize(self.data.qpos, (4, 5, 3)).astype(np.uint8)

    monkeypatch.setattr(MujocoRenderer, "render", render)


@pytest.mark.parametrize(("mode", "contract"), cells())
def test_environments(mode: Mode, contract: Contract) -> None:
    contract(mode)
