"""What every wrapper around vector environments promises."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from gym_dr.envs.stack import supports
from gym_dr.errors import GymDrError, InvalidActionError
from gym_dr.testing import playing as base
from gym_dr.testing.playing import DISABLED, NUM_ENVS, SEED, Mode, assert_current, assert_same, refused
from gym_dr.wrappers.record import RecordEpisodes


@dataclass(frozen=True, kw_only=True)
class WrapperCase:
    """A wrapper, or several, and the environments that it is tried around."""

    wrap: Callable[[Any], Any]
    mode: Mode
    passes_rollouts: bool = False  # whether compiled rollouts go through it

    def opened(self, **kwargs: Any) -> contextlib.closing[Any]:
        """The wrapped environments as a context."""
        return contextlib.closing(self.wrap(self.mode.make(**kwargs)))


def parameters_pass_through(case: WrapperCase) -> None:
    with case.opened() as envs, case.mode.opened() as inner:
        assert envs.draw_index.tolist() == [-1, -1, -1]
        assert envs.params.keys() >= inner.params.keys()
        assert set(inner.param_space) <= set(envs.param_space)
        assert set(inner.randomization) <= set(envs.randomization)
        assert_current(envs, envs.reset(seed=SEED)[1], base.drawn(inner, 0))
        values = base.drawn(inner, 7, seed=900)
        envs.set_params(values)
        assert_current(envs, envs.reset()[1], values)
        envs.set_params(None)
        assert_current(envs, envs.reset(seed=SEED)[1], base.drawn(inner, 0))
        assert_current(envs, envs.reset(seed=SEED, options={"params": values})[1], values)
        assert (envs.draw_index == 0).all()


def pins_of_before_and_after_wrapping_hold_until_they_are_handed_back(case: WrapperCase) -> None:
    with contextlib.closing(case.mode.make(max_episode_steps=2)) as inner:
        (name, value), (other, after), *_ = base.drawn(inner, 7, seed=900).items()
        inner.set_params({name: value})
        envs = case.wrap(inner)
        envs.reset(seed=SEED)
        envs.set_params({other: after})
        envs.reset(seed=SEED)
        for t in range(base.STEPS):  # re-draws and autoresets
            assert_current(envs, envs.step(base.actions_of(envs, t))[-1], {name: value, other: after})
        envs.set_params(None)
        assert_current(envs, envs.reset(seed=SEED)[1], base.drawn(inner, 0))


def autoreset_metadata_spaces_and_specs_pass_through(case: WrapperCase) -> None:
    for autoreset in AutoresetMode:
        with case.opened(autoreset_mode=autoreset) as envs, case.mode.opened(autoreset_mode=autoreset) as inner:
            assert envs.metadata["autoreset_mode"] is autoreset
            assert (envs.num_envs, envs.render_mode, envs.spec.id) == (NUM_ENVS, None, inner.spec.id)
            assert envs.single_action_space == inner.single_action_space
            assert envs.observation_space == gym.vector.utils.batch_space(envs.single_observation_space, NUM_ENVS)
            assert envs.reset(seed=SEED)[0] in envs.observation_space
            assert envs.np_random_seed == (SEED, SEED + 1, SEED + 2)


def the_same_seed_gives_the_same_episodes_in_every_autoreset_mode(case: WrapperCase) -> None:
    for autoreset in AutoresetMode:
        kwargs = {"autoreset_mode": autoreset, "max_episode_steps": 3}
        with case.opened(**kwargs) as envs, case.opened(**kwargs) as twin:
            assert_same(base.play(envs), base.play(twin))


def pictures_and_closing_pass_through(case: WrapperCase) -> None:
    with case.opened(render_mode="rgb_array") as envs:
        envs.reset(seed=SEED)
        assert len(envs.render()) == NUM_ENVS
        envs.close()
        assert envs.unwrapped.closed


def the_callers_options_are_left_alone(case: WrapperCase) -> None:
    with case.opened(autoreset_mode=DISABLED) as envs, case.mode.opened() as inner:
        envs.reset(seed=SEED)
        options = {"reset_mask": np.array([True, False, True]), "params": base.drawn(inner, 7)}
        before = dict(options)
        envs.reset(options=options)
        assert options.keys() == before.keys()


def what_is_refused_changes_nothing(case: WrapperCase) -> None:
    with case.opened(max_episode_steps=3) as envs, case.opened(max_episode_steps=3) as twin:
        assert_same(envs.reset(seed=SEED), twin.reset(seed=SEED))
        name = next(iter(base.interface(envs).randomization))
        wrong: list[Any] = [{"params": {"no such name": 1.0}}, {"params": {name: np.nan}}]
        for options in [*wrong, {"reset_mask": np.ones(2, bool)}, {name: 1.0}, 5]:
            with refused(GymDrError):
                envs.reset(seed=99, options=options)
        with refused(GymDrError):
            envs.reset(seed=-1)
        with refused(InvalidActionError):
            envs.step(None)
        for t in range(base.STEPS):
            assert_same(envs.step(base.actions_of(envs, t)), twin.step(base.actions_of(twin, t)))


def compiled_rollouts_are_what_stepping_gives_or_are_refused(case: WrapperCase) -> None:
    left: list[Any] = []
    right: list[Any] = []
    with case.opened(max_episode_steps=2) as inner, case.opened(max_episode_steps=2) as twin:
        envs = RecordEpisodes(inner, left.append)
        assert supports(envs, "rollout") == case.passes_rollouts
        statistics = RecordEpisodeStatistics(envs)  # before Gymnasium 1.3 a wrapper that nobody holds closes them
        assert not supports(statistics, "rollout")  # which has to see every step
        if case.passes_rollouts:
            base.assert_rollout_is_stepping(envs, RecordEpisodes(twin, right.append))
            assert left == right != []


def a_subclass_passes_compiled_rollouts_on_too(case: WrapperCase) -> None:
    with case.opened() as envs:
        envs.__class__ = type("Subclass", (type(envs),), {})
        assert supports(envs, "rollout") == case.passes_rollouts


WRAPPER_CONTRACTS: tuple[Callable[[WrapperCase], None], ...] = (
    parameters_pass_through,
    pins_of_before_and_after_wrapping_hold_until_they_are_handed_back,
    autoreset_metadata_spaces_and_specs_pass_through,
    the_same_seed_gives_the_same_episodes_in_every_autoreset_mode,
    pictures_and_closing_pass_through,
    the_callers_options_are_left_alone,
    what_is_refused_changes_nothing,
    compiled_rollouts_are_what_stepping_gives_or_are_refused,
    a_subclass_passes_compiled_rollouts_on_too,
)
