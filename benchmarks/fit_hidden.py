"""Are the intervals of ``gym_dr.fit`` honest on logs of positions alone, as encoders give them?

    python -m benchmarks.fit_hidden [FITS] [FOLDER] [--friction]

For each of five systems, FITS (20) truths are drawn from the prior, simulated with random steps of the action, and
fitted from noisy positions. A 90 % interval should hold the truth in 85 to 95 % of all pairs of fit and parameter, and
at most 5 % of the fits should be suspicious. With ``--friction``, dry friction that the model lacks brakes the first
speed: at least 90 % should be suspicious, and intervals cover 75 %. Results go to FOLDER/fit_hidden.csv as they come; a
second run goes on.
"""

from __future__ import annotations

import csv
import math
import sys
import time
import warnings
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box

import gym_dr
from gym_dr import Param

STEP = 0.01  # s
HELD = 15  # steps for which an action acts
EPISODE = 300  # steps
Cart = namedtuple("Cart", "x v")
Servo = namedtuple("Servo", "q w")
Two = namedtuple("Two", "x v q w")  # two coordinates and their speeds


def cart_step(c: Any, s: Any, a: float) -> Any:
    v = s.v + STEP * (c.b * a - c.c * s.v)
    return Cart(s.x + STEP * v, v)


def servo_step(c: Any, s: Any, a: float) -> Any:
    torque = 8.0 * c.k * (a - s.q) - c.d * s.w - c.f * math.tanh(s.w / 0.05) - c.mgl * math.sin(s.q)
    w = s.w + STEP * torque / 0.02
    return Servo(s.q + STEP * w, w)


def pole_step(c: Any, s: Any, a: float) -> Any:
    sin, cos = math.sin(s.q), math.cos(s.q)
    m11, m12, m22 = 1.0 + c.m, c.m * c.l * cos, c.m * c.l * c.l * 4.0 / 3.0
    force = c.k * a - c.d * s.v + c.m * c.l * sin * s.w * s.w
    torque = -c.m * 9.81 * c.l * sin - c.e * s.w
    det = m11 * m22 - m12 * m12
    v, w = s.v + STEP * (m22 * force - m12 * torque) / det, s.w + STEP * (m11 * torque - m12 * force) / det
    return Two(s.x + STEP * v, v, s.q + STEP * w, w)


def furuta_step(c: Any, s: Any, a: float) -> Any:
    x, v, q, w, dt = s.x, s.v, s.q, s.w, STEP / 4
    for _ in range(4):
        sin, cos = math.sin(q), math.cos(q)
        m11, m12, m22 = c.j1 + c.j2 * sin * sin, c.h * cos, c.j2
        arm = a - c.d * v - 2 * c.j2 * sin * cos * v * w + c.h * sin * w * w
        pole = c.j2 * sin * cos * v * v - 9.81 * c.h / 0.15 * sin - c.e * w
        det = m11 * m22 - m12 * m12
        v, w = v + dt * (m22 * arm - m12 * pole) / det, w + dt * (m11 * pole - m12 * arm) / det
        x, q = x + dt * v, q + dt * w
    return Two(x, v, q, w)


def double_step(c: Any, s: Any, a: float) -> Any:
    cos, sin = math.cos(s.q - s.x), math.sin(s.q - s.x)
    m12 = c.h * cos
    upper = c.h * sin * s.w * s.w - c.g1 * math.sin(s.x) - c.d1 * s.v + 3.0 * a - c.d2 * (s.v - s.w)
    lower = -c.h * sin * s.v * s.v - 9.81 * c.h / 0.3 * math.sin(s.q) - c.d2 * (s.w - s.v)
    det = c.i1 * c.i2 - m12 * m12
    v, w = s.v + STEP * (c.i2 * upper - m12 * lower) / det, s.w + STEP * (c.i1 * lower - m12 * upper) / det
    return Two(s.x + STEP * v, v, s.q + STEP * w, w)


def begin_cart(c: Any, u: Any) -> Any:
    return Cart(u.a, u.b)


def begin_servo(c: Any, u: Any) -> Any:
    return Servo(u.a, u.b)


def begin_two(c: Any, u: Any) -> Any:
    return Two(u.a, u.b, u.c, u.d)


def see_one(c: Any, s: Any) -> Any:
    return (s[0],)


def see_two(c: Any, s: Any) -> Any:
    return (s[0], s[2])


def one_from(o: Any) -> Any:
    return (o[0], math.nan)


def two_from(o: Any) -> Any:
    return (o[0], math.nan, o[1], math.nan)


class System(NamedTuple):
    """A system whose positions are logged."""

    step: Callable[[Any, Any, float], Any]
    begin: Callable[[Any, Any], Any]
    prior: dict[str, tuple[float, float]]
    start: tuple[tuple[float, float], ...]  # of each number of the state: a position and its speed, in turn
    noise: float  # deviation of the errors of measurement
    episodes: int
    largest: float  # action
    friction: float  # of the first speed, 1/s^2, where the model lacks it


ANY = ((-0.1, 0.1), (-0.1, 0.1), (-0.5, 0.5), (-0.5, 0.5))
SYSTEMS = {
    "cart": System(cart_step, begin_cart, {"b": (-5, 5), "c": (0, 4)}, ANY[:2], 5e-4, 3, 1.0, 0.3),
    "servo": System(
        servo_step,
        begin_servo,
        {"k": (0.3, 3), "d": (0, 0.2), "f": (0, 0.1), "mgl": (0.1, 1)},
        ((-0.3, 0.3), (-0.5, 0.5)),
        1e-3,
        5,
        1.5,
        10.0,  # 2 % of how fast its speed changes; of less than 1 % a fit says that it is too small to matter
    ),
    "cart-pole": System(
        pole_step,
        begin_two,
        {"k": (5, 20), "d": (0, 2), "m": (0.05, 0.5), "l": (0.2, 0.8), "e": (0, 0.02)},
        ANY,
        1e-3,
        4,
        1.0,
        0.5,
    ),
    "furuta": System(
        furuta_step,
        begin_two,
        {"d": (0, 1), "j1": (0.03, 0.12), "j2": (0.012, 0.03), "h": (0.008, 0.02), "e": (0, 0.03)},
        ANY,
        1e-3,
        4,
        1.0,
        2.0,
    ),
    "double-pendulum": System(
        double_step,
        begin_two,
        {"i1": (0.05, 0.2), "i2": (0.03, 0.08), "h": (0.02, 0.05), "g1": (1.5, 5), "d1": (0, 0.4), "d2": (0, 0.2)},
        ((-0.5, 0.5),) * 4,
        1e-3,
        4,
        1.0,
        2.0,
    ),
}
KNOWN_WITH_FRICTION = {"servo": {"f": 0.03}}  # its own friction would explain it


def seen(system: System) -> Callable[[Any, Any], Any]:
    return see_one if len(system.start) == 2 else see_two


def register(name: str) -> str:
    """Registers a system; returns its id."""
    system, env = SYSTEMS[name], f"bench/{name}-v0"
    gym_dr.register_equations(
        env,
        params=[Param(name=p, nominal=(a + b) / 2, low=-100, high=100) for p, (a, b) in system.prior.items()],
        observation_space=Box(-np.inf, np.inf, (len(system.start) // 2,)),
        action_space=Box(-system.largest, system.largest, (1,)),
        start=dict(zip("abcd", system.start, strict=False)),
        begin=system.begin,
        step=system.step,
        observe=seen(system),
        state_from=one_from if len(system.start) == 2 else two_from,
        time_step=STEP,
    )
    return env


def logged(name: str, truth: dict[str, float], friction: float, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Episodes of noisy positions under random steps of the action."""
    system, log = SYSTEMS[name], []
    c, observe = SimpleNamespace(**truth), seen(system)
    for _ in range(system.episodes):
        first = dict(zip("abcd", (rng.uniform(*ends) for ends in system.start), strict=False))
        state = system.begin(c, SimpleNamespace(**first))
        actions = np.repeat(rng.uniform(-system.largest, system.largest, EPISODE // HELD), HELD)
        rows = [observe(c, state)]
        for action in actions.tolist():
            state = system.step(c, state, action)
            braked = state[1] - STEP * friction * math.tanh(state[1] / 0.02)
            state = state._replace(**{state._fields[1]: braked})
            rows.append(observe(c, state))
        seen_rows = np.array(rows) + system.noise * rng.standard_normal((len(rows), len(rows[0])))
        log.append({"observations": seen_rows, "actions": actions[:, None], "time": STEP * np.arange(len(rows))})
    return log


def one(name: str, seed: int, friction: bool) -> tuple[int, int, int, float]:
    """Pairs, pairs covered, whether the fit is suspicious, and seconds of the processor."""
    system, rng = SYSTEMS[name], np.random.default_rng([seed, len(name)])
    known = KNOWN_WITH_FRICTION.get(name, {}) if friction else {}
    prior = {p: ends for p, ends in system.prior.items() if p not in known}
    # away from the ends: 90 % intervals that a prior cuts off cover more
    truth = {
        p: float(rng.uniform(low + 0.15 * (high - low), high - 0.15 * (high - low))) for p, (low, high) in prior.items()
    }
    log = logged(name, {**truth, **known}, system.friction if friction else 0.0, rng)
    began = time.process_time()
    found = gym_dr.fit(log, env=register(name), randomize=prior, params=known, held_out=0.0, seed=seed, progress=False)
    table = found.parameters.loc[list(truth)]
    inside = (table["low"] <= list(truth.values())) & (table["high"] >= list(truth.values()))
    return len(inside), int(inside.sum()), int(found.suspicious), round(time.process_time() - began, 1)


def main(fits: int, folder: Path, friction: bool) -> None:
    path, kind = folder / "fit_hidden.csv", "friction" if friction else "right"
    known = {tuple(row[:3]): row for row in csv.reader(path.open())} if path.exists() else {}
    with path.open("a", newline="") as file:
        for name in SYSTEMS:
            for seed in range(fits):
                key = (kind, name, str(seed))
                if key not in known:
                    known[key] = list(map(str, (*key, *one(name, seed, friction))))
                    csv.writer(file).writerow(known[key])
                    file.flush()
    print(f"{'system':20}{'fits':>6}{'pairs':>7}{'covered':>9}{'suspicious':>12}{'seconds':>9}")
    for name in [*SYSTEMS, "all"]:
        part = [row for row in known.values() if row[0] == kind and name in (row[1], "all")]
        pairs, covered, alarms = (sum(int(row[k]) for row in part) for k in (3, 4, 5))
        shares = f"{100 * covered / pairs:>7.0f} %{100 * alarms / len(part):>10.0f} %"
        print(f"{name:20}{len(part):>6}{pairs:>7}{shares}{np.median([float(row[6]) for row in part]):>9.1f}")


if __name__ == "__main__":
    given = [argument for argument in sys.argv[1:] if argument != "--friction"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main(
            int(given[0]) if given else 20,
            Path(given[1]) if len(given) > 1 else Path("."),
            "--friction" in sys.argv,
        )
