"""A fit part by part: a delay, an estimate, particles, a test of the model, a replay, and sentences."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from gym_dr.arrays import Array
from gym_dr.errors import LogError
from gym_dr.fitting.estimate import Estimate, first_guess
from gym_dr.fitting.estimate import estimate as maximum
from gym_dr.fitting.findings import findings, noise_sentence, replay_sentences
from gym_dr.fitting.force_profiles import active_profiles, find_phases
from gym_dr.fitting.likelihood import Likelihood
from gym_dr.fitting.logs import LoggedEpisode
from gym_dr.fitting.misfit import find_misfit
from gym_dr.fitting.motion import LoggedMotion, read_motion, stretches
from gym_dr.fitting.particles import tempered_particles
from gym_dr.fitting.posterior import delay_distribution, noise_distribution, randomization_of
from gym_dr.fitting.prior import NOISE
from gym_dr.fitting.problem import FitOptions, FitProblem
from gym_dr.fitting.results import Fit
from gym_dr.fitting.simulator import Simulator
from gym_dr.fitting.summary import error_table, parameter_table, replay_errors, residual_table
from gym_dr.fitting.unconstrained import unconstrained
from gym_dr.fitting.varying import draw_points, episode_estimates, population
from gym_dr.randomization.spec import Randomization
from gym_dr.wording import counted

_PARTICLES = 4000
_EXACT_PARTICLES = 500  # whose likelihood is simulated
_EXACT_MOVES = 4  # of each of them in a stage
_CHECKED = 24  # particles at which the quadratic likelihood is compared with the simulated one
_NOT_QUADRATIC = 0.5  # standard deviation of that difference from which the particle method is used
_AFFORDABLE = 120.0  # s that the particle method may take unless it is asked for
_DELAY_ROWS = 600  # steps that decide on a delay
_GUESSES = 3  # of hidden coordinates and phases, in turn with parameters


def preview(problem: FitProblem) -> list[str]:
    """Sentences on steps, coordinates and parameters."""
    prior, unidentifiable = problem.prior, problem.replay.unidentifiable
    middle = prior.params(np.full(len(prior.names), 0.5))
    motion = read_motion(problem.episodes, Simulator(problem.replay), middle)
    steps = counted(sum(map(len, problem.episodes)), "step")
    sentences = [f"{counted(len(problem.episodes), 'episode')}, {steps}; {len(motion):,} can be replayed."]
    sentences += [f"{counted(count, 'step')} cannot: {reason}." for reason, count in motion.skipped]
    if problem.hold > 1:
        sentences.append(f"Each logged action acts for {problem.hold} steps of the environment.")
    coordinates = list(zip(motion.coordinates, motion.seen, strict=True))
    compared = [f"{one.name} ({one.unit})" if one.unit else one.name for one, seen in coordinates if seen]
    sentences.append(f"Compared: {', '.join(compared)}.")
    if hidden := [one.name for one, seen in coordinates if not seen]:
        sentences.append(f"Not observed, followed in simulation: {', '.join(hidden)}.")
    kept = [name for name in prior.names if name in unidentifiable]
    sentences += [f"{name} would keep its prior: {unidentifiable[name]}." for name in kept]
    if rest := [name for name in prior.names if name not in unidentifiable]:
        sentences.append(f"Parameters to find: {', '.join(rest)}.")
    return sentences


class FitJob:
    """One fit."""

    def __init__(self, problem: FitProblem, options: FitOptions, tell: Callable[[str], None]) -> None:
        """Simulates nothing yet; ``tell`` will be called with what is done."""
        self.problem, self.options, self.tell = problem, options, tell
        self.rng = np.random.default_rng(options.seed)

    @np.errstate(under="ignore")  # of unlikely points, whatever the user has set
    def result(self) -> Fit:
        """Fits.

        Raises:
            LogError: The log does not suffice, or its motion cannot be compared with any simulation.
        """
        try:
            return self._result()
        except np.linalg.LinAlgError:
            raise LogError(
                f"Expected motion like that of {self.problem.env}, got motion too far from any simulation to be "
                "compared with it. Log in the environment's units."
            ) from None

    def _result(self) -> Fit:
        began = time.monotonic()
        problem, prior, varies = self.problem, self.problem.prior, self.options.varies
        count = int(np.ceil(self.options.held_out * len(problem.episodes))) if len(problem.episodes) >= 3 else 0
        held = {int((i + 0.5) / count * len(problem.episodes)) for i in range(count)}  # even: the system may drift
        used = [episode for i, episode in enumerate(problem.episodes) if i not in held]
        kept = [problem.episodes[i] for i in sorted(held)]
        delay, chances = self._delay(used)
        likelihood, guess = self._begin(used, delay)
        estimate = maximum(likelihood, guess, progress=self._tell_round)
        self.tell("sampling the posterior")
        points, method, estimate = self._particles(likelihood, estimate)
        misfit = find_misfit(likelihood.motion, estimate)
        values = prior.values(points)
        table = parameter_table(prior, values)
        self.tell("replaying held-out episodes")
        unseen = self._unseen(kept, estimate, delay)
        physics = {
            "nominal": dict(prior.known),
            "fitted": prior.params(estimate.u),  # the means may be far from all draws
        }
        shown = unseen or likelihood
        replayed = replay_errors(shown, physics, likelihood.motion.scale)
        sentences = findings(likelihood, estimate, misfit, table, values, self.rng, varies=varies)
        if prior.delay:
            sentences.append(f"{prior.delay}: {counted(delay, 'step')} ({100 * chances.max():.0f} %).")
        if prior.noise is not None:
            sentences.append(noise_sentence(_noise(likelihood, estimate), prior.noise))
        replayed_episodes = 0 if unseen is None else len(np.unique(unseen.motion.episode))
        sentences += replay_sentences(replayed, replayed_episodes, len(kept))
        return Fit(
            env=problem.env,
            randomization=self._randomization(values, table, likelihood, estimate, chances),
            prior=prior.randomization,
            parameters=table,
            particles=pd.DataFrame(dict(values)),
            errors=error_table(likelihood.motion, estimate),
            replay=replayed,
            residuals=residual_table(likelihood.motion, estimate),
            suspicious=misfit.suspicious(varies),
            findings=sentences,
            facts={
                "episodes": f"{len(used)} fitted, {len(kept)} held out",
                "steps": f"{len(likelihood.motion):,} fitted",
                "method": method,
                "simulated": f"{likelihood.simulator.steps:,} steps of the environment",
                "time": f"{time.monotonic() - began:.1f} s",
            },
        )

    def _randomization(
        self,
        values: Mapping[str, Array],
        table: pd.DataFrame,
        likelihood: Likelihood,
        estimate: Estimate,
        chances: Array,
    ) -> Randomization:
        """What the log leaves possible, disturbances included."""
        prior, margin, others = self.problem.prior, self.options.margin, {}
        if prior.delay:
            others[prior.delay] = delay_distribution(prior.delays, chances)
        if prior.noise is not None:
            others[NOISE] = noise_distribution(_noise(likelihood, estimate), margin, prior.noise)
        contraction = {str(name): float(value) for name, value in table["contraction"].items()}
        return randomization_of(prior, values, contraction, others, margin)

    def _motion(self, episodes: Sequence[LoggedEpisode], u: Array, delay: int, simulator: Simulator) -> LoggedMotion:
        return read_motion(episodes, simulator, self.problem.prior.params(u), delay // self.problem.hold)

    def _delay(self, episodes: Sequence[LoggedEpisode]) -> tuple[int, Array]:
        """The most likely delay, and the probabilities of all possible delays."""
        prior = self.problem.prior
        if len(prior.delays) == 1:
            return prior.delays[0], np.ones(1)
        simulator, scores = Simulator(self.problem.replay), []
        middle = np.full(len(prior.names), 0.5)
        last = max(prior.delays)  # read first, as episodes may be too short for it
        motions = {d: self._motion(episodes, middle, d, simulator) for d in sorted(prior.delays, reverse=True)}
        for delay in prior.delays:
            motion = motions[delay]
            rows = np.flatnonzero(motion.steps >= last)  # the same for every delay
            part = motion.rows(rows[stretches(len(rows), _DELAY_ROWS)])
            part = replace(part, scale=motions[last].scale)
            likelihood = Likelihood(part, simulator, prior, middle)
            tried = maximum(likelihood, first_guess(likelihood, middle), rounds=3)
            scores.append(tried.log_likelihood)
            self.tell(f"tried a delay of {counted(delay, 'step')}")
        logs = np.array(scores) + np.log(np.maximum(prior.delay_weights, 1e-300))
        chances = np.exp(logs - logs.max())
        return prior.delays[int(np.argmax(chances))], chances / chances.sum()

    def _tell_round(self, number: int, shift: float) -> None:
        self.tell(f"round {number}, parameters moved by {shift:.2g} standard deviations")

    def _likelihood(
        self, episodes: Sequence[LoggedEpisode], u: Array, delay: int, phases: npt.NDArray[np.int64] | None
    ) -> Likelihood:
        simulator = Simulator(self.problem.replay)
        likelihood = Likelihood(self._motion(episodes, u, delay, simulator), simulator, self.problem.prior, u)
        likelihood.phases = phases
        return likelihood

    def _begin(self, episodes: Sequence[LoggedEpisode], delay: int) -> tuple[Likelihood, Array]:
        """A first guess of parameters, hidden coordinates and phases, in turn.

        Returns:
            The likelihood and the parameters.
        """
        prior, replay = self.problem.prior, self.problem.replay
        profiles = list(replay.force_profiles)
        forced = bool(active_profiles(prior, profiles))
        u, phases = np.full(len(prior.names), 0.5), None
        for turn in range(_GUESSES if forced or replay.size > len(replay.coordinates) else 1):
            likelihood = self._likelihood(episodes, u, delay, phases)
            _check_enough(likelihood)
            if forced and turn == 0:
                likelihood.phases = np.zeros((len(likelihood.motion), len(profiles)), np.int64)
                likelihood.forced = {profile.power: 0.0 for profile in profiles}
                u = first_guess(likelihood, u)
                likelihood.forced = {}
            if forced:
                phases = likelihood.phases = find_phases(likelihood, u, profiles)
            if turn < _GUESSES - 1:
                u = first_guess(likelihood, u)
            self.tell("guessed parameters")
        return likelihood, u

    def _particles(self, likelihood: Likelihood, estimate: Estimate) -> tuple[Array, str, Estimate]:
        """Draws of the posterior, the method that made them, and the estimate whose residuals count."""
        size, method = len(estimate.u), self.options.method
        if self.options.varies and size:
            points, information, left = episode_estimates(likelihood, estimate, self.tell)
            points = draw_points(*population(points, information), _PARTICLES, self.rng)
            return points, "a distribution over episodes", left
        transform = unconstrained(self.problem.prior)

        def quadratic(u: Array) -> Array:
            return estimate.quadratic(u, transform)

        points = tempered_particles(quadratic, transform, self.rng, count=_PARTICLES)
        if method == "least-squares" or not size or (method == "auto" and likelihood.replicates > 1):
            return points, "least squares", estimate
        exact = _exact(likelihood, estimate)
        chosen = points[self.rng.integers(len(points), size=_CHECKED)]
        start = time.monotonic()
        difference = float(np.std(exact(chosen) - quadratic(chosen)))
        expected = (time.monotonic() - start) / _CHECKED * _EXACT_PARTICLES * 30
        if method == "auto" and difference < _NOT_QUADRATIC:
            return points, "least squares", estimate
        if method == "auto" and expected > _AFFORDABLE:
            method = f"least squares, for a likelihood that is not quadratic; particles would take {expected:.0f} s"
            return points, method, estimate

        def wide(u: Array) -> Array:
            return 0.25 * quadratic(u)

        particles = tempered_particles(
            exact,
            transform,
            self.rng,
            count=_EXACT_PARTICLES,
            moves=_EXACT_MOVES,
            reference=wide,
            points=tempered_particles(wide, transform, self.rng, count=_EXACT_PARTICLES),
            progress=lambda power: self.tell(f"particles at {100 * power:.0f} % of the likelihood"),
        )
        return particles, "particles", estimate

    def _unseen(self, episodes: Sequence[LoggedEpisode], estimate: Estimate, delay: int) -> Likelihood | None:
        """The likelihood of held-out episodes; None without any step that can be replayed."""
        profiles = list(self.problem.replay.force_profiles)
        try:
            likelihood = self._likelihood(episodes, estimate.u, delay, None) if episodes else None
        except LogError:
            return None
        if likelihood is not None and active_profiles(self.problem.prior, profiles):
            likelihood.phases = find_phases(likelihood, estimate.u, profiles)
        return likelihood


def _check_enough(likelihood: Likelihood) -> None:
    """Raises LogError for a log without motion, or with fewer numbers than unknowns."""
    motion, count = likelihood.motion, len(likelihood.prior.names)
    measured = int(motion.seen.sum())
    numbers, unknown = measured * len(motion), count + 2 * measured
    if numbers <= unknown:
        raise LogError(
            f"Expected more steps: {counted(numbers, 'number')} of {counted(len(motion), 'step')} cannot determine "
            f"{unknown}: {counted(count, 'parameter')}, and two variances of noise for each coordinate."
        )
    if not likelihood.replay.difference(likelihood.after, likelihood.before)[:, motion.seen].any():
        raise LogError("Expected motion, got a log in which nothing that is measured changes.")


def _noise(likelihood: Likelihood, estimate: Estimate) -> Array:
    """Standard deviations of measurement noise, in units of the observation, ``(n,)``."""
    seen = likelihood.motion.seen
    return np.asarray(np.sqrt(estimate.noise.measured[seen]) / likelihood.replay.per_observation[seen])


def _exact(likelihood: Likelihood, estimate: Estimate) -> Callable[[Array], Array]:
    """The simulated log-likelihood of points ``(count, parameters)``, relative to that of the estimate."""
    best = float(np.square(estimate.innovations).sum())

    def log_likelihood(points: Array) -> Array:
        relative = np.empty(len(points))
        for k, u in enumerate(points):
            white = estimate.factor.whiten(likelihood.residuals(u, estimate.states, estimate.offsets))
            relative[k] = -0.5 * (float(np.square(white).sum()) - best)
        return relative

    return log_likelihood
