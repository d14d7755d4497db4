"""Every registered environment in every mode keeps every contract: ids come from the registry, so new ones do too."""

from __future__ import annotations

from typing import Any

import pytest

from gym_dr.envs.family import ENVIRONMENTS
from gym_dr.testing.environments import ENVIRONMENT_CONTRACTS
from gym_dr.testing.playing import MODES, Contract, Mode

ENTRIES = list(ENVIRONMENTS.values())
FAMILIES = {entry.entry_point.partition(":")[0]: entry.id for entry in reversed(ENTRIES)}  # module -> its first id

# What depends on an id's own physics, parameters and spaces; the rest is code that the ids of a module share, and is
# slow for those after the first, its sibling.
OWN = {
    "draws_are_keyed_by_seed_and_number_of_resets_and_episodes_follow",
    "exact_values_hold_for_one_episode_and_options_are_left_alone",
    "a_familys_description_of_what_may_vary_is_what_the_environment_says",
    "every_parameter_of_a_preset_has_an_effect",
    "impossible_actions_change_nothing",
    "spaces_types_and_info_are_as_gymnasium_collects_them_from_single_environments",
    "every_sub_environment_gives_a_picture_in_a_render_mode_alone",
    "pushes_change_what_comes_where_they_reach_the_environment",
    "a_compiled_rollout_is_what_stepping_gives_or_is_refused",
    "going_on_from_a_state_equals_going_on",
    "a_state_of_some_sub_environments_leaves_the_others_alone",
    "a_compiled_single_environment_goes_on_from_a_state",
}
# Robots share these too, all but Ant, whose engine is another. Those of the zoo have Crazyflie as a quick sibling, and
# tests/envs/test_states.py has all of them go on from states, over whole episodes, most of them slowly.
SHARED_BY_ROBOTS = {
    "draws_are_keyed_by_seed_and_number_of_resets_and_episodes_follow",
    "exact_values_hold_for_one_episode_and_options_are_left_alone",
    "pushes_change_what_comes_where_they_reach_the_environment",
    "impossible_actions_change_nothing",
    "every_sub_environment_gives_a_picture_in_a_render_mode_alone",
    "a_compiled_rollout_is_what_stepping_gives_or_is_refused",
    "going_on_from_a_state_equals_going_on",
    "a_state_of_some_sub_environments_leaves_the_others_alone",
}
# In sync mode our wrapper is the same around all: one on Box2D and one on MuJoCo are quick.
WRAPPED = ("gym_dr/LunarLanderDR-v3", "gym_dr/InvertedPendulumDR-v5")
# Worker processes are Gymnasium's: these, which are about what we send to the processes, for the very first id; the
# others are slow.
SAME = "everything_is_as_in_a_sync_environment"
SENT = {
    SAME,
    "exact_values_hold_for_one_episode_and_options_are_left_alone",
    "pins_hold_from_the_next_reset_until_they_are_handed_back",
    "masks_choose_what_is_pinned_and_what_is_reset",
    "impossible_values_masks_and_seeds_change_nothing",
    "impossible_actions_change_nothing",
    "pushes_change_what_comes_where_they_reach_the_environment",
    "a_compiled_rollout_is_what_stepping_gives_or_is_refused",
}


def cells() -> list[Any]:
    found = []
    for entry in ENTRIES:
        for name in MODES:
            if name == "native" and entry.vector_entry_point is None:
                continue
            first = entry.id in FAMILIES.values()
            shared = ".mujoco." in entry.entry_point and "Ant" not in entry.id
            for contract in ENVIRONMENT_CONTRACTS[name]:
                own = OWN - SHARED_BY_ROBOTS if shared else OWN
                if name == "async":
                    quick = entry == ENTRIES[0] and contract.__name__ in SENT
                elif name == "sync":
                    quick = entry.id in WRAPPED
                else:
                    quick = first or contract.__name__ in own
                marks: list[Any] = [] if quick else [pytest.mark.slow]
                cell = f"{entry.id.removeprefix('gym_dr/')}-{name}-{contract.__name__}"
                found.append(pytest.param(Mode(env_id=entry.id, name=name), contract, marks=marks, id=cell))
    return found


@pytest.mark.parametrize(("mode", "contract"), cells())
def test_environments(mode: Mode, contract: Contract) -> None:
    contract(mode)
