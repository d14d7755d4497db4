"""Every registered environment in every mode keeps every contract: ids come from the registry, so new ones do too."""

from __future__ import annotations

from typing import Any

import pytest

from gym_dr.envs.family import ENVIRONMENTS
from gym_dr.testing.environments import ENVIRONMENT_CONTRACTS, MODES, Contract, Mode

ENTRIES = ENVIRONMENTS.values()
FAMILIES = {entry.entry_point.partition(":")[0]: entry.id for entry in reversed(ENTRIES)}  # module -> its first id

# makes many environments, for which the equality tests of each family have quicker ways
LONG = ("everything_is_as_in_a_sync_environment",)


def cells() -> list[Any]:
    found = []
    for entry in ENTRIES:
        for name in MODES:
            if name == "native" and entry.vector_entry_point is None:
                continue
            first = entry.id in FAMILIES.values()
            for contract in ENVIRONMENT_CONTRACTS[name]:
                quick = first or (name in ("native", "single") and contract.__name__ not in LONG)
                marks: list[Any] = [] if quick else [pytest.mark.slow]
                cell = f"{entry.id.removeprefix('gym_dr/')}-{name}-{contract.__name__}"
                found.append(pytest.param(Mode(env_id=entry.id, name=name), contract, marks=marks, id=cell))
    return found


@pytest.mark.parametrize(("mode", "contract"), cells())
def test_environments(mode: Mode, contract: Contract) -> None:
    contract(mode)
