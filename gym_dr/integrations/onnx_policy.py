"""Policies in ONNX files of any origin: checked as data, then executed by ONNX Runtime.

Such a file is a program of operators on arrays. Before anything is executed, its sizes, its operators and the shape of
every result are checked, so that what a stranger sent runs none of their code and takes bounded time and memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import VectorEnv

from gym_dr.arrays import Mask
from gym_dr.errors import ConfigError, located, shortened
from gym_dr.integrations.onnx import ACTION, NEXT_STATE, STARTS, STATE, check_installed

MAX_FILE = 2**26  # bytes; nearly all of them weights
MAX_STRUCTURE = 2**20  # bytes besides the weights; protobuf needs up to 80 times as many
MAX_NODES = 2000
MAX_RANK = 8
# of all results of a call: bytes, and numbers that are read, written, or multiplied and added
MAX_BYTES = (2**26, 2**20)  # ... once, and for each observation
MAX_WORK = (2**28, 2**24)

# deterministic, without a graph inside, and with results whose shape does not depend on the data
OPERATORS = frozenset(
    (
        *("Abs", "Neg", "Sqrt", "Exp", "Log", "Sign", "Floor", "Ceil", "Round", "Reciprocal", "Sin", "Cos", "Erf"),
        *("Tanh", "Sigmoid", "Relu", "Elu", "Selu", "Celu", "LeakyRelu", "PRelu", "Gelu", "Mish", "HardSigmoid"),
        *("HardSwish", "Softplus", "Softsign", "Softmax", "LogSoftmax", "LayerNormalization"),
        *("Add", "Sub", "Mul", "Div", "Pow", "Min", "Max", "Clip", "MatMul", "Gemm"),
        *("IsNaN", "IsInf", "Not", "And", "Or", "Where", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"),
        *("Identity", "Cast", "Constant", "ConstantOfShape", "Concat", "Slice", "Split", "Gather", "OneHot"),
        *("Squeeze", "Unsqueeze", "Reshape", "Flatten", "Transpose", "Expand", "Tile"),
        *("ArgMax", "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"),
    )
)
_OF_NUMBERS_WITH_FRACTION = ("Div", "Pow", "ReduceMean")  # an integer divided by zero would end the process
_OURS = "observes_draw"  # metadata that files of our own export always have

# fields of the format by number, from the root on: graph, its initializers, and their numbers
_NESTED = ((7,), (7, 5))
_WEIGHTS = ((7, 5, 4), (7, 5, 9))
_FIXED = {1: 8, 5: 4}  # wire type -> bytes of a value


class OnnxPolicy:
    """A policy in an ONNX file, for any vector environment that fits it.

    Attributes:
        path: Of the file.
        about: Metadata: name -> text, which nobody has checked.
        digest: Of its content.
    """

    def __init__(self, path: Path, model: Any, about: Mapping[str, str], digest: str) -> None:
        """Holds a model whose operators are checked; see ``read_policy``.

        Raises:
            ConfigError: Its inputs or outputs are not those of a policy.
        """
        self.path, self.about, self.digest, self._model = path, about, digest, model
        self._observation, self._width, self._state_size = _interface(model.graph)
        self._sessions: dict[int, Any] = {}

    @property
    def says_what_it_observes(self) -> bool:
        """Whether its metadata tell what it observes besides the environment's observation."""
        return _OURS in self.about

    def make(self, envs: VectorEnv[Any, Any, Any]) -> Callable[[npt.NDArray[Any], Mask], npt.NDArray[Any]]:
        """Makes the policy for a vector environment; see ``gym_dr.training.api.PolicyWithMemory``.

        Raises:
            ConfigError: The environments' observations have another shape.
        """
        if envs.single_observation_space.shape != (self._width,):
            raise ConfigError(f"it takes observations of shape ({self._width},).")
        return self.begin(envs.num_envs)

    def begin(self, num: int) -> Callable[[npt.NDArray[Any], Mask], npt.NDArray[Any]]:
        """Makes the policy for ``num`` observations at a time.

        Raises:
            ConfigError: Results may take too much, or the runtime refuses the file.
        """
        session, outputs = self._session(num), [ACTION, *([NEXT_STATE] if self._state_size else [])]
        state = np.zeros((num, self._state_size), np.float32)

        def act(observations: npt.NDArray[Any], episode_starts: Mask) -> npt.NDArray[Any]:
            nonlocal state
            inputs = {self._observation: np.ascontiguousarray(observations, np.float32)}
            if self._state_size:
                inputs |= {STATE: state, STARTS: np.asarray(episode_starts)}
            actions, *others = session.run(outputs, inputs)
            state = others[0] if others else state
            return np.asarray(actions)

        return act

    def try_out(self) -> None:
        """Acts once, so that what a file cannot do is found before anything is played.

        Raises:
            ConfigError: It cannot act.
        """
        act = self.begin(2)
        with _readable(self.path):
            act(np.zeros((2, self._width), np.float32), np.ones(2, np.bool_))

    def _session(self, num: int) -> Any:
        """An ``InferenceSession`` for ``num`` observations at a time; it keeps nothing between calls."""
        if num not in self._sessions:
            import onnxruntime  # heavy, and an extra

            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = options.inter_op_num_threads = 1  # as all policies play
            options.log_severity_level = 4  # what it refuses, it raises too
            with _readable(self.path):
                _set_rows(self._model.graph, num)
                _check_results(self._model, num, self._state_size)
                self._sessions[num] = onnxruntime.InferenceSession(
                    self._model.SerializeToString(), options, providers=["CPUExecutionProvider"]
                )
        return self._sessions[num]


def read_policy(path: Path, content: bytes) -> OnnxPolicy:
    """Reads the content of an ONNX file; executes nothing that has not been checked.

    Args:
        path: Where it comes from, for messages.
        content: At most ``MAX_FILE`` bytes.

    Raises:
        ConfigError: A package is missing, or the content is damaged, no policy, or may take too much.
    """
    check_installed("onnx", "onnxruntime")
    import onnx  # heavy, and an extra

    with _readable(path):
        _check_structure(content)
        model = onnx.ModelProto.FromString(content)
        about = {entry.key: entry.value for entry in model.metadata_props}
        _check_operators(model)
        del model.metadata_props[:]
        onnx.checker.check_model(model)
        policy = OnnxPolicy(path, model, about, hashlib.sha256(content).hexdigest())
    policy.try_out()
    return policy


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Raises ``ConfigError``, with the path, if the block cannot use the file; a damaged one may raise anything."""
    try:
        with located(path):
            yield
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(
            f"{path}: expected a policy as an ONNX file, got one that is damaged or something else: "
            f"{shortened(str(error))[1:-1]}"
        ) from None


# ---- before the file is parsed ---------------------------------------------------------------------------------------


def _check_structure(content: bytes) -> None:
    """Checks how many bytes are no weights, since each of them may become many in memory.

    Raises:
        ConfigError: Too many are.
        ValueError: It is damaged.
    """
    _expect_most("bytes", len(content), MAX_FILE)
    _structure_of(memoryview(content), ())


def _structure_of(data: memoryview, path: tuple[int, ...]) -> int:
    """The bytes of a message that are no weights; ``path`` has the numbers of the fields that lead to it."""
    at = total = 0
    while at < len(data):
        before = at
        key, at = _varint(data, at)
        field, wire = (*path, key >> 3), key & 7
        if wire == 2:  # a text, numbers or a message
            size, at = _varint(data, at)
            inside = data[at : at + size]
            at += size
            kept = 0 if field in _WEIGHTS else _structure_of(inside, field) if field in _NESTED else size
            total += kept - size
        elif wire == 0:
            _, at = _varint(data, at)
        elif wire in _FIXED:
            at += _FIXED[wire]
        else:
            raise ValueError("there is no ONNX in it")
        total += at - before
        _expect_most("bytes besides weights", total, MAX_STRUCTURE)
    if at != len(data):
        raise ValueError("it is truncated")
    return total


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """A number, of at most 10 bytes, and where it ends."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise ValueError("it is truncated")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise ValueError("a number in it is too long")


def _expect_most(what: str, count: int, most: int) -> None:
    """Checks a count.

    Raises:
        ConfigError: It is larger.
    """
    if count > most:
        raise ConfigError(f"expected at most {most:,} {what}, got {count:,} or more.")


# ---- before anything is executed -------------------------------------------------------------------------------------


def _check_operators(model: Any) -> None:
    """Checks that a model is one plain graph: operators that are known, and constants inside of the file.

    Raises:
        ConfigError: It is not.
    """
    import onnx

    graph = model.graph
    domains = [one.domain for one in model.opset_import] + [node.domain for node in graph.node]
    if others := sorted({name for name in domains if name not in ("", "ai.onnx")}):
        raise ConfigError(f"expected standard operators, got some of {shortened(others[0])}. Export it without them.")
    if model.functions or model.training_info or graph.sparse_initializer:
        raise ConfigError(
            "expected one plain graph, got functions, training or sparse weights. Export it without them."
        )
    _expect_most("operators", len(graph.node), MAX_NODES)
    for tensor in graph.initializer:
        _check_tensor(tensor)
    for node in graph.node:
        if node.op_type not in OPERATORS:
            raise ConfigError(
                f"expected operators among {', '.join(sorted(OPERATORS))}, got {shortened(node.op_type)}."
            )
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                _check_tensor(attribute.t)
            elif attribute.type not in _plain_attributes() or attribute.ref_attr_name:
                raise ConfigError(f"{node.op_type}: {shortened(attribute.name)}: expected numbers, got something else.")


def _plain_attributes() -> tuple[int, ...]:
    import onnx

    kinds = onnx.AttributeProto
    return kinds.FLOAT, kinds.INT, kinds.STRING, kinds.FLOATS, kinds.INTS


def _types() -> dict[int, str]:
    """Types of results, and the field that may hold numbers of such a constant instead of ``raw_data``."""
    import onnx

    types = onnx.TensorProto
    wide = {types.FLOAT: "float_data", types.DOUBLE: "double_data", types.INT64: "int64_data"}
    return {**wide, types.INT32: "int32_data", types.BOOL: "int32_data"}


def _check_tensor(tensor: Any) -> None:
    """Checks a constant.

    Raises:
        ConfigError: It is elsewhere, of another type, or not as long as it says.
    """
    import onnx

    name = shortened(tensor.name)
    if tensor.data_location != onnx.TensorProto.DEFAULT or tensor.external_data:
        raise ConfigError(f"weights {name}: expected inside of the file, got elsewhere. Export it as a single file.")
    if tensor.data_type not in _types():
        raise ConfigError(f"weights {name}: expected numbers of 32 or 64 bits, got type {tensor.data_type}.")
    size = _size(tensor.dims)
    itemsize = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
    held = len(tensor.raw_data) / itemsize + len(getattr(tensor, _types()[tensor.data_type]))
    if held != size:
        raise ConfigError(f"weights {name}: expected {size:,} numbers, got {held:,}. The file is damaged.")


def _size(shape: Any) -> int:
    """How many numbers an array has.

    Raises:
        ConfigError: It is empty, or has too many dimensions.
    """
    if len(shape) > MAX_RANK or any(length < 1 for length in shape):
        raise ConfigError(f"expected up to {MAX_RANK} dimensions of at least 1, got {shortened(list(shape))}.")
    return math.prod(shape)


def _interface(graph: Any) -> tuple[str, int, int]:
    """The name of the input for observations, the numbers of one, and those of a state.

    Raises:
        ConfigError: Inputs and outputs are not those of a policy.
    """
    from onnx import TensorProto

    constants = {tensor.name for tensor in graph.initializer}
    inputs = {one.name: one for one in graph.input if one.name not in constants}
    outputs = {one.name for one in graph.output}
    memory = {STATE, STARTS} if NEXT_STATE in outputs or STATE in inputs else set()
    others = [one for name, one in inputs.items() if name not in memory]
    state = inputs.get(STATE)
    if (
        len(others) != 1
        or not memory <= inputs.keys()
        or not {ACTION, *([NEXT_STATE] if memory else [])} <= outputs
        or any(_declared_type(one) != (TensorProto.FLOAT, 2) for one in (*others, *([state] if state else [])))
        or (memory and _declared_type(inputs[STARTS]) != (TensorProto.BOOL, 1))
    ):
        raise ConfigError(
            f"expected one input (N, numbers) of float32 for observations and an output {ACTION!r}, with memory also "
            f"inputs {STATE!r} (N, S) of float32 and {STARTS!r} (N,) of bool and an output {NEXT_STATE!r}, got inputs "
            f"{shortened(sorted(inputs))} and outputs {shortened(sorted(outputs))}. Name and shape them so."
        )
    sizes = [one.type.tensor_type.shape.dim[1].dim_value for one in (others[0], *([state] if state else []))]
    if min(sizes) < 1:
        raise ConfigError("expected inputs (N, numbers) of which only N is left open. Export it with fixed numbers.")
    return others[0].name, sizes[0], sizes[1] if state else 0


def _declared_type(value: Any) -> tuple[int, int]:
    """The type of an input's numbers, and how many dimensions it has."""
    return value.type.tensor_type.elem_type, len(value.type.tensor_type.shape.dim)


def _set_rows(graph: Any, num: int) -> None:
    """Sets N of the inputs, and forgets the shapes that the file gives its results."""
    constants = {tensor.name for tensor in graph.initializer}
    for one in graph.input:
        if one.name not in constants:
            one.type.tensor_type.shape.dim[0].dim_value = num
    del graph.value_info[:]
    for one in graph.output:
        one.type.tensor_type.ClearField("shape")


def _check_results(model: Any, num: int, state_size: int) -> None:
    """Checks the shapes of all results, and so what a call takes.

    Raises:
        ConfigError: One is unknown before execution, or they take too much, or the outputs have other shapes.
    """
    import onnx

    inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True).graph
    known = {one.name: one.type.tensor_type for one in (*inferred.input, *inferred.value_info, *inferred.output)}
    shapes = {
        name: tuple(dim.dim_value for dim in one.shape.dim)
        for name, one in known.items()
        if one.HasField("shape") and all(dim.HasField("dim_value") for dim in one.shape.dim)
    }
    shapes |= {tensor.name: tuple(tensor.dims) for tensor in inferred.initializer}
    bytes_ = work = 0
    for node in inferred.node:
        for name in filter(None, node.output):
            if name not in shapes or known[name].elem_type not in _types():
                raise ConfigError(
                    f"{node.op_type}: expected a result of numbers whose shape follows from that of the observations, "
                    f"got {shortened(name)}, whose type or shape is another or unknown."
                )
            dtype = onnx.helper.tensor_dtype_to_np_dtype(known[name].elem_type)
            if node.op_type in _OF_NUMBERS_WITH_FRACTION and dtype.kind != "f":
                raise ConfigError(f"{node.op_type}: expected floating-point numbers, got {dtype}.")
            bytes_ += _size(shapes[name]) * dtype.itemsize
        work += _work(node, shapes)
        _expect_most("bytes of results", bytes_, MAX_BYTES[0] + num * MAX_BYTES[1])
        _expect_most("operations", work, MAX_WORK[0] + num * MAX_WORK[1])
    rows = {ACTION: shapes[ACTION][:1], NEXT_STATE: shapes.get(NEXT_STATE, ())}
    if rows[ACTION] != (num,) or (state_size and rows[NEXT_STATE] != (num, state_size)):
        raise ConfigError(
            f"expected an output {ACTION!r} with a row for each of {num} observations, and with memory {NEXT_STATE!r} "
            f"of the shape of {STATE!r}, got shapes {shapes[ACTION]} and {rows[NEXT_STATE]}. Export it for any number "
            "of observations, not for a batch of one."
        )


def _work(node: Any, shapes: Mapping[str, tuple[int, ...]]) -> int:
    """Numbers that an operator reads, writes, or multiplies and adds."""
    sizes = [_size(shapes[name]) for name in _named(node)]
    if node.op_type not in ("MatMul", "Gemm"):
        return sum(sizes)
    first, inner = shapes[node.input[0]], 0
    transposed = any(one.name == "transA" and one.i for one in node.attribute)
    if first:
        inner = first[0] if transposed else first[-1]
    return sum(sizes) + inner * _size(shapes[node.output[0]])


def _named(node: Any) -> Iterator[str]:
    yield from (name for name in (*node.input, *node.output) if name)
