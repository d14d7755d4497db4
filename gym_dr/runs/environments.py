"""Creates the environments of a run from an id.

Wrappers around the registered environment add the randomization's disturbances, and the draw to the observation.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
from gymnasium.vector import VectorEnv
from gymnasium.vector.async_vector_env import AsyncState

from gym_dr.envs.family import described_space, family_of, origin_of, point_camera
from gym_dr.errors import ConfigError, GymDrError, as_path, check_known, located, shortened, unknown_name
from gym_dr.randomization.context import OBSERVATION
from gym_dr.randomization.sampler import ParamSampler, Sampler, TrainingInfo
from gym_dr.randomization.space import ParamSpace
from gym_dr.randomization.spec import Randomization
from gym_dr.runs.terminal import children_end_with_us
from gym_dr.training.config import CONTEXT_SPAN
from gym_dr.wrappers.context import DrawContext
from gym_dr.wrappers.disturb import Disturb, DisturbVector
from gym_dr.wrappers.disturbed_space import DisturbedSpace, possible_disturbances, split, supported, undisturbed
from gym_dr.wrappers.frame_stack import ONE_FRAME, Frames, FrameStack
from gym_dr.wrappers.sensors import DROP, SensorMap, sensors_of

REGISTERED_BY = "registered_by"  # key of a configuration: see ``source_of``
ALWAYS_THERE = ("gym_dr", "gymnasium")  # packages whose environments are registered in every process

ContextRanges = Mapping[str, tuple[float, float]]  # parameters that a policy observes: name -> (low, high)
VECTORIZATIONS = ("auto", "sync", "async", "native")


def check_env_id(env_id: str) -> None:
    """Checks that an environment is registered; ``module:id`` imports the module first, as Gymnasium does.

    Raises:
        UnknownNameError: There is no such environment.
        ConfigError: The module cannot be imported.
    """
    module, colon, name = env_id.rpartition(":")
    if colon:
        import_source(f"Environment {env_id!r}", module)
    if name not in gym.registry:
        # a missing "gym_dr/" is likelier than a typo
        in_namespaces = [known for known in gym.registry if known.rpartition("/")[2] == name]
        raise unknown_name("environment", name, in_namespaces or gym.registry, listing="gymdr list envs")


def make_sampler(
    kind: Sampler, env_id: str, num_envs: int, space: ParamSpace, randomization: Randomization, options: Any
) -> ParamSampler:
    """A new sampler for training on a registered environment; disturbances are always drawn as given.

    Args:
        kind: The kind of sampler.
        env_id: A registered id.
        num_envs: Number of sub-environments.
        space: Its parameters.
        randomization: The parameters that vary, with disturbances.
        options: See ``Sampler.for_space``.

    Raises:
        RandomizationError: The sampler cannot draw from the randomization.
        ConfigError: An option is impossible.
    """
    threshold = gym.spec(env_id.rpartition(":")[2]).reward_threshold
    training = TrainingInfo(num_envs=num_envs, reward_threshold=threshold)
    return kind.for_space(space, split(randomization)[0], options, training)


def check_vectorization(env_id: str, vectorization: str) -> None:
    """Checks that an environment supports a vectorization.

    Raises:
        UnknownNameError: There is no such vectorization.
        ConfigError: The environment has no native vector environment.
    """
    check_known("vectorization", vectorization, VECTORIZATIONS)
    if vectorization == "native" and gym.spec(env_id.rpartition(":")[2]).vector_entry_point is None:
        raise ConfigError(f"{env_id} has no native vector environment; use `vectorization` sync or async.")


def param_space_of(env_id: str) -> ParamSpace | None:
    """The parameters of an environment, including disturbances; None if it has no parameters of its own.

    The environment's family describes them; only an environment without a family is made to find out.

    Raises:
        UnknownNameError: There is no such environment.
        ConfigError: It cannot be made.
    """
    check_env_id(env_id)
    with _cannot_be_made(env_id):
        found = described_space(env_id)
    if found is not None:
        space, described = found
        discrete, pushed = bool(described.discrete), described.pushed
        disturbances = supported(noisy=True, discrete=discrete, pushed=pushed, floating=space.floats)
        return DisturbedSpace(space, disturbances, partial(_find_sensors, env_id))
    with contextlib.closing(make_env(env_id, None)) as env:
        return space_of(env)


def space_of(env: gym.Env[Any, Any]) -> ParamSpace | None:
    """The parameters of an existing environment; see ``param_space_of``."""
    if not env.has_wrapper_attr("param_space"):
        return None
    disturbances = possible_disturbances(env)
    sensed = any(param.name == DROP for param in disturbances)
    find = partial(sensors_of, "" if env.spec is None else env.spec.id, env.observation_space) if sensed else None
    return DisturbedSpace(env.get_wrapper_attr("param_space"), disturbances, find)


def _find_sensors(env_id: str) -> SensorMap | None:
    """The sensors of an environment, which is made only if its family does not list them."""
    found = sensors_of(env_id.rpartition(":")[2])
    if found is None:
        with contextlib.closing(make_env(env_id, None)) as env:
            found = sensors_of(env_id.rpartition(":")[2], env.observation_space)
    return found


def check_sensors(env_id: str, name: str, sensors: Sequence[str]) -> None:
    """Checks that an environment has the sensors that an option names.

    Raises:
        UnknownNameError: It has no such sensor.
    """
    if sensors and (known := _find_sensors(env_id)) is not None:
        with located(name):
            for sensor in sensors:
                known.span(sensor)


def has_discrete_actions(env_id: str) -> bool:
    """Whether an environment's actions are discrete; only an environment without a family is made to find out."""
    found = described_space(env_id)
    if found is not None:
        return bool(found[1].discrete)
    with contextlib.closing(make_env(env_id, None)) as env:
        return not isinstance(env.action_space, gym.spaces.Box)


def make_env(env_id: str, randomization: Randomization | None, **kwargs: Any) -> gym.Env[Any, Any]:
    """Makes one environment, in ``Disturb`` if there are disturbances.

    A randomization of None is the id's default.

    Raises:
        UnknownNameError: There is no such environment.
        ConfigError: It cannot be made, most likely because a package that it needs is missing.
    """
    check_env_id(env_id)
    disturbances = Randomization()
    if randomization is not None:
        kwargs["randomization"], disturbances = split(randomization)
    with _cannot_be_made(env_id):
        env = gym.make(env_id, **kwargs)
    if kwargs.get("render_mode") == "rgb_array":
        point_camera(env)
    return Disturb(env, disturbances) if disturbances else env


@contextlib.contextmanager
def _cannot_be_made(env_id: str) -> Iterator[None]:
    """Raises ConfigError if the block needs a missing package, Gymnasium refuses it, or there are no pictures."""
    try:
        yield
    except TypeError as error:  # of Gymnasium, about the environment's own function
        if "unexpected keyword argument 'render_mode'" not in str(error):
            raise
        raise ConfigError(f"{env_id} draws no pictures: its function takes no render_mode.") from None
    except (ImportError, gym.error.Error) as error:
        raise ConfigError(f"Environment {env_id!r} cannot be made: {error}") from None


def make_vector_env(
    env_id: str,
    num_envs: int,
    vectorization: str,
    randomization: Randomization | None,
    **kwargs: Any,
) -> VectorEnv[Any, Any, Any]:
    """Makes a vector environment without the run's wrappers, which ``wrap_for_policy`` adds.

    Args:
        env_id: A registered id.
        num_envs: Number of sub-environments.
        vectorization: "auto" (native if there is one, else sync), "sync", "async" or "native".
        randomization: None for environments without parameters; ``wrap_for_policy`` adds its disturbances.
        **kwargs: Passed to the environment.

    Raises:
        UnknownNameError: There is no such environment or vectorization.
        ConfigError: The environment has no native vector environment.
    """
    check_env_id(env_id)
    check_vectorization(env_id, vectorization)
    if randomization is not None:
        kwargs["randomization"], _ = split(randomization)
    mode = {"auto": None, "native": "vector_entry_point"}.get(vectorization, vectorization)
    if randomization is None and mode is None:
        mode = "sync"  # Gymnasium's own native environments lack NEXT_STEP autoreset and the info that trainers need
    children = children_end_with_us() if vectorization == "async" else contextlib.nullcontext()
    with children, _cannot_be_made(env_id):
        envs = gym.make_vec(env_id, num_envs, vectorization_mode=mode, **kwargs)
    if kwargs.get("render_mode") == "rgb_array":
        for env in getattr(envs, "envs", ()):
            point_camera(env)
    return envs


def end_workers(envs: VectorEnv[Any, Any, Any]) -> None:
    """Closes an async vector environment after Ctrl-C or an error, when processes may no longer answer."""
    base: Any = envs.unwrapped
    base._state = AsyncState.DEFAULT  # otherwise it would wait for answers
    envs.close(terminate=True)


def wrap_for_policy(
    envs: VectorEnv[Any, Any, Any],
    randomization: Randomization | None,
    context_ranges: ContextRanges | None = None,
    settable: Iterable[str] = (),
    span: float = CONTEXT_SPAN,
    frames: Frames = ONE_FRAME,
) -> VectorEnv[Any, Any, Any]:
    """Adds the wrappers between physics and policy: disturbances, the frame stack and the context.

    Args:
        envs: From ``make_vector_env``, possibly in ``ResampleParams`` or ``VectorParams``.
        randomization: Its disturbances are drawn in each episode.
        context_ranges: Parameters that the policy observes; None for none.
        settable: Disturbances that accept values in ``options["params"]`` even if they are not drawn.
        span: Maps the ranges to [-span, span].
        frames: What the policy observes besides the current observation.

    Raises:
        ConfigError: Observations of the environment cannot be stacked.
        RandomizationError: The environment does not support a disturbance.
    """
    _, disturbances = split(randomization or Randomization())
    rules = Randomization(
        {**undisturbed([*settable, *(context_ranges or ())]), **disturbances}, correlation=disturbances.correlation
    )
    if rules:
        envs = DisturbVector(envs, rules)
    if frames:
        envs = FrameStack(envs, **vars(frames))
    return DrawContext(envs, OBSERVATION, context_ranges, span) if context_ranges else envs


# ---- modules and files that register environments, which run only with the consent of the user -----------------------


def source_of(env_id: str) -> str:
    """The module, or the file of a program, that registered an environment.

    Empty for environments of gym_dr, its plugins and Gymnasium, and if there is nothing to import, as in a notebook.
    """
    module, colon, name = env_id.rpartition(":")
    family, spec = family_of(env_id), gym.registry.get(name)
    if not colon and family is not None:
        module = family.origin[0] if family.origin is not None else ""
    elif not colon and spec is not None:
        entry_point = spec.entry_point
        module = entry_point.partition(":")[0] if isinstance(entry_point, str) else origin_of(entry_point)[0]
    if module == "__main__":
        program = getattr(sys.modules[module], "__file__", None)
        return os.path.abspath(program) if program else ""
    return "" if module.partition(".")[0] in ALWAYS_THERE else module


def check_source(env_id: str, trusted: Collection[str], source: Any = "") -> None:
    """Checks the id of an environment in a file; imports its source only with the user's consent.

    Modules that are already imported need no consent.

    Args:
        env_id: The id; the caller imports the module of a "module:id".
        trusted: Modules and files whose code may run.
        source: The environment's source, as in the file; see ``source_of``.

    Raises:
        ConfigError: Another module or file would be imported, or it does not register the environment.
    """
    module, colon, _ = env_id.rpartition(":")
    if not colon and (not source or env_id in gym.registry):
        return
    needed = module if colon else source
    if not isinstance(needed, str):
        raise ConfigError(f"{REGISTERED_BY}: expected a module or a file, got {shortened(needed)}.")
    if needed not in sys.modules and Path(needed).resolve() not in [as_path(one).resolve() for one in trusted]:
        raise ConfigError(
            f"env: expected the id of a registered environment, got {shortened(env_id)}, for which {shortened(needed)} "
            f"must be imported. This runs its code. If you trust it: `trust={[shortened(needed)[1:-1]]!r}`"
        )
    if not colon:
        import_source(f"Environment {env_id!r}", needed)
        if env_id not in gym.registry:
            raise ConfigError(f"env: {needed} does not register {env_id!r}. Put the right module in front: MODULE:ID.")


def import_source(needed_for: str, source: str) -> None:
    """Imports a module, or runs a file as one.

    Args:
        needed_for: Begins messages.
        source: The module or file.

    Raises:
        ConfigError: It cannot be imported.
    """
    try:
        if source.endswith(".py") and source not in sys.modules:
            _run_file(source)
        importlib.import_module(source)  # Gymnasium does the same with the "FILE.py:ID" of a file
    except GymDrError:  # of its registrations
        raise
    except Exception as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith("<frozen")]
        inside = [(f.filename, f.lineno) for f in frames if f.filename not in (__file__, importlib.__file__)]
        inside += [(error.filename or "", error.lineno)] if isinstance(error, SyntaxError) else []
        if not inside:  # it was not even found
            raise ConfigError(
                f"{needed_for}: module {source!r} cannot be imported: {error}. Install it, add its folder to "
                "PYTHONPATH, or name its file: FILE.py:ID."
            ) from None
        raise ConfigError(
            f"{needed_for}: module {source!r} fails with {type(error).__name__}: {error}, at {inside[-1][0]}:"
            f"{inside[-1][1]}."
        ) from error


def _run_file(path: str) -> None:
    """Runs a file as a module whose name is the path."""
    sys.path.append(os.path.dirname(path))  # the file may import modules beside it
    spec = importlib.util.spec_from_file_location(path, path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[path] = module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path]
        raise
