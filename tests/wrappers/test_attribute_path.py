from __future__ import annotations

from types import MappingProxyType, SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gym_dr import Param, ParamSpace, RandomizeAttributes
from gym_dr.errors import RandomizationError, UnknownNameError

WIND = 1.0  # as the physics of some environments


class Machine(gym.Env[Any, Any]):
    """Physics in all kinds of places."""

    observation_space = action_space = gym.spaces.Box(-1.0, 1.0, (1,))
    shared = {"mass": 1.0}
    module = np

    def __init__(self) -> None:
        self.config = {"speed": 1.0, "fleet": [{"mass": 1.0}], 'with "quotes"': 1.0}
        self.arm = SimpleNamespace(kp=np.ones(3, np.float32), _kd=1.0, mass=np.float32(1.0), count=np.int64(1))
        self.pair = (1.0, 1.0)
        self.frozen = MappingProxyType({"mass": 1.0})
        self.fixed = np.ones(2)
        self.fixed.flags.writeable = False

    @property
    def weight(self) -> float:
        return 1.0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}


def wrapped(env: Any, *names: str, kind: str = "float") -> Any:
    space = ParamSpace("Machine", [Param(name=name, nominal=1, low=0, high=9, kind=kind) for name in names])
    return RandomizeAttributes(env, dict.fromkeys(names, "integer:2:9" if kind == "int" else (2.0, 9.0)), space=space)


def test_a_path_leads_through_attributes_keys_and_places() -> None:
    names = ('config["speed"]', "config['fleet'][0][\"mass\"]", "arm.kp[-1]", "arm._kd", "arm.mass")
    env = wrapped(Machine(), *names)
    _, info = env.reset(seed=1)
    inner = env.unwrapped
    found = inner.config["speed"], inner.config["fleet"][0]["mass"], inner.arm.kp[2], inner.arm._kd, inner.arm.mass
    np.testing.assert_allclose(found, [info["params"][name] for name in names], rtol=1e-7)
    assert inner.arm.kp[:2].tolist() == [1.0, 1.0]


def test_numbers_of_numpy_keep_their_type() -> None:
    env, whole = wrapped(Machine(), "arm.mass"), wrapped(Machine(), "arm.count", kind="int")
    env.reset(seed=1)
    whole.reset(seed=1)
    assert type(env.unwrapped.arm.mass) is np.float32
    assert type(whole.unwrapped.arm.count) is np.int64


@pytest.mark.parametrize("name", ["arm.mas", "config['spede']", "arm.kp[3]", "weight.mass", "arm['mass']", "speed"])
def test_a_step_that_leads_nowhere_is_refused(name: str) -> None:
    with pytest.raises(UnknownNameError):
        wrapped(Machine(), name)


def test_what_exists_is_told() -> None:
    with pytest.raises(UnknownNameError, match=r"'speed'.*fleet, speed"):
        wrapped(Machine(), "config['sped']")


@pytest.mark.parametrize("name", ["WIND", "module.pi", "arm.__class__.mass", 'shared["mass"]'])
def test_what_all_environments_of_the_process_share_is_refused(name: str) -> None:
    with pytest.raises(RandomizationError, match="share"):
        wrapped(Machine(), name)


@pytest.mark.parametrize("name", ["pair[0]", "weight", 'frozen["mass"]', "fixed[0]"])
def test_what_cannot_be_set_is_refused(name: str) -> None:
    with pytest.raises(RandomizationError, match=name.partition("[")[0]):
        wrapped(Machine(), name)


@pytest.mark.parametrize("name", ["arm.mass()", "arm..mass", "arm.kp[0:1]", "arm.kp[i]", "body mass", "config[speed]"])
def test_what_is_no_path_is_refused(name: str) -> None:
    with pytest.raises(RandomizationError, match="path"):
        wrapped(Machine(), name)


def test_an_object_that_reset_makes_anew_loses_the_draw_unless_it_keeps_it() -> None:
    class Rebuilt(Machine):
        keeps = True

        def reset(self, **kwargs: Any) -> Any:
            self.arm = SimpleNamespace(mass=self.arm.mass if self.keeps else 1.0)
            return super().reset(**kwargs)

    env = wrapped(Rebuilt(), "arm.mass")
    for _ in range(2):
        assert env.reset()[1]["params"]["arm.mass"] == pytest.approx(env.unwrapped.arm.mass)
    env.unwrapped.keeps = False
    with pytest.raises(RandomizationError, match=r"reset of Rebuilt sets arm\.mass"):
        env.reset()


def test_a_whole_number_of_an_array_does_not_take_a_fraction() -> None:
    inner = Machine()
    inner.arm.kp = np.ones(3, np.int64)
    with pytest.raises(RandomizationError, match=r"arm.kp\[0\]"):
        wrapped(inner, "arm.kp[0]").reset(seed=1)
