"""A fit part by part: a delay, an estimate, particles, a test of the model, a replay, and sentences."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from gym_dr.arrays import Array
from gym_dr.errors import ConfigError, LogError, check_known, counted, percent
from gym_dr.fitting.draws import Draws, posterior_draws, widened
from gym_dr.fitting.estimate import Estimate, beginning, first_guess, states_of
from gym_dr.fitting.estimate import estimate as maximum
from gym_dr.fitting.findings import at_ends_of_priors, findings, noise_sentence
from gym_dr.fitting.force_profiles import active_profiles, find_phases
from gym_dr.fitting.horizons import (
    choice_sentences,
    chosen_method,
    clock_of,
    held_out,
    in_blocks,
    prediction_errors,
    prediction_sentences,
)
from gym_dr.fitting.likelihood import Likelihood
from gym_dr.fitting.logs import LoggedEpisode
from gym_dr.fitting.misfit import find_misfit
from gym_dr.fitting.motion import LoggedMotion, Path, read_motion, stretches
from gym_dr.fitting.particles import PARTICLES
from gym_dr.fitting.posterior import delay_distribution, noise_distribution, randomization_of
from gym_dr.fitting.prior import DELAYS, NOISE
from gym_dr.fitting.problem import FitOptions, FitProblem
from gym_dr.fitting.results import Fit
from gym_dr.fitting.sensors import is_of_sensor
from gym_dr.fitting.shooting import SIMULATED, STRETCH, shoot, shot_draws
from gym_dr.fitting.simulator import Simulator
from gym_dr.fitting.summary import error_table, parameter_table, residual_table
from gym_dr.fitting.varying import draw_points, episode_estimates, population
from gym_dr.randomization.spec import Randomization
from gym_dr.wrappers.sensors import sensor_of

_DELAY_ROWS = 600  # steps that decide on a delay
_ROUGH = 0.02  # error of intervals in whole steps, over their median, that is told
_SECOND, _SECOND_LEAST = 0.25, 300_000  # share of the likelihood's simulated steps for a second method, and the least
_GUESSES = 3  # of hidden coordinates and phases, in turn with parameters


def preview(problem: FitProblem) -> list[str]:
    """Sentences on steps, coordinates and parameters."""
    prior, unidentifiable = problem.prior, problem.replay.unidentifiable
    motion = read_motion(problem.episodes, problem.replay)
    steps = counted(sum(map(len, problem.episodes)), "step")
    sentences = [f"{counted(len(problem.episodes), 'episode')}, {steps}; {len(motion):,} can be replayed."]
    sentences += [f"{counted(count, 'step')} cannot: {reason}." for reason, count in motion.skipped]
    sentences += _clock(problem)
    coordinates = list(zip(motion.coordinates, motion.seen, strict=True))
    compared = [f"{one.name} ({one.unit})" if one.unit else one.name for one, seen in coordinates if seen]
    sentences.append(f"Compared: {', '.join(compared)}.")
    shares = motion.observed.mean(axis=0).tolist()
    for one, share in zip(motion.coordinates, shares, strict=True):
        sentences += [f"{one.name} is measured after {percent(share)} of the steps."] if 0.0 < share < 1.0 else []
    if hidden := [one.name for one, seen in coordinates if not seen]:
        sentences.append(f"Not observed, inferred from what is: {', '.join(hidden)}.")
    kept = [name for name in prior.names if name in unidentifiable]
    sentences += [f"{name} would keep its prior: {unidentifiable[name]}." for name in kept]
    if rest := [name for name in prior.names if name not in unidentifiable]:
        sentences.append(f"Parameters to find: {', '.join(rest)}.")
    return sentences


def _clock(problem: FitProblem) -> list[str]:
    """Sentences on how long logged steps last, and on what else the log tells."""
    holds = np.concatenate([episode.holds for episode in problem.episodes])
    sentences = []
    if holds.min() < holds.max():
        sentences.append(f"Logged actions act for {holds.min()} to {holds.max()} steps of the environment.")
    elif holds[0] > 1:
        sentences.append(f"Each logged action acts for {holds[0]} steps of the environment.")
    if problem.time_step is not None and problem.episodes[0].time is not None and not problem.episodes[0].known:
        logged = np.concatenate([np.diff(np.asarray(episode.time)) for episode in problem.episodes])
        missed = float(np.sqrt(np.square(logged - holds * problem.time_step).mean()))
        if missed > _ROUGH * np.median(logged):
            sentences.append(
                f"Whole steps miss the logged intervals by {missed:.2g} s (root mean square). If that matters, name "
                "the parameter that is the duration of a step (`time_step`)."
            )
    if names := list(problem.episodes[0].known):
        sentences.append(f"Told by the log, row by row: {', '.join(names)}.")
    return sentences


class FitJob:
    """One fit."""

    def __init__(self, problem: FitProblem, options: FitOptions, tell: Callable[[str], None]) -> None:
        """Simulates nothing yet; ``tell`` will be called with what is done."""
        for name in options.varies:
            check_known("parameter to find that varies:", name, problem.prior.names)
        if options.method == "simulation" and problem.replay.random_steps:
            raise ConfigError(
                f"`method`: expected auto or likelihood, as steps of {problem.env} draw random numbers, got simulation."
            )
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
        episodes = in_blocks(problem.episodes) if self.options.held_out and not varies else problem.episodes
        held = held_out(len(episodes), self.options.held_out, self.rng)
        used = [episode for i, episode in enumerate(episodes) if i not in held]
        kept = [episodes[i] for i in sorted(held)]
        delays, chances = self._delays(used)
        likelihood, guess = self._begin(used, delays)
        estimate = maximum(likelihood, *beginning(likelihood, guess), progress=self._tell_round)
        likelihood.motion = replace(likelihood.motion, scale=estimate.scale)
        self.tell("sampling the posterior")
        drawn, estimate = self._draws(likelihood, estimate)
        misfit = find_misfit(likelihood, estimate, varies=bool(varies))
        methods = self._simulated(likelihood, estimate)
        if self.options.method != "simulation" or not methods:  # as with nothing but a delay to find
            methods["likelihood"] = estimate.u, drawn
        self.tell("predicting held-out episodes")
        unseen = self._unseen(kept, estimate, delays)
        shown, path = unseen or (likelihood, estimate.smoothed)
        points = {"nominal": None, **{name: u for name, (u, _) in methods.items()}}
        clock = clock_of(problem, shown.motion)
        replayed = prediction_errors(shown, path, points, likelihood.motion.scale, clock)
        chosen = chosen_method(replayed, methods)
        replayed = replayed.replace({"physics": {chosen: "fitted"}})
        exact = prior.values(methods[chosen][1].points)
        every = {}
        for name, (u, draws) in methods.items():
            apart = u - estimate.u  # what the methods disagree on, of a model that lacks something
            excess = misfit.excess + misfit.suspicious * np.outer(apart, apart)
            every[name] = prior.values(widened(draws.points, excess, self.rng))
        (best, drawn), values = methods[chosen], every[chosen]
        table = parameter_table(prior, values, {} if varies else prior.values(best[None]))
        at_ends = at_ends_of_priors(table, exact, prior.space)
        sentences = findings(likelihood, estimate, misfit, table, values, at_ends, self.rng, varies=varies)
        sentences += [drawn.warning] if drawn.warning else []
        for name, steps in delays.items():
            sentences.append(f"{name}: {counted(steps, 'step')} ({100 * chances[name].max():.0f} %).")
        if prior.noise is not None:
            sentences.append(noise_sentence(_noise(likelihood, estimate), prior.noise))
        sentences += choice_sentences(replayed, chosen, every)
        sentences += prediction_sentences(replayed, _where(shown, unseen is not None, len(kept)))
        return Fit(
            env=problem.env,
            randomization=self._randomization(values, table, likelihood, estimate, chances),
            prior=prior.randomization,
            parameters=table,
            particles=pd.DataFrame(dict(values)),
            errors=error_table(likelihood.motion, estimate),
            replay=replayed,
            residuals=residual_table(likelihood.motion, estimate),
            suspicious=misfit.suspicious,
            findings=sentences,
            facts={
                "episodes": f"{len(used)} fitted, {len(kept)} held out",
                "steps": f"{len(likelihood.motion):,} fitted",
                "method": drawn.method,
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
        chances: Mapping[str, Array],
    ) -> Randomization:
        """What the log leaves possible, disturbances included."""
        prior, margin, others = self.problem.prior, self.options.margin, {}
        for delay in prior.delays:
            if not is_of_sensor(delay.name):
                others[delay.name] = delay_distribution(delay.steps, chances[delay.name])
        if prior.noise is not None:
            others[NOISE] = noise_distribution(_noise(likelihood, estimate), margin, prior.noise)
        contraction = {str(name): float(value) for name, value in table["contraction"].items()}
        return randomization_of(prior, values, contraction, others, margin)

    def _motion(self, episodes: Sequence[LoggedEpisode], delays: Mapping[str, int]) -> LoggedMotion:
        ages = {sensor_of(name): steps for name, steps in delays.items() if is_of_sensor(name)}
        return read_motion(episodes, self.problem.replay, sum(delays.get(name, 0) for name in DELAYS), ages)

    def _delays(self, episodes: Sequence[LoggedEpisode]) -> tuple[dict[str, int], dict[str, Array]]:
        """The most likely delays, and the probabilities of all possible ones, by name."""
        prior = self.problem.prior
        names, every = [delay.name for delay in prior.delays], [delay.steps for delay in prior.delays]
        tried = [dict(zip(names, steps, strict=True)) for steps in itertools.product(*every)]
        if len(tried) == 1:
            return tried[0], {name: np.ones(1) for name in names}
        simulator, scores, middle = Simulator(self.problem.replay), [], np.full(len(prior.names), 0.5)
        last = {name: max(steps) for name, steps in zip(names, every, strict=True)}
        longest = self._motion(episodes, last)  # read first: episodes may be too short for it
        ages = max((steps for name, steps in last.items() if is_of_sensor(name)), default=0)
        ends = np.array([len(episode) for episode in episodes])
        for delays in tried:
            motion = self._motion(episodes, delays)
            # the same rows for all delays
            rows = np.flatnonzero((motion.steps >= longest.steps[0]) & (motion.steps < ends[motion.episode] - ages))
            part = replace(motion.rows(rows[stretches(len(rows), _DELAY_ROWS)]), scale=longest.scale)
            likelihood = Likelihood(part, simulator, prior, middle)
            scores.append(maximum(likelihood, *beginning(likelihood, middle), rounds=3).log_likelihood)
            self.tell("tried " + ", ".join(f"{name} of {counted(steps, 'step')}" for name, steps in delays.items()))
        logs = np.array(scores).reshape([len(steps) for steps in every])
        for k, delay in enumerate(prior.delays):
            logs += np.expand_dims(np.log(delay.weights), tuple(j for j in range(logs.ndim) if j != k))
        chances = np.exp(logs - logs.max())
        chances /= chances.sum()
        alone = {name: chances.sum(tuple(j for j in range(logs.ndim) if j != k)) for k, name in enumerate(names)}
        return tried[int(np.argmax(logs))], alone

    def _tell_round(self, number: int, shift: float) -> None:
        self.tell(f"round {number}, parameters moved by {shift:.2g} standard deviations")

    def _likelihood(
        self,
        episodes: Sequence[LoggedEpisode],
        u: Array,
        delays: Mapping[str, int],
        phases: npt.NDArray[np.int64] | None,
    ) -> Likelihood:
        simulator = Simulator(self.problem.replay)
        likelihood = Likelihood(self._motion(episodes, delays), simulator, self.problem.prior, u)
        likelihood.phases = phases
        return likelihood

    def _begin(self, episodes: Sequence[LoggedEpisode], delays: Mapping[str, int]) -> tuple[Likelihood, Array]:
        """A first guess of parameters, hidden coordinates and phases, in turn.

        Returns:
            The likelihood and the parameters.
        """
        prior, replay = self.problem.prior, self.problem.replay
        profiles = list(replay.force_profiles)
        forced = bool(active_profiles(prior, profiles))
        u, phases = np.full(len(prior.names), 0.5), None
        turns = _GUESSES if forced or replay.size > len(replay.coordinates) else 1
        for turn in range(turns):
            likelihood = self._likelihood(episodes, u, delays, phases)
            _check_enough(likelihood)
            if forced and turn == 0:
                likelihood.phases = np.zeros((len(likelihood.motion), len(profiles)), np.int64)
                likelihood.forced = {profile.power: 0.0 for profile in profiles}
                u = first_guess(likelihood, u)
                likelihood.forced = {}
            if forced:
                phases = likelihood.phases = find_phases(likelihood, u, profiles)
            if turn < turns - 1:
                u = first_guess(likelihood, u)
            self.tell("guessed parameters")
        return likelihood, u

    def _draws(self, likelihood: Likelihood, estimate: Estimate) -> tuple[Draws, Estimate]:
        """Draws of the posterior, and the estimate whose residuals count."""
        if not (self.options.varies and len(estimate.u)):
            return posterior_draws(likelihood, estimate, self.rng, self.tell), estimate
        points, information, left = episode_estimates(likelihood, estimate, self.tell)
        own = np.isin(self.problem.prior.names, self.options.varies)
        points = draw_points(*population(points, information, own), PARTICLES, self.rng)
        return Draws(points=points, method="a distribution over episodes"), left

    def _simulated(self, likelihood: Likelihood, estimate: Estimate) -> dict[str, tuple[Array, Draws]]:
        """Simulation's parameters, and draws around them, by its name; nothing where it is not wanted or cannot be."""
        method, budget = self.options.method, SIMULATED
        if method == "likelihood" or likelihood.replicates > 1 or self.options.varies or not len(estimate.u):
            return {}
        if method == "auto" and likelihood.motion.seen.all():  # it seldom adds to a likelihood that sees all
            budget = min(budget, max(_SECOND_LEAST, int(_SECOND * likelihood.simulator.steps)))
        clock = clock_of(self.problem, likelihood.motion)
        shot = shoot(likelihood, estimate, clock.durations, STRETCH, budget, self.tell)
        how = f"simulation of stretches of about {clock.told(STRETCH)}"
        return {"simulation": (shot.u, Draws(points=shot_draws(shot, self.rng), method=how))}

    def _unseen(
        self, episodes: Sequence[LoggedEpisode], estimate: Estimate, delays: Mapping[str, int]
    ) -> tuple[Likelihood, Path] | None:
        """Held-out episodes and their smoothed states; None without any step that can be replayed."""
        profiles = list(self.problem.replay.force_profiles)
        try:
            likelihood = self._likelihood(episodes, estimate.u, delays, None) if episodes else None
        except LogError:
            return None
        if likelihood is None:
            return None
        if active_profiles(self.problem.prior, profiles):
            likelihood.phases = find_phases(likelihood, estimate.u, profiles)
        return likelihood, states_of(likelihood, estimate.u, estimate.noise)


def _where(shown: Likelihood, unseen: bool, kept: int) -> str:
    """What predictions are of, as it is said."""
    if unseen:
        return counted(len(np.unique(shown.motion.episode)), "held-out episode")
    none = " (no step of those held out can be replayed)" if kept else ""
    return f"the fitted episodes themselves{none}"


def _check_enough(likelihood: Likelihood) -> None:
    """Raises LogError for a log without motion, or with fewer numbers than unknowns."""
    motion, count = likelihood.motion, len(likelihood.prior.names)
    measured = motion.seen
    numbers, unknown = int(motion.observed.sum()), count + 2 * int(measured.sum())
    if numbers <= unknown:
        raise LogError(
            f"Expected more steps: {counted(numbers, 'number')} of {counted(len(motion), 'step')} cannot determine "
            f"{unknown}: {counted(count, 'parameter')}, and two variances of noise for each coordinate."
        )
    if not likelihood.replay.difference(likelihood.path.ends, likelihood.path.states)[:, measured].any():
        raise LogError("Expected motion, got a log in which nothing that is measured changes.")


def _noise(likelihood: Likelihood, estimate: Estimate) -> Array:
    """Standard deviations of measurement noise, in units of the observation, ``(n,)``."""
    seen = likelihood.motion.seen
    return np.asarray(np.sqrt(estimate.noise.measured[seen]) / likelihood.replay.per_observation[seen])
