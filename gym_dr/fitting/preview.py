"""What can be fitted from a log, in sentences, before anything is fitted."""

from __future__ import annotations

import numpy as np

from gym_dr.fitting.motion import read_motion
from gym_dr.fitting.problem import FitProblem
from gym_dr.fitting.simulator import Simulator
from gym_dr.wording import counted


def preview(problem: FitProblem) -> list[str]:
    """Sentences on steps, coordinates and parameters."""
    prior, unidentifiable = problem.prior, problem.replay.unidentifiable
    middle = prior.params(np.full(len(prior.names), 0.5))
    motion = read_motion(problem.episodes, Simulator(problem.replay, problem.hold), middle)
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
