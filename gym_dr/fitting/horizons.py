"""How well parameters predict logged motion, at the horizons that a policy lives on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gym_dr.arrays import Array
from gym_dr.fitting.motion import LoggedMotion
from gym_dr.fitting.problem import FitProblem

_STEP = 0.01  # s that a step counts as, where nobody knows how long it lasts


@dataclass(frozen=True, kw_only=True, eq=False)
class Clock:
    """How long logged steps last."""

    durations: Array  # (T,) s
    known: bool  # otherwise a step of the environment counts as 0.01 s

    def told(self, seconds: float) -> str:
        """A duration, as it is said."""
        return f"{seconds:g} s" if self.known else f"{round(seconds / _STEP)} steps"


def clock_of(problem: FitProblem, motion: LoggedMotion) -> Clock:
    """The clock of a log: its times, or the environment's steps."""
    if problem.episodes[0].time is not None:
        return Clock(durations=motion.intervals, known=True)
    step = problem.time_step
    return Clock(durations=motion.holds.astype(np.float64) * (_STEP if step is None else step), known=step is not None)
