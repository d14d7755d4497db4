"""skrl around our environments, as its users write it: its wrapper finds out what they are, and its PPO trains."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import gym_dr
from gym_dr.envs.family import ENVIRONMENTS

pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("ignore")]

LANDER = "gym_dr/LunarLanderDR-v3"


@pytest.mark.parametrize("env_id", [*ENVIRONMENTS])
def test_its_wrapper_takes_every_environment_for_gymnasiums(env_id: str) -> None:
    from skrl.envs.wrappers.torch import wrap_env

    for env, count in ((gym.make_vec(env_id, 3), 3), (gym.make(env_id), 1), (gym.make(env_id).unwrapped, 1)):
        wrapped: Any = wrap_env(env, verbose=False)
        assert type(wrapped).__name__ == "GymnasiumWrapper"
        assert wrapped.reset()[0].shape[0] == wrapped.num_envs == count
        wrapped.close()


def test_ppo_trains_on_native_environments_in_our_wrappers(tmp_path: Path) -> None:
    import torch
    from skrl.agents.torch.ppo import PPO, PPO_CFG
    from skrl.envs.wrappers.torch import wrap_env
    from skrl.memories.torch import RandomMemory
    from skrl.models.torch import CategoricalMixin, DeterministicMixin, Model
    from skrl.trainers.torch import SequentialTrainer

    class Actor(CategoricalMixin, Model):  # type: ignore[misc]  # skrl may not be installed
        def __init__(self, **spaces: Any) -> None:
            Model.__init__(self, **spaces)
            CategoricalMixin.__init__(self)
            self.net = torch.nn.Linear(self.num_observations, self.num_actions)

        def compute(self, inputs: Any, role: str) -> Any:
            return self.net(inputs["observations"]), {}

    class Critic(DeterministicMixin, Model):  # type: ignore[misc]
        def __init__(self, **spaces: Any) -> None:
            Model.__init__(self, **spaces)
            DeterministicMixin.__init__(self)
            self.net = torch.nn.Linear(self.num_observations, 1)

        def compute(self, inputs: Any, role: str) -> Any:
            return self.net(inputs["observations"]), {}

    records: list[Any] = []
    envs = gym.make_vec(LANDER, 4, autoreset_mode="SameStep", max_episode_steps=40)
    env: Any = wrap_env(gym_dr.RecordEpisodes(gym_dr.DrawContext(envs, "observation"), records.append), verbose=False)
    spaces = {"observation_space": env.observation_space, "action_space": env.action_space, "device": env.device}
    models = {"policy": Actor(**spaces), "value": Critic(**spaces)}
    before = models["policy"].net.weight.clone()
    cfg = PPO_CFG(rollouts=32, learning_epochs=2, mini_batches=2)
    cfg.experiment.directory, cfg.experiment.write_interval, cfg.experiment.checkpoint_interval = str(tmp_path), 0, 0
    memory = RandomMemory(memory_size=32, num_envs=env.num_envs, device=env.device)
    agent = PPO(models=models, memory=memory, cfg=cfg, **spaces)
    how = {"timesteps": 128, "headless": True, "disable_progressbar": True}  # it would render otherwise, at each step
    SequentialTrainer(env=env, agents=agent, cfg=how).train()
    assert not torch.equal(before, models["policy"].net.weight)
    assert len(records) >= 4
    assert len({record.params["gravity"] for record in records}) == len(records)


def test_the_example_trains_on_the_go1(tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "go1_skrl.py"
    assert len(example.read_text().splitlines()) <= 120
    agent = runpy.run_path(str(example))["main"](2, 16, str(tmp_path))
    assert (agent.policy.log_std != -0.7).any()
    assert agent.cfg.time_limit_bootstrap
