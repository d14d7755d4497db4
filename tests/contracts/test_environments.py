"""Every registered environment in every mode keeps every contract: ids come from the registry, so new ones do too."""

from __future__ import annotations

from typing import Any

import pytest

from gym_dr.plugins.manager import load_plugins
from gym_dr.testing.environments import ENVIRONMENT_CONTRACTS, MODES, Contract, Mode

ENTRIES = load_plugins().environments.values()
FAMILIES = {entry.entry_point.partition(":")[0]: entry.id for entry in reversed(ENTRIES)}  # module -> its first id

# makes many environments, for which the equality tests of each family have quicker ways
LONG = ("everything_is_as_in_a_sync_environment",)

# what is not yet as promised: contract -> modes, part of the id, why
DRIFT: dict[str, tuple[tuple[str, ...], str, str]] = {
    "a_compiled_rollout_is_refused_where_it_would_differ": (("native",), "v5", "MuJoCo's plays ignores the context"),
    "a_push_before_the_first_reset_is_refused": (("native", "single"), "v5", "MuJoCo takes pushes before a reset"),
    "pictures_can_be_of_chosen_sub_environments": (("native",), "v5", "render(indices) is the lander's only"),
    "an_unknown_render_mode_is_refused": (("native",), "v5", "MuJoCo refuses 'human' only"),
    "there_are_no_pictures_without_a_render_mode": (
        ("single", "sync", "async"),
        "v5",
        "Gymnasium's MujocoRenderer raises AttributeError; the lander and native MuJoCo return None",
    ),
    "the_callers_options_are_left_alone": (("native",), "", "native reset pops reset_mask; VectorParams does not"),
    "an_episode_may_go_on_for_ever": (("native",), "", "native takes None and refuses Gymnasium's -1"),
    "closing_twice_is_possible_and_a_closed_vector_environment_refuses_calls": (
        ("sync",),
        "",
        "Gymnasium's sync environment goes on after close(), and VectorParams lets it",
    ),
}


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
                modes, ids, reason = DRIFT.get(contract.__name__, ((), "", ""))
                if name in modes and ids in entry.id:
                    marks.append(pytest.mark.xfail(strict=True, reason=reason))
                cell = f"{entry.id.removeprefix('gym_dr/')}-{name}-{contract.__name__}"
                found.append(pytest.param(Mode(env_id=entry.id, name=name), contract, marks=marks, id=cell))
    return found


@pytest.mark.parametrize(("mode", "contract"), cells())
def test_environments(mode: Mode, contract: Contract) -> None:
    contract(mode)
