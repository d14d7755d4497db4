"""ONNX files that nobody has trained: small policies, and what a stranger might send instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from gym_dr.integrations.onnx import GRUWeights, NetworkWeights, policy_file

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
    input_type: int = FLOAT,
) -> bytes:
    """A file with any nodes, which turn ``x`` into ``action``."""
    given = [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()]
    inputs = [helper.make_tensor_value_info("x", input_type, ["N", width])]
    outputs = [helper.make_tensor_value_info("action", FLOAT, ["any"])]
    graph = helper.make_graph(nodes, "stranger", inputs, outputs, given)
    content: bytes = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    return content


def op(kind: str, *inputs: str, to: str = "action", **attributes: Any) -> Any:
    """A node."""
    return helper.make_node(kind, list(inputs), [to], **attributes)


def external() -> bytes:
    """Weights that lie in another file."""
    model = onnx.ModelProto.FromString(graph_of([op("Add", "x", "w")], {"w": np.ones(4, np.float32)}))
    weights = model.graph.initializer[0]
    weights.ClearField("raw_data")
    weights.data_location = TensorProto.EXTERNAL
    weights.external_data.add(key="location", value="/etc/passwd")
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


# name -> (content, part of the message)
HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "nothing": (lambda: b"", "damaged or something else"),
    "a pickle": (lambda: b"\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00.", "damaged or something else"),
    "a loop": (looping, "expected one plain graph"),
    "an own operator": (function, "expected one plain graph"),
    "another domain": (lambda: graph_of([op("EPContext", domain="com.microsoft")]), "expected standard operators"),
    "weights elsewhere": (external, "expected inside the file, got elsewhere"),
    "weights that are not there": (lying, "damaged or something else"),
    "weights that are not finite": (
        lambda: graph_of([op("MatMul", "x", "w")], {"w": np.full((4, 1), np.inf, np.float32)}),
        "expected finite numbers",
    ),
    "a bias that is none": (
        lambda: graph_of([op("Add", "x", "b")], {"b": np.full(4, np.nan, np.float32)}),
        "expected finite numbers",
    ),
    "a batch of one": (lambda: graph_of([op("Reshape", "x", "one")], {"one": np.array([1, -1])}), "not for a batch of"),
    "an open number of numbers": (lambda: graph_of([op("Tanh", "x")], width="M"), "of which only N is left open"),
    "pictures": (
        lambda: graph_of([helper.make_node("Cast", ["x"], ["action"], to=FLOAT)], input_type=TensorProto.UINT8),
        "expected one input",
    ),
}
