"""The parameters of one environment, episode after episode: a ``ParamTable`` with one column, as plain numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import gymnasium as gym
import numpy as np
from gymnasium.utils import EzPickle

from gym_dr.arrays import Array
from gym_dr.errors import EnvStateError, RandomizationError
from gym_dr.randomization.context import Context
from gym_dr.randomization.draws import FixedSampler, seed_word
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.sampler import ParamSampler
from gym_dr.randomization.space import ParamSpace, exact_values, with_switches
from gym_dr.randomization.spec import Randomization
from gym_dr.randomization.table import ParamTable

_ONE = np.zeros(1, np.int64)


class EpisodeParams:
    """The parameter values of one environment, set at every reset from a ``ParamTable``."""

    def __init__(self, space: ParamSpace, randomization: Randomization, memory: Array | None = None) -> None:
        """Starts with nominal values; the first episode begins with ``begin``.

        Args:
            space: The parameters that may vary.
            randomization: Those that do.
            memory: See ``ParamTable``.
        """
        self.space = space
        self.randomization = randomization
        self.table = ParamTable(space, FixedSampler(space, randomization), 1, memory)
        self.current: dict[str, float] = dict(space.nominal)
        self.exact: Mapping[str, float] = {}  # checked values for the next episode only
        self.begun = False  # whether an episode has begun

    def begin(self, *, seed: int | None, np_random_seed: int | None, exact: Mapping[str, float]) -> None:
        """Sets the values of a new episode.

        Args:
            seed: The argument of ``reset``; an integer restarts the sequence of draws.
            np_random_seed: Seed of the environment's own generator, part of the draws' keys.
            exact: Checked values of this episode, which replace draws and pins.
        """
        if seed is not None or not self.begun:
            # Gymnasium marks a generator that was set by hand with -1; its draws get a random seed too
            if np_random_seed is None or np_random_seed < 0:
                np_random_seed = int(np.random.SeedSequence().generate_state(1)[0])
            self.table.seed(_ONE, np.array([seed_word(np_random_seed)], np.uint64))
            self.begun = True
        self.table.begin(_ONE, _columns({**self.exact, **exact}))
        self.note_current()
        self.exact = {}

    def note_current(self) -> None:
        """Reads the table's values; nan is not reported."""
        pairs = zip(self.table.names, self.table.current[:, 0].tolist(), strict=True)
        self.current = {name: value for name, value in pairs if value == value}

    def info(self) -> dict[str, Any]:
        """The current values and draw index, as every ``reset`` and ``step`` reports them."""
        return {"params": dict(self.current), "draw_index": int(self.table.index[0])}


class RandomizedEnv:
    """The interface of randomized single environments beyond Gymnasium's; subclasses and wrappers inherit it.

    Outer wrappers hide these attributes: use ``env.get_wrapper_attr("params")``, and ``VectorParams`` around sync and
    async vector environments, which sets the settable properties of their sub-environments.

    Attributes:
        episode: The parameters of the current episode.
        context: Who may see them.
    """

    episode: EpisodeParams
    context: Context
    metadata: dict[str, Any]

    def _allocate(self) -> Array | None:
        """Memory for the parameters if the physics reads them in place; called after all arguments are checked."""
        return None

    def _randomize(
        self, space: ParamSpace, randomization: Any = "default", context: str = "info", context_params: Any = None
    ) -> None:
        """Sets up parameters and context, in a constructor; see ``NativeVectorEnv`` for the arguments.

        Raises:
            UnknownNameError: A preset, parameter or context is unknown.
            RandomizationError: A range is impossible.
            ConfigError: ``context_params`` without ``context="observation"``.
        """
        chosen = resolve(randomization, space)
        self.context = Context(context, context_params, space, chosen)
        self.episode = EpisodeParams(space.reporting(chosen), chosen, self._allocate())
        # before 1.4 Gymnasium's vector environments write their autoreset mode into it, for the whole class
        self.metadata = dict(self.metadata)

    def _begin_episode(self, seed: int | None, options: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """Seeds the environment and sets the values of its next episode, including those in ``options["params"]``.

        Call it before the environment's own reset, which needs the values; the seed of the generator keys them.

        Returns:
            The other options; None if there are none.

        Raises:
            UnknownNameError: There is no such parameter; nothing has changed.
            RandomizationError: A value is impossible; nothing has changed.
        """
        values = exact_values(options)
        exact = {} if values is None else self._with_switches(self.param_space.check(values))
        env: gym.Env[Any, Any] = cast(Any, self).unwrapped
        gym.Env.reset(env, seed=seed)
        env.np_random  # noqa: B018  creates the generator and its seed if the first reset has no seed
        self.episode.begin(seed=seed, np_random_seed=env.np_random_seed, exact=exact)
        return {key: value for key, value in (options or {}).items() if key != "params"} or None

    def _check_begun(self, call: str) -> None:
        """Raises EnvStateError if there was no reset yet."""
        if not self.episode.begun:
            raise EnvStateError(f"Expected reset() before {call}(): there is no episode yet.")

    def _visible(self, observation: Any, info: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The observation with its context, and ``info`` with the current values unless they are hidden."""
        info = self.context.visible_info({**info, **self.episode.info()})
        return self.context.extend(observation, self.episode.current), info

    @property
    def param_space(self) -> ParamSpace:
        """The parameters that may vary."""
        return self.episode.space

    @property
    def randomization(self) -> Randomization:
        """The parameters that do vary, and how."""
        return self.episode.randomization

    @property
    def params(self) -> dict[str, float]:
        """The current values, by name; nominal before the first reset."""
        return dict(self.episode.current)

    @property
    def draw_index(self) -> int:
        """The current draw index: resets since the environment was seeded, unless a draw is held."""
        return int(self.episode.table.index[0])

    @property
    def sampler(self) -> ParamSampler:
        """The sampler that makes the draws; a new one takes effect at the next reset."""
        return self.episode.table.sampler

    @sampler.setter
    def sampler(self, sampler: ParamSampler) -> None:
        self.episode.table.sampler = sampler

    @property
    def held_draw(self) -> Any:
        """Seed word and index of the draw that all resets use from the next one on; None to count on."""
        return self.episode.table.held

    @held_draw.setter
    def held_draw(self, key: tuple[int, int]) -> None:
        self.episode.table.hold_draws(np.array(key[:1], np.uint64), np.array(key[1:], np.int64))

    def set_params(self, values: Mapping[str, float] | None) -> None:
        """Pins parameters from the next reset on, keeping earlier pins; None lets all of them be drawn again.

        Raises:
            UnknownNameError: There is no such parameter.
            RandomizationError: A value is not a single number, out of bounds or not finite, or would have no effect.
        """
        checked = {} if values is None else self._with_switches(self.param_space.check(values))
        self.pinned_params = {**({} if values is None else self.pinned_params), **checked}

    def _with_switches(self, values: Mapping[str, float]) -> dict[str, float]:
        """Checked values, with the switches that they turn on."""
        if not values:
            return {}
        found = with_switches(_columns(values), self.param_space, self.randomization, self.episode.table.pinned)
        return {name: float(value[0]) for name, value in found.items()}

    @property
    def pinned_params(self) -> dict[str, float]:
        """The values that replace draws from the next reset on."""
        return {name: float(pins[0]) for name, pins in self.episode.table.pinned.items()}

    @pinned_params.setter
    def pinned_params(self, values: Mapping[str, float]) -> None:
        checked = _columns(self.param_space.check(values))
        self.episode.table.pin(None, _ONE)
        self.episode.table.pin(checked, _ONE)

    @property
    def exact_params(self) -> dict[str, float]:
        """The values for the next episode only."""
        return dict(self.episode.exact)

    @exact_params.setter
    def exact_params(self, values: Mapping[str, float]) -> None:
        self.episode.exact = self.param_space.check(values)


def check_not_randomized(env: gym.Env[Any, Any]) -> None:
    """Raises RandomizationError if an environment is already randomized: the layers would reset each other's values."""
    if env.has_wrapper_attr("episode"):
        raise RandomizationError(f"{env} is already randomized. Put all parameters into one mapping.")


class BuiltEnv(RandomizedEnv):
    """A randomized environment in place of one of Gymnasium's; a subclass builds it."""

    def __init__(
        self, *, randomization: Any = "default", context: str = "info", context_params: Any = None, **kwargs: Any
    ) -> None:
        """Builds an environment that ``EzPickle`` copies.

        Args:
            randomization: See ``NativeVectorEnv``, as for ``context`` and ``context_params``.
            context: Who may see the draw.
            context_params: Which parameters the observation shows.
            **kwargs: ``render_mode``, and the keywords of Gymnasium's environment; one that is a parameter sets its
                nominal value, which presets do not vary.

        Raises:
            UnknownNameError: A preset, parameter or context is unknown.
            RandomizationError: A range or a constant is impossible.
            ConfigError: ``context_params`` without ``context="observation"``.
            TypeError: There is no such keyword.
        """
        self._randomize(self._build(**kwargs), randomization, context, context_params)
        env = cast(Any, self)
        env.observation_space = self.context.extend_space(env.observation_space)
        # replaces the arguments that Gymnasium's class recorded for pickling, since its constructor takes others
        kwargs |= {"randomization": randomization, "context": context, "context_params": context_params}
        EzPickle.__init__(env, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        """The constructor's arguments and pinned values, from which a copy is made."""
        return {**cast(Any, super()).__getstate__(), "pinned": self.pinned_params}

    def __setstate__(self, copied: dict[str, Any]) -> None:
        """Makes a copy."""
        cast(Any, super()).__setstate__(copied)
        self.pinned_params = copied["pinned"]

    def _build(self, **kwargs: Any) -> ParamSpace:
        """Makes the environment with nominal physics; returns the parameters that may vary."""
        raise NotImplementedError


def _columns(values: Mapping[str, float]) -> dict[str, Any]:
    return {name: np.full(1, value) for name, value in values.items()}
