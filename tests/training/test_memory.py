"""Policies that remember: what they learn from is what they did, and nothing crosses the start of an episode."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gym_dr.envs.stack import supports
from gym_dr.training import a2c, epochs, ppo
from gym_dr.training import rollout as rollout_module
from gym_dr.training.actor_critic import ActorCritic
from gym_dr.training.batch import Sequences
from gym_dr.training.behavior import SMALL, CompiledBehavior, TorchBehavior
from gym_dr.training.config import A2CConfig, PPOConfig
from gym_dr.training.memory import LONGEST, GRUMemory
from gym_dr.training.rollout import Rollout, RolloutCollector
from tests.training.fake_session import FakeSession
from tests.training.rollouts import learned_as_torch_does, learned_from

CONFIG = PPOConfig(
    updates=3,
    rollout_steps=30,
    sequence_length=5,
    epochs=2,
    minibatches=3,
    hidden_sizes=(8,),
    memory="gru",
    memory_size=6,
    entropy_coef=0.1,
    lr=0.01,
    normalize_observations=False,
    normalize_rewards=False,
)
NUM_ENVS = 8

ACTORS: dict[str, tuple[str, dict[str, Any]]] = {
    "discrete": ("gym_dr/CartPoleDR-v1", {}),
    "continuous": ("gym_dr/InvertedPendulumDR-v5", {}),
    "deviation by observation": ("gym_dr/InvertedPendulumDR-v5", {"state_dependent_std": True}),
}
VARIANTS: dict[str, dict[str, Any]] = {
    "critic remembers": {},
    "critic observes the draw": {"critic_context": True},
    "normalized": {"normalize_observations": True, "normalize_rewards": True},
}


def make_envs(env_id: str, **kwargs: Any) -> Any:
    """Episodes of a few steps, of which some terminate and some are truncated."""
    return gym.make_vec(env_id, NUM_ENVS, max_episode_steps=10, **kwargs)


def shaken(agent: ActorCritic) -> ActorCritic:
    """An agent with other weights; the first ones of the last layers are near 0."""
    torch.manual_seed(2)
    remembering = [] if agent.critic_memory is None else [*agent.critic_memory.parameters()]
    with torch.no_grad():
        for parameter in [*agent.actor.parameters(), *agent.critic.parameters(), *remembering]:
            parameter += 0.2 * torch.randn(parameter.shape)
    return agent


def made(name: str, variant: str = "critic remembers", **changes: Any) -> tuple[ActorCritic, Any, PPOConfig]:
    env_id, options = ACTORS[name]
    config = replace(CONFIG, **{**options, **VARIANTS[variant], **changes})
    envs = make_envs(env_id)
    return shaken(ppo.make_agent(envs, config, 1, "cpu")), envs, config


def collected(agent: ActorCritic, envs: Any, config: PPOConfig) -> Rollout:
    collector = RolloutCollector(envs, config.rollout_steps, "cpu", agent.critic_context)
    collector.reset(seed=5)
    return collector.collect(agent.behavior)


# ---- The module


def test_orthogonal_units_have_orthogonal_gates_and_begin_with_memories_of_all_lengths() -> None:
    unit = GRUMemory(400, 400, "orthogonal").unit
    for gate in (*unit.weight_ih.chunk(3), *unit.weight_hh.chunk(3)):
        torch.testing.assert_close(gate @ gate.T, torch.eye(400), rtol=0.0, atol=1e-4)
    reset, keep, new = unit.bias_ih.chunk(3)
    assert not unit.bias_hh.any()
    assert not reset.any()
    assert not new.any()
    # of a state that is kept by a share z of the old one at each step, 1 / e is left after about z / (1 - z) steps
    kept = torch.sigmoid(keep.detach())
    steps = kept / (1.0 - kept)
    assert steps.min().item() == pytest.approx(1.0, abs=1.0)
    assert steps.max().item() == pytest.approx(LONGEST, abs=1.0)
    assert steps.mean().item() == pytest.approx(0.5 * (1.0 + LONGEST), abs=5.0)  # 5 standard errors are 4.5


# ---- What is learned from is what was done


def assert_learned_is_done(agent: ActorCritic, sequences: Any) -> None:
    assert isinstance(sequences, Sequences)
    part = agent.unrolled(sequences)
    with torch.no_grad():
        log_probs, _ = agent.actor.log_prob_and_entropy(part.observations, part.actions)
        values = agent.value(part.critic_inputs)
    torch.testing.assert_close(log_probs, part.log_probs, rtol=0.0, atol=1e-5)
    torch.testing.assert_close(values, part.returns - part.advantages, rtol=1e-5, atol=1e-5)


HOW = ["played in one call", "stepped", "by torch", "too large to be compiled"]
# every pair of an actor, a way and a variant; half are slow, but each actor, way and variant is in a quick one
LEARNED = [
    pytest.param(name, how, variant, marks=pytest.mark.slow if (i + j) % 2 else ())
    for i, name in enumerate(ACTORS)
    for j, how in enumerate(HOW)
    for k, variant in enumerate(VARIANTS)
    if (i + j - k) % 3 == 0
]


@pytest.mark.parametrize(("name", "how", "variant"), LEARNED)
def test_before_an_update_the_learner_finds_the_probabilities_and_values_of_acting(
    name: str, how: str, variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "stepped":
        monkeypatch.setattr(rollout_module, "supports", lambda envs, capability: False)
    agent, envs, config = made(name, variant, memory_size=128 if how == HOW[-1] else 6)
    if how == "by torch":
        agent.behavior = TorchBehavior(agent.actor, agent.generator, "cpu", NUM_ENVS)
    assert isinstance(agent.behavior, TorchBehavior if how in HOW[2:] else CompiledBehavior)
    assert supports(envs, "rollout")
    collector = RolloutCollector(envs, config.rollout_steps, "cpu", agent.critic_context)
    ends = np.zeros(4, np.bool_)
    for update in range(4):
        if update in (0, 3):
            collector.reset(seed=update)  # as a segment of the training does
        rollout = collector.collect(agent.behavior)
        assert rollout.memory is not None
        agent.observe_rewards(rollout, fresh=False)
        sequences = learned_from(agent, rollout, config)
        assert_learned_is_done(agent, sequences)
        ppo.learn(agent, sequences, config)
        agent.observe_observations(rollout)
        begins = rollout.memory.starts[:-1].view(-1, config.sequence_length, NUM_ENVS)
        ends |= [rollout.terminated.any(), rollout.truncated.any(), not rollout.valid.all(), bool(begins[:, 1:].any())]
    assert ends.all()  # the rollouts have ends of both kinds, reset steps, and starts within sequences
    envs.close()


def test_a_memory_is_carried_from_rollout_to_rollout() -> None:
    agent, envs, config = made("discrete", rollout_steps=10)
    whole = collected(agent, envs, replace(config, rollout_steps=20))
    assert whole.memory is not None
    agent, envs, config = made("discrete", rollout_steps=10)
    collector = RolloutCollector(envs, 10, "cpu")
    collector.reset(seed=5)
    agent.recall(collector.collect(agent.behavior))
    second = agent.recall(collector.collect(agent.behavior)).memory
    assert second is not None
    assert second.critic_states is not None
    critic_states = second.critic_states.clone()  # valid until the next call
    torch.testing.assert_close(second.states, whole.memory.states[10:], rtol=0.0, atol=0.0)
    torch.testing.assert_close(second.previous, whole.memory.previous[10:], rtol=0.0, atol=0.0)
    assert torch.equal(second.starts, whole.memory.starts[10:])
    expected = agent.recall(whole).memory  # the critic's state is now another one, which its first episodes forget
    assert expected is not None
    assert expected.critic_states is not None
    torch.testing.assert_close(critic_states, expected.critic_states[10:], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ACTORS)
def test_an_action_is_remembered_as_the_environment_takes_it(name: str) -> None:
    agent, envs, config = made(name)
    rollout = collected(agent, envs, config)
    assert rollout.memory is not None
    space = envs.single_action_space
    sent = agent.actor.to_env(rollout.actions)
    if isinstance(space, gym.spaces.Discrete):
        expected = np.eye(space.n, dtype=np.float32)[sent]
    else:  # -1 and 1 are its bounds
        expected = 2.0 * (sent - space.low) / (space.high - space.low) - 1.0
        assert (np.abs(expected) == 1.0).any()  # some were clipped
    begins = rollout.memory.starts[1:].numpy()
    previous = rollout.memory.previous[1:].numpy()
    np.testing.assert_allclose(previous[~begins], expected[~begins], atol=1e-6)
    assert not previous[begins].any()
    assert not rollout.memory.previous[0].any()
    envs.close()


# ---- Starts


def after_start(agent: ActorCritic, rollout: Rollout, config: PPOConfig, env: int, start: int) -> Any:
    """Log-probabilities and values from a step on, to the end of the rollout, of one sub-environment."""
    sequences = learned_from(agent, rollout, replace(config, gae_lambda=0.0))
    assert isinstance(sequences, Sequences)
    part = agent.unrolled(replace(sequences, kept=torch.ones_like(sequences.kept)))
    with torch.no_grad():
        found = torch.stack(
            [agent.actor.log_prob_and_entropy(part.observations, part.actions)[0], agent.value(part.critic_inputs)]
        )
    pieces = config.rollout_steps // config.sequence_length
    steps = found.view(2, config.sequence_length, pieces, NUM_ENVS).transpose(1, 2).flatten(1, 2)
    return steps[:, start:, env]


@functools.cache
def once_collected(name: str) -> tuple[ActorCritic, PPOConfig, Rollout]:
    agent, envs, config = made(name)
    return agent, config, collected(agent, envs, config)


@pytest.mark.parametrize("name", ACTORS)
@given(seed=st.integers(0, 1000))
@settings(max_examples=10, deadline=None)
def test_an_episode_says_nothing_about_the_next_one(name: str, seed: int) -> None:
    (agent, config, rollout), rng = once_collected(name), np.random.default_rng(seed)
    assert rollout.memory is not None
    row, env = rng.choice(np.argwhere(rollout.memory.starts[1:-1].numpy()))
    start = row + 1
    noise = torch.from_numpy(rng.standard_normal(rollout.observations.shape).astype(np.float32))
    noise[start:], noise[:, np.arange(NUM_ENVS) != env] = 0.0, 0.0
    memory = replace(
        rollout.memory,
        previous=rollout.memory.previous + noise[..., :1],
        states=rollout.memory.states + noise[:-1, :, :1],
    )
    # the sequence in which the episode starts begins before it, with a state that is changed as well
    changed = replace(rollout, observations=rollout.observations + noise, memory=memory)
    first, second = (after_start(agent, each, config, env, start) for each in (rollout, changed))
    assert torch.equal(first, second)


@pytest.mark.parametrize("kinds", [(CompiledBehavior,), ()], ids=["compiled", "torch"])
def test_reset_steps_change_no_loss_and_no_weight(kinds: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epochs, "CompiledBehavior", kinds)
    results = []
    for junk in (False, True):
        agent, envs, config = made("discrete")
        rollout = collected(agent, envs, config)
        assert rollout.memory is not None
        resets = ~rollout.valid
        assert resets.any()
        if junk:
            rollout.actions[resets] = 1 - rollout.actions[resets]
            rollout.log_probs[resets] = 3.0
            rollout.rewards[resets] = 100.0
            rollout.memory.states[resets] = 0.5
        results.append((ppo.learn(agent, learned_from(agent, rollout, config), config), agent.state()))
    assert results[0][0] == results[1][0]
    for name in ("actor", "critic", "critic_memory"):
        torch.testing.assert_close(results[0][1][name], results[1][1][name], rtol=0.0, atol=0.0)


# ---- Learning


LEARNING: dict[str, tuple[str, str, dict[str, Any]]] = {
    "discrete": ("discrete", "critic remembers", {}),
    "draw": ("continuous", "critic observes the draw", {}),
    "normalized": ("deviation by observation", "normalized", {}),
    "values clipped": ("discrete", "critic remembers", {"value_clip": 0.05}),
    # 48 sequences: more than go through at a time, and fewer than a minibatch each
    "one minibatch": ("discrete", "critic remembers", {"minibatches": 1}),
    "a sequence each": ("discrete", "critic remembers", {"minibatches": 100, "epochs": 1, "lr": 0.001}),
}


@pytest.mark.parametrize("name", LEARNING)
def test_compiled_gradients_through_time_are_those_of_torch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    actor, variant, changes = LEARNING[name]
    reference, envs, config = made(actor, variant, **changes)
    rollout = collected(reference, envs, config)

    def make() -> tuple[ActorCritic, Any, PPOConfig]:
        agent, _, _ = made(actor, variant, **changes)
        agent.observe_rewards(rollout, fresh=True)
        agent.observe_observations(rollout)
        sequences = learned_from(agent, rollout, config)
        assert isinstance(sequences, Sequences)
        shift = torch.linspace(-0.3, 0.3, sequences.log_probs.numel()).view_as(sequences.log_probs)
        # so that ratios are not 1, some clipped
        return agent, replace(sequences, log_probs=sequences.log_probs + shift), config

    assert all(0.0 < losses["clip_fraction"] < 1.0 for losses in learned_as_torch_does(ppo, make, monkeypatch))


def test_gradients_go_back_to_earlier_steps_of_an_episode_and_no_further() -> None:
    # one sequence of 5 steps, of which an episode starts at the third
    agent, envs, config = made("discrete", sequence_length=5)
    sequences = learned_from(agent, collected(agent, envs, config), config)
    assert isinstance(sequences, Sequences)
    one = sequences[:1]
    starts, kept = torch.zeros(5, 1, dtype=torch.bool), torch.zeros(5, 1, dtype=torch.bool)
    starts[2], kept[4] = True, True
    observations = one.observations.clone().requires_grad_()
    part = agent.unrolled(replace(one, observations=observations, starts=starts, kept=kept))
    part.observations[:, observations.shape[-1] :].sum().backward()  # what is remembered at the last step
    assert observations.grad is not None
    assert [bool(step.any()) for step in observations.grad] == [False, False, True, True, True]


class Cue(gym.Env[Any, Any]):
    """Shows 1 or -1 once, and rewards the action of that sign three steps later; other actions do not matter."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.cue, self.t = int(self.np_random.integers(2)), 0
        return np.array([2 * self.cue - 1, 0.0], np.float32), {}

    def step(self, action: Any) -> Any:
        self.t += 1
        asked = self.t == 4
        observation = np.array([0.0, float(self.t == 3)], np.float32)
        return observation, float(asked and action == self.cue), asked, False, {}


TRAININGS: dict[str, tuple[Callable[..., None], int, Any]] = {
    "ppo": (ppo.train, 16, replace(CONFIG, updates=25, rollout_steps=40, sequence_length=20, entropy_coef=0.01)),
    "a2c": (
        a2c.train,
        8,
        A2CConfig(
            updates=60,
            rollout_steps=40,
            sequence_length=20,
            hidden_sizes=(8,),
            memory="gru",
            memory_size=6,
            actor_lr=0.02,
            critic_lr=0.02,
            gamma=0.9,
            gae_lambda=0.9,
            entropy_coef=0.0,
        ),
    ),
}


@pytest.mark.parametrize("name", ["ppo", pytest.param("a2c", marks=pytest.mark.slow)])
def test_it_learns_to_answer_what_it_was_shown_before(name: str) -> None:
    train, num_envs, config = TRAININGS[name]
    session = FakeSession("")
    session._make = lambda: gym.vector.SyncVectorEnv([Cue] * num_envs)
    train(session, config)
    assert np.mean([episode.episode_return for episode in session.episodes[-200:]]) > 0.95  # half without memory
    assert sum(parameter.numel() for parameter in session.state["actor"].values()) < SMALL
