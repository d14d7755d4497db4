"""The parameters of one environment, episode after episode: a table of one column, as plain numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import gymnasium as gym
import numpy as np

from gym_dr.randomization.context import Context
from gym_dr.randomization.draws import seed_word
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.sampler import FixedSampler, ParamSampler
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization
from gym_dr.randomization.table import ParamTable

_ONE = np.zeros(1, np.int64)


class EpisodeParams:
    """The values of one environment's parameters, new at every reset; see ``ParamTable`` for where they come from."""

    def __init__(self, space: ParamSpace, randomization: Randomization) -> None:
        """Starts with nominal values; the first episode begins with ``begin``."""
        self.space = space
        self.randomization = randomization
        self.table = ParamTable(space, FixedSampler(space, randomization), 1)
        self.current: dict[str, float] = dict(space.nominal)
        self.exact: Mapping[str, float] = {}  # checked values for the next episode alone
        self._seeded = False

    @property
    def draw_index(self) -> int:
        """The draw of the episode under way; the first one has 0."""
        return int(self.table.index[0])

    def check_options(self, options: Mapping[str, Any] | None) -> dict[str, float]:
        """Reads ``options["params"]``, the exact values of one episode, before anything is changed.

        Raises:
            UnknownNameError: There is no such parameter.
            RandomizationError: A value is not one number, out of bounds or not finite.
        """
        values = (options or {}).get("params")
        return {} if values is None else self.space.check(values)

    def begin(self, *, seed: int | None, np_random_seed: int | None, exact: Mapping[str, float]) -> None:
        """Sets the values of the episode that begins.

        Args:
            seed: What ``reset`` was given; an integer starts the sequence of draws anew.
            np_random_seed: The seed of the environment's own generator, which the draws are keyed by.
            exact: What ``check_options`` returned.
        """
        if seed is not None or not self._seeded:
            # Gymnasium marks a generator that was put in by hand with -1; its draws get a random seed too
            if np_random_seed is None or np_random_seed < 0:
                np_random_seed = int(np.random.SeedSequence().generate_state(1)[0])
            self.table.seed(_ONE, np.array([seed_word(np_random_seed)], np.uint64))
            self._seeded = True
        self.table.begin(_ONE, _columns({**self.exact, **exact}))
        pairs = zip(self.table.names, self.table.current[:, 0].tolist(), strict=True)
        self.current = {name: value for name, value in pairs if value == value}  # nan is not reported
        self.exact = {}

    def info(self) -> dict[str, Any]:
        """What every ``reset`` and ``step`` reports: the current values and which draw they are."""
        return {"params": dict(self.current), "draw_index": self.draw_index}


class RandomizedEnv:
    """What every randomized single environment offers beside Gymnasium's interface (a mixin).

    Wrappers hide these, so ask ``env.unwrapped`` (or ``env.get_wrapper_attr``); in a vector environment
    ``VectorParams``. The settable properties are how a vector environment reaches its sub-environments.

    Attributes:
        episode: The parameters of the episode under way.
        context: Who may see them.
    """

    episode: EpisodeParams
    context: Context
    metadata: dict[str, Any]
    _given_draw: tuple[dict[str, float], int] | None = None

    def _randomize(
        self, space: ParamSpace, randomization: Any = "default", context: str = "info", context_params: Any = None
    ) -> None:
        """Takes the keywords of every randomized environment, for a subclass's constructor; see ``NativeVectorEnv``.

        Raises:
            UnknownNameError: A preset, parameter or context is unknown.
            RandomizationError: A range is impossible.
            ConfigError: ``context_params`` without an observation to show them.
        """
        self.episode = EpisodeParams(space, resolve(randomization, space))
        self.context = Context(context, context_params, space, self.randomization)
        # before 1.4 Gymnasium's vector environments write their autoreset mode into it, for all instances of the class
        self.metadata = dict(self.metadata)

    def _begin_episode(self, seed: int | None, options: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """Seeds the environment and sets the values of its next episode, with those in ``options["params"]``.

        Its own reset follows; it needs the values, which are keyed by the seed of its generator.

        Returns:
            The other options; None if there are none.

        Raises:
            UnknownNameError: There is no such parameter; nothing has changed then.
            RandomizationError: A value is impossible; nothing has changed then.
        """
        exact = self.episode.check_options(options)
        env: gym.Env[Any, Any] = cast(Any, self).unwrapped
        gym.Env.reset(env, seed=seed)
        env.np_random  # noqa: B018  makes the generator, and so its seed, on the first reset without a seed
        self.episode.begin(seed=seed, np_random_seed=env.np_random_seed, exact=exact)
        return {key: value for key, value in (options or {}).items() if key != "params"} or None

    def _visible(self, observation: Any, info: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """What the user gets: the observation with its context, and ``info`` with the current values unless hidden."""
        info = self.context.visible_info({**info, **self.episode.info()})
        return self.context.extend(observation, self.episode.current), info

    @property
    def param_space(self) -> ParamSpace:
        """What may vary."""
        return self.episode.space

    @property
    def randomization(self) -> Randomization:
        """What does vary."""
        return self.episode.randomization

    @property
    def params(self) -> dict[str, float]:
        """The current values, by name; nominal before the first reset."""
        return dict(self.episode.current)

    @property
    def draw_index(self) -> int:
        """The current draw: the number of resets since the environment was seeded, unless draws are given to it."""
        return self.episode.draw_index

    @draw_index.setter
    def draw_index(self, value: int) -> None:
        """The next reset makes the draw after this one: where a lost environment's successor goes on."""
        self.episode.table.index[0] = int(value)

    @property
    def sampler(self) -> ParamSampler:
        """Where draws come from; another one counts from the next reset on."""
        return self.episode.table.sampler

    @sampler.setter
    def sampler(self, sampler: ParamSampler) -> None:
        self.episode.table.sampler = sampler

    @property
    def given_draw(self) -> tuple[dict[str, float], int] | None:
        """Values in place of the sampler's draws from the next reset on, and their draw index; None for its own."""
        return self._given_draw

    @given_draw.setter
    def given_draw(self, draw: tuple[dict[str, float], int] | None) -> None:
        self._given_draw = draw
        values, index = (None, -1) if draw is None else (_columns(draw[0]), draw[1])
        self.episode.table.give_draws(values, np.full(1, index), _ONE)

    def set_params(self, values: Mapping[str, float] | None) -> None:
        """Fixes parameters from the next reset on, beside those fixed before; None hands all back to the draws.

        Raises:
            UnknownNameError: There is no such parameter.
            RandomizationError: A value is not one number, out of bounds or not finite.
        """
        self.pinned_params = {} if values is None else {**self.pinned_params, **self.param_space.check(values)}

    @property
    def pinned_params(self) -> dict[str, float]:
        """The values that stand in for draws from the next reset on."""
        return {name: float(pins[0]) for name, pins in self.episode.table.pinned.items()}

    @pinned_params.setter
    def pinned_params(self, values: Mapping[str, float]) -> None:
        checked = _columns(self.param_space.check(values))
        self.episode.table.pin(None, _ONE)
        self.episode.table.pin(checked, _ONE)

    @property
    def exact_params(self) -> dict[str, float]:
        """The values for the episode that the next reset begins, and for that one alone."""
        return dict(self.episode.exact)

    @exact_params.setter
    def exact_params(self, values: Mapping[str, float]) -> None:
        self.episode.exact = self.param_space.check(values)


def _columns(values: Mapping[str, float]) -> dict[str, Any]:
    return {name: np.full(1, value) for name, value in values.items()}
