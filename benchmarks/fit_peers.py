"""``gym_dr.fit`` against ``mujoco.sysid`` and ``sbi`` on the same logs: errors, intervals, simulated steps, seconds.

Logs are of random actions under parameters drawn from the preset "wide". All methods know these ranges; the others know
the size of the noise too, which ``gym_dr.fit`` finds. All run on one thread. Seconds are of the processor, as what else
the machine does then matters less. ``sbi`` trains one amortized neural posterior (NPE) for a kind of log and reads all
logs of that kind with it. A method that is not installed is left out.
Run it with: python -m benchmarks.fit_peers cartpole|hopper [truths] [gym_dr] [sysid] [sbi]
(gym_dr.fit comes with gym_dr; for the others: pip install "mujoco[sysid]" "sbi==0.27.0")
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")  # before NumPy loads

import contextlib
import importlib.util
import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np
import pandas as pd

import gym_dr

TRUTHS = 20
LEVEL = 0.9  # of intervals
BATCH = 250  # systems that play at once
MANY = 100  # statistics from which on they are compressed


@dataclass(frozen=True, kw_only=True)
class Task:
    """A kind of log."""

    env: str
    ranges: Mapping[str, tuple[float, float]]
    steps: int  # of a log, at most
    episodes: int  # of a log, at most
    noise: Any  # deviation, of each observation
    simulations: int  # of sbi

    @property
    def names(self) -> list[str]:
        return list(self.ranges)

    @property
    def low(self) -> Any:
        return np.array([low for low, _ in self.ranges.values()])

    @property
    def width(self) -> Any:
        return np.array([high - low for low, high in self.ranges.values()])


_MASSES = {"foot": 5.31557, "leg": 2.78136, "thigh": 4.05789, "torso": 3.66519}  # kg, nominal
_HOPPER_NOISE = np.array([0.003] * 5 + [0.03] * 6)
_FACTOR = (0.5, 1.5)
_HOPPER_RANGES = {f"body_mass:{body}": (0.5 * mass, 1.5 * mass) for body, mass in _MASSES.items()}
_CARTPOLE_RANGES = {
    "force_mag": (5.0, 15.0),
    "gravity": (4.9, 14.7),
    "length": (0.25, 0.75),
    "masscart": (0.5, 1.5),
    "masspole": (0.05, 0.15),
}
HOPPER: dict[str, Any] = {
    "env": "gym_dr/HopperDR-v5",
    "ranges": {**_HOPPER_RANGES, "dof_damping": _FACTOR, "geom_friction": _FACTOR},
    "steps": 1000,
    "episodes": 1000,
    "simulations": 2_500,
}
TASKS = {
    "cartpole": {
        "noise 0.01": Task(
            env="gym_dr/CartPoleDR-v1",
            ranges=_CARTPOLE_RANGES,
            steps=2000,
            episodes=40,
            noise=np.full(4, 0.01),
            simulations=10_000,
        )
    },
    "hopper": {
        "no noise": Task(**HOPPER, noise=np.zeros(11)),
        "noise 0.003 rad, 0.03 rad/s": Task(**HOPPER, noise=_HOPPER_NOISE),
    },
}


@dataclass(frozen=True, kw_only=True)
class Played:
    """Logs of several systems: arrays of shape (systems, steps, ...)."""

    observations: Any  # one more
    actions: Any
    valid: Any  # not the reset between episodes, nor after the last episode

    def log(self, i: int) -> list[dict[str, Any]]:
        """Episodes of a system, as ``gym_dr.fit`` reads them."""
        valid = np.concatenate([[False], self.valid[i], [False]]).astype(int)
        starts, ends = np.flatnonzero(np.diff(valid) == 1), np.flatnonzero(np.diff(valid) == -1)
        return [
            {"observations": self.observations[i, start : end + 1], "actions": self.actions[i, start:end]}
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ]


def play(task: Task, points: Any, seed: int) -> Played:
    """Random actions in a system for each row of parameters."""
    count, rng = len(points), np.random.default_rng(seed)
    envs: Any = gym.make_vec(task.env, count, randomization="none", num_threads=1)
    envs.set_params(dict(zip(task.names, points.T, strict=True)))
    observations = [envs.reset(seed=seed)[0]]
    actions, valid, over, ended = [], [], np.zeros(count, bool), np.zeros(count, int)
    space = envs.single_action_space
    for _ in range(task.steps):
        if isinstance(space, gym.spaces.Discrete):
            action: Any = rng.integers(0, space.n, count)
        else:
            action = rng.uniform(-1.0, 1.0, (count, *space.shape)).astype(np.float32)
        observation, _, terminated, truncated, _ = envs.step(action)
        observations.append(observation)
        actions.append(action)
        valid.append(~over & (ended < task.episodes))
        over = terminated | truncated
        ended += over
        if (ended >= task.episodes).all():
            break
    envs.close()
    return Played(observations=np.stack(observations, 1), actions=np.stack(actions, 1), valid=np.stack(valid, 1))


def measured(task: Task, played: Played, seed: int) -> Played:
    """The same with noise."""
    noise = task.noise * np.random.default_rng(seed).standard_normal(played.observations.shape)
    return Played(observations=played.observations + noise, actions=played.actions, valid=played.valid)


def drawn(task: Task, count: int, seed: int) -> Any:
    """Parameters within the ranges, shape (count, parameters)."""
    return task.low + task.width * np.random.default_rng(seed).random((count, len(task.names)))


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Of a method to one log."""

    mean: Any
    low: Any
    high: Any


@dataclass(kw_only=True)
class Result:
    """Of a method to all logs."""

    answers: list[Answer] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    steps: list[float] = field(default_factory=list)  # simulated, where it is known
    once: str = ""  # what was done once for all logs


# ---- gym_dr ----------------------------------------------------------------------------------------------------------


def with_gym_dr(task: Task, logs: list[Any]) -> Iterator[tuple[str, Result]]:
    """``gym_dr.fit`` to the whole log, as the others."""
    result = Result()
    priors = {name: gym_dr.Scale(ends) if ends == _FACTOR else ends for name, ends in task.ranges.items()}
    for log in logs:
        start = time.process_time()
        found = gym_dr.fit(log, env=task.env, randomize=priors, held_out=0.0, seed=0, progress=False)
        result.seconds.append(time.process_time() - start)
        table = found.parameters.loc[task.names]
        result.answers.append(Answer(**{end: table[end].to_numpy() for end in ("mean", "low", "high")}))
        result.steps.append(float(found.facts["simulated"].split()[0].replace(",", "")))
    yield "gym_dr.fit", result


# ---- mujoco.sysid ----------------------------------------------------------------------------------------------------

CHUNKS = (1, 2, 5, 10, 0)  # steps from one measured state to the next; 0 for whole episodes
_JOINTS = ("rootx", "rootz", "rooty", "thigh_joint", "leg_joint", "foot_joint")
_WEIGHTS = 0.03 / _HOPPER_NOISE


def hopper_parameters(task: Task, sysid: Any) -> Any:
    """Of sysid, with what each does to the model; the start is nominal."""

    def mass(body: str) -> Callable[[Any, Any], None]:
        def put(spec: Any, parameter: Any) -> None:
            spec.body(body).geoms[0].mass = parameter.value[0]  # the compiler scales the inertia

        return put

    def damping(spec: Any, parameter: Any) -> None:
        for name in _JOINTS[3:]:
            spec.joint(name).damping[0] = parameter.value[0]

    def friction(spec: Any, parameter: Any) -> None:
        for geom in spec.geoms:
            slide = {"floor": 1.0, "foot_geom": 2.0}.get(geom.name, 0.9)
            geom.friction = parameter.value[0] * np.array([slide, 0.005, 0.0001])

    does = {f"body_mass:{body}": mass(body) for body in _MASSES}
    does |= {"dof_damping": damping, "geom_friction": friction}
    found = sysid.ParameterDict()
    for name, (low, high) in task.ranges.items():
        found.add(sysid.Parameter(name, 0.5 * (low + high), low, high, modifier=does[name]))
    return found


def hopper_spec() -> Any:
    """Gymnasium's model."""
    import mujoco

    path = gym.make("Hopper-v5").unwrapped.fullpath  # type: ignore[attr-defined]  # of MujocoEnv
    return mujoco.MjSpec.from_file(path)


def pieces(log: list[Any], length: int, spec: Any, sysid: Any) -> list[Any]:
    """The log as sysid takes it: lists of pieces of the same length, which it simulates at once."""
    model = spec.compile()
    inner, kinds = round(0.008 / model.opt.timestep), sysid.SignalType
    names = [(f"{joint}_qpos", kinds.MjStateQPos) for joint in _JOINTS[1:]]
    names += [(f"{joint}_qvel", kinds.MjStateQVel) for joint in _JOINTS]
    found: dict[int, list[Any]] = {}
    for episode in log:
        seen, actions = episode["observations"], episode["actions"]
        of_piece = min(length or len(actions), len(actions))
        for start in range(0, len(actions) - of_piece + 1, of_piece):
            state = seen[start]
            control = np.repeat(actions[start : start + of_piece], inner, 0).astype(float)
            control = np.concatenate([control, control[-1:]])  # it drops the last one
            measured = seen[start + 1 : start + of_piece + 1]
            times = model.opt.timestep * np.arange(len(control))
            sequences = sysid.ModelSequences(
                *("hopper", spec, "piece"),
                initial_state=sysid.create_initial_state(model, np.concatenate([[0.0], state[:5]]), state[5:]),
                control=sysid.TimeSeries.from_control_names(times, control, model),
                sensordata=sysid.TimeSeries.from_names(times[inner::inner], measured, model, names),
                allow_missing_sensors=True,
            )
            found.setdefault(of_piece, []).append(sequences.measured_rollout[0])
    grouped = []
    for alike in found.values():
        sequences = sysid.ModelSequences("hopper", spec, [], [], [], [])
        sequences.measured_rollout.append(alike)
        grouped.append(sequences)
    return grouped


def hopper_residual(
    params: Any, predicted: Any, measured: Any, model: Any, return_pred_all: bool, *, state: Any, **_: Any
) -> tuple[Any, Any, Any]:
    """Differences of positions and velocities, weighted by the size of the noise, at the measured times."""
    from mujoco import sysid

    every = round(0.008 / model.opt.timestep)
    values = state[every - 1 :: every, 2:]  # without time and the unseen position
    series = sysid.TimeSeries(measured.times, values, measured.signal_mapping)
    return _WEIGHTS * (measured.data - values), series, measured


def with_sysid(task: Task, logs: list[Any]) -> Iterator[tuple[str, Result]]:
    """Least squares over pieces of each log, from measured states; several lengths of pieces."""
    from absl import logging as absl_logging
    from mujoco import sysid

    absl_logging.set_verbosity(absl_logging.ERROR)
    for length in CHUNKS:
        result = Result()
        for log in logs:
            spec, steps = hopper_spec(), 0
            start = time.process_time()
            grouped = pieces(log, length, spec, sysid)
            inner = sysid.build_residual_fn(
                models_sequences=grouped, modify_residual=hopper_residual, n_threads=1, resample_true=False
            )
            lasting = sum(len(part.control) - 1 for group in grouped for part in group.measured_rollout[0]) // 4

            def residual(x: Any, params: Any, inner: Any = inner, lasting: int = lasting) -> Any:
                nonlocal steps
                points = x.shape[1] if x.ndim > 1 else 1
                steps += lasting * points
                found, *others = inner(x, params)
                if x.ndim > 1:  # sysid puts pieces beside points; they belong below each other
                    found = [np.moveaxis(a.reshape(len(a), points, -1), 2, 0).reshape(-1, points) for a in found]
                return found, *others

            params = hopper_parameters(task, sysid)
            with contextlib.redirect_stdout(None):  # prints each iteration
                best, found = sysid.optimize(params, residual, optimizer="mujoco", verbose=False, max_iters=50)
            left = residual(best.as_vector()[:, None], best)[0]
            jacobian = np.asarray(found.jac)
            _, half = sysid.calculate_intervals([part.ravel() for part in left], jacobian, alpha=1.0 - LEVEL)
            result.seconds.append(time.process_time() - start)
            result.steps.append(steps)
            mean = best.as_vector()
            result.answers.append(Answer(mean=mean, low=mean - half, high=mean + half))
        yield f"mujoco.sysid, {f'pieces of {length} steps' if length else 'whole episodes'}", result


# ---- sbi -------------------------------------------------------------------------------------------------------------


def regression(features: Any, targets: Any, weights: Any) -> Any:
    """Coefficients of ridge regression and deviations of what is left, for each system."""
    weighted = np.swapaxes(features * weights[..., None], 1, 2)
    gram = weighted @ features
    gram += 1e-3 * np.maximum(np.einsum("nff->nf", gram), 1e-6)[..., None] * np.eye(gram.shape[1])
    found = np.linalg.solve(gram, weighted @ targets)
    left = ((targets - features @ found) ** 2 * weights[..., None]).sum(1) / np.maximum(weights.sum(1), 1.0)[:, None]
    return np.concatenate([found.reshape(len(found), -1), np.log(left + 1e-8)], 1)


def centered(values: Any, valid: Any) -> Any:
    """Values less their means over episodes, with the step after the last one of each."""
    found = np.zeros_like(values)
    for i in range(len(values)):
        starts = np.concatenate([[0], np.flatnonzero(np.diff(valid[i].astype(int)) == 1) + 1])
        sizes = np.diff(np.append(starts, len(valid[i])))
        means = np.add.reduceat(values[i] * valid[i][:, None], starts, 0)
        counts = np.add.reduceat(valid[i].astype(float), starts)
        found[i] = values[i] - np.repeat(means / np.maximum(counts, 1.0)[:, None], sizes, 0)
    return found


def cartpole_statistics(played: Played) -> Any:
    """Regressions of both accelerations on terms of the equations, of differences and of sums over episodes.

    Sums have white errors, so that their coefficients are far less noisy.
    """
    states, valid = played.observations, played.valid
    tilt, spin = states[:, :-1, 2], states[:, :-1, 3]
    push = 2.0 * played.actions - 1.0
    terms = np.stack([push, np.sin(tilt), spin**2 * np.sin(tilt)], 2) * valid[..., None]
    changes = np.diff(states, axis=1)[..., [1, 3]]
    one = regression(np.concatenate([terms, np.ones_like(terms[..., :1])], 2), changes, valid)
    sums = np.cumsum(terms, 1)
    clock = np.cumsum(valid, 1)[..., None].astype(float)
    sums = centered(np.concatenate([sums, clock], 2), valid)
    speeds = centered(states[:, 1:, [1, 3]], valid)
    return np.concatenate([one, regression(sums, speeds, valid), np.log(valid.sum(1, keepdims=True))], 1)


def hopper_statistics(played: Played) -> Any:
    """Regressions of changes of velocity on states and actions, in the air and on the ground."""
    states, valid = played.observations, played.valid
    before, actions = states[:, :-1], played.actions.astype(float)
    height, pitch, thigh, leg, foot = np.moveaxis(before[..., :5], -1, 0)
    # tilts of links add up from the torso down; the ankle is 0.2 + 0.45 + 0.5 m below the root
    upper = thigh - pitch  # about opposite axes
    lower = upper + leg
    sole = lower + foot
    ankle = height - 0.2 * np.cos(pitch) - 0.45 * np.cos(upper) - 0.5 * np.cos(lower)
    tips = np.stack([ankle - 0.06 + reach * np.sin(sole) for reach in (-0.13, 0.26)], -1)
    touching = (tips.min(-1) < 0.005).astype(float)[..., None]
    ones = np.ones_like(height)[..., None]
    angles = before[..., 1:5]
    terms = [ones, np.sin(angles), before[..., 5:], actions]
    terms += [actions * np.cos(angle)[..., None] for angle in (leg, foot, thigh)]
    both = np.concatenate(terms, 2)
    features = np.concatenate([both * (1.0 - touching), both * touching, touching * tips.min(-1)[..., None]], 2)
    changes = np.diff(states, axis=1)[..., 5:]
    found = regression(features, changes, valid)
    moments = [(touching[..., 0] * valid).mean(1), np.log((~valid).sum(1) + 1.0)]
    return np.concatenate([found, np.stack(moments, 1)], 1)


STATISTICS = {"gym_dr/CartPoleDR-v1": cartpole_statistics, "gym_dr/HopperDR-v5": hopper_statistics}


PLAYED: dict[str, tuple[list[Played], float]] = {}  # by environment: batches without noise, and seconds


def simulated(task: Task, points: Any) -> tuple[Any, int, float]:
    """Statistics of a log of each of the points, the number of steps, and the seconds for those."""
    if task.env not in PLAYED:
        start = time.process_time()
        batches = [play(task, points[i : i + BATCH], 10_000_000 + i) for i in range(0, len(points), BATCH)]
        PLAYED[task.env] = batches, time.process_time() - start
    batches, seconds = PLAYED[task.env]
    start = time.process_time()
    rows = [STATISTICS[task.env](measured(task, played, i)) for i, played in enumerate(batches)]
    steps = sum(int(played.valid.sum()) for played in batches)
    return np.concatenate(rows), steps, seconds + time.process_time() - start


class Compression:
    """Estimates of parameters by ridge regression on statistics and their squares: a few statistics in place of many.

    These are the semi-automatic summaries of Fearnhead and Prangle (2012). Each row is estimated from the other folds,
    so that what the neural posterior trains on is as accurate as what it reads later.
    """

    def __init__(self, statistics: Any, theta: Any, folds: int = 5) -> None:
        self.center, self.scale = statistics.mean(0), statistics.std(0) + 1e-9
        rows, fold = self.features(statistics), np.arange(len(statistics)) % folds
        self.weights, self.of_rows = [], np.zeros(theta.shape)
        for i in range(folds):
            weights = self.best(rows[fold != i], theta[fold != i])
            self.weights.append(weights)
            self.of_rows[fold == i] = rows[fold == i] @ weights

    def features(self, statistics: Any) -> Any:
        z = np.clip((statistics - self.center) / self.scale, -6.0, 6.0)
        return np.concatenate([np.ones((len(z), 1)), z, z**2], 1)

    @staticmethod
    def best(rows: Any, theta: Any) -> Any:
        """Weights with the penalty that predicts a held-out fifth best, for each parameter."""
        held = len(rows) // 5
        found: list[Any] = []
        for penalty in 10.0 ** np.arange(-1, 5):
            gram = rows[held:].T @ rows[held:] + penalty * np.eye(rows.shape[1])
            weights = np.linalg.solve(gram, rows[held:].T @ theta[held:])
            found.append((((rows[:held] @ weights - theta[:held]) ** 2).mean(0), weights))
        chosen = np.argmin([errors for errors, _ in found], 0)
        return np.stack([found[k][1][:, i] for i, k in enumerate(chosen)], 1)

    def __call__(self, statistics: Any) -> Any:
        return np.mean([self.features(statistics) @ weights for weights in self.weights], 0)


def with_sbi(task: Task, systems: list[Played]) -> Iterator[tuple[str, Result]]:
    """An amortized neural posterior: a masked autoregressive flow behind what condenses the statistics.

    That is a network that learns together with the flow, as sbi recommends, or ``Compression`` where there are too many
    statistics for the number of simulations.
    """
    import torch
    from sbi.inference import NPE
    from sbi.neural_nets import posterior_nn
    from sbi.neural_nets.embedding_nets import FCEmbedding
    from sbi.utils import BoxUniform

    torch.set_num_threads(1)
    torch.manual_seed(0)
    points, count = drawn(task, task.simulations, 1_000_003), len(task.names)
    statistics, steps, to_simulate = simulated(task, points)
    start = time.process_time()
    prior = BoxUniform(torch.zeros(count), torch.ones(count))
    size, theta = statistics.shape[1], (points - task.low) / task.width
    if size > MANY:
        compression = Compression(statistics, theta)
        rows, embedding = compression.of_rows, torch.nn.Identity()
        read: Callable[[Any], Any] = compression
    else:
        rows, read = statistics, np.asarray
        embedding = FCEmbedding(input_dim=size, output_dim=4 * count, num_layers=2, num_hiddens=128)
    flow = posterior_nn("maf", embedding_net=embedding, z_score_x="independent")
    inference = NPE(prior=prior, density_estimator=flow, show_progress_bars=False)
    inference.append_simulations(*(torch.as_tensor(values, dtype=torch.float32) for values in (theta, rows)))
    inference.train(training_batch_size=task.simulations // 25, learning_rate=1e-3)
    posterior = inference.build_posterior()
    to_train = time.process_time() - start
    result = Result(
        once=f"before that {task.simulations:,} logs of {steps / task.simulations:.0f} steps, {size} statistics:"
        f" {to_simulate:.0f} s to simulate, {to_train:.0f} s to train, {len(inference.summary['training_loss'])} epochs"
    )
    for played in systems:
        start = time.process_time()
        x = torch.as_tensor(read(STATISTICS[task.env](played)), dtype=torch.float32)
        # sbi itself would draw until enough points are possible, which may take forever
        draws = posterior.sample((8000,), x=x, show_progress_bars=False, reject_outside_prior=False).detach().numpy()
        possible = draws[((draws >= 0.0) & (draws <= 1.0)).all(1)]
        draws = task.low + task.width * (possible if len(possible) >= 400 else draws.clip(0.0, 1.0))
        low, high = np.quantile(draws, [0.5 - LEVEL / 2, 0.5 + LEVEL / 2], axis=0)
        result.answers.append(Answer(mean=draws.mean(0), low=low, high=high))
        result.seconds.append(time.process_time() - start)
    yield "sbi NPE", result


# ---- report ----------------------------------------------------------------------------------------------------------


def table(task: Task, truths: Any, found: dict[str, Result]) -> Any:
    """A row for each method and parameter."""
    rows = []
    for method, result in found.items():
        means, lows, highs = (np.array([getattr(a, end) for a in result.answers]) for end in ("mean", "low", "high"))
        errors = 100.0 * abs(means - truths) / abs(truths)
        inside = (lows <= truths) & (truths <= highs)
        widths = 100.0 * (highs - lows) / abs(truths)
        rows += [
            {
                "method": method,
                "parameter": name,
                "error, %": np.median(errors[:, i]),
                "largest, %": errors[:, i].max(),
                "interval's width, %": np.median(widths[:, i]),
                f"inside the {LEVEL:.0%} interval": f"{inside[:, i].sum()} of {len(truths)}",
            }
            for i, name in enumerate(task.names)
        ]
        rows.append(
            {
                "method": method,
                "parameter": "all",
                "error, %": np.median(errors),
                "largest, %": errors.max(),
                "interval's width, %": np.median(widths),
                f"inside the {LEVEL:.0%} interval": f"{inside.sum()} of {inside.size}",
            }
        )
    return pd.DataFrame(rows)


def installed() -> list[str]:
    """Methods that can run here."""
    found = ["gym_dr"] if hasattr(gym_dr, "fit") else []
    if all(importlib.util.find_spec(name) for name in ("absl", "tabulate", "colorama", "yaml", "scipy")):
        found.append("sysid")
    return found + (["sbi"] if importlib.util.find_spec("sbi") else [])


def main() -> None:
    """Prints tables."""
    logging.getLogger("sbi").setLevel(logging.ERROR)
    words = sys.argv[1:]
    numbers = [int(word) for word in words if word.isdigit()]
    kind = next((word for word in words if word in TASKS), "cartpole")
    methods = [word for word in words if word in ("gym_dr", "sysid", "sbi")] or installed()
    count = numbers[0] if numbers else TRUTHS
    pd.set_option("display.width", 160, "display.max_columns", 20, "display.max_rows", 200)
    for title, task in TASKS[kind].items():
        truths = drawn(task, count, 12345)
        systems = [measured(task, play(task, truths[i : i + 1], 777 + 10 * i), 778 + 10 * i) for i in range(count)]
        logs = [played.log(0) for played in systems]
        shapes = [(len(log), sum(len(episode["actions"]) for episode in log)) for log in logs]
        print(f"\n{task.env}, {title}: {count} truths; episodes and steps of the first logs {shapes[:3]}")
        found: dict[str, Result] = {}
        for method in methods:
            if method == "sysid" and kind != "hopper":
                continue
            if method == "sbi":
                runs = with_sbi(task, systems)
            else:
                runs = {"gym_dr": with_gym_dr, "sysid": with_sysid}[method](task, logs)
            for name, result in runs:
                found[name] = result
                words = [f"{np.median(result.seconds):.1f} s for a log", result.once]
                words += [f"{np.median(result.steps):,.0f} simulated steps" for _ in result.steps[:1]]
                print(f"  {name}: {'; '.join(filter(None, words))}", flush=True)
        print(table(task, truths, found).to_string(index=False, float_format=lambda value: f"{value:.2g}"))


if __name__ == "__main__":
    main()
