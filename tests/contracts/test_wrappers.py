"""Every wrapper of ours around vector environments, alone and as a run puts them together, keeps every contract."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from gym_dr import AdaptParams, Bernoulli, DisturbVector, DrawContext, RecordEpisodes, ResampleParams
from gym_dr.testing.playing import Mode
from gym_dr.wrappers.finite import RequireFinite
from tests.contracts.wrappers import WRAPPER_CONTRACTS, WrapperCase

LANDER, PENDULUM = "gym_dr/LunarLanderDR-v3", "gym_dr/InvertedPendulumDR-v5"
NOISE = {
    "obs_noise": (0.0, 0.1),
    "action_delay": 1,
    "obs_delay": 1,
    "obs_drop": 0.2,
    "obs_drop:1": (0.0, 0.5),
    "obs_hide:*": Bernoulli(0.3),
}

resample = partial(ResampleParams, rollout_steps=2)
adapt = partial(AdaptParams, sampler="uniform", every=2)  # whose draws are those without it


def record(envs: Any) -> Any:
    return RecordEpisodes(envs, lambda record: None)


# name -> wrapper, whether compiled rollouts go through it where the environment has them
WRAPPERS: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "VectorParams": (lambda envs: envs, True),  # a Mode's sync and async environments are in one
    "ResampleParams": (resample, True),
    "RecordEpisodes": (record, True),
    "RequireFinite": (RequireFinite, True),
    "AdaptParams": (adapt, True),
    "DrawContext": (lambda envs: DrawContext(envs, "observation"), False),
    "DisturbVector": (lambda envs: DisturbVector(envs, NOISE), False),
    "run": (lambda envs: record(RequireFinite(resample(envs))), True),
    "run-with-all": (
        lambda envs: record(RequireFinite(DrawContext(DisturbVector(resample(envs), NOISE), "observation"))),
        False,
    ),
}
MODES = [(LANDER, "native"), (LANDER, "sync"), (PENDULUM, "native"), (PENDULUM, "sync"), (LANDER, "async")]


def cells() -> list[Any]:
    found = []
    for name, (wrap, passes) in WRAPPERS.items():
        for env_id, mode in MODES:
            if name == "VectorParams" and mode == "native":
                continue
            case = WrapperCase(
                wrap=wrap, mode=Mode(env_id=env_id, name=mode), passes_rollouts=passes and mode == "native"
            )
            for contract in WRAPPER_CONTRACTS:
                whole = name in ("VectorParams", "run", "run-with-all")
                quick = mode == "native" if name.startswith("run") else env_id == LANDER and mode == "native"
                quick |= whole and (env_id, mode) == (LANDER, "sync")
                marks: list[Any] = [] if quick else [pytest.mark.slow]  # its siblings are the same wrapper's others
                cell = f"{name}-{env_id.removeprefix('gym_dr/')}-{mode}-{contract.__name__}"
                found.append(pytest.param(case, contract, marks=marks, id=cell))
    return found


@pytest.mark.parametrize(("case", "contract"), cells())
def test_wrappers(case: WrapperCase, contract: Callable[[WrapperCase], None]) -> None:
    contract(case)
