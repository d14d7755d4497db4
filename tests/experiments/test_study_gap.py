"""Which variants a gap can be stated of, and on which sets: checked before anything is trained."""

from __future__ import annotations

from typing import Any

import pytest

from gym_dr.errors import GymDrError
from gym_dr.experiments.study_file import read_study
from gym_dr.experiments.study_gap import Gap, judged_on
from tests.experiments.study_sample import tiny

NOISE = {"obs_noise": 0.1}
FORGETS = {"memory": "none", "memory_size": 64, "entropy_coef": 0.01}  # so that no critic has a memory of its own


def with_gap(gap: dict[str, Any] | None = None, **variants: Any) -> dict[str, Any]:
    """A study of plain, memory and told; ``variants`` changes these."""
    usual: dict[str, dict[str, Any]] = {
        "plain": {"critic_context": True},
        "memory": {"critic_context": True, "memory": "gru", "memory_size": 4},
        "told": {"critic_context": True, "context": "observation"},
    }
    given = {name: {**usual.get(name, {}), **changes} for name, changes in {**usual, **variants}.items()}
    roles = {"memoryless": "plain", "policy": "memory", "oracle": "told"} if gap is None else gap
    return {**tiny(randomization="wide", gap=roles), "variants": given}


def judged(form: dict[str, Any]) -> dict[str, dict[str, str]]:
    study = read_study(form)
    assert study.gap is not None
    return judged_on(study.gap, study.variants, study.sets)


# ---- what is read ----------------------------------------------------------------------------------------------------


def test_a_gap_names_one_policy_or_several() -> None:
    assert read_study(with_gap()).gap == Gap(memoryless="plain", policy=("memory",), oracle="told")
    roles = {"memoryless": "plain", "policy": ["memory", "wise"], "oracle": "told"}
    study = read_study(with_gap(roles, wise={"critic_context": True, "gamma": 0.9}))
    assert study.gap == Gap(memoryless="plain", policy=("memory", "wise"), oracle="told")
    assert study.to_dict()["gap"] == roles


def test_a_study_without_a_gap_states_none() -> None:
    study = read_study(tiny())
    assert study.gap is None
    assert study.to_dict()["gap"] is None


# ---- what is refused -------------------------------------------------------------------------------------------------

ROLES = {"memoryless": "plain", "policy": "memory", "oracle": "told"}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no table": (tiny(gap="plain"), "gap: expected a table, got 'plain'"),
    "nothing": (
        with_gap({}),
        r"\[gap\]: expected the variants memoryless, policy, oracle; got no memoryless and no policy and no oracle",
    ),
    "no oracle": (with_gap({"memoryless": "plain", "policy": "memory"}), "got no oracle"),
    "no policy": (with_gap(ROLES | {"policy": []}), "got no policy"),
    "a key": (with_gap(ROLES | {"oracel": "told"}), r"\[gap\]: Unknown setting 'oracel'. Did you mean 'oracle'"),
    "a variant": (with_gap(ROLES | {"oracle": "tild"}), r"\[gap\]: Unknown variant 'tild'. Did you mean 'told'"),
    "a variant twice": (with_gap(ROLES | {"policy": "told"}), "expected distinct variants, got plain, told, told"),
    "two oracles": (
        with_gap(ROLES | {"oracle": ["told", "memory"]}),
        r"oracle: expected str, got \['told', 'memory'\]",
    ),
    "other steps": (  # 3 and 4 updates of 64 steps in 2 environments
        {**with_gap(memory={"updates": 4}), "unequal_budgets": True},
        r"\[gap\]: expected equal numbers of environment steps, got 384 in plain, 512 in memory, 384 in told",
    ),
    "a critic that sees less": (
        with_gap(plain={"critic_context": False}),
        "expected the same critic in all, got critic_context False in plain, True in memory, True in told",
    ),
    "a critic with a memory of its own": (
        with_gap(
            plain={"critic_context": False, "randomize": NOISE},
            memory={"critic_context": False, "randomize": NOISE},
            told={"critic_context": False, "context": "info"},
        ),
        "got critics with a memory of their own in memory only.*critic_context = true",
    ),
    "a smaller critic": (
        with_gap(memory={"hidden_sizes": [4]}),
        r"expected the same critic in all, got hidden_sizes \(8,\) in plain, \(4,\) in memory, \(8,\) in told",
    ),
    "a critic that sees the draw through its policy's eyes": (
        with_gap(
            plain={"critic_context": False},
            memory={"critic_context": False} | FORGETS,
            told={"critic_context": False},
        ),
        "got critics that see the draw in told, whose policies observe it, and in no other.*critic_context = true",
    ),
    "a critic that observes another past": (
        with_gap(
            plain={"critic_context": False},
            memory={"critic_context": False, "stack_observations": 4} | FORGETS,
            told={"critic_context": False, "context": "info", "observe_reward": True},
        ),
        "got critics that observe another past: .*stack_observations=4.* in memory.*critic_context = true",
    ),
    "other draws": (
        with_gap(told={"randomization": "default"}),
        r"expected the same training draws in all but for what policies observe \(obs_...\), got others in told than",
    ),
    "another sampler": (with_gap(memory={"sampler": "doraemon"}), "got others in memory than in plain"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_gap_is_refused_with_what_was_expected(name: str) -> None:
    form, message = REFUSED[name]
    with pytest.raises(GymDrError, match=message):
        read_study(form)


def test_steps_that_depend_on_episodes_are_refused() -> None:
    form = with_gap(**{name: {} for name in ("plain", "memory", "told")})
    form |= {"unequal_budgets": True, "variants": {name: {"algorithm": "reinforce"} for name in form["variants"]}}
    form["variants"]["memory"]["gamma"] = 0.9
    form["variants"]["told"]["context"] = "observation"
    del form["a2c"]
    with pytest.raises(GymDrError, match="got by episodes in plain, by episodes in memory, by episodes in told"):
        read_study(form)


def test_another_algorithm_has_another_critic() -> None:
    ppo = {"algorithm": "ppo", "updates": 3, "rollout_steps": 64, "hidden_sizes": [8], "minibatches": 2}
    with pytest.raises(GymDrError, match="got algorithm 'a2c' in plain, 'ppo' in memory, 'a2c' in told"):
        read_study(with_gap(memory=ppo | {"activation": "relu", "normalize_observations": False}))


def test_what_else_differs_is_allowed() -> None:
    """A policy with memory may need other rates and sizes of minibatches, and as many steps in more environments."""
    study = read_study(with_gap(memory={"actor_lr": 0.01, "num_envs": 4, "rollout_steps": 32, "minibatches": 2}))
    assert study.gap is not None


# ---- on which sets ---------------------------------------------------------------------------------------------------


def test_policies_with_the_same_sensors_are_judged_on_all_sets() -> None:
    names = ["nominal", "training: wide", "grid"]
    assert judged(with_gap()) == {name: dict.fromkeys(["plain", "memory", "told"], name) for name in names}


def test_an_oracle_that_sees_more_is_judged_with_the_sensors_it_was_trained_with() -> None:
    noisy = {"critic_context": False, "randomize": NOISE}
    form = with_gap(plain=noisy, memory=noisy | FORGETS, told={"critic_context": False, "context": "info"})
    assert judged(form) == {
        "training: plain": {"plain": "training: plain", "memory": "training: plain", "told": "training: wide"}
    }


def test_an_oracle_that_sees_all_on_nominal_physics_is_judged_there() -> None:
    noisy = {"critic_context": False, "randomize": NOISE}
    form = with_gap(plain=noisy, memory=noisy | FORGETS, told={"critic_context": False, "context": "info"})
    found = judged(form | {"randomization": "none"})
    assert found == {"training: plain": {"plain": "training: plain", "memory": "training: plain", "told": "nominal"}}


def test_sets_of_your_own_that_differ_only_in_sensors_belong_together() -> None:
    noisy = {"critic_context": False, "randomize": NOISE}
    form = with_gap(plain=noisy, memory=noisy | FORGETS, told={"critic_context": False, "context": "info"})
    sets = {"calm": {"gravity": -5}, "calm and noisy": {"gravity": -5, **NOISE}, "alone": {"gravity": -3, **NOISE}}
    found = judged(form | {"evaluation": {"sets": sets}})
    assert set(found) == {"training: plain", "calm and noisy"}
    assert found["calm and noisy"] == {"plain": "calm and noisy", "memory": "calm and noisy", "told": "calm"}
