"""Episodes of every environment on a backend: parameters, seeds, elapsed steps, autoreset, divergence, states.

Users reach them through ``vector.py``, with arrays, and ``single.py``, with the only row of one environment. An episode
begins in ``Episodes.reset``, when a user calls it, or in ``Episodes.step``, when the autoreset mode requires it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Discrete
from gymnasium.vector import AutoresetMode

from gym_dr.arrays import Array, Floats, Indices, Mask
from gym_dr.envs.autoreset import AutoresetState
from gym_dr.envs.backend import (
    Backend,
    CompiledBackend,
    Divergence,
    Drawn,
    EnvState,
    Info,
    Outcome,
    check_layout,
    put_under,
)
from gym_dr.envs.played import Played, signals_of
from gym_dr.envs.vector_arguments import action_check
from gym_dr.errors import EnvStateError, RandomizationWarning, shortened, warn
from gym_dr.randomization.context import Context
from gym_dr.randomization.sampler import seed_word
from gym_dr.randomization.table import ParamTable, part_of

if TYPE_CHECKING:  # numba is heavy
    from gym_dr.compiled.policy import SmallPolicy
    from gym_dr.compiled.steps import Steps
    from gym_dr.envs.play import Play

NO_LIMIT = int(np.iinfo(np.int64).max)  # steps of an episode


class Step(NamedTuple):
    """A step of all sub-environments, and the resets that belong to it; new arrays."""

    outcome: Outcome  # 0 and False where ``begun``, with NEXT_STEP
    truncations: Mask  # (N,)
    divergences: Sequence[Divergence] = ()
    begun: Mask | None = None  # (N,) sub-environments that were reset; None if none
    final_observations: npt.NDArray[Any] | None = None  # (N, size) before those resets, with SAME_STEP
    final_params: dict[str, Any] | None = None  # ``ParamTable.info`` before them
    # observations (N, size), values (P, N) and draw indices (N,) after the step, if they are at hand
    seen: tuple[npt.NDArray[Any], Array, Indices] | None = None


class Episodes:
    """The episodes of N sub-environments, one after another.

    Attributes:
        backend: Their physics.
        table: Their parameters.
        context: Who may see them.
        autoreset: Which sub-environments have an episode, and whose has ended.
        max_steps: Steps after which an episode is truncated.
        elapsed: Steps so far of the current episodes, shape ``(N,)``.
        seeds: The seed of each sub-environment; None before its first reset.
        check_actions: Checks the actions of a step and returns them as an array.
    """

    def __init__(
        self,
        backend: Backend,
        table: ParamTable,
        context: Context,
        *,
        mode: AutoresetMode = AutoresetMode.DISABLED,
        max_steps: int = NO_LIMIT,
        environment: str,
    ) -> None:
        """Starts before the first reset.

        Args:
            backend: The physics, already allocated.
            table: The parameters, one column for each sub-environment.
            context: Who may see the draw.
            mode: NEXT_STEP, SAME_STEP or DISABLED, as Gymnasium defines them.
            max_steps: Steps after which an episode is truncated.
            environment: From ``fingerprint``; states of other environments are refused.
        """
        backend.table = table
        self._compiled = backend if isinstance(backend, CompiledBackend) else None
        self.backend, self.table, self.context, self.max_steps = backend, table, context, max_steps
        self.autoreset = AutoresetState(mode, table.num_envs)
        self.elapsed: Indices = np.zeros(table.num_envs, np.int64)
        self.seeds: list[int | None] = [None] * table.num_envs
        self.check_actions = action_check(backend.action_space, table.num_envs)
        self._environment = environment

    @cached_property
    def play(self) -> Play:
        """Steps the sub-environments of a compiled backend."""
        from gym_dr.envs.play import Play  # heavy: numba

        return Play(cast(Any, self.backend), self.table, self.elapsed, self.divergences)

    def close(self) -> None:
        """Frees the physics, and leaves the threads."""
        if "play" in vars(self):
            self.play.threads.close()
        self.backend.close()

    # ---- resets and steps --------------------------------------------------------------------------------------------

    def reset(self, mask: Mask, seeds: Sequence[int | None], exact: Mapping[str, Array], options: Any = None) -> None:
        """Begins episodes, with new seeds where given.

        Args:
            mask: Shape ``(N,)``, the sub-environments.
            seeds: For all sub-environments; None to keep one, or to choose the first one at random.
            exact: Checked values for these episodes: name -> shape ``(N,)``.
            options: From the backend's ``check_options``.
        """
        envs = mask.nonzero()[0]
        self._seed([i for i in envs.tolist() if seeds[i] is not None or self.seeds[i] is None], seeds)
        self._begin(envs, exact, options)
        self.autoreset.reset(mask)

    def step(self, actions: npt.NDArray[Any]) -> Step:
        """Steps every sub-environment, or resets it if the autoreset mode requires that.

        Args:
            actions: From ``check_actions``.
        """
        begun = self.autoreset.resets
        if self._compiled is None:
            self.elapsed += 1
            envs = None if begun is None else begun.nonzero()[0]
            if envs is not None:
                self._begin(envs, {})
            return self._begin_in_same_step(self._note(self.backend.step(actions, envs), begun))
        seen, values, index, rewards, terminations, truncations, diverged = self.play.step(
            actions, begun, self.max_steps
        )
        outcome = Outcome(rewards, terminations, self._compiled.report(rewards), diverged)
        return self._begin_in_same_step(self._note(outcome, begun, truncations, (seen, values, index)))

    def _begin_in_same_step(self, step: Step) -> Step:
        """With SAME_STEP, resets those whose episode has ended; with the others, the next step or the user does."""
        if self.autoreset.mode is not AutoresetMode.SAME_STEP:
            return step
        ended = step.outcome.terminations | step.truncations
        if ended.any():
            final, params = self.observe(), self.table.info(ended)
            step = step._replace(begun=ended, final_observations=final, final_params=params, seen=None)
            self._begin(ended.nonzero()[0], {})
        return step

    def observe(self) -> npt.NDArray[Any]:
        """The latest observations, with the context if the policy may see it; a new array ``(N, size)``."""
        return self.visible(self.backend.observe())

    def visible(self, observations: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Observations ``(N, size)`` with the context, if the policy may see it."""
        return self.context.extend(observations, self.table.params()) if self.context.ranges else observations

    def rollout(self, policy: SmallPolicy, noise: Floats, steps: Steps, first: int, last: int) -> tuple[Step, Played]:
        """Plays many steps, with NEXT_STEP; see ``NativeVectorEnv.rollout``.

        Returns:
            The last step, with the divergences of all, and the steps, without the info of the last one.
        """
        play = self._rollout_by_steps if self.context.ranges or self._compiled is None else self._rollout_compiled
        index, values, resets = self.table.index.copy(), self.table.current.copy(), self.autoreset.resets
        step, diverged, begun, reports = play(policy, noise, steps, first, last)
        ends = steps.terminated[first:last] | steps.truncated[first:last]
        envs, indices, later = (
            np.concatenate(part, -1) for part in zip((np.arange(len(index)), index, values), begun, strict=True)
        )
        order = np.argsort(envs, kind="stable")
        begins = np.concatenate([np.zeros_like(ends[:1]) if resets is None else resets[None], ends[:-1]])
        step = step._replace(begun=begins[-1] if begins[-1].any() else None)
        return step, Played(
            observations=steps.observations[first + 1 : last + 1],
            rewards=steps.rewards[first:last],
            terminations=steps.terminated[first:last],
            ended=ends,
            begun=begins,
            info={},
            draws=self.context.visible_info(self.table.laid_out(later[:, order], indices[order])),
            diverged=diverged if step.divergences else None,
            of_rollout=True,
            signals=signals_of(reports, *begins.shape, begun=begins),
        )

    def _rollout_compiled(
        self, policy: SmallPolicy, noise: Floats, steps: Steps, first: int, last: int
    ) -> tuple[Step, Mask, Drawn, Info]:
        """``rollout`` of a backend whose step is compiled."""
        rows, resets = (first, last), self.autoreset.resets
        drawn, diverged, divergences = self.play.rollout(policy, noise, steps, rows, resets, self.max_steps)
        failed = diverged[-1] if diverged[-1].any() else None
        reports = cast(CompiledBackend, self.backend).report(rewards := steps.rewards[first:last])
        last_report = {name: values[-1] for name, values in reports.items()}
        outcome = Outcome(rewards[-1], steps.terminated[last - 1], last_report, failed)
        truncations = steps.truncated[last - 1]
        self.autoreset.step(outcome.terminations | truncations)
        return Step(outcome, truncations, divergences), diverged, drawn, reports

    def _rollout_by_steps(
        self, policy: SmallPolicy, noise: Floats, steps: Steps, first: int, last: int
    ) -> tuple[Step, Mask, Drawn, Info]:
        """``rollout`` step by step: where none is compiled, or for a policy that also sees the draw."""
        from gym_dr.compiled.policy import Chooser

        chooser, space = Chooser(policy, steps, noise), self.backend.action_space
        start = space.start if isinstance(space, Discrete) else None
        diverged = np.zeros((last - first, self.table.num_envs), np.bool_)
        divergences: list[Divergence] = []
        reports: list[Info] = []
        drawn: list[Drawn] = [(np.zeros(0, np.int64), np.zeros(0, np.int64), self.table.current[:, :0])]
        for t in range(first, last):
            resets = self.autoreset.resets
            numbers = chooser.row(t, self.elapsed == 0)
            step = self.step(self.check_actions(numbers if start is None else steps.discrete[t] + start))
            steps.rewards[t], steps.terminated[t] = step.outcome.rewards, step.outcome.terminations
            steps.truncated[t] = step.truncations
            steps.observations[t + 1] = self.observe() if step.seen is None else self.visible(step.seen[0])
            if resets is not None:
                envs = resets.nonzero()[0]
                drawn.append((envs, self.table.index[envs], self.table.current[:, envs]))
            if step.outcome.diverged is not None:
                diverged[t - first] = step.outcome.diverged
            divergences += step.divergences
            reports.append(signals_of(step.outcome.info, self.table.num_envs))
        envs, index, values = (np.concatenate(part, axis=-1) for part in zip(*drawn, strict=True))
        step = step._replace(divergences=divergences)
        signals = {name: np.stack([report[name] for report in reports]) for name in reports[0]}
        return step, diverged, (envs, index, values), signals

    def _seed(self, envs: list[int], seeds: Sequence[int | None]) -> None:
        """Restarts the random streams and the draws of some sub-environments."""
        if not envs:
            return
        chosen = [cast(int, np.random.SeedSequence().entropy if seeds[i] is None else seeds[i]) for i in envs]
        for i, seed in zip(envs, chosen, strict=True):
            self.seeds[i] = seed
        self.backend.seed(envs, chosen)
        self.table.seed(np.array(envs, np.int64), np.array([seed_word(seed) for seed in chosen], np.uint64))

    def _begin(self, envs: Indices, exact: Mapping[str, Array], options: Any = None) -> None:
        """Begins episodes with new values."""
        self.table.begin(envs, exact)
        self.elapsed[envs] = 0
        self.backend.reset(envs, options)

    def _note(
        self,
        outcome: Outcome,
        begun: Mask | None,
        truncations: Mask | None = None,
        seen: tuple[npt.NDArray[Any], Array, Indices] | None = None,
    ) -> Step:
        """Records which episodes end: they terminate, reach the step limit, or diverge."""
        truncations = self.elapsed >= self.max_steps if truncations is None else truncations
        divergences: list[Divergence] = []
        if outcome.diverged is not None:
            truncations |= outcome.diverged
            divergences = self.divergences(outcome.diverged)
        self.autoreset.step(outcome.terminations | truncations)
        return Step(outcome, truncations, divergences, begun, seen=seen)

    def divergences(self, diverged: Mask) -> list[Divergence]:
        """The current episodes of sub-environments whose simulation has diverged, ``(N,)``."""
        params, index = self.table.params(), self.table.index
        return [
            (
                f"Sub-environment {i}",
                self.seeds[i],
                int(index[i]),
                {name: float(row[i]) for name, row in params.items()},
            )
            for i in diverged.nonzero()[0].tolist()
        ]

    # ---- states ------------------------------------------------------------------------------------------------------

    def get_state(self) -> EnvState:
        """All that the next steps depend on; seeds are text, since they may have any number of digits.

        Raises:
            EnvStateError: The physics does not support states.
        """
        return {
            **put_under("physics", self.backend.get_state()),
            **put_under("draws", self.table.get_state()),
            "seed": np.array(["" if seed is None else str(seed) for seed in self.seeds]),
            "environment": np.full(len(self.seeds), self._environment),
            "observation": self.backend.observe(),
            "begun": self.autoreset.begun.copy(),
            "done": self.autoreset.done.copy(),
            "elapsed": self.elapsed.copy(),
        }

    def set_state(self, state: Mapping[str, npt.NDArray[Any]], envs: Indices) -> None:
        """Continues some sub-environments from a state, which is checked first.

        Raises:
            EnvStateError: It has another layout, comes from other physics, or a number in it is impossible.
            UnknownNameError: It has an unknown parameter.
            RandomizationError: The value of a parameter is impossible.
        """
        check_layout(state, self.get_state())
        if (state["environment"] != self._environment).any():
            raise EnvStateError(
                "Expected a state from an environment with the same physics, keywords and autoreset mode, got one from "
                "another environment."
            )
        draws, physics = part_of("draws", state), part_of("physics", state)
        self.table.check_state(draws)
        self.backend.check_state(physics)
        try:
            seeds = [int(text) if text else None for text in state["seed"].tolist()]
        except ValueError:
            raise EnvStateError(f"State 'seed': expected digits, got {shortened(state['seed'].tolist())}.") from None
        self.table.set_state(draws, envs)
        self.backend.set_state(physics, envs)
        self.backend.observations[envs] = state["observation"][envs]
        self.autoreset.restore(state["begun"], state["done"], envs)
        self.elapsed[envs] = state["elapsed"][envs]
        for i in envs.tolist():
            self.seeds[i] = seeds[i]


def fingerprint(backend: Backend, keywords: Mapping[str, Any], mode: str = "") -> str:
    """Identifies the physics, keywords and mode that environments must share to exchange states."""
    rendering = ("width", "height", "camera_name", "camera_id", "default_camera_config", "max_geom", "visual_options")
    given = sorted((name, value) for name, value in keywords.items() if name not in rendering)
    text = f"{type(backend).__qualname__} {backend.space.name} {given!r} {mode}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def warn_diverged(who: str, seed: int | None, draw_index: int, params: Mapping[str, float]) -> None:
    """Warns that a simulation diverged, and names its draw."""
    warn(
        f"{who}: the simulation diverged and its episode was truncated; seed {seed}, draw {draw_index}, "
        f"parameters {params}.",
        RandomizationWarning,
    )
