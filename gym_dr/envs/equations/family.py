"""Environments from equations: a few plain functions of numbers, registered under an id."""

from __future__ import annotations

import functools
import inspect
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ParamSpec, cast

from gymnasium.spaces import Box, Discrete

from gym_dr.envs.equations import checks
from gym_dr.envs.equations.equations import Bounds, Equations
from gym_dr.envs.family import ENVIRONMENTS, UNLIMITED, EnvFamily, EnvId, family_of, origin_of, register_own
from gym_dr.envs.interface import Interface
from gym_dr.envs.vector_arguments import check_keywords, check_optional_number, check_whole_number
from gym_dr.errors import EquationsError, located
from gym_dr.options import plain
from gym_dr.randomization.space import Param, ParamSpace

_HERE = "gym_dr.envs.equations"
P = ParamSpec("P")


@dataclass(frozen=True, kw_only=True)
class EquationsFamily(EnvFamily):
    """A family of one environment whose physics is equations; see ``equations_family``."""

    equations: Equations
    keywords: tuple[str, ...]
    options: Mapping[str, float]
    reset_options: Callable[[Mapping[str, Any], Bounds], Bounds] | None
    render: Callable[[Any, Any], Any] | None
    render_fps: int
    described: Interface | None
    state_from: Callable[[tuple[float, ...]], tuple[float, ...]] | None
    time_step: float | str | None

    @property
    def param_space(self) -> ParamSpace:
        """The parameters of the equations, without the options."""
        return cast(ParamSpace, self.space)

    def with_keywords(self, keywords: Mapping[str, Any]) -> tuple[ParamSpace, tuple[float, ...]]:
        """The parameters and the options of an environment made with some keywords.

        A keyword that is a parameter sets its nominal value, which presets do not vary.

        Raises:
            TypeError: There is no such keyword.
            RandomizationError: The value is impossible.
            ValueError: An option is not a number.
        """
        check_keywords(self.param_space, keywords, (*self.keywords, *self.options))
        options = {name: float(keywords.get(name, default)) for name, default in self.options.items()}
        return self.param_space.with_constants(keywords), tuple(options.values())


def equations_family(
    id: str,  # as in gymnasium.register
    *,
    params: Sequence[Param] | ParamSpace,
    observation_space: Box,
    action_space: Box | Discrete,
    begin: Callable[[Any, Any], Any],
    step: Callable[..., Any],
    observe: Callable[[Any, Any], tuple[float, ...]],
    start: Mapping[str, Any] | None = None,
    presets: Mapping[str, Any] | None = None,
    derive: Callable[[Any], Any] | None = None,
    process_noise: Mapping[str, Any] | None = None,
    pushed: Sequence[str] = (),
    render: Callable[[Any, Any], Any] | None = None,
    render_fps: int = 50,
    max_episode_steps: int | None = 1000,
    reward_threshold: float | None = None,
    returns: tuple[float, float] = UNLIMITED,
    keys: Mapping[tuple[str, ...], Any] | None = None,
    interface: Interface | None = None,
    defaults: Mapping[str, Mapping[str, Any]] | None = None,
    keywords: Sequence[str] = (),
    options: Mapping[str, float] | None = None,
    reset_options: Callable[[Mapping[str, Any], Bounds], Bounds] | None = None,
    clip_actions: bool = True,
    state_from: Callable[[tuple[float, ...]], tuple[float, ...]] | None = None,
    time_step: float | str | None = None,
    name: str = "",
    reference: str = "",
) -> EquationsFamily:
    """Makes an environment of equations, for the hook ``gym_dr_register_environments`` of a plugin.

    The functions are plain Python, of numbers and named tuples of numbers, which numba compiles together with the
    functions that they call by name. ``c`` is what ``derive`` returns.

    Args:
        id: Id of the environment: "Glider-v0", or "mine/Glider-v0".
        params: What may vary. Functions get them as a named tuple in this order, followed by ``options``.
        observation_space: A Box of one row.
        action_space: A Discrete, or a Box of one row. ``step`` gets a number, or a tuple if a Box has several.
        begin: ``begin(c, u)`` -> the first state, a named tuple; ``u`` is a named tuple of the numbers of ``start``.
        step: ``step(c, state, action)`` -> next state, reward and whether the episode terminates, or the next state
            alone, enough to fit parameters to logs; with process noise ``step(c, state, action, w)``.
        observe: ``observe(c, state)`` -> a tuple, the observation.
        start: name -> ``Uniform``, its bounds, or ``Normal``: random numbers that begin an episode; None for none.
        presets: name -> randomization, as a mapping or a ``Randomization``; "default" is used if no other is
            given. None for one that varies nothing.
        derive: ``derive(p)`` -> a named tuple of what follows from the parameters, once per episode; None for the
            parameters themselves.
        process_noise: name -> ``Uniform``, its bounds, or ``Normal``: random numbers of each step, which ``step`` gets
            as a fourth argument, a named tuple: ``{"gust": Normal(0, 1)}`` is ``w.gust``. None for a step without one.
        pushed: Fields of the state that a push changes: velocities.
        render: ``render(c, state)`` -> a picture ``(height, width, 3)`` uint8; not compiled. None for no pictures.
        render_fps: Pictures per second of a video.
        max_episode_steps: Steps after which an episode is truncated; None for never.
        reward_threshold: Return at which the task counts as solved.
        returns: The lowest and highest possible return, which no interval then exceeds.
        keys: Arrow keys, such as ("left", "up"), -> action, for ``gymdr play --human``; () is the action without a key,
            if not 0.
        interface: What observations, actions and rewards mean.
        defaults: Settings and options that replace an algorithm's own: algorithm -> name -> value.
        keywords: Parameters that are keywords of the environment, which set nominal values.
        options: Other keywords, such as the kind of reward -> default, a number.
        reset_options: Options of ``reset`` and the pairs of numbers of the uniform ``start`` -> those of this episode.
        clip_actions: Whether ``step`` gets numbers clipped to the bounds of ``action_space``.
        state_from: Observation, a tuple, -> the fields of the state, nan for those that it does not determine; to fit
            parameters to logs. None if observations are the state itself; not compiled.
        time_step: Duration of a step in s, or the parameter that sets it; None if steps have no duration.
        name: Name of its parameters, under which presets are registered; empty for the id.
        reference: Id of an environment that has the same physics with nominal values.

    Raises:
        EquationsError: The id is malformed or taken; a name, a space or a function cannot be used; or ``derive`` or
            ``begin`` fails.
        ConfigError: A number is impossible.
        RandomizationError: A parameter or a preset is impossible.
        UnknownNameError: A preset names an unknown parameter.
    """
    with located(f"Equations {id!r}"):
        space = checks.param_space(name or id, params)
        checks.check_keywords_of(space, keywords, {} if options is None else options)
        checks.check_time_step(time_step, space)
        equations = checks.checked(
            Equations(
                name=space.name,
                observation_space=observation_space,
                action_space=action_space,
                params=namedtuple("Params", checks.names("params", [*space, *(options or {})])),
                physics=tuple,  # replaced by what derive and begin return
                state=tuple,
                start=checks.random_numbers("start", start or {}),
                process_noise=checks.random_numbers("process_noise", process_noise or {}),
                pushed=tuple(checks.names("pushed", pushed)),
                clip_actions=clip_actions,
                derive=checks.same if derive is None else derive,
                begin=begin,
                step=step,
                observe=observe,
            ),
            [*space.nominal.values(), *(options or {}).values()],
        )
        checks.check_interface(equations, interface)
        own = checks.checked_presets({"default": {}} if presets is None else presets, space)
        threshold = check_optional_number("reward_threshold", reward_threshold)
    limit = None if max_episode_steps is None else check_whole_number("max_episode_steps", max_episode_steps)
    env = EnvId(
        id=id,
        entry_point=f"{_HERE}.env:EquationsDR",
        vector_entry_point=f"{_HERE}.env:EquationsVectorEnv",
        discrete=isinstance(action_space, Discrete),
        pushed=bool(pushed),
        max_episode_steps=limit,
        reward_threshold=threshold,
        returns=returns,
        kwargs={"equations": id},
        reference=reference,
        keys=keys or {},
    )
    return EquationsFamily(
        name=space.name,
        ids=(env,),
        space=space,
        presets=own,
        defaults=defaults or {},
        interface=f"{_HERE}.family:interface_of" if interface else "",
        origin=origin_of(step),
        equations=equations,
        keywords=tuple(keywords),
        options=options or {},
        reset_options=reset_options,
        render=render,
        render_fps=check_whole_number("render_fps", render_fps),
        described=interface,
        state_from=state_from,
        time_step=plain(time_step),
    )


def _registering(make: Callable[P, EquationsFamily]) -> Callable[P, None]:
    """``make`` with the same arguments, which also registers the family."""

    @functools.wraps(make)
    def register_equations(*args: P.args, **kwargs: P.kwargs) -> None:
        family = make(*args, **kwargs)
        with located(f"Equations {family.ids[0].id!r}"):
            register_own(family, EquationsError)

    made: Any = register_equations
    made.__signature__ = inspect.signature(make).replace(return_annotation=None)
    register_equations.__name__ = register_equations.__qualname__ = "register_equations"
    register_equations.__doc__ = (equations_family.__doc__ or "").replace(_AS_A_FAMILY, _AT_ONCE)
    return register_equations


_AS_A_FAMILY = "Makes an environment of equations, for the hook ``gym_dr_register_environments`` of a plugin."
_AT_ONCE = "Registers an environment of equations; registering an id again replaces it in environments made afterwards."
register_equations = _registering(equations_family)


def family_with(env_id: str) -> EquationsFamily:
    """The family of an id.

    Raises:
        UnknownNameError: There is no such id.
    """
    ENVIRONMENTS.get(env_id)
    return cast(EquationsFamily, family_of(env_id))


def interface_of(env_id: str) -> Interface:
    """What the observations, actions and rewards of an id are."""
    return cast(Interface, family_with(env_id).described)
