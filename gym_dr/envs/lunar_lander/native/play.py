"""Many steps in one call: a small policy acts and the physics answers, without Python in between."""

# mypy: allow-untyped-defs, allow-untyped-calls
# numba infers the types of compiled functions; annotations would say nothing that it checks.

from __future__ import annotations

from pathlib import Path
from typing import Any

from numba import njit, types

from gym_dr.compiled import policy
from gym_dr.compiled.cache import keep
from gym_dr.envs.lunar_lander.native import layout
from gym_dr.envs.lunar_lander.native.layout import S_FRESH


class Address(types.WrapperAddressProtocol):
    """A compiled function as a pointer, through which another calls it without compiling it once more."""

    def __init__(self, dispatcher: Any) -> None:
        """Points to the one signature that ``dispatcher`` was compiled for."""
        (self._compiled,) = dispatcher.overloads.values()

    def __wrapper_address__(self) -> int:
        """Part of numba's interface."""
        name = self._compiled.fndesc.llvm_cfunc_wrapper_name
        address: int = self._compiled.library.get_pointer_to_function(name)
        return address

    def signature(self) -> Any:
        """Part of numba's interface."""
        return self._compiled.signature


@njit(nogil=True, error_model="numpy")
def play(
    physics,
    rows,
    terrain,
    contact_ints,
    contact_floats,
    status,
    params,
    shaping,
    streams,
    gusts,
    choices,
    throttles,
    continuous,
    which,
    observations,
    rewards,
    terminations,
    scratch,
    work,
    blocks,
    slot_memory,
    substep,
    sizes,
    tanh,
    kind,
    std,
    floor,
    low,
    high,
    weights,
    hidden,
    noise,
    applied,
    all_observations,
    all_chosen,
    all_sampled,
    all_rewards,
    all_terminated,
    all_truncated,
    elapsed,
    max_steps,
    first,
    last,
):
    """Play rows ``first`` to ``last``, or fewer: until an episode ends. Returns the row after the last one played.

    ``physics`` is ``step`` and is given what it takes; ``sizes`` to ``hidden`` are a policy's; ``all_...`` are the
    arrays of ``Steps``; ``elapsed`` (N,) counts the steps of the episodes under way, at most ``max_steps``.
    """
    num_envs = len(which)
    t = first
    over = False
    while t < last and not over:
        policy.choose(
            sizes, tanh, kind, std, floor, low, high, weights, hidden,
            all_observations[t], noise[t], all_chosen[t], all_sampled[t], applied,
        )  # fmt: skip
        for env in range(num_envs):
            choices[env] = all_chosen[t, env]
            for j in range(applied.shape[1]):
                throttles[env, j] = applied[env, j]
            elapsed[env] = 0 if status[env, S_FRESH] != 0 else elapsed[env] + 1
        physics(
            rows, terrain, contact_ints, contact_floats, status, params, shaping, streams, gusts, choices, throttles,
            continuous, which, 0, num_envs, observations, rewards, terminations, scratch, work, blocks, slot_memory,
            substep,
        )  # fmt: skip
        for env in range(num_envs):
            for j in range(observations.shape[1]):
                all_observations[t + 1, env, j] = observations[env, j]
            all_rewards[t, env] = rewards[env]
            all_terminated[t, env] = terminations[env]
            all_truncated[t, env] = elapsed[env] >= max_steps
            over = over or terminations[env] or elapsed[env] >= max_steps
        t += 1
    return t


SOURCES = [Path(__file__), Path(layout.__file__), *policy.SOURCES]

keep(play, "play", SOURCES, "the native LunarLander with a policy (about 5 s)")
