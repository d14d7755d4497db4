"""ONNX files that nobody has trained: small policies, and what a stranger might send instead."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from gymnasium.spaces import Box
from onnx import TensorProto, helper

from gym_dr.errors import InvalidActionError
from gym_dr.evaluation.actions import checked
from gym_dr.integrations.onnx import GRUWeights, NetworkWeights, policy_file
from gym_dr.integrations.onnx_policy import OPERATORS, read_policy

FLOAT, INT = TensorProto.FLOAT, TensorProto.INT64


def small_policy(memory: bool = True, **about: Any) -> bytes:
    """A policy for CartPole, as we export it."""
    rng = np.random.default_rng(1)

    def array(*shape: int) -> Any:
        return rng.normal(size=shape).astype(np.float32)

    unit = GRUWeights(weight_ih=array(9, 6), weight_hh=array(9, 3), bias_ih=array(9), bias_hh=array(9))
    weights = NetworkWeights(
        inputs=4,
        mean=array(4),
        std=np.ones(4, np.float32),
        layers=[(array(5, 7 if memory else 4), array(5)), (array(2, 5), array(2))],
        activation="tanh",
        kind="choice",
        low=np.zeros(0, np.float32),
        high=np.zeros(0, np.float32),
        memory=unit if memory else None,
    )
    return policy_file(weights, about)


def graph_of(
    nodes: list[Any],
    constants: dict[str, Any] | None = None,
    *,
    width: Any = 4,
    rows: Any = "N",
    opset: int = 17,
    input_type: int = FLOAT,
    output: str = "action",
) -> bytes:
    """A file with any nodes, which turn ``x`` into ``action``."""
    given = [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()]
    inputs = [helper.make_tensor_value_info("x", input_type, [rows, width])]
    outputs = [helper.make_tensor_value_info(output, FLOAT, ["any"])]
    graph = helper.make_graph(nodes, "stranger", inputs, outputs, given)
    content: bytes = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]).SerializeToString()
    return content


def op(kind: str, *inputs: str, to: str = "action", **attributes: Any) -> Any:
    """A node; ``to_type`` is the attribute ``to`` of ``Cast``."""
    named = {name.removesuffix("_type"): value for name, value in attributes.items()}
    return helper.make_node(kind, list(inputs), [to], **named)


def external() -> bytes:
    """Weights that lie in another file."""
    model = onnx.ModelProto.FromString(graph_of([op("Add", "x", "w")], {"w": np.ones(4, np.float32)}))
    (tensor,) = model.graph.initializer
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")
    return bytes(model.SerializeToString())


def looping() -> bytes:
    """A loop without end."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["d"])],
        "body",
        [helper.make_tensor_value_info(name, kind, []) for name, kind in (("i", INT), ("c", TensorProto.BOOL))],
        [helper.make_tensor_value_info("d", TensorProto.BOOL, [])],
    )
    loop = helper.make_node("Loop", ["", "yes"], [], body=body)
    return graph_of([loop, op("Identity", "x")], {"yes": np.array(True)})


def function() -> bytes:
    """An operator that the file defines itself."""
    model = onnx.ModelProto.FromString(graph_of([op("Identity", "x")]))
    model.functions.append(
        helper.make_function("own", "Grow", ["a"], ["b"], [op("Identity", "a", to="b")], [helper.make_opsetid("", 17)])
    )
    return bytes(model.SerializeToString())


def lying() -> bytes:
    """Weights that say they are larger than they are."""
    model = onnx.ModelProto.FromString(graph_of([op("Add", "x", "w")], {"w": np.ones(4, np.float32)}))
    model.graph.initializer[0].dims[0] = 2**40
    return bytes(model.SerializeToString())


def doubling(kind: str, times: int = 40) -> bytes:
    """Each result twice as large as the one before."""
    inputs = {"Concat": 2, "Tile": 1}[kind]
    more: Any = {"axis": 1} if kind == "Concat" else {}
    nodes = [
        op(kind, *[f"v{k}"] * inputs, *(["twice"] if kind == "Tile" else []), to=f"v{k + 1}", **more)
        for k in range(times)
    ]
    nodes = [op("Identity", "x", to="v0"), *nodes, op("ReduceSum", f"v{times}", "one", keepdims=0)]
    return graph_of(nodes, {"twice": np.array([1, 2]), "one": np.array([1])})


def nodes_without_end(count: int = 10**6) -> bytes:
    """So many operators, each of a few bytes."""
    body = b"\x0a\x00" * count
    return b"\x08\x08" + b"\x3a" + _varint(len(body)) + body


def _varint(value: int) -> bytes:
    found = b""
    while value > 127:
        found += bytes([value & 127 | 128])
        value >>= 7
    return found + bytes([value])


BIG = np.array([2**20, 2**20])
# name -> (content, part of the message)
HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "nothing": (lambda: b"", "damaged or something else"),
    "zeros": (lambda: b"\0" * 100, "damaged or something else"),
    "a pickle": (lambda: b"\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00.", "damaged or something else"),
    "a loop": (looping, "got 'Loop'"),
    "an own operator": (function, "expected one plain graph"),
    "another domain": (lambda: graph_of([op("Tanh", "x", domain="com.microsoft")]), "expected standard operators"),
    "weights elsewhere": (external, "expected inside of the file, got elsewhere"),
    "weights that are not there": (lying, "expected 1,099,511,627,776 numbers, got 4.0"),
    "random numbers": (lambda: graph_of([op("RandomNormalLike", "x")]), "got 'RandomNormalLike'"),
    "a million operators": (nodes_without_end, "expected at most 1,048,576 bytes besides weights"),
    "thousands of operators": (
        lambda: graph_of([op("Tanh", "x", to=f"v{k}") for k in range(3000)]),
        "expected at most 2,000 operators",
    ),
    "concatenated again and again": (lambda: doubling("Concat"), "bytes of results"),
    "tiled again and again": (lambda: doubling("Tile"), "bytes of results"),
    "expanded": (lambda: graph_of([op("Expand", "y", "n")], {"n": BIG, "y": np.ones(1, np.float32)}), "bytes of re"),
    "a giant constant": (lambda: graph_of([op("ConstantOfShape", "n")], {"n": BIG}), "bytes of results"),
    "one hot of many": (
        lambda: graph_of(
            [op("ArgMax", "x", to="i", axis=1), op("OneHot", "i", "n", "v")],
            {"n": np.array(2**40), "v": np.array([0.0, 1.0], np.float32)},
        ),
        "bytes of results",
    ),
    "a shape that depends on values": (
        lambda: graph_of(
            [op("Cast", "x", to="n", to_type=INT), op("Reshape", "n", "m", to="k"), op("Expand", "x", "k")],
            {"m": np.array([-1])},
        ),
        "whose type or shape is another or unknown",
    ),
    "an integer divided by zero": (
        lambda: graph_of(
            [op("Div", "a", "b", to="c"), op("Cast", "c", to_type=FLOAT)],
            {"a": np.ones(2, np.int64), "b": np.zeros(2, np.int64)},
        ),
        "Div: expected floating-point numbers, got int64",
    ),
    "products without end": (
        lambda: graph_of(
            [
                op("Expand", "y", "n", to="w"),
                *[op("MatMul", "w", "w", to=f"w{k}") for k in range(9)],
                op("Identity", "x"),
            ],
            {"n": np.array([1000, 1000]), "y": np.ones(1, np.float32)},
        ),
        "operations",
    ),
    "a batch of one": (
        lambda: graph_of([op("Reshape", "x", "one")], {"one": np.array([1, -1])}, rows=1),
        "not for a batch of one",
    ),
    "an open number of numbers": (lambda: graph_of([op("Tanh", "x")], width="M"), "of which only N is left open"),
    "pictures": (lambda: graph_of([op("Tanh", "x")], input_type=TensorProto.UINT8), "expected one input"),
    "another output": (lambda: graph_of([op("Tanh", "x", to="y")], output="y"), "outputs ['y']"),
    "texts": (
        lambda: graph_of([op("Cast", "x", to="t", to_type=TensorProto.STRING), op("Cast", "t", to_type=FLOAT)]),
        "whose type or shape is another",
    ),
}


def mutated(rng: random.Random, content: bytes) -> bytes:
    """A file with a few bytes, or a few parts of its graph, replaced."""
    if rng.random() < 0.5:
        data = bytearray(content)
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        cut = rng.randrange(len(data)) if rng.random() < 0.2 else len(data)
        return bytes(data[:cut])
    model = onnx.ModelProto.FromString(content)
    graph = model.graph
    for _ in range(rng.randint(1, 3)):
        node, tensor = rng.choice(graph.node), rng.choice(graph.initializer)
        names = [name for one in graph.node for name in (*one.input, *one.output)]
        kind = rng.randrange(8)
        if kind == 0:
            node.op_type = rng.choice(sorted(OPERATORS))
        elif kind == 1 and node.input:
            node.input[rng.randrange(len(node.input))] = rng.choice([*names, ""])
        elif kind == 2 and node.attribute:
            attribute = rng.choice(node.attribute)
            attribute.i = rng.choice([-(2**63), -2, -1, 0, 1, 2, 7, 2**31, 2**63 - 1])
        elif kind == 3:
            name, value = rng.choice(["axis", "keepdims", "to", "transA", "transB", "alpha"]), rng.randint(-3, 12)
            node.attribute.append(helper.make_attribute(name, value))
        elif kind == 4 and tensor.dims:
            shape = [rng.choice([1, 2, 3, 4, 9]) for _ in range(rng.randint(0, 3))]
            dtype = rng.choice([np.float32, np.int64, np.int32, np.bool_, np.float64])
            values = np.array(rng.choices([-(2**40), -1, 0, 1, 2, 5, 2**40], k=int(np.prod(shape)))).astype(dtype)
            tensor.CopyFrom(onnx.numpy_helper.from_array(values.reshape(shape), tensor.name))
        elif kind == 5:
            values = np.array(rng.choices([-(2**62), -1, 0, 1, 2, 3, 2**62], k=max(1, int(np.prod(tensor.dims)))))
            dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type)
            tensor.CopyFrom(onnx.numpy_helper.from_array(values.astype(dtype).reshape(tensor.dims), tensor.name))
        elif kind == 6:
            node.input.append(rng.choice(names))
        else:
            del graph.node[rng.randrange(len(graph.node))]
    return bytes(model.SerializeToString())


def composed(rng: random.Random) -> bytes:
    """A file with random operators on whatever there is, most of which fit together."""
    constants = {
        "f": np.float32(rng.choice([0.0, -1.0, 3.0, np.nan, np.inf])),
        "i": np.int64(rng.choice([-(2**63), -1, 0, 1, 2, 2**63 - 1])),
        "b": np.bool_(rng.randrange(2)),
        "row": np.ones(4, np.float32),
        "square": np.ones((4, 4), np.float32),
        "axes": np.array([rng.choice([-3, -1, 0, 1, 2])]),
        "shape": np.array(rng.choices([-1, 0, 1, 2, 4], k=rng.randint(1, 3))),
        "ints": np.array(rng.choices([-(2**63), -2, -1, 0, 1, 2, 3, 2**62], k=rng.randint(1, 3))),
        "int32": np.array([[1, -1, 0, 2]], np.int32),
        "double": np.ones((1, 4)),
    }
    kinds = {name: f"tensor({np.asarray(value).dtype})" for name, value in constants.items()}
    kinds = {name: kind.replace("float32", "float").replace("float64", "double") for name, kind in kinds.items()}
    kinds["x"] = "tensor(float)"
    nodes: list[Any] = []
    for k in range(rng.randint(1, 5)):
        kind = rng.choice(sorted(OPERATORS - {"Constant"}))
        schema = onnx.defs.get_schema(kind, 20)
        bound: dict[str, str] = {}  # type variables
        inputs = []
        for j in range(rng.randint(schema.min_input, min(schema.max_input, 4))):
            declared = schema.inputs[min(j, len(schema.inputs) - 1)]
            allowed = {bound.get(declared.type_str)} if declared.type_str in bound else declared.types
            if fitting := [name for name, found in kinds.items() if found in allowed]:
                inputs.append(rng.choice([*fitting, fitting[-1], fitting[-1]]))  # more often the newest
                bound[declared.type_str] = kinds[inputs[-1]]
        nodes.append(helper.make_node(kind, inputs, [f"v{k}"], **_attributes(rng, schema)))
        output = schema.outputs[0]
        kinds[f"v{k}"] = bound.get(output.type_str, min(output.types))
    nodes += [op("Cast", f"v{len(nodes) - 1}", to="y", to_type=FLOAT), op("Add", "x", "y")]
    return graph_of(nodes, constants, opset=20)


def _attributes(rng: random.Random, schema: Any) -> dict[str, Any]:
    found = {}
    for name, attribute in schema.attributes.items():
        if attribute.required or rng.random() < 0.3:
            values = {
                "INT": rng.choice([-2, -1, 0, 1, 1, 1, 2, 6, 7, 9]),
                "FLOAT": rng.choice([-1.0, 0.0, 0.5]),
                "INTS": rng.choice([[0, 1], [1, 0], [rng.randint(-1, 2) for _ in range(rng.randint(1, 3))]]),
            }
            if attribute.type.name in values:
                found[name] = values[attribute.type.name]
    return found


class Envs:
    """All that a policy needs of environments; actions may be any numbers."""

    num_envs = 3
    single_observation_space = Box(-1, 1, (4,))
    single_action_space = Box(-np.inf, np.inf, (4,))
    action_space = Box(-np.inf, np.inf, (3, 4))


def use(content: bytes) -> None:
    """Reads a policy and acts twice, as an evaluation does.

    Raises:
        GymDrError: It is refused.
    """
    envs: Any = Envs()
    act = checked(read_policy(Path("policy.onnx"), content).make(envs), envs, "onnx:policy.onnx", "Envs-v0")
    for start in (True, False):
        with contextlib.suppress(InvalidActionError):
            act(np.full((3, 4), 0.5), np.full(3, start))
