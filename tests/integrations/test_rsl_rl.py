"""rsl_rl's runner around native environments, as in the example: groups of observations, and what ends an episode."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
import torch

pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("ignore")]

EXAMPLE = Path(__file__).parents[2] / "examples" / "go1_rsl_rl.py"


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    assert len(EXAMPLE.read_text().splitlines()) <= 120
    return runpy.run_path(str(EXAMPLE))


def test_the_example_trains_and_writes_its_models(example: dict[str, Any], tmp_path: Path) -> None:
    runner = example["main"](3, 16, str(tmp_path))
    assert (tmp_path / "model_2.pt").is_file()
    actor, critic = runner.alg.actor, runner.alg.critic
    assert (actor.obs_normalizer.mean != 0).any()
    _, info = runner.env.envs.reset()
    drawn = {name for name in info["params"] if not name.startswith("_")}
    assert {"body_mass:trunk", "push_speed"} <= drawn
    assert critic.obs_dim - actor.obs_dim == len(drawn)  # the draw, for the critic alone


def test_time_limits_are_told_apart_from_falls(example: dict[str, Any]) -> None:
    env, found = example["Go1"](16), set()
    torch.manual_seed(1)
    for _ in range(500):
        steps = env.episode_length_buf + 1
        # half of them trot on the spot, and one or two do not fall; the others fall
        actions = torch.cat([torch.zeros(8, 12), torch.randn(1) * torch.ones(8, 12)])
        observations, _, dones, extras = env.step(actions)
        assert torch.equal(extras["time_outs"], steps == 500)
        assert torch.equal(env.episode_length_buf == 0, dones)
        found |= {*extras["time_outs"][dones].tolist()}
    assert found == {True, False}
    assert observations["policy"].dtype == observations["draw"].dtype == torch.float32


def test_the_draw_of_the_critic_changes_with_the_episode_alone(example: dict[str, Any]) -> None:
    env = example["Go1"](4)
    draws = [env.get_observations()["draw"]]
    for _ in range(60):
        observations, _, dones, _ = env.step(torch.randn(4, 12))
        same = (observations["draw"] == draws[-1]).all(1)
        assert torch.equal(same, ~dones)
        draws.append(observations["draw"])
    assert any(not torch.equal(draws[0], later) for later in draws)
