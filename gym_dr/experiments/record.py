"""``gym_dr.experiments.record.record``: whole episodes of a policy as a log, with their draws and states."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box

from gym_dr.arrays import Array
from gym_dr.envs.stack import stack_of
from gym_dr.envs.vector_arguments import check_whole_number
from gym_dr.errors import ConfigError, EnvStateError, check_known
from gym_dr.experiments.chosen_params import choose_params
from gym_dr.experiments.policies import ContextParams, PolicyLike, open_all
from gym_dr.experiments.progress import Progress
from gym_dr.experiments.run import Run, Runs, load_run
from gym_dr.fitting.archives import SUFFIX, check_new, new_folder
from gym_dr.fitting.logs import LoggedEpisode, check_spaces
from gym_dr.integrations import minari
from gym_dr.plugins.loading import load_plugins
from gym_dr.randomization.context import INFO
from gym_dr.runs.stopping import explain_interrupt, stop_signals
from gym_dr.training.api import EpisodeStarts, PolicyWithMemory, seed_for
from gym_dr.wording import either, flag, spelled
from gym_dr.wrappers.context import DrawContext
from gym_dr.wrappers.past import ObservePast

if TYPE_CHECKING:
    from gym_dr.evaluation.cells import CellSet
    from gym_dr.evaluation.policies import FrozenPolicy

RANDOM = "random"  # in place of a policy: uniform random actions
FORMATS = ("minari", "npz")

_TOGETHER = 16  # episodes that are played at once; their states are kept until the last one ends


def record(
    policy: PolicyLike,
    *,
    episodes: int,
    output: str | Path,
    format: str = "minari",
    env: str | None = None,
    randomization: Any = None,
    randomize: Mapping[str, Any] | None = None,
    params: Mapping[str, float] | None = None,
    context: str = INFO,
    context_params: ContextParams = None,
    stochastic: bool = False,
    seed: int = 0,
    states: bool = True,
    trust: Collection[str] = (),
    progress: bool = True,
) -> Path:
    """Records whole episodes of a policy as a log, as ``gymdr record`` does.

    Each episode has its own seed, ``seed`` + its number, and so its own draw. Observations are those of the
    environment, with its disturbances but without the draw that a policy may observe; the last one is the one that
    ended the episode. Actions are those that the policy chose, within the environment's bounds.

    Example:
        >>> record("runs/first", episodes=20, output="lander/first-v0")  # minari.load_dataset("lander/first-v0")
        >>> record("random", env="gym_dr/CartPoleDR-v1", episodes=5, output="logs", format="npz")

    Args:
        policy: One run or another policy, as for ``gym_dr.evaluate``, or "random" for uniform random actions.
        episodes: How many.
        output: Where to write; must not exist. With "npz" a folder, in which each episode is a file. With "minari" the
            id of a data set, such as "lander/first-v0", in Minari's own folder, or the path of its folder, which begins
            with ``/``, ``.`` or ``~`` or is a ``Path``; its name ends in a version.
        format: "minari" or "npz". See ``gym_dr.integrations.minari.write_minari`` and ``read_log`` for what they hold.
        env: Id of the environment; required if the policy neither is a run nor a file of ``Run.export``.
        randomization: Draws to play, in any form that an environment takes, and the training randomization of a policy
            that is no run. If None, the policy's training draws; unknown ones are those of the preset "default".
        randomize: Rules for single parameters, which replace those of ``randomization`` if there is one; otherwise no
            other parameter varies.
        params: name -> value to play, in place of a draw. Without ``randomization`` and ``randomize`` all other
            parameters are nominal.
        context: "observation" for a policy that is no run and observes the draw; see ``gym_dr.evaluate``.
        context_params: Which parameters it observes.
        stochastic: Whether a run or a policy of Stable-Baselines3 samples its actions instead of taking the most likely
            ones.
        seed: Seed of the first episode, and of actions that are sampled.
        states: Whether to keep the environment's whole state at each observation, if it offers it: arrays
            ``state/NAME`` (T + 1, ...), whose rows fit ``set_state`` of an environment like it.
        trust: Files and modules whose code may run; see ``gym_dr.evaluate``.
        progress: Whether to show progress.

    Returns:
        The folder of the log.

    Raises:
        ConfigError: The policy or an option cannot be used, or Minari is not installed.
        LogError: The output exists already or cannot be written, or episodes of the environment cannot be logged.
        RunFolderError: There is no run at a path.
        UnknownNameError: The environment, a parameter, preset or format is unknown.
        RandomizationError: A value is out of bounds.
        InvalidActionError: The policy's actions do not fit the environment.
        Interrupted: A signal stopped it; nothing was written.
    """
    from gym_dr.experiments.one_run import one_thread  # heavy

    check_known("format", format, FORMATS)
    check_whole_number(spelled("episodes"), episodes)
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed <= 2**62:
        raise ConfigError(f"Expected {spelled('seed')} to be a whole number from 0 to 2**62, got {seed!r}.")
    (minari.check_place if format == "minari" else _check_folder)(output)
    with one_thread(), Progress("episode", "bar" if progress else "nothing") as display:
        uniform = policy == RANDOM if isinstance(policy, str) else False
        asked: Any = {"env": env, "randomization": randomization, "context": context, "context_params": context_params}
        opened = _random_policy(stochastic=stochastic, **asked) if uniform else None
        opened = opened or _open(policy, stochastic=stochastic, trust=trust, **asked)
        chosen = choose_params(opened.env, opened.space, randomization, randomize, params)
        for note in chosen.notes() if chosen else ():
            display.note(note)
        cells = _cells(opened, chosen, min(episodes, _TOGETHER))
        with explain_interrupt("Stopped. Nothing was written."), stop_signals(_stop):
            player = _Player(policy=opened, cells=cells, uniform=uniform, states=states, display=display)
            try:
                return player.write(output, format, episodes, int(seed))
            finally:
                player.envs.close()


def _stop(number: int) -> None:
    raise KeyboardInterrupt(number)  # also for SIGTERM, so that nothing half-written remains


def _check_folder(output: str | Path) -> None:
    check_new(Path(output))


# ---- the policy, and what it plays -----------------------------------------------------------------------------------


def _open(policy: PolicyLike, *, stochastic: bool, trust: Collection[str], **asked: Any) -> FrozenPolicy:
    """Opens one policy, deterministic unless it is to be stochastic."""
    from gym_dr.evaluation.foreign import is_policy_text  # heavy

    load_plugins()
    given: Any = policy
    if isinstance(policy, Path) or (isinstance(policy, str) and not is_policy_text(policy)):
        given = load_run(policy, trust)
    if isinstance(given, Runs):
        if len(given) > 1:
            raise ConfigError(f"{given.path}: expected one run, got a folder of {len(given)}. Name {given[0].path}.")
        given = given[0]
    if isinstance(given, Run):
        given, stochastic = given if stochastic else _deterministic(given), False
    return open_all([given], stochastic=stochastic, trust=trust, **asked)[0][0]


def _deterministic(run: Run) -> Run:
    """A run whose policy takes the most likely actions.

    Raises:
        ConfigError: Its algorithm has no such policy.
    """
    folder, _, algorithm = run.parts
    loader = algorithm.policy_loader()
    if loader is None:
        return run  # refused when it is opened
    if "deterministic" not in inspect.signature(loader).parameters:
        raise ConfigError(
            f"{folder.path}: algorithm {algorithm.name!r} has no deterministic policy. Sample its actions: "
            f"{spelled('stochastic', True)}."
        )
    likeliest = dataclasses.replace(algorithm, load_policy=functools.partial(loader, deterministic=True))
    return dataclasses.replace(run, _algorithm=likeliest)


def _random_policy(
    *, env: str | None, randomization: Any, context: str, context_params: ContextParams, stochastic: bool
) -> FrozenPolicy:
    """Stands for uniform random actions, which ``_Player`` chooses."""
    from gym_dr.evaluation.policies import FrozenPolicy  # heavy
    from gym_dr.randomization.presets import resolve
    from gym_dr.runs.environments import param_space_of

    load_plugins()
    if env is None:
        raise ConfigError(f"Random actions need {either(flag('env') + ' ID', 'env')}, the environment to play in.")
    if stochastic or context != INFO or context_params:
        given = "stochastic" if stochastic else "context" if context != INFO else "context_params"
        raise ConfigError(f"{spelled(given)} is for trained policies: expected one, got random actions.")
    space = param_space_of(env)
    return FrozenPolicy(
        name=RANDOM,
        env=env,
        source="random actions",
        space=space,
        randomization=None if space is None or randomization is None else resolve(randomization, space),
        digest="",
        load=lambda envs: _UniformActions(envs.single_action_space, [0] * envs.num_envs, env),
        record={"kind": RANDOM},
    )


class _UniformActions:
    """Chooses actions uniformly; those of each sub-environment depend on its seed only."""

    def __init__(self, space: Any, seeds: Iterable[int], env: str) -> None:
        if isinstance(space, Box) and not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
            raise ConfigError(f"{env}: expected actions with bounds, to choose among them at random, got {space}.")
        self._space = space
        self._generators = [np.random.default_rng((seed, 1)) for seed in seeds]  # apart from the environment's

    def __call__(self, observations: npt.NDArray[Any], episode_starts: EpisodeStarts) -> npt.NDArray[Any]:
        """Actions ``(N, ...)``."""
        space = self._space
        if isinstance(space, Box):
            drawn = [rng.uniform(space.low, space.high) for rng in self._generators]
            return np.clip(drawn, space.low, space.high).astype(space.dtype)
        return np.array([rng.integers(space.start, space.start + space.n) for rng in self._generators], np.int64)


def _cells(policy: FrozenPolicy, chosen: Any, episodes: int) -> CellSet:
    """What to play: the parameters that the user chose, or the policy's training draws."""
    from gym_dr.evaluation import cells  # heavy
    from gym_dr.evaluation.policies import training_draws

    draws = training_draws([policy])
    randomization = chosen.randomization if chosen else draws[0] if draws else None
    exact = chosen.params if chosen else {}
    if randomization:
        return cells.distribution("recorded", randomization, episodes, exact)
    return cells.fixed("recorded", exact, episodes) if exact else cells.nominal(episodes)


# ---- playing and writing ---------------------------------------------------------------------------------------------


class _Player:
    """Plays episodes of a policy in batches."""

    def __init__(self, *, policy: FrozenPolicy, cells: CellSet, uniform: bool, states: bool, display: Progress) -> None:
        self._policy, self._cells, self._uniform, self._display = policy, cells, uniform, display
        self.envs = envs = policy.make_envs(cells)
        # the policy's environment may show it the past and the draw, at the end of the observation
        self._inner: Any = next(layer for layer in stack_of(envs) if not isinstance(layer, ObservePast | DrawContext))
        self._states = states
        try:
            check_spaces(self._inner.single_observation_space, self._inner.single_action_space)
        except BaseException:
            self.envs.close()
            raise

    def write(self, output: str | Path, format: str, episodes: int, seed: int) -> Path:
        """Plays episodes and writes them; returns the folder of the log."""
        played, policy = self._play(episodes, seed), self._policy
        if format == "minari":
            return minari.write_minari(
                output,
                played,
                observation_space=self._inner.single_observation_space,
                action_space=self._inner.single_action_space,
                env=policy.env,
                policy=str(policy.record.get("algorithm") or policy.name),
                description=f"{episodes} episodes of {policy.name} on {policy.env}, recorded by gym_dr.",
            )
        digits = max(3, len(str(episodes - 1)))
        with new_folder(Path(output)) as folder:
            for number, episode in enumerate(played):
                with open(folder / f"{number:0{digits}}{SUFFIX}", "xb") as file:
                    np.savez_compressed(file, **_arrays(episode))
        return Path(output)

    def _play(self, episodes: int, seed: int) -> Iterator[LoggedEpisode]:
        title = f"{self._policy.name} on {self._policy.env}"
        for first in range(0, episodes, self.envs.num_envs):
            count = min(self.envs.num_envs, episodes - first)
            self._display(title, first, episodes)
            yield from self._play_batch(first, count, seed + first)
        self._display(title, episodes, episodes)

    def _play_batch(self, first: int, count: int, seed: int) -> Iterator[LoggedEpisode]:
        """Plays one episode in each of the first ``count`` sub-environments, until the slowest ends."""
        envs, names = self.envs, self._cells.params(np.zeros(self.envs.num_envs, np.int64))
        act = self._actor(seed)
        observations, info = envs.reset(seed=seed, options={"params": names} if names else None)
        draws = _draws(info, count)
        trace = _Trace(envs.num_envs, self._inner.single_observation_space.shape[0])
        trace.observe(observations, self._state())
        starts, ended = np.ones(envs.num_envs, np.bool_), np.zeros(envs.num_envs, np.bool_)
        while not trace.lengths[:count].all():
            actions = act(np.asarray(observations), starts)
            observations, rewards, terminations, truncations, _ = envs.step(actions)
            trace.step(actions, rewards, np.asarray(terminations), np.asarray(truncations))
            trace.observe(observations, self._state())
            # NEXT_STEP: the step after the one that ended an episode is the reset step
            starts, ended = ended, np.logical_or(terminations, truncations)
        for i in range(count):
            about = {"seed": np.asarray(seed + i), **draws[i]}
            yield trace.episode(i, about, f"episode {first + i}")

    def _actor(self, seed: int) -> PolicyWithMemory:
        from gym_dr.evaluation.actions import checked  # heavy

        envs, policy = self.envs, self._policy
        if self._uniform:
            seeds = range(seed, seed + envs.num_envs)
            return _UniformActions(envs.single_action_space, seeds, policy.env)
        made = policy.make(envs)
        reseed = getattr(made, "reseed", None)  # policies of other algorithms and packages may have none
        if reseed is not None:
            reseed(seed_for(seed, stream=2, index=2))
        return checked(made, envs, policy.source, policy.env)

    def _state(self) -> dict[str, npt.NDArray[Any]] | None:
        """The state of all sub-environments; None if it is not wanted or not offered."""
        if not self._states:
            return None
        try:
            state: dict[str, npt.NDArray[Any]] = cast(Any, self.envs.unwrapped).get_state()
        except (AttributeError, EnvStateError):
            self._states = False
            self._display.note(f"{self._policy.env} does not offer its state; the log has none.")
            return None
        return state


class _Trace:
    """All that a batch of N sub-environments shows, step by step."""

    def __init__(self, num_envs: int, width: int) -> None:
        self.lengths = np.zeros(num_envs, np.int64)  # of episodes that have ended
        self._width = width  # numbers of the environment's own observation
        self._observations: list[npt.NDArray[Any]] = []
        self._actions: list[npt.NDArray[Any]] = []
        self._steps: dict[str, list[npt.NDArray[Any]]] = {"rewards": [], "terminations": [], "truncations": []}
        self._states: list[dict[str, npt.NDArray[Any]]] = []

    def observe(self, observations: Any, state: dict[str, npt.NDArray[Any]] | None) -> None:
        self._observations.append(np.array(observations[:, : self._width]))
        if state is not None:
            self._states.append(state)

    def step(self, actions: npt.NDArray[Any], rewards: Any, terminations: Any, truncations: Any) -> None:
        self._actions.append(np.array(actions))
        for name, values in zip(self._steps, (rewards, terminations, truncations), strict=True):
            self._steps[name].append(np.array(values))
        self.lengths[(self.lengths == 0) & (terminations | truncations)] = len(self._actions)

    def episode(self, i: int, about: Mapping[str, npt.NDArray[Any]], source: str) -> LoggedEpisode:
        """The episode of sub-environment ``i``."""
        length = int(self.lengths[i])
        actions = np.stack([row[i] for row in self._actions[:length]])
        states = {
            f"state/{name}": np.array([row[name][i] for row in self._states[: length + 1]], values.dtype)
            for name, values in (self._states[0] if self._states else {}).items()
        }
        steps = {name: np.stack([row[i] for row in rows[:length]]) for name, rows in self._steps.items()}
        return LoggedEpisode(
            observations=np.stack([row[i] for row in self._observations[: length + 1]]).astype(np.float64),
            actions=actions.astype(np.float64 if actions.dtype.kind == "f" else np.int64),
            others={**steps, **about, **states},
            source=source,
        )


def _draws(info: Mapping[str, Any], count: int) -> list[dict[str, Array]]:
    """The draws that the first ``count`` sub-environments report at their reset."""
    params = {name: values for name, values in info.get("params", {}).items() if not name.startswith("_")}
    found: list[dict[str, Any]] = [
        {f"params/{name}": np.asarray(values[i], np.float64) for name, values in params.items()} for i in range(count)
    ]
    for i, draw in enumerate(found):
        if "draw_index" in info:
            draw["draw_index"] = np.asarray(info["draw_index"][i], np.int64)
    return found


def _arrays(episode: LoggedEpisode) -> dict[str, Any]:
    return {"observations": episode.observations, "actions": episode.actions, **episode.others}
