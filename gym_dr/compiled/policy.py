"""Actions of a small network without a call into torch: compiled jobs from blocks of observations to actions.

The trainer copies the weights before each rollout.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numba import njit

from gym_dr.arrays import Floats, Mask
from gym_dr.compiled.flags import KERNEL, RUNTIME
from gym_dr.compiled.gru import ActingMemory, forget, remember
from gym_dr.compiled.network import MirrorImage, Network, average_images, forward, softplus
from gym_dr.compiled.steps import Steps
from gym_dr.compiled.structs import Job, Struct, kind_of

CATEGORICAL: Final = 0  # one of n actions by softmax(output)
GAUSSIAN: Final = 1  # output is the mean; the standard deviation is state-independent; [-1, 1] maps to the bounds
TWO_HEADS: Final = 2  # outputs are the mean and, through softplus, the standard deviation; in the environment's units

WIDTH: Final = 16  # observations of a block where there are many

_ONE, _TWO, _HALF, _ZERO = np.float32(1.0), np.float32(2.0), np.float32(0.5), np.float32(0.0)
_HALF_LOG_2PI = np.float32(0.5 * np.log(2.0 * np.pi))


class SmallPolicy(NamedTuple):
    """A network and the meaning of its outputs; kernels read the arrays, which the trainer fills."""

    network: Network  # of observations and memory; its matrices are (inputs, outputs)
    memory: ActingMemory
    kind: int  # CATEGORICAL, GAUSSIAN or TWO_HEADS
    std: Floats  # (actions,) standard deviation of GAUSSIAN; otherwise unused
    floor: np.float32  # added to the standard deviation of TWO_HEADS
    low: Floats  # (actions,) bounds of continuous actions; otherwise unused
    high: Floats  # (actions,)
    mirror: MirrorImage  # outputs are averaged with their mirror image, unless it is empty; only without memory

    @staticmethod
    def allocate(
        *,
        sizes: list[int],
        activation: str,
        kind: int,
        low: Floats,
        high: Floats,
        floor: float,
        num_envs: int,
        units: int = 0,
        mirror: MirrorImage | None = None,
    ) -> SmallPolicy:
        """Zeroed memory for a network of these sizes and ``num_envs`` observations at a time.

        ``units`` are those of the policy's memory, whose state is the last of the network's inputs. Without memory,
        outputs may be averaged with those of a ``mirror`` image.
        """
        action = len(low) if len(low) else sizes[-1]
        return SmallPolicy(
            network=Network.allocate(
                sizes=sizes, activation=activation, inputs_first=True, rows=(1 if mirror is None else 2) * num_envs
            ),
            memory=ActingMemory.allocate(observation=sizes[0] - units, action=action, units=units, num_envs=num_envs),
            kind=kind,
            std=np.ones(len(low), np.float32),
            floor=np.float32(floor),
            low=np.ascontiguousarray(low, np.float32),
            high=np.ascontiguousarray(high, np.float32),
            mirror=mirror or MirrorImage(),
        )


class Acting(NamedTuple):
    """A policy that acts on T rows of N observations."""

    policy: SmallPolicy
    steps: Steps
    noise: Floats  # (T or 1, N, 1) uniform on [0, 1) for discrete actions, or (T or 1, N, actions) standard normal
    starts: Mask  # (N,) where an observation of the row is the first of an episode, so that the policy forgets
    actions: Floats  # (N, actions) continuous actions of the row in the form that the environment takes
    width: int  # observations of a block


@njit(**KERNEL | RUNTIME)
def _view(network, first, last):
    """The network with memory of its own for some rows."""
    units = 0
    for layer in range(1, len(network.sizes)):
        units += network.sizes[layer]
    values = network.values[first * units : last * units]
    return Network(network.sizes, network.activation, network.inputs_first, network.weights, values)


@njit(**KERNEL | RUNTIME)
def _outputs(policy, seen, first, last):
    """Outputs for observations ``seen`` (n, obs), maybe averaged with their mirror image."""
    n, mirror = last - first, policy.mirror
    if len(mirror.output_signs) == 0:
        return forward(_view(policy.network, first, last), seen)
    inputs = np.empty((2 * n, seen.shape[1]), np.float32)
    for i in range(n):
        for j in range(seen.shape[1]):
            inputs[i, j] = seen[i, j]
            inputs[n + i, j] = mirror.input_signs[j] * seen[i, mirror.input_places[j]]
    outputs = forward(_view(policy.network, 2 * first, 2 * last), inputs)
    average_images(mirror, outputs)
    return outputs[:n]


@njit(**KERNEL | RUNTIME)
def choose(acting, slot, chunk):
    """Samples an action for each observation of block ``chunk % blocks`` in row ``chunk // blocks`` of the steps.

    Fills the row's actions and log-probabilities, and ``actions``.
    """
    num_envs, width = len(acting.starts), acting.width
    blocks = (num_envs + width - 1) // width
    t, first = chunk // blocks, chunk % blocks * width
    last = min(first + width, num_envs)
    outputs = _outputs(acting.policy, acting.steps.observations[t, first:last], first, last)
    _sample(acting, t, first, outputs)


@njit(**KERNEL | RUNTIME)
def choose_remembering(acting, slot, chunk):
    """``choose`` for a policy with a memory, whose states before the row it stores too."""
    policy, steps, num_envs, width = acting.policy, acting.steps, len(acting.starts), acting.width
    blocks = (num_envs + width - 1) // width
    t, first = chunk // blocks, chunk % blocks * width
    last = min(first + width, num_envs)
    rows, whole = slice(first, last), policy.memory
    memory = ActingMemory(
        *(whole.weights, whole.state[rows], whole.previous[rows], whole.inputs[rows]),
        *(whole.from_inputs[rows], whole.from_state[rows], whole.features[rows]),
    )
    forget(memory, acting.starts[rows])
    for env in range(first, last):
        for j in range(whole.state.shape[1]):
            steps.states[t, env, j] = whole.state[env, j]
    outputs = forward(_view(policy.network, first, last), remember(memory, steps.observations[t, rows]))
    _sample(acting, t, first, outputs)
    for env in range(first, last):
        if policy.kind == CATEGORICAL:
            for j in range(outputs.shape[1]):
                whole.previous[env, j] = _ONE if j == steps.discrete[t, env] else _ZERO
        else:
            _remember_numbers(policy, steps.raw_actions[t, env], whole.previous[env])


@njit(**KERNEL)
def _sample(acting, t, first, outputs):
    """Actions from a block's outputs of the network."""
    policy, steps, noise = acting.policy, acting.steps, acting.noise[t % len(acting.noise)]
    for i in range(len(outputs)):
        env = first + i
        if policy.kind == CATEGORICAL:
            steps.discrete[t, env], steps.log_probs[t, env] = _draw_index(outputs[i], noise[env, 0])
        else:
            raw, action = steps.raw_actions[t, env], acting.actions[env]
            steps.log_probs[t, env] = _draw_numbers(policy, outputs[i], noise[env], raw, action)


@njit(**KERNEL)
def _draw_numbers(policy, output, noise, raw_action, env_action):
    """Fills an action, not clipped, and the same as the environment takes it; returns its log-probability."""
    low, high = policy.low, policy.high
    log_prob = _ZERO
    for j in range(len(low)):
        mean = output[j]
        if policy.kind == GAUSSIAN:
            std = policy.std[j]
            action = mean + std * noise[j]
            unit = _HALF * (min(max(action, -_ONE), _ONE) + _ONE)
            sent = low[j] + unit * (high[j] - low[j])
        else:
            std = softplus(output[len(low) + j]) + policy.floor
            action = mean + std * noise[j]
            sent = action
        log_prob -= _HALF * noise[j] * noise[j] + np.log(std) + _HALF_LOG_2PI
        raw_action[j] = action
        env_action[j] = min(max(sent, low[j]), high[j])
    return log_prob


@njit(**KERNEL)
def _remember_numbers(policy, raw_action, previous):
    """A continuous action as memory sees it: clipped, and scaled to [-1, 1]."""
    low, high = policy.low, policy.high
    for j in range(len(low)):
        action = raw_action[j]
        if policy.kind == TWO_HEADS:
            action = _TWO * (action - low[j]) / (high[j] - low[j]) - _ONE
        previous[j] = min(max(action, -_ONE), _ONE)


@njit(**KERNEL)
def _draw_index(logits, uniform):
    """The first index at which the summed softmax of the logits is above ``uniform``, and its log-probability."""
    largest = logits[0]
    for j in range(1, len(logits)):
        largest = max(largest, logits[j])
    total = _ZERO
    for j in range(len(logits)):
        total += np.exp(logits[j] - largest)
    reached, choice = _ZERO, len(logits) - 1
    for j in range(len(logits) - 1):
        reached += np.exp(logits[j] - largest)
        if uniform * total < reached:
            choice = j
            break
    return choice, logits[choice] - largest - np.log(total)


_jobs: dict[bool, Job] = {}  # by whether the policy has a memory; their kinds need not be found again


class Chooser:
    """A policy that acts on rows of the same steps.

    Attributes:
        acting: What the rows need.
        args: The same for compiled code.
        job: Acts on a block of a row.
    """

    def __init__(self, policy: SmallPolicy, steps: Steps, noise: Floats) -> None:
        """Prepares for ``steps``, with ``noise`` of all rows, or of one row that is filled anew before each."""
        num_envs = steps.discrete.shape[1]
        actions = np.zeros((num_envs, len(policy.low)), np.float32)
        starts, remembers = np.zeros(num_envs, np.bool_), policy.memory.state.shape[1] > 0
        width = min(WIDTH, -(-num_envs // 2))  # at a time; the last bits of a matrix product depend on it
        self.acting = Acting(policy, steps, np.ascontiguousarray(noise), starts, actions, width)
        if remembers not in _jobs:
            function = choose_remembering if remembers else choose
            _jobs[remembers] = Job(function, kind_of(self.acting), "small networks")
        self.job = _jobs[remembers]
        self.args = Struct(self.acting, self.job.kind)
        self.blocks = -(-num_envs // self.acting.width)

    def row(self, t: int, starts: Mask) -> Floats:
        """Acts on row ``t``; returns the continuous actions, in the same array each time."""
        self.acting.starts[:] = starts
        for block in range(self.blocks):
            self.job(self.args, 0, t * self.blocks + block)
        return self.acting.actions
