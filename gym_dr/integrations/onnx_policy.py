"""Policies in ONNX files of any origin: checked by onnx, executed by ONNX Runtime.

Such a file is a graph of operators on arrays. It runs no code, and references to other files are refused before those
are opened.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import VectorEnv

from gym_dr.arrays import Mask
from gym_dr.errors import ConfigError, located, needs, raised_as, shortened
from gym_dr.integrations.onnx import ACTION, NEXT_STATE, STARTS, STATE

MAX_FILE = 2**25  # bytes; 8 million weights


class OnnxPolicy:
    """A policy in an ONNX file, for any vector environment that fits it.

    Attributes:
        path: Path of the file.
        about: Metadata: name -> text, unchecked.
        digest: Digest of the content.
    """

    def __init__(self, path: Path, session: Any, about: Mapping[str, str], digest: str) -> None:
        """Holds a session of ONNX Runtime; see ``read_policy``.

        Raises:
            ConfigError: Inputs or outputs are not those of a policy.
        """
        self.path, self.about, self.digest, self._session = path, about, digest, session
        self._observation, self._width, self._state_size = _interface(session)
        self._outputs = [ACTION, *([NEXT_STATE] if self._state_size else [])]

    def make(self, envs: VectorEnv[Any, Any, Any]) -> Callable[[npt.NDArray[Any], Mask], npt.NDArray[Any]]:
        """Makes the policy for a vector environment; see ``gym_dr.training.api.PolicyWithMemory``.

        Raises:
            ConfigError: The environments' observations have another shape.
        """
        if envs.single_observation_space.shape != (self._width,):
            raise ConfigError(f"it takes observations of shape ({self._width},).")
        return self.begin(envs.num_envs)

    def begin(self, num: int) -> Callable[[npt.NDArray[Any], Mask], npt.NDArray[Any]]:
        """Makes the policy for ``num`` observations at a time."""
        state = np.zeros((num, self._state_size), np.float32)

        def act(observations: npt.NDArray[Any], episode_starts: Mask) -> npt.NDArray[Any]:
            nonlocal state
            inputs = {self._observation: np.ascontiguousarray(observations, np.float32)}
            if self._state_size:
                inputs |= {STATE: state, STARTS: np.asarray(episode_starts)}
            actions, *others = self._session.run(self._outputs, inputs)
            state = others[0] if others else state
            return np.asarray(actions)

        return act

    def try_out(self) -> None:
        """Acts twice, so that errors show before anything is played.

        Raises:
            ConfigError: The policy cannot act, or takes only a fixed number of observations.
        """
        act = self.begin(2)
        for start in (True, False):
            actions = act(np.zeros((2, self._width), np.float32), np.full(2, start))
            if actions.shape[:1] != (2,):
                raise ConfigError(
                    f"expected an action for each of 2 observations, got shape {actions.shape}. Export it for any "
                    "number of observations, not for a batch of one."
                )


def read_policy(path: Path, content: bytes) -> OnnxPolicy:
    """Reads the content of an ONNX file, and nothing else.

    Args:
        path: Path of the file, for messages.
        content: At most ``MAX_FILE`` bytes.

    Raises:
        ConfigError: A package is missing, or the content is damaged, is not a policy, or refers to other files.
    """
    needs("An ONNX file", "onnx", "onnx", "onnxruntime")
    import onnx  # heavy, and an extra
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # as for all policies
    options.log_severity_level = 4  # errors are raised, not logged
    what = "expected a policy as an ONNX file, got one that is damaged or something else"
    with located(path), raised_as(ConfigError, what):
        model = onnx.load_model_from_string(content)
        _check_contained(model)
        onnx.checker.check_model(model)
        about = {entry.key: entry.value for entry in model.metadata_props}
        del model.metadata_props[:]  # metadata may set options of the session
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        policy = OnnxPolicy(path, session, about, hashlib.sha256(content).hexdigest())
        policy.try_out()
    return policy


def _check_contained(model: Any) -> None:
    """Checks that a model is one plain graph that contains all weights, which are finite.

    Operators of other domains may open files, and nested graphs may loop without end or hide weights.

    Raises:
        ConfigError: The model is not.
    """
    from onnx import AttributeProto, TensorProto, numpy_helper

    graph = model.graph
    if others := {one.domain for one in (*model.opset_import, *graph.node)} - {"", "ai.onnx"}:
        raise ConfigError(f"expected standard operators, got some of {shortened(min(others))}. Export it without them.")
    attributes = [attribute for node in graph.node for attribute in node.attribute]
    plain = {
        getattr(AttributeProto, kind) for kind in ("FLOAT", "INT", "STRING", "TENSOR", "FLOATS", "INTS", "STRINGS")
    }
    if (
        model.functions
        or model.training_info
        or graph.sparse_initializer
        or any(attribute.type not in plain for attribute in attributes)
    ):
        raise ConfigError(
            "expected one plain graph, got functions, loops, branches, training or sparse weights. Export it without "
            "them."
        )
    for tensor in (*graph.initializer, *(attribute.t for attribute in attributes)):
        if tensor.data_location != TensorProto.DEFAULT or tensor.external_data:
            raise ConfigError(
                f"weights {shortened(tensor.name)}: expected inside the file, got elsewhere. Export it as a single "
                "file."
            )
        values = numpy_helper.to_array(tensor) if tensor.data_type else np.zeros(0)  # an attribute of another kind
        if values.dtype.kind == "f" and not (np.isfinite(values) if values.ndim > 1 else ~np.isnan(values)).all():
            raise ConfigError(f"weights {shortened(tensor.name)}: expected finite numbers, got NaN or infinity.")


def _interface(session: Any) -> tuple[str, int, int]:
    """The name of the input for observations, and the sizes of an observation and of a state.

    Raises:
        ConfigError: Inputs and outputs are not those of a policy.
    """
    inputs = {one.name: (one.type, *one.shape) for one in session.get_inputs()}
    outputs = {one.name for one in session.get_outputs()}
    remembers = NEXT_STATE in outputs or STATE in inputs
    memory = [STATE, STARTS] if remembers else []
    arrays = [name for name in inputs if name not in memory] + memory[:1]  # (N, numbers)
    if (
        len(arrays) != 1 + remembers
        or not {ACTION, *([NEXT_STATE] if remembers else [])} <= outputs
        or any(inputs.get(name, ())[:1] != ("tensor(float)",) or len(inputs[name]) != 3 for name in arrays)
        or (remembers and inputs.get(STARTS, ())[:1] != ("tensor(bool)",))
        or any(isinstance(shape[1], int) for shape in inputs.values())
        or not all(isinstance(inputs[name][2], int) for name in arrays)
    ):
        raise ConfigError(
            f"expected one input (N, numbers) of float32 for observations and an output {ACTION!r}, with memory also "
            f"inputs {STATE!r} (N, S) of float32 and {STARTS!r} (N,) of bool and an output {NEXT_STATE!r}, of which "
            f"only N is left open, got inputs {shortened(inputs)} and outputs {shortened(sorted(outputs))}. Name and "
            "shape them so."
        )
    return arrays[0], inputs[arrays[0]][2], inputs[STATE][2] if remembers else 0
