"""Exports a policy of a run or of Stable-Baselines3 as a file that runs without gym_dr."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from gym_dr.envs.family import interface_of
from gym_dr.envs.interface import Quantity
from gym_dr.errors import ConfigError, EnvStateError, as_path, needs
from gym_dr.integrations import onnx
from gym_dr.integrations.onnx import CHOICE, DIRECT, SCALED, GRUWeights, NetworkWeights
from gym_dr.integrations.sb3_network import weights_of_sb3
from gym_dr.integrations.sb3_policy import load_policy, read_saved
from gym_dr.options import expect
from gym_dr.policies.frozen import Draws, FrozenPolicy
from gym_dr.runs.folder import check_output, write_atomically
from gym_dr.version import __version__

if TYPE_CHECKING:
    from gym_dr.training.networks import Actor

SUFFIX = ".onnx"


def export_policy(policy: FrozenPolicy, output: str | Path) -> Path:
    """Writes a policy of a2c, ppo, reinforce, distill or Stable-Baselines3 as an ONNX file; see ``Run.export``.

    Raises:
        ConfigError: The file's name has another ending, a package is missing, or the policy is no network of linear
            layers.
        RunFolderError: The file cannot be written.
    """
    path = as_path(output)
    expect(path.suffix == SUFFIX, "`output`", f"a file that ends in {SUFFIX}", str(path))
    needs("An ONNX file", "onnx", "onnx")
    check_output(path)
    with contextlib.closing(policy.make_envs(Draws())) as envs:
        weights, about = _weights_of_any(policy, envs), _about(policy, envs)
    write_atomically(path, onnx.policy_file(weights, about))
    return path


def _weights_of_any(policy: FrozenPolicy, envs: Any) -> NetworkWeights:
    if policy.record["kind"] == "sb3":
        return weights_of_sb3(load_policy(read_saved(Path(policy.record["path"])), stochastic=False), envs)
    actor: Actor | None = getattr(policy.make(envs), "actor", None)
    if actor is None:
        raise ConfigError(
            f"{policy.source}: expected a policy of a2c, ppo, reinforce, distill or Stable-Baselines3, got one of "
            f"{policy.record['algorithm' if policy.run else 'kind']}, which does not say what its network is."
        )
    return weights_of(actor, envs)


def weights_of(actor: Actor, envs: Any) -> NetworkWeights:
    """The weights of an actor's deterministic policy."""
    from gym_dr.training.networks import (
        CategoricalActor,
        GaussianActor,
        activation_of,
        linear_layers,
        observation_size,
    )
    from gym_dr.training.normalization import NormalizeObservations

    inputs, first = observation_size(envs), actor.network[0]
    mean, std = np.zeros(inputs, np.float32), np.ones(inputs, np.float32)
    if isinstance(first, NormalizeObservations):
        columns = len(first.mean)
        mean[:columns], std[:columns] = _array(first.mean.float()), _array(first.std().float())
    if isinstance(actor, CategoricalActor):
        nothing = np.zeros(0, np.float32)
        bounds: dict[str, Any] = {"kind": CHOICE, "start": actor.start, "low": nothing, "high": nothing}
    else:
        kind = SCALED if isinstance(actor, GaussianActor) else DIRECT
        low, high = (np.asarray(end, np.float32) for end in (actor.space.low, actor.space.high))
        bounds = {"kind": kind, "low": low, "high": high}
    memory = None
    if actor.memory is not None:
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        memory = GRUWeights(**{name: _array(getattr(actor.memory.unit, name)) for name in names})
    return NetworkWeights(
        inputs=inputs,
        mean=mean,
        std=std,
        layers=[(_array(layer.weight), _array(layer.bias)) for layer in linear_layers(actor.network)],
        activation=activation_of(actor.network),
        mirror=actor.mirror,
        memory=memory,
        **bounds,
    )


def _array(tensor: Any) -> Any:
    return tensor.detach().cpu().numpy()


# ---- metadata of the file --------------------------------------------------------------------------------------------


def _about(policy: FrozenPolicy, envs: Any) -> dict[str, Any]:
    """Metadata of the file: its inputs and outputs with units and ranges, and the training draws."""
    observation, action = envs.single_observation_space, envs.single_action_space
    interface = interface_of(policy.env)
    plain = sum(quantity.size for quantity in interface.observation) if interface else 0
    seen = _entries(interface.observation if interface else (), plain) if plain <= observation.shape[0] else []
    about: dict[str, Any] = {
        "gym_dr": __version__,
        "env": policy.env,
        "algorithm": str(policy.record.get("algorithm")),
        "seed": policy.record.get("seed"),
        "observation": _with_bounds(seen, observation),
        "observes_past": vars(policy.frames),
        "observes_draw": {name: list(ends) for name, ends in (policy.context_ranges or {}).items()},
        "draw_span": policy.context_span,
        "randomization": policy.randomization.to_dict() if policy.randomization else {},
    }
    if isinstance(action, gym.spaces.Box):
        named = _entries(interface.actions if interface else (), action.shape[0])
        about["action"] = _with_bounds(named, action)
    else:
        meanings = [quantity.meaning for quantity in interface.actions] if interface else []
        about["action"] = [
            {"value": int(action.start) + k, **({"meaning": meanings[k]} if k < len(meanings) else {})}
            for k in range(int(action.n))
        ]
    if (step := _time_step(policy, envs)) is not None:
        about["time_step_seconds"] = step
    return about


def _entries(quantities: tuple[Quantity, ...], count: int) -> list[dict[str, Any]]:
    """One entry for each number of consecutive quantities, without empty texts; none if they are not ``count``."""
    entries = [
        {key: text for key, text in {"name": each.name, "meaning": each.meaning, "unit": each.unit}.items() if text}
        for each in quantities
        for _ in range(each.size)
    ]
    return entries if len(entries) == count else []


def _with_bounds(entries: list[dict[str, Any]], space: gym.spaces.Box) -> list[dict[str, Any]]:
    """One entry for each number of a space, with its range; infinite ends are left out."""
    padded = entries + [{} for _ in range(space.shape[0] - len(entries))]
    ends = zip(padded, space.low.tolist(), space.high.tolist(), strict=True)
    return [
        {**entry, **{key: end for key, end in (("low", low), ("high", high)) if np.isfinite(end)}}
        for entry, low, high in ends
    ]


def _time_step(policy: FrozenPolicy, envs: Any) -> float | None:
    """Seconds between two actions; None if the environment does not tell."""
    try:
        step: float | str | None = envs.unwrapped.replay().time_step
    except (AttributeError, EnvStateError):  # no native environment, or it cannot be replayed
        with contextlib.closing(gym.make(policy.env)) as env:
            fps = env.metadata.get("render_fps")  # a picture shows a step
            step = getattr(env.unwrapped, "dt", None if fps is None else 1.0 / fps)
    if isinstance(step, str):  # the parameter with this name
        return None if policy.space is None else policy.space[step].nominal
    return step
