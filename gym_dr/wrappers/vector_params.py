"""The parameters of a vector environment as arrays."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, cast

import numpy as np
from gymnasium.vector import SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import CloudpickleWrapper

from gym_dr.arrays import Array, Indices, Mask, Words
from gym_dr.envs.stack import stack_of
from gym_dr.envs.vector_arguments import Options, Seeds, check_actions, check_mask
from gym_dr.errors import ConfigError, EnvStateError, RandomizationError
from gym_dr.randomization.sampler import ParamSampler, check_support
from gym_dr.randomization.space import ParamSpace, checked_values, exact_values
from gym_dr.randomization.spec import Randomization
from gym_dr.wrappers.base import EpisodeWrapper


def with_params(env: VectorEnv[Any, Any, Any]) -> VectorEnv[Any, Any, Any]:
    """Wraps a vector environment in ``VectorParams`` unless, like native ones, it already offers parameters.

    Raises:
        RandomizationError: The sub-environments have no parameters.
    """
    return env if hasattr(env, "set_params") else VectorParams(env)


def spaces_of(env: VectorEnv[Any, Any, Any]) -> tuple[ParamSpace, Randomization]:
    """The space and the randomization of a vector environment, whatever its wrappers.

    Raises:
        RandomizationError: Its sub-environments have no parameters.
    """
    found = [layer for layer in stack_of(env) if hasattr(layer, "param_space")]
    layer = found[0] if found else VectorParams(env.unwrapped)
    return layer.param_space, layer.randomization


class _Sent:
    """Carries an object with any function in it to worker processes; plain pickles refuse most of them."""

    def __init__(self, content: Any) -> None:
        self._content = content

    def __reduce__(self) -> tuple[Any, ...]:
        return attrgetter("fn"), (CloudpickleWrapper(self._content),)


class VectorParams(EpisodeWrapper):
    """Gives Gymnasium's sync and async vector environments the parameter interface of native ones.

    ``gym.make_vec(..., vectorization_mode="sync" | "async")`` returns Gymnasium's own classes, which do not support
    parameters; this wrapper adds ``params``, ``set_params`` and values per sub-environment in ``reset(options=...)``.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        """Wraps a vector environment of randomized sub-environments.

        Args:
            env: Its sub-environments are ``gym_dr/...`` ones or wrapped in ``RandomizeAttributes``.

        Raises:
            RandomizationError: The sub-environments have no parameters.
        """
        super().__init__(env)
        self._sub_envs = cast(Any, env)  # Gymnasium declares get_attr and set_attr for sync and async only
        # asked first, since a worker that is asked for a missing attribute would exit
        if not (hasattr(env, "set_attr") and all(self._sub_envs.call("has_wrapper_attr", "pinned_params"))):
            raise RandomizationError(
                f"Expected a vector environment whose sub-environments are randomized, got {env}. "
                "Make it from a gym_dr/... id, or wrap each sub-environment in RandomizeAttributes, and put this "
                "wrapper directly around the vector environment, inside other wrappers."
            )
        self.autoreset_mode = self._autoreset.mode
        self._spaces, self._randomizations, self._samplers = (  # of each sub-environment
            self._sub_envs.get_attr(name) for name in ("param_space", "randomization", "sampler")
        )
        kinds = [(s, s.constants, r) for s, r in zip(self._spaces, self._randomizations, strict=True)]
        self._others = [i for i, kind in enumerate(kinds) if kind != kinds[0]]  # those that differ from the first

    @property
    def param_space(self) -> ParamSpace:
        """The parameters that may vary.

        Raises:
            ConfigError: The sub-environments differ in keywords or ranges; what needs this attribute raises it, too.
        """
        return cast(ParamSpace, self._common(self._spaces))

    @property
    def randomization(self) -> Randomization:
        """Those that do, and how; errors as for ``param_space``."""
        return cast(Randomization, self._common(self._randomizations))

    @property
    def sampler(self) -> ParamSampler:
        """The sampler that makes the draws; errors as for ``param_space``."""
        return cast(ParamSampler, self._common(self._samplers))

    @property
    def params(self) -> dict[str, Array]:
        """The current values: name -> array of shape ``(num_envs,)``, nominal where one is missing; a copy."""
        rows = self._sub_envs.get_attr("params")
        names, pairs = dict.fromkeys(name for row in rows for name in row), list(zip(rows, self._spaces, strict=True))
        return {name: np.array([row.get(name, space[name].nominal) for row, space in pairs]) for name in names}

    @property
    def pinned(self) -> dict[str, Array]:
        """Values pinned by ``set_params``: name -> ``(num_envs,)``, nan in sub-environments where it is not pinned."""
        rows = self._sub_envs.get_attr("pinned_params")
        names = dict.fromkeys(name for row in rows for name in row)
        return {name: np.array([row.get(name, np.nan) for row in rows]) for name in names}

    def set_sampler(self, sampler: ParamSampler) -> None:
        """See ``NativeVectorEnv.set_sampler``."""
        check_support(sampler, self.randomization)
        sent = sampler if isinstance(self._sub_envs, SyncVectorEnv) else _Sent(sampler)
        self._set("sampler", [sent] * self.num_envs)
        self._samplers = (sampler,)

    @property
    def draw_index(self) -> Indices:
        """The current draw of each sub-environment, shape ``(num_envs,)``."""
        return np.array(self._sub_envs.get_attr("draw_index"), dtype=np.int64)

    def set_params(self, values: Mapping[str, Any] | None, mask: Mask | None = None) -> None:
        """See ``NativeVectorEnv.set_params``."""
        chosen = check_mask(mask, self.num_envs)
        arrays = None if values is None else self._checked(values)
        rows, before = self._rows(arrays or {}), self._sub_envs.get_attr("pinned_params")
        after = [{} if arrays is None else {**pins, **row} for pins, row in zip(before, rows, strict=True)]
        self._set("pinned_params", [new if c else old for c, new, old in zip(chosen, after, before, strict=True)])

    def hold_draws(self, seed_words: Words, index: Indices) -> None:
        """See ``NativeVectorEnv.hold_draws``."""
        self._set("held_draw", list(zip(seed_words.tolist(), index.tolist(), strict=True)))

    def _checked(self, values: Any) -> dict[str, Array]:
        return checked_values(values, self.num_envs, self.param_space, self.randomization, self.pinned)

    def reset(self, *, seed: Seeds = None, options: Options = None) -> tuple[Any, dict[str, Any]]:
        """Resets the sub-environments.

        Args:
            seed: As in Gymnasium: sub-environment i gets ``seed + i``.
            options: ``{"params": {name: number or array (num_envs,)}}`` sets exact values for the new episodes;
                ``"reset_mask"`` as in Gymnasium.

        Raises:
            UnknownNameError: There is no such parameter; nothing has changed.
            RandomizationError: A value, seed or mask is impossible; nothing has changed.
        """
        self._check_open()
        try:
            return super().reset(seed=seed, options=options)
        except Exception:  # the exact values must not wait for the next reset
            with contextlib.suppress(Exception):  # a worker may have ended
                self._set("exact_params", [{}] * self.num_envs)
            raise

    def _before_reset(self, seeds: list[int | None], mask: Mask, options: dict[str, Any]) -> list[int | None]:
        if exact_values(options, self._spaces[0]) is not None:
            rows = self._rows(self._checked(options.pop("params")))
            self._set("exact_params", [row if chosen else {} for row, chosen in zip(rows, mask.tolist(), strict=True)])
        return seeds  # Gymnasium's take lists too, and no numbers of numpy

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Steps the sub-environments.

        Raises:
            InvalidActionError: The actions are not in the action space; nothing has changed. Without this check, the
                sub-environments before the one that refuses would already have been stepped.
        """
        self._check_open()
        return self.env.step(check_actions(actions, self.env.action_space))

    def render(self) -> tuple[Any, ...] | None:
        """Renders every sub-environment."""
        self._check_open()
        return self.env.render()

    def _check_open(self) -> None:
        """Raises EnvStateError if the environment is closed; Gymnasium's sync environment would continue."""
        if self.env.closed:
            raise EnvStateError("The vector environment is closed.")

    def _set(self, name: str, values: list[Any]) -> None:
        """Gives each sub-environment its value of a settable property of ``RandomizedEnv``."""
        self._sub_envs.set_attr(name, values)

    def _rows(self, arrays: Mapping[str, Array]) -> list[dict[str, float]]:
        """Arrays by name -> one mapping for each sub-environment."""
        if not arrays:
            return [{} for _ in range(self.num_envs)]
        columns = [array.tolist() for array in arrays.values()]
        return [dict(zip(arrays, row, strict=True)) for row in zip(*columns, strict=True)]

    def _common(self, values: Sequence[Any]) -> Any:
        """The value that all sub-environments share."""
        if self._others:
            raise ConfigError(
                "Expected sub-environments with the same keywords and ranges, since this holds for all of them, got "
                f"others in sub-environment {self._others[0]} than in 0. Make them with the same ones; then set_params "
                "and reset(options={'params': {NAME: [...]}}) give each its own values."
            )
        return values[0]
