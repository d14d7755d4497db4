"""The modes in which environments are made, and the register of the contracts that hold in each."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import gymnasium as gym

from gym_dr.envs.stack import pushed_layer
from gym_dr.errors import EnvStateError
from gym_dr.testing.playing import SEED, interface
from gym_dr.wrappers.vector_params import VectorParams

MODES = ("single", "sync", "async", "native")
VECTOR = MODES[1:]
NUM_ENVS = 3


@dataclass(frozen=True, kw_only=True)
class Mode:
    """An environment id and a way to make it."""

    env_id: str
    name: str  # one of MODES

    def make(self, num_envs: int = NUM_ENVS, **kwargs: Any) -> Any:
        """The environment; ``autoreset_mode`` is a keyword in every mode that has one."""
        if self.name == "single":
            return gym.make(self.env_id, **kwargs)
        if self.name == "native":
            return gym.make_vec(self.env_id, num_envs, vectorization_mode="vector_entry_point", **kwargs)
        given = {"autoreset_mode": kwargs.pop("autoreset_mode")} if "autoreset_mode" in kwargs else {}
        envs = gym.make_vec(self.env_id, num_envs, vectorization_mode=self.name, vector_kwargs=given, **kwargs)
        return VectorParams(envs)

    def single(self, question: Callable[[Any], bool]) -> bool:
        """The answer of a single environment of this id."""
        with contextlib.closing(gym.make(self.env_id)) as env:
            return question(env)

    @contextlib.contextmanager
    def opened(self, **kwargs: Any) -> Iterator[Any]:
        """``make`` as a context manager, which also ends worker processes that raised errors."""
        envs = self.make(**kwargs)
        try:
            yield envs
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Gymnasium reports their errors a second time
                envs.close(**({"terminate": True} if self.name == "async" else {}))


def gives_pictures(mode: Mode) -> bool:
    """Whether the environment renders pictures, which is optional for equations."""
    return mode.single(lambda env: "rgb_array" in env.metadata["render_modes"])


def takes_pushes(mode: Mode) -> bool:
    """Whether pushes change anything."""
    return mode.single(lambda env: getattr(pushed_layer(env), "push_size", 0) > 0)


def draws_parameters(mode: Mode) -> bool:
    """Whether the preset "default" varies anything."""
    return mode.single(lambda env: bool(interface(env).randomization))


def gives_state(mode: Mode) -> bool:
    """Whether the physics has a state to get, which is optional."""
    with mode.opened() as envs:
        envs.reset(seed=SEED)
        try:
            interface(envs).get_state()
        except (AttributeError, EnvStateError):
            return False
    return True


Contract = Callable[[Mode], None]
ENVIRONMENT_CONTRACTS: dict[str, list[Contract]] = {name: [] for name in MODES}


def promised(*modes: str, where: Callable[[Mode], bool] = lambda mode: True) -> Callable[[Contract], Contract]:
    """Registers a contract for these modes, and for the environments where ``where`` is true."""

    def register(contract: Contract) -> Contract:
        @functools.wraps(contract)
        def checked(mode: Mode) -> None:
            if where(mode):
                contract(mode)

        for name in modes:
            ENVIRONMENT_CONTRACTS[name].append(checked)
        return checked

    return register
