"""Converts Stable-Baselines3's policies to ``NetworkWeights`` for ``onnx.policy_file``."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import VectorEnv

from gym_dr.arrays import Floats
from gym_dr.errors import ConfigError, shortened
from gym_dr.integrations.onnx import CHOICE, DIRECT, FARTHEST, SCALED, LSTMWeights, NetworkWeights
from gym_dr.integrations.sb3_policy import LoadedPolicy

# class of a policy -> the part with the features extractor, and the names of the modules, that choose actions
_PARTS = {
    "stable_baselines3.common.policies.ActorCriticPolicy": ("", "mlp_extractor.policy_net", "action_net"),
    "sb3_contrib.common.maskable.policies.MaskableActorCriticPolicy": ("", "mlp_extractor.policy_net", "action_net"),
    "sb3_contrib.common.recurrent.policies.RecurrentActorCriticPolicy": ("", "mlp_extractor.policy_net", "action_net"),
    "stable_baselines3.dqn.policies.DQNPolicy": ("q_net", "q_net"),
    "sb3_contrib.qrdqn.policies.QRDQNPolicy": ("quantile_net", "quantile_net"),
    "stable_baselines3.sac.policies.SACPolicy": ("actor", "latent_pi", "mu"),
    "sb3_contrib.tqc.policies.TQCPolicy": ("actor", "latent_pi", "mu"),
    "sb3_contrib.crossq.policies.CrossQPolicy": ("actor", "latent_pi", "mu"),
    "stable_baselines3.td3.policies.TD3Policy": ("actor", "mu"),
    "sb3_contrib.ars.policies.ARSPolicy": ("", "action_net"),
    "sb3_contrib.ars.policies.ARSLinearPolicy": ("", "action_net"),
}
_TANH_OUTSIDE = ("SACPolicy", "TQCPolicy", "CrossQPolicy")  # the distribution squashes the mean, not the network
_LAYERS = "stable_baselines3.common.torch_layers"
_EXTRACTORS = (f"{_LAYERS}.FlattenExtractor", f"{_LAYERS}.MlpExtractor")  # both only pass numbers on
_BATCH_NORMALIZATION = "sb3_contrib.common.torch_layers.BatchRenorm1d"
_ACTIVATIONS = {  # as torch prints them
    "Tanh()": "tanh",
    "ReLU()": "relu",
    "ELU(alpha=1.0)": "elu",
    "LeakyReLU(negative_slope=0.01)": "leaky_relu",
    "Sigmoid()": "sigmoid",
    "SiLU()": "silu",
    "GELU(approximate='none')": "gelu",
}


def weights_of_sb3(loaded: LoadedPolicy, envs: VectorEnv[Any, Any, Any]) -> NetworkWeights:
    """The weights of a deterministic policy of Stable-Baselines3, with the statistics of ``VecNormalize``.

    Raises:
        ConfigError: The policy is not a network of linear layers on flat observations, or does not fit the
            environments.
    """
    policy, frames = loaded.policy, loaded.frames(envs)
    observation, action = envs.single_observation_space, envs.single_action_space
    source = loaded.saved.path
    if not isinstance(observation, gym.spaces.Box) or len(observation.shape) != 1:
        raise ConfigError(f"{source}: expected a flat Box of observations, which a file takes, got {observation}.")
    if not (isinstance(action, gym.spaces.Discrete) or (isinstance(action, gym.spaces.Box) and len(action.shape) == 1)):
        raise ConfigError(f"{source}: expected one choice or a flat Box of actions, which a file gives, got {action}.")
    given = _network(policy, str(source))
    if isinstance(action, gym.spaces.Discrete):
        layers, nothing = given["layers"], np.zeros(0, np.float32)
        weight, bias = layers[-1]
        layers[-1] = _mean(weight, int(action.n)), _mean(bias, int(action.n))
        given |= {"kind": CHOICE, "low": nothing, "high": nothing}  # of Stable-Baselines3, always from 0
    else:
        low, high = (np.asarray(end, np.float32) for end in (action.low, action.high))
        given |= {"kind": SCALED if policy.squash_output else DIRECT, "low": low, "high": high}
    (inputs,) = observation.shape
    return NetworkWeights(
        inputs=inputs,
        frames=frames,
        lstm=_memory(policy),
        **_normalization(loaded.statistics, inputs, frames),
        **given,
    )


def _mean(array: Floats, count: int) -> Floats:
    """Rows ``(quantiles * count, ...)`` -> ``(count, ...)``: an action's value is the mean of its quantiles."""
    return np.asarray(array.reshape(-1, count, *array.shape[1:]).mean(0))


def _normalization(statistics: Any, inputs: int, frames: int) -> dict[str, Any]:
    """The normalization of ``VecNormalize``; empty without it."""
    if statistics is None or not statistics.norm_obs:
        return {"mean": np.zeros(inputs, np.float32), "std": np.ones(inputs, np.float32)}
    moments = statistics.obs_rms
    return {
        "mean": moments.mean.astype(np.float32),
        "std": np.sqrt(moments.var + statistics.epsilon).astype(np.float32),
        "limit": min(float(statistics.clip_obs), FARTHEST),
        "stacked_first": frames > 1 and moments.mean.shape != (inputs,),
    }


def _memory(policy: Any) -> list[LSTMWeights]:
    """The LSTMs of ``RecurrentPPO`` on top of each other; none for other policies."""
    found = getattr(policy, "lstm_actor", None)
    if found is None:
        return []
    units = []
    for layer in found.all_weights:
        weight_ih, weight_hh, *biases = (_array(part).astype(np.float32) for part in layer)  # none or two biases
        bias = sum(biases, np.zeros(len(weight_ih), np.float32))
        units.append(LSTMWeights(weight_ih=weight_ih, weight_hh=weight_hh, bias=bias))
    return units


def _network(policy: Any, source: str) -> dict[str, Any]:
    """The layers, their activation, and what follows the last one.

    Raises:
        ConfigError: There are other modules.
    """
    name = _name(policy)
    if name not in _PARTS:
        known = ", ".join(path.rpartition(".")[2] for path in _PARTS)
        raise ConfigError(
            f"{source}: expected a policy of linear layers, {known}, got {name}, whose other parts cannot be exported."
        )
    owner_name, *names = _PARTS[name]
    owner = policy.get_submodule(owner_name)
    for extractor in ("pi_features_extractor", "features_extractor", "mlp_extractor"):
        if (found := getattr(owner, extractor, None)) is not None and _name(found) not in _EXTRACTORS:
            raise ConfigError(
                f"{source}: expected observations that go straight to linear layers, got {_name(found)} before them, "
                "which cannot be exported."
            )
    modules = [module for part in names for module in _flat(owner.get_submodule(part))]
    given: dict[str, Any] = {
        "squashed": name.rpartition(".")[2] in _TANH_OUTSIDE or (policy.squash_output and "action_net" in names[1:])
    }
    last = modules[-1]
    if policy.squash_output and not given["squashed"] and repr(last) == "Tanh()":
        modules.pop()
        given["squashed"] = True
    elif type(last).__name__ == "Hardtanh" and last.max_val == -last.min_val:  # after the mean with use_sde
        modules.pop()
        given["output_limit"] = float(last.max_val)
    return {**given, **_layers(modules, source)}


def _layers(modules: list[Any], source: str) -> dict[str, Any]:
    """The layers among modules, batch normalization folded into their weights, and their activation.

    Raises:
        ConfigError: There are other modules.
    """
    layers: list[tuple[Floats, Floats]] = []
    between: list[str] = []
    normalization = None  # must precede a layer
    for module in [*modules, None]:
        due = len(between) == len(layers)  # a layer is due, not an activation
        if due and type(module).__name__ == "Linear":
            layers.append(_weights(module, normalization))
            normalization = None
        elif due and normalization is None and _name(module) == _BATCH_NORMALIZATION:
            normalization = module
        elif not due and repr(module) in (between[:1] or _ACTIVATIONS):
            between.append(repr(module))
        elif due or module is not None:
            wrong = modules[-1] if module is None else module
            raise ConfigError(
                f"{source}: expected linear layers with the same of {', '.join(_ACTIVATIONS)} between them, got "
                f"{shortened(repr(wrong))[1:-1]}, which cannot be exported."
            )
    return {"layers": layers, "activation": _ACTIVATIONS[between[0]] if between else "tanh"}


def _name(found: Any) -> str:
    return f"{type(found).__module__}.{type(found).__qualname__}"


def _flat(module: Any) -> list[Any]:
    """The modules of a sequence, including nested sequences."""
    if type(module).__name__ != "Sequential":
        return [module]
    return [inner for child in module for inner in _flat(child)]


def _weights(layer: Any, normalization: Any) -> tuple[Floats, Floats]:
    """Weight and bias of a linear layer, which may lack a bias, after a trained batch normalization.

    ``W (scale * x + shift) + b`` is ``(W * scale) x + (b + W shift)`` (Ioffe and Szegedy 2015).
    """
    weight = _array(layer.weight)
    bias = np.zeros(len(weight)) if layer.bias is None else _array(layer.bias)
    if normalization is not None:
        scale = 1.0 / np.sqrt(_array(normalization.ra_var) + normalization.eps)
        scale *= _array(normalization.scale)
        shift = _array(normalization.bias) - scale * _array(normalization.ra_mean)
        weight, bias = weight * scale, bias + weight @ shift
    return weight.astype(np.float32), bias.astype(np.float32)


def _array(tensor: Any) -> npt.NDArray[np.float64]:
    return np.asarray(tensor.detach().cpu().double().numpy())
