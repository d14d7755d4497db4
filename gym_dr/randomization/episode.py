"""The parameters of one environment, episode after episode: a ``ParamTable`` with one column, as plain numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import gymnasium as gym
import numpy as np
from gymnasium.utils import EzPickle, RecordConstructorArgs

from gym_dr.arrays import Array
from gym_dr.errors import EnvStateError, RandomizationError
from gym_dr.options import plain
from gym_dr.randomization.context import INFO, Context
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.sampler import FixedSampler, ParamSampler, seed_word
from gym_dr.randomization.space import ParamSpace, StackedSpace, checked_values, exact_values
from gym_dr.randomization.spec import Randomization
from gym_dr.randomization.table import ParamTable

_ONE = np.zeros(1, np.int64)


class RandomizedEnv:
    """The interface of randomized single environments beyond Gymnasium's; subclasses and wrappers inherit it.

    Outer wrappers hide these attributes: use ``env.get_wrapper_attr("params")``, and ``VectorParams`` around sync and
    async vector environments, which sets the settable properties of their sub-environments.

    Attributes:
        param_space: The parameters that may vary.
        randomization: Those that do, and how.
        context: Who may see them.
    """

    metadata: dict[str, Any]
    _inside: RandomizedEnv | None = None  # the next randomized layer, which gets its values from this one
    _exact: dict[str, Array]  # checked values for the next episode only
    _begun: bool = False  # whether an episode has begun
    # of ``_attributes``, when they were last looked at
    _named: dict[str, tuple[str, Any]]  # attribute -> parameter and value
    _counted: int = 0  # how many there were

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
        self.param_space, self.randomization = space.reporting(chosen), chosen
        # of one column
        self._table = ParamTable(self.param_space, FixedSampler(self.param_space, chosen), 1, self._allocate())
        self._values = dict(self.param_space.nominal)  # the table's
        self._exact, self._named = {}, self._find_named()
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
        values = exact_values(options, self.param_space)
        self._pin_written()
        exact = {} if values is None else self._checked_values(values)
        env: gym.Env[Any, Any] = cast(Any, self).unwrapped
        gym.Env.reset(env, seed=seed)
        env.np_random  # noqa: B018  creates the generator and its seed if the first reset has no seed
        if seed is not None or not self._begun:
            # Gymnasium marks a generator that was set by hand with -1; its draws get a random seed too
            key: Any = env.np_random_seed if env.np_random_seed != -1 else np.random.SeedSequence().generate_state(1)[0]
            self._table.seed(_ONE, np.array([seed_word(int(key))], np.uint64))
            self._begun = True
        self._table.begin(_ONE, {**self._exact, **exact})
        self._note_values()
        self._exact = {}
        return {key: value for key, value in (options or {}).items() if key != "params"} or None

    def _note_values(self) -> None:
        """Reads the table's values, without those that are nan."""
        pairs = zip(self._table.names, self._table.current[:, 0].tolist(), strict=True)
        self._values = {name: value for name, value in pairs if value == value}

    def _attributes(self: Any) -> Mapping[str, Any]:
        """Those of the unwrapped environment, if nobody but users writes to one that is named like a parameter."""
        # classes of others may keep anything there
        return vars(self.unwrapped) if type(self.unwrapped).__module__.startswith(("gymnasium.", "gym_dr.")) else {}

    def _find_named(self) -> dict[str, tuple[str, Any]]:
        """The attributes that are named like parameters, ``LINK_MASS_1`` too: attribute -> parameter and value."""
        return {
            attribute: (name, value)
            for attribute, value in self._attributes().items()
            if (name := attribute if attribute in self.param_space else attribute.lower()) in self.param_space
            and not hasattr(gym.Env, name)
        }

    def _note_attributes(self) -> None:
        """Remembers what attributes hold, so that ``_pin_written`` finds what is written from now on."""
        self._named, self._counted = self._find_named(), len(self._attributes())

    def _pin_written(self) -> None:
        """Pins what a user has written to attributes: the physics reads the table alone."""
        attributes, before = self._attributes(), self._named
        if len(attributes) == self._counted and all(attributes.get(a) is v for a, (_, v) in before.items()):
            return  # as nearly always, and far quicker than a search
        self._note_attributes()
        written = {n: v for a, (n, v) in self._named.items() if a not in before or v is not before[a][1]}
        if written:
            self.set_params(written)

    def set_wrapper_attr(self, name: str, value: Any, **kwargs: Any) -> bool:
        """Sets an attribute, as in Gymnasium; the name of a parameter pins it, see ``set_params``."""
        if name not in self.param_space or hasattr(type(self), name):
            return bool(cast(Any, super()).set_wrapper_attr(name, value, **kwargs))
        self.set_params({name: value})
        return True

    def _check_begun(self, call: str) -> None:
        """Raises EnvStateError if there was no reset yet."""
        if not self._begun:
            raise EnvStateError(f"Expected reset() before {call}(): there is no episode yet.")

    def _visible(self, observation: Any, info: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The observation with its context, and ``info`` with the current values unless they are hidden."""
        # a Disturb between two layers has parameters, too
        params = dict(self._values) if self._inside is None else {**info.get("params", {}), **self._values}
        info = {**info, "params": params, "draw_index": self.draw_index}
        return self.context.extend(observation, self._values), self.context.visible_info(info)

    @property
    def params(self) -> dict[str, float]:
        """The current values, by name; nominal before the first reset."""
        return dict(self._values)

    @property
    def draw_index(self) -> int:
        """The current draw index: resets since the environment was seeded, unless a draw is held."""
        return int(self._table.index[0])

    @property
    def sampler(self) -> ParamSampler:
        """The sampler that makes the draws; a new one takes effect at the next reset."""
        return self._table.sampler

    @sampler.setter
    def sampler(self, sampler: ParamSampler) -> None:
        self._table.sampler = sampler

    @property
    def held_draw(self) -> Any:
        """Seed word and index of the draw that all resets use from the next one on; None to count on."""
        return self._table.held

    @held_draw.setter
    def held_draw(self, key: tuple[int, int]) -> None:
        self._table.hold_draws(np.array(key[:1], np.uint64), np.array(key[1:], np.int64))

    def set_params(self, values: Mapping[str, float] | None) -> None:
        """Pins parameters from the next reset on, keeping earlier pins; None lets all of them be drawn again.

        Raises:
            UnknownNameError: There is no such parameter.
            RandomizationError: A value is not a single number, out of bounds or not finite, or would have no effect.
        """
        self._pin_written()
        self._table.pin(None if values is None else self._checked_values(values), _ONE)
        if values is None and self._inside is not None:  # it pins what users write to attributes, too
            self._inside.set_params(None)

    def _checked_values(self, values: Any) -> dict[str, Array]:
        return checked_values(values, 1, self.param_space, self.randomization, self._table.pinned)

    @property
    def pinned_params(self) -> dict[str, float]:
        """The values that replace draws from the next reset on."""
        self._pin_written()
        return {name: float(pins[0]) for name, pins in self._table.pinned.items()}

    @pinned_params.setter
    def pinned_params(self, values: Mapping[str, float]) -> None:
        checked = self.param_space.check_vector(values, 1)
        self.set_params(None)
        self._table.pin(checked, _ONE)

    @property
    def exact_params(self) -> dict[str, float]:
        """The values for the next episode only."""
        return {name: float(value[0]) for name, value in self._exact.items()}

    @exact_params.setter
    def exact_params(self, values: Mapping[str, float]) -> None:
        self._exact = self.param_space.check_vector(values, 1)


class RandomizedWrapper(RandomizedEnv, gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """A layer around an environment, or around another layer, which then gets its values from this one."""

    def _wrap(
        self, space: ParamSpace, randomization: Any, context: str, context_params: Any, /, **arguments: Any
    ) -> None:
        """Sets up parameters and context, and records the constructor's arguments.

        Args:
            space: The parameters of this layer.
            randomization: See ``NativeVectorEnv``, as for ``context`` and ``context_params``.
            context: Who may see the draw.
            context_params: Which parameters the observation shows.
            **arguments: Other arguments of the constructor.

        Raises:
            UnknownNameError: A preset, parameter or context is unknown.
            RandomizationError: A range is impossible, or a layer inside varies a parameter, too, or is not plain.
            ConfigError: ``context_params`` without ``context="observation"``, or observations are not a flat box.
        """
        if self.env.has_wrapper_attr("_pin_written"):
            self._inside = self.env.get_wrapper_attr("_pin_written").__self__  # the outermost layer inside
            own, chosen, space = _stacked(self._inside, space, randomization)
        else:
            own = chosen = resolve(randomization, space)
        self._randomize(space, chosen, context, context_params)
        # rules in the form of JSON, which keeps it as it is, so that the environment's spec can be compared
        arguments |= {"randomization": own.to_dict(), "context": context, "context_params": context_params}
        RecordConstructorArgs.__init__(self, **arguments)
        self.observation_space = self.context.extend_space(self.env.observation_space)

    def _note_values(self) -> None:
        """Also gives the layer inside its values."""
        super()._note_values()
        self._own = self._values
        if self._inside is not None:
            (_, self._inside.exact_params), (_, self._own) = cast(Any, self.param_space).parts(self._values)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Steps the environment; ``info`` contains the current values."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        observation, info = self._visible(observation, info)
        return observation, reward, terminated, truncated, info

    def __getstate__(self) -> dict[str, Any]:
        self._pin_written()
        return dict(vars(self))

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._note_attributes()  # numbers of a pickle are other objects, which nobody has written


def _stacked(inside: Any, space: ParamSpace, randomization: Any) -> tuple[Randomization, Randomization, StackedSpace]:
    """A layer around another.

    Args:
        inside: The layer inside.
        space: The parameters of the one around it.
        randomization: Its rules, which may name the parameters of both.

    Returns:
        These rules, the rules of both, and the space of both.

    Raises:
        RandomizationError: Both vary a parameter or have a correlation, or the inner one hides or shows its draws.
    """
    own = resolve(randomization, StackedSpace(inside.param_space, space, ()))
    theirs = inside.randomization
    twice = ", ".join(name for name in own if name in theirs) or (
        "context or correlation" if inside.context.mode != INFO or (own.correlation and theirs.correlation) else ""
    )
    if twice:
        raise RandomizationError(f"{inside} is already randomized, with {twice}. Leave that to the outer layer.")
    both = Randomization({**theirs, **own}, correlation=own.correlation or theirs.correlation)
    return own, both, StackedSpace(inside.param_space, space, both)


class BuiltEnv(RandomizedEnv):
    """A randomized environment in place of one of Gymnasium's; a subclass builds it.

    Attributes that are named like parameters show the values of the episode; one that a user sets pins a parameter.
    """

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
        kwargs = {name: plain(value) for name, value in kwargs.items()}
        self._randomize(self._build(**kwargs), randomization, context, context_params)
        self._note_values()
        env = cast(Any, self)
        env.observation_space = self.context.extend_space(env.observation_space)
        # replaces the arguments that Gymnasium's class recorded for pickling, since its constructor takes others
        kwargs |= {"randomization": randomization, "context": context, "context_params": context_params}
        EzPickle.__init__(env, **kwargs)

    def _attributes(self) -> Mapping[str, Any]:
        return vars(self)

    def _note_values(self) -> None:
        """Also gives the attributes that are named like parameters their values."""
        super()._note_values()
        self._named = {attribute: (name, self._values[name]) for attribute, (name, _) in self._named.items()}
        vars(self).update({attribute: value for attribute, (_, value) in self._named.items()})

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
