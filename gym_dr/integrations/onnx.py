"""Policies as ONNX files (https://onnx.ai), which run without gym_dr and without torch.

A file takes observations from the environment and returns actions for it: normalization, memory, network, choice of the
action, scaling and clipping are inside. The graph has only standard operators of ``OPSET``, so any runtime can execute
it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from gym_dr.arrays import Floats
from gym_dr.errors import needs

OPSET = 17  # of 2022; runtimes on small machines have it
IR_VERSION = 8  # of the same year
FARTHEST = 1e6  # largest distance of a number from its mean, in standard deviations; beyond, sums would overflow
# between layers
CHOICE, SCALED, DIRECT = "choice", "scaled", "direct"  # from outputs to an action; see NetworkWeights
OBSERVATION, STARTS, STATE, ACTION, OUTPUTS = "observation", "episode_start", "state", "action", "outputs"
NEXT_STATE = "next_state"


@dataclass(frozen=True, kw_only=True)
class GRUWeights:
    """A gated recurrent unit; gates in the order reset, update, new, as in torch's ``GRUCell``."""

    weight_ih: Floats  # (3H, observation + A)
    weight_hh: Floats  # (3H, H)
    bias_ih: Floats  # (3H,)
    bias_hh: Floats  # (3H,)


@dataclass(frozen=True, kw_only=True)
class LSTMWeights:
    """A long short-term memory; gates in the order input, forget, cell, output, as in torch's ``LSTM``."""

    weight_ih: Floats  # (4H, inputs)
    weight_hh: Floats  # (4H, H)
    bias: Floats  # (4H,), the sum of torch's two biases

    @property
    def size(self) -> int:
        """H, the size of the output, and of the cell."""
        return int(self.weight_hh.shape[1])


@dataclass(frozen=True, kw_only=True)
class NetworkWeights:
    """A deterministic policy as float32 arrays."""

    inputs: int  # numbers of an observation
    mean: Floats  # (inputs,) subtracted from observations; 0 for no shift
    std: Floats  # (inputs,) by which observations are then divided; 1 for no scaling
    limit: float = FARTHEST  # to which observations are then clipped
    frames: int = 1  # observations in the frame stack, the oldest first; missing ones are 0
    stacked_first: bool = False  # whether to normalize after stacking; mean and std are then of all frames
    layers: Sequence[tuple[Floats, Floats]]  # weight (outputs, inputs) and bias (outputs,) of each
    activation: str  # between layers: "tanh", "relu", "elu", "leaky_relu", "sigmoid", "silu" or "gelu"
    output_limit: float = math.inf  # to which outputs are clipped
    squashed: bool = False  # whether outputs then go through the hyperbolic tangent
    # "choice": the action is start plus the index of the largest output. "scaled": outputs in [-1, 1] are mapped to the
    # bounds. "direct": the first outputs are the action. Both are clipped to the bounds
    kind: str
    start: int = 0
    low: Floats  # (A,) of continuous actions; empty for choices
    high: Floats
    memory: GRUWeights | None = None  # its state follows the observation in the network's input
    mirror: Any = None  # a ``compiled.network.MirrorImage`` that outputs are averaged with; only without state
    lstm: Sequence[LSTMWeights] = ()  # before the network: each LSTM reads the one before it, the network the last

    @property
    def code_size(self) -> int:
        """A, the numbers of the previous action as memory sees it."""
        return len(self.layers[-1][1]) if self.kind == CHOICE else len(self.low)

    @property
    def state_size(self) -> int:
        """Numbers in a state: past frames, then the memory; with a GRU also the previous action."""
        remembered = sum(2 * unit.size for unit in self.lstm)
        if self.memory is not None:
            remembered += int(self.memory.weight_hh.shape[1]) + self.code_size
        return self.past_size + remembered

    @property
    def past_size(self) -> int:
        """Numbers of the frames before the present one."""
        return self.inputs * (self.frames - 1)


def policy_file(weights: NetworkWeights, about: Mapping[str, Any]) -> bytes:
    """The content of a policy's ONNX file.

    Args:
        weights: The policy.
        about: Metadata: name -> text, or any JSON value.

    Raises:
        ConfigError: The package onnx is missing.
    """
    needs("An ONNX file", "onnx", "onnx")
    import onnx  # heavy, and an extra

    graph = _Graph(onnx)
    _build(graph, weights)
    model = onnx.helper.make_model(
        onnx.helper.make_graph(graph.nodes, "policy", graph.inputs, graph.outputs, graph.constants),
        producer_name="gym_dr",
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in about.items()}
    onnx.helper.set_model_props(model, texts)
    onnx.checker.check_model(model, full_check=True)
    return cast(bytes, model.SerializeToString())


class _Graph:
    """Nodes of a graph under construction; every method returns the name of its result."""

    def __init__(self, onnx: Any) -> None:
        self._onnx = onnx  # the package, which is heavy and an extra
        self.nodes: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.constants: list[Any] = []

    def take(self, name: str, dtype: type, *shape: int | str) -> str:
        """An input."""
        self.inputs.append(self._declared(name, dtype, shape))
        return name

    def give(self, name: str, value: str, dtype: type, *shape: int | str) -> None:
        """An output, under its own name."""
        for node in self.nodes:
            for names in (node.input, node.output):
                names[:] = [name if each == value else each for each in names]
        self.outputs.append(self._declared(name, dtype, shape))

    def _declared(self, name: str, dtype: type, shape: Sequence[int | str]) -> Any:
        helper = self._onnx.helper
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)

    def constant(self, value: Any, dtype: type = np.float32) -> str:
        """A constant."""
        name = f"constant_{len(self.constants)}"
        self.constants.append(self._onnx.numpy_helper.from_array(np.ascontiguousarray(value, dtype), name))
        return name

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """The result of an operator."""
        name = f"value_{len(self.nodes)}"
        self.nodes.append(self._onnx.helper.make_node(kind, inputs, [name], **attributes))
        return name

    def linear(self, value: str, weight: Floats, bias: Floats) -> str:
        """``value @ weight.T + bias``."""
        return self.op("Gemm", value, self.constant(weight), self.constant(bias), transB=1)

    def activate(self, value: str, kind: str) -> str:
        """An activation; ``OPSET`` lacks silu and gelu (Hendrycks and Gimpel 2016)."""
        if kind == "silu":
            return self.op("Mul", value, self.op("Sigmoid", value))
        if kind == "gelu":
            below = self.op("Erf", self.op("Mul", value, self.constant(0.5**0.5)))
            return self.op("Mul", value, self.op("Mul", self.op("Add", below, self.constant(1.0)), self.constant(0.5)))
        return self.op({"leaky_relu": "LeakyRelu"}.get(kind, kind.capitalize()), value)

    def columns(self, value: str, first: int, last: int) -> str:
        """Columns ``first:last`` of an array ``(N, columns)``."""
        ends = (self.constant([end], np.int64) for end in (first, last, 1))
        return self.op("Slice", value, *ends)

    def mirrored(self, value: str, places: Any, signs: Floats) -> str:
        """Columns that change places and signs, of an array ``(..., columns)``."""
        return self.op("Mul", self.op("Gather", value, self.constant(places, np.int64), axis=-1), self.constant(signs))

    def within(self, value: str, limit: str) -> str:
        """Where numbers are closer to 0 than a limit; False for numbers that are not finite."""
        return self.op("Less", self.op("Abs", value), limit)

    def clip(self, value: str, low: Any, high: Any) -> str:
        """``value`` within bounds, which may be arrays."""
        if all((np.ravel(end) == np.ravel(end)[0]).all() for end in (low, high)):  # one operator
            return self.op("Clip", value, *(self.constant(np.ravel(end)[0]) for end in (low, high)))
        return self.op("Min", self.op("Max", value, self.constant(low)), self.constant(high))


def _build(graph: _Graph, weights: NetworkWeights) -> None:
    """Adds a policy's nodes."""
    observation = graph.take(OBSERVATION, np.float32, "N", weights.inputs)
    state = _recall(graph, weights) if weights.state_size else ""
    # a number that is not finite, as of a broken sensor, must not reach the memory: the mean in training replaces it
    finite, usual = graph.within(observation, graph.constant(np.inf)), graph.constant(weights.mean[-weights.inputs :])
    seen = graph.op("Where", finite, observation, usual)
    following: list[str] = []  # parts of the next state
    if weights.past_size and weights.stacked_first:
        seen, following = _stack(graph, weights, state, seen)
    outputs = _scaled(graph, weights, seen)
    if weights.past_size and not weights.stacked_first:
        outputs, following = _stack(graph, weights, state, outputs)
    outputs, remembered = _recur(graph, weights, state, outputs)
    following += remembered
    if weights.memory is not None:
        kept = _remember(graph, weights.memory, weights, state, outputs)
        outputs = graph.op("Concat", outputs, kept, axis=1)
    outputs = _layers(graph, weights, outputs)
    if weights.mirror is not None:
        places, signs, *own = weights.mirror
        image = _layers(graph, weights, _scaled(graph, weights, graph.mirrored(seen, places, signs)))
        outputs = graph.op("Mul", graph.op("Add", outputs, graph.mirrored(image, *own)), graph.constant(0.5))
    if weights.output_limit < math.inf:
        outputs = graph.clip(outputs, -weights.output_limit, weights.output_limit)
    if weights.squashed:
        outputs = graph.op("Tanh", outputs)
    action = _act(graph, weights, outputs)
    if weights.memory is not None:
        following += [kept, _coded(graph, weights, outputs)]
    if following:
        joined = graph.op("Concat", *following, axis=1) if len(following) > 1 else following[0]
        graph.give(NEXT_STATE, joined, np.float32, "N", weights.state_size)
    graph.give(OUTPUTS, outputs, np.float32, "N", len(weights.layers[-1][1]))
    if weights.kind == CHOICE:
        graph.give(ACTION, action, np.int64, "N")
    else:
        graph.give(ACTION, action, np.float32, "N", len(weights.low))


def _scaled(graph: _Graph, weights: NetworkWeights, seen: str) -> str:
    """Observations as training normalizes them."""
    divided = graph.op("Div", graph.op("Sub", seen, graph.constant(weights.mean)), graph.constant(weights.std))
    return graph.clip(divided, -weights.limit, weights.limit)


def _layers(graph: _Graph, weights: NetworkWeights, value: str) -> str:
    """Outputs of the network."""
    for index, (weight, bias) in enumerate(weights.layers):
        if index:
            value = graph.activate(value, weights.activation)
        value = graph.linear(value, weight, bias)
    return value


def _recall(graph: _Graph, weights: NetworkWeights) -> str:
    """The state, cleared where an episode starts."""
    given = graph.take(STATE, np.float32, "N", weights.state_size)
    starts = graph.take(STARTS, np.bool_, "N")
    fresh = graph.op("Unsqueeze", starts, graph.constant([1], np.int64))
    limit = graph.op("Where", fresh, graph.constant(0.0), graph.constant(np.inf))
    return graph.op("Where", graph.within(given, limit), given, graph.constant(0.0))


def _stack(graph: _Graph, weights: NetworkWeights, state: str, newest: str) -> tuple[str, list[str]]:
    """The last frames, the oldest first, and the part of the next state that holds them."""
    past = graph.columns(state, 0, weights.past_size)
    frames = graph.op("Concat", past, newest, axis=1)
    return frames, [graph.columns(frames, weights.inputs, weights.inputs * weights.frames)]


def _recur(graph: _Graph, weights: NetworkWeights, state: str, value: str) -> tuple[str, list[str]]:
    """The last LSTM's output (Hochreiter and Schmidhuber 1997, Gers et al. 2000), and all outputs and cells."""
    first, kept = weights.past_size, []
    for unit in weights.lstm:
        size = unit.size
        hidden, cell = (graph.columns(state, first + k * size, first + (k + 1) * size) for k in (0, 1))
        order = np.r_[: 2 * size, 3 * size : 4 * size, 2 * size : 3 * size]  # input, forget, output, cell
        new = graph.linear(value, unit.weight_ih[order], unit.bias[order])
        sums = graph.op("Gemm", hidden, graph.constant(unit.weight_hh[order]), new, transB=1)
        gates = graph.op("Sigmoid", graph.columns(sums, 0, 3 * size))
        let_in, forget, let_out = (graph.columns(gates, k * size, (k + 1) * size) for k in range(3))
        candidate = graph.op("Tanh", graph.columns(sums, 3 * size, 4 * size))
        cell = graph.op("Add", graph.op("Mul", forget, cell), graph.op("Mul", let_in, candidate))
        value = graph.op("Mul", let_out, graph.op("Tanh", cell))
        kept += [value, cell]
        first += 2 * size
    return value, kept


def _remember(graph: _Graph, unit: GRUWeights, weights: NetworkWeights, state: str, scaled: str) -> str:
    """The memory's state after an observation (Cho et al. 2014)."""
    size, first = unit.weight_hh.shape[1], weights.state_size - weights.code_size
    before = graph.columns(state, first - size, first)
    previous = graph.columns(state, first, weights.state_size)
    seen = graph.op("Concat", scaled, previous, axis=1)
    both, last = slice(0, 2 * size), slice(2 * size, 3 * size)  # reset and update, whose sums stay together
    bias = np.concatenate([(unit.bias_ih + unit.bias_hh)[both], unit.bias_ih[last]])
    new = graph.linear(seen, unit.weight_ih, bias)
    sums = graph.op("Gemm", before, graph.constant(unit.weight_hh[both]), graph.columns(new, 0, 2 * size), transB=1)
    gates = graph.op("Sigmoid", sums)
    reset, update = (graph.columns(gates, k * size, (k + 1) * size) for k in (0, 1))
    recalled = graph.op("Mul", reset, graph.linear(before, unit.weight_hh[last], unit.bias_hh[last]))
    candidate = graph.op("Tanh", graph.op("Add", graph.columns(new, 2 * size, 3 * size), recalled))
    change = graph.op("Mul", update, graph.op("Sub", before, candidate))
    return graph.op("Add", candidate, change)


def _act(graph: _Graph, weights: NetworkWeights, outputs: str) -> str:
    """The action for the environment, from the network's outputs."""
    if weights.kind == CHOICE:
        index = graph.op("ArgMax", outputs, axis=1, keepdims=0)
        return graph.op("Add", index, graph.constant(weights.start, np.int64))
    low, high = weights.low, weights.high
    if weights.kind == DIRECT:
        return graph.clip(graph.columns(outputs, 0, len(low)), low, high)
    width, unit = graph.constant((high - low) / 2), graph.clip(outputs, -1.0, 1.0)
    return graph.clip(graph.op("Add", graph.op("Mul", unit, width), graph.constant((high + low) / 2)), low, high)


def _coded(graph: _Graph, weights: NetworkWeights, outputs: str) -> str:
    """The action as memory sees it, from the network's outputs."""
    if weights.kind == CHOICE:
        index, count = graph.op("ArgMax", outputs, axis=1, keepdims=0), graph.constant([weights.code_size], np.int64)
        return graph.op("OneHot", index, count, graph.constant([0.0, 1.0]), axis=1)
    if weights.kind == SCALED:
        return graph.clip(outputs, -1.0, 1.0)
    low, width = graph.constant(weights.low), graph.constant(weights.high - weights.low)
    share = graph.op("Div", graph.op("Sub", graph.columns(outputs, 0, len(weights.low)), low), width)
    doubled = graph.op("Sub", graph.op("Mul", share, graph.constant(2.0)), graph.constant(1.0))
    return graph.clip(doubled, -1.0, 1.0)
