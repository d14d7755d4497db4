from __future__ import annotations

import tracemalloc
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from gym_dr import (
    Bernoulli,
    Disturb,
    DisturbVector,
    DrawContext,
    EpisodeRecord,
    Integer,
    RecordEpisodes,
    ResampleParams,
    Uniform,
    VectorParams,
)
from gym_dr.envs.stack import pushed_layer
from gym_dr.errors import EnvStateError, InvalidActionError, RandomizationError, UnknownNameError
from gym_dr.randomization.sampler import draw
from gym_dr.testing.playing import assert_same
from gym_dr.wrappers.disturbances import DISTURBANCES
from gym_dr.wrappers.disturbed_space import possible_disturbances
from tests.wrappers.plain_disturb import PlainDisturb

NEXT, SAME, OFF = AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED
LANDER = "gym_dr/LunarLanderContinuousDR-v3"
ALL: dict[str, Any] = {
    "obs_noise": (0.0, 0.1),
    "obs_bias": (0.0, 0.1),
    "obs_delay": Integer(0, 3),
    "obs_drop": (0.0, 0.5),
    "obs_drop:1": (0.0, 0.9),
    "obs_hide:0": Bernoulli(0.5),
    "obs_offset:1": (-0.5, 0.5),
    "action_noise": (0.0, 0.3),
    "action_delay": Integer(0, 3),
    "action_drop": (0.0, 0.5),
    "action_gain": (0.0, 0.3),
    "action_gain_interval": Integer(0, 3),
    "push_speed": (0.0, 0.5),
    "push_probability": (0.0, 0.5),
    "push_interval": Integer(0, 9),
}


class Tape(gym.Env[Any, Any]):
    """Observes 10 x episode + step and writes down the actions that it gets; episodes of ``length`` steps."""

    observation_space = gym.spaces.Box(-1e6, 1e6, (1,))
    action_space = gym.spaces.Box(-1e6, 1e6, (1,))

    def __init__(self, length: int = 4) -> None:
        self.length, self.number, self.time = length, 0, 0

    def observe(self) -> Any:
        return np.array([10 * self.number + self.time], np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.np_random  # noqa: B018  makes the generator and its seed
        self.number, self.time = self.number + 1, 0
        return self.observe(), {"got": -1.0}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.time += 1
        return self.observe(), 0.0, self.time == self.length, False, {"got": float(np.ravel(action)[0])}


def tapes(mode: AutoresetMode, *lengths: int) -> Any:
    return SyncVectorEnv([partial(Tape, length) for length in lengths], autoreset_mode=mode)


def ended(result: Any) -> Any:
    return result[2] | result[3]


def got(info: dict[str, Any], i: int) -> float:
    """What the environment was given; with SAME_STEP an episode's last action is in the final info."""
    final = info.get("final_info", {})
    return float(final["got"][i] if "got" in final and final["_got"][i] else info["got"][i])


# Episodes of 4 steps; actions are 1, 2, 3, ...; delays 0 and 2. With delay 2 nothing has arrived in the first two steps
# of an episode (0), then what was sent two steps before. -1: the step was a reset.
ACTION_TABLES = {
    NEXT: ([1, 2, 3, 4, -1, 6, 7, 8, 9], [0, 0, 1, 2, -1, 0, 0, 6, 7]),
    SAME: ([1, 2, 3, 4, 5, 6, 7, 8, 9], [0, 0, 1, 2, 0, 0, 5, 6, 0]),
    OFF: ([1, 2, 3, 4, 5, 6, 7, 8, 9], [0, 0, 1, 2, 0, 0, 5, 6, 0]),
}


@pytest.mark.parametrize("mode", [NEXT, SAME, OFF])
def test_actions_arrive_late_and_never_in_the_next_episode(mode: AutoresetMode) -> None:
    for column, delay in enumerate((0, 2)):
        envs = DisturbVector(tapes(mode, 4), {"action_delay": delay})
        envs.reset(seed=0)
        arrived = []
        for t in range(1, 10):
            result = envs.step(np.full((1, 1), t, np.float32))
            arrived.append(got(result[-1], 0))
            if mode == OFF and ended(result).any():
                envs.reset(options={"reset_mask": ended(result)})
        assert arrived == ACTION_TABLES[mode][column]


# Delay 2; what is: 10 at the reset, 11 to 14, then the next episode from 20 on. The first observation is seen until the
# second one is two steps old.
OBSERVATION_TABLES = {
    NEXT: ([10, 10, 11, 12, 20, 20, 20, 21, 22, 30], {}),
    SAME: ([10, 10, 11, 20, 20, 20, 21, 30, 30, 30], {3: 12, 7: 22}),
    OFF: ([10, 10, 11, 12, 20, 20, 21, 22, 30, 30], {}),
}


@pytest.mark.parametrize("mode", [NEXT, SAME, OFF])
def test_observations_are_seen_late_and_never_those_of_the_episode_before(mode: AutoresetMode) -> None:
    envs = DisturbVector(tapes(mode, 4), {"obs_delay": 2})
    assert envs.reset(seed=0)[0].tolist() == [[10]]
    seen, final = [], {}
    for t in range(10):
        result = envs.step(np.zeros((1, 1), np.float32))
        seen.append(result[0][0, 0])
        if "final_obs" in result[-1]:
            final[t] = result[-1]["final_obs"][0][0]
        if mode == OFF and ended(result).any():
            number = 10 * (2 + t // 4)
            assert envs.reset(options={"reset_mask": ended(result)})[0].tolist() == [[number]]
    assert (seen, final) == OBSERVATION_TABLES[mode]


def test_a_dropped_action_leaves_the_one_before_in_force() -> None:
    envs = DisturbVector(tapes(NEXT, 1000), {"action_drop": 0.5})
    envs.reset(seed=0)
    arrived = [0.0]
    for t in range(1, 400):
        arrived.append(got(envs.step(np.full((1, 1), t, np.float32))[-1], 0))
    dropped = [t for t in range(1, 400) if arrived[t] != t]
    assert all(arrived[t] == arrived[t - 1] for t in dropped)
    assert 150 < len(dropped) < 250  # 200 expected, standard deviation 10


def test_noise_and_bias_have_the_size_that_was_asked_for() -> None:
    envs = DisturbVector(
        tapes(NEXT, *[100] * 200), {"obs_noise": 0.5, "obs_bias": 2.0, "action_noise": 3.0}, obs_scale=0.1
    )
    envs.reset(seed=0)
    errors, actions = [], []
    for t in range(1, 51):
        observations, *_, info = envs.step(np.zeros((200, 1), np.float32))
        errors.append(observations[:, 0] - (10 + t))
        actions.append(info["got"])
    table = np.array(errors)  # (50, 200)
    # over an episode the bias stays and the noise does not
    assert np.std(table - table.mean(axis=0)) == pytest.approx(0.05, rel=0.05)
    assert np.std(table.mean(axis=0)) == pytest.approx(0.2, rel=0.2)
    assert np.std(actions) == pytest.approx(3.0, rel=0.05)
    assert abs(np.corrcoef(table[0] - table.mean(axis=0), table[1] - table.mean(axis=0))[0, 1]) < 0.3


def results_of(envs: Any, steps: int = 30) -> list[Any]:
    rng = np.random.default_rng(0)
    found: list[Any] = [envs.reset(seed=[3, 4, 5])]
    low, high = envs.single_action_space.low, envs.single_action_space.high
    for _ in range(steps):
        actions = rng.uniform(low, high, envs.action_space.shape).astype(envs.action_space.dtype)
        found.append(envs.step(actions))
        if envs.metadata["autoreset_mode"] == OFF and ended(found[-1]).any():
            found.append(envs.reset(options={"reset_mask": ended(found[-1])}))
    return found


@pytest.mark.parametrize(
    ("env_id", "mode", "atol"),
    [
        (LANDER, NEXT, 0.0),
        (LANDER, SAME, 0.0),
        (LANDER, OFF, 0.0),
        ("gym_dr/AntDR-v5", SAME, 1e-9),
    ],
)
def test_single_sync_and_native_are_disturbed_alike(env_id: str, mode: AutoresetMode, atol: float) -> None:
    kwargs = {"max_episode_steps": 12}

    def single() -> Any:
        return Disturb(gym.make(env_id, **kwargs), ALL, obs_scale=0.5)

    native = gym.make_vec(env_id, 3, autoreset_mode=mode, **kwargs)
    sync = gym.make_vec(env_id, 3, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode}, **kwargs)
    first = results_of(DisturbVector(native, ALL, obs_scale=0.5))
    for other in (DisturbVector(sync, ALL, obs_scale=0.5), SyncVectorEnv([single] * 3, autoreset_mode=mode)):
        assert_same(first, results_of(other), atol)


def test_pushed_landers_stay_equal_to_box2d_until_they_are_down() -> None:
    rules = {"push_speed": (0.0, 2.0), "push_probability": (0.0, 0.2), "action_delay": Integer(0, 3)}
    native = results_of(DisturbVector(gym.make_vec(LANDER, 3), rules), 300)
    sync = results_of(DisturbVector(gym.make_vec(LANDER, 3, vectorization_mode="sync"), rules), 300)
    assert sum(result[2].sum() for result in native[1:]) >= 3  # episodes that ended on the ground
    assert_same(native, sync)


@pytest.mark.parametrize("env_id", ["gym_dr/CartPoleDR-v1", "gym_dr/HopperDR-v5", LANDER])
@pytest.mark.parametrize("made", ["single", "native"])
def test_a_push_of_the_wrong_shape_or_without_a_number_is_refused(env_id: str, made: str) -> None:
    env: Any = pushed_layer(gym.make(env_id)) if made == "single" else gym.make_vec(env_id, 1)
    env.reset(seed=1)
    where = () if made == "single" else ([0],)
    for velocity in (np.zeros(5), np.full(env.push_size, np.nan), 1.0):
        given = velocity if made == "single" else np.asarray(velocity)[None]
        with pytest.raises(InvalidActionError, match=r"Expected (finite )?velocities"):
            env.push(given, *where)


def test_a_push_of_the_lander_adds_its_velocity() -> None:
    envs: Any = gym.make_vec(LANDER, 2, randomization="none")
    envs.reset(seed=1)
    after = envs.step(np.zeros((2, 2), np.float32))[0]
    envs.reset(seed=1)
    envs.push(np.array([[0.5, -0.25]]), np.array([1]))
    pushed = envs.step(np.zeros((2, 2), np.float32))[0]
    np.testing.assert_array_equal(pushed[0], after[0])
    # Gymnasium scales velocities by 10 / 50 horizontally and 6.67 / 50 vertically (half width and height of the view)
    np.testing.assert_allclose((pushed - after)[1, 2:4], [0.5 * 10 / 50, -0.25 * (400 / 30 / 2) / 50], atol=1e-4)


def test_the_wrappers_draws_are_keyed_and_change_no_other() -> None:
    plain = gym.make_vec(LANDER, 3, max_episode_steps=5)
    envs = DisturbVector(gym.make_vec(LANDER, 3, max_episode_steps=5), ALL)
    results = results_of(envs, 14)
    for a, b in zip(results_of(plain, 14), results, strict=True):
        for name in ("gravity", "wind_power"):
            np.testing.assert_array_equal(a[-1]["params"][name], b[-1]["params"][name])
    # the third episodes, from seeds 3, 4 and 5
    values = draw(envs.disturbances, DISTURBANCES, np.array([3, 4, 5], np.uint64), 2)
    assert {"obs_noise", "action_delay"} < values.keys()
    for name, column in values.items():
        np.testing.assert_array_equal(results[-1][-1]["params"][name], column)


def test_the_sub_environments_are_asked_for_their_parameters_once(monkeypatch: pytest.MonkeyPatch) -> None:
    envs = DisturbVector(SyncVectorEnv([lambda: gym.make("gym_dr/CartPoleDR-v1")] * 2), {"obs_noise": (0.0, 0.1)})
    asked: list[str] = []
    call = SyncVectorEnv.call
    monkeypatch.setattr(SyncVectorEnv, "call", lambda self, name, *a: [asked.append(name), call(self, name, *a)][1])
    for _ in range(3):
        assert {"gravity", "obs_noise"} <= set(envs.param_space)
        assert "obs_noise" in envs.randomization
    assert len(asked) == len(set(asked)) > 0


def test_adding_a_disturbance_or_sub_environments_changes_no_noise() -> None:
    def errors(num_envs: int, rules: dict[str, Any]) -> Any:
        envs = DisturbVector(tapes(NEXT, *[5] * num_envs), rules)
        envs.reset(seed=7)
        return np.array([envs.step(np.zeros((num_envs, 1), np.float32))[0][:2] for _ in range(12)])

    rules = {"obs_noise": (0.1, 0.3)}
    expected = errors(2, rules)
    np.testing.assert_array_equal(errors(4, rules), expected)
    np.testing.assert_array_equal(errors(2, {**rules, "action_noise": 0.5, "action_drop": 0.5}), expected)
    assert len(np.unique(expected - np.round(expected))) > 20  # not one number for all


def test_exact_values_go_to_whom_they_belong() -> None:
    envs = DisturbVector(gym.make_vec(LANDER, 2), {"obs_noise": (0, 1)})
    _, info = envs.reset(seed=1, options={"params": {"gravity": -3.0, "obs_noise": [0.25, 0.5]}})
    assert info["params"]["gravity"].tolist() == [-3.0, -3.0]
    assert info["params"]["obs_noise"].tolist() == [0.25, 0.5]
    env = Disturb(gym.make(LANDER), {"obs_noise": (0, 1)})
    assert env.reset(options={"params": {"gravity": -3.0, "obs_noise": 0.25}})[1]["params"]["obs_noise"] == 0.25


def test_exact_values_of_disturbances_that_do_not_vary_are_refused() -> None:
    options: Any = {"params": {"obs_delay": 2}}
    single = gym.make("CartPole-v1")
    modes = [gym.make_vec("CartPole-v1", 2, vectorization_mode=mode) for mode in ("sync", "vector_entry_point")]
    wrapped: list[Any] = [
        Disturb(single, {"obs_noise": 0.1}),
        *(DisturbVector(envs, {"obs_noise": 0.1}) for envs in modes),
    ]
    for env in wrapped:
        with pytest.raises(RandomizationError, match=r"'obs_delay': expected .*obs_noise"):
            env.reset(seed=1, options=options)
    inside: list[Any] = [
        Disturb(Disturb(single, {"obs_delay": 0}), {"obs_noise": 0.1}),
        DisturbVector(DisturbVector(modes[0], {"obs_delay": 0}), {"obs_noise": 0.1}),
    ]
    for env in inside:
        assert np.all(env.reset(seed=1, options=options)[1]["params"]["obs_delay"] == 2)


def test_other_wrappers_see_the_wrappers_values() -> None:
    records: list[EpisodeRecord] = []
    envs: Any = gym.make_vec(LANDER, 2, vectorization_mode="sync", max_episode_steps=5, randomization="default")
    envs = DisturbVector(ResampleParams(VectorParams(envs), rollout_steps=10), {"obs_noise": (0, 1)})
    envs = DrawContext(RecordEpisodes(envs, records.append), "hidden")
    results_of_two(envs)
    assert len(records) == 4
    assert {record.params["obs_noise"] for record in records[:2]} != {0.0}
    assert {record.seed for record in records} == {3, 4}


def results_of_two(envs: Any) -> None:
    envs.reset(seed=3)
    for _ in range(12):
        info = envs.step(np.zeros((2, 2), np.float32))[-1]
    assert "params" not in info


def test_observation_spaces_and_specs_are_right() -> None:
    env = Disturb(gym.make("Pendulum-v1"), {"obs_noise": Uniform(0, 0.1), "action_delay": Integer(0, 2)})
    assert env.observation_space == gym.spaces.Box(-np.inf, np.inf, (3,))
    observation, _ = env.reset(seed=1)
    assert observation in env.observation_space
    assert observation.dtype == np.float32
    assert env.spec is not None
    again = gym.make(EnvSpec.from_json(env.spec.to_json()))
    np.testing.assert_array_equal(again.reset(seed=1)[0], env.reset(seed=1)[0])
    delayed = DisturbVector(gym.make_vec(LANDER, 2), {"obs_delay": 2})
    assert delayed.observation_space == gym.make_vec(LANDER, 2).observation_space
    assert DisturbVector(gym.make_vec(LANDER, 2), {"obs_bias": 2}).observation_space.shape == (2, 8)


def test_discrete_actions_can_be_late() -> None:
    envs = DisturbVector(gym.make_vec("gym_dr/LunarLanderDR-v3", 2, randomization="none"), {"action_delay": 1})
    plain = gym.make_vec("gym_dr/LunarLanderDR-v3", 2, randomization="none")
    envs.reset(seed=1)
    plain.reset(seed=1)
    for given, arriving in zip((2, 3, 1), (0, 2, 3), strict=True):
        late, now = envs.step(np.full(2, given)), plain.step(np.full(2, arriving))
        np.testing.assert_array_equal(late[0], now[0])


@pytest.mark.parametrize(
    ("error", "env_id", "rules", "scale"),
    [
        (UnknownNameError, LANDER, {"obs_nose": 0.1}, 1.0),
        (UnknownNameError, LANDER, "noisy", 1.0),
        (RandomizationError, LANDER, {"obs_noise": -0.1}, 1.0),
        (RandomizationError, LANDER, {"action_delay": (0, 3)}, 1.0),  # Uniform gives no whole numbers
        (RandomizationError, LANDER, {"action_delay": Integer(-1, 3)}, 1.0),
        (RandomizationError, LANDER, {"action_drop": 1.5}, 1.0),
        (RandomizationError, "gym_dr/LunarLanderDR-v3", {"action_noise": 0.1}, 1.0),  # choices take no noise
        (RandomizationError, "gym_dr/LunarLanderDR-v3", {"action_gain": 0.1}, 1.0),  # nor gains
        (RandomizationError, "Pendulum-v1", {"push_speed": 0.1, "push_probability": 1.0}, 1.0),
        (RandomizationError, LANDER, {"obs_noise": 0.1}, [1.0, 2.0]),
        (RandomizationError, LANDER, {"obs_noise": 0.1}, float("nan")),
        (RandomizationError, LANDER, {"push_speed": 0.1}, 1.0),  # how often?
    ],
)
def test_impossible_disturbances_are_refused(error: type[Exception], env_id: str, rules: Any, scale: Any) -> None:
    with gym.make(env_id) as env, pytest.raises(error):
        Disturb(env, rules, scale)
    envs = gym.make_vec(env_id, 2)
    with pytest.raises(error):
        DisturbVector(envs, rules, scale)


class OtherTape(Tape):
    """Observes something else than a vector: a dictionary, a tuple or a picture."""

    def __init__(self, kind: str, length: int = 4) -> None:
        super().__init__(length)
        picture, number = gym.spaces.Box(0, 255, (2, 2, 3), np.uint8), Tape.observation_space
        spaces = {"picture": picture, "number": number}
        self.kind = kind
        self.observation_space = {
            "dictionary": gym.spaces.Dict(spaces),
            "tuple": gym.spaces.Tuple(spaces.values()),
            "picture": picture,
        }[kind]

    def observe(self) -> Any:
        picture, number = np.full((2, 2, 3), 10 * self.number + self.time, np.uint8), super().observe()
        return {"dictionary": {"picture": picture, "number": number}, "tuple": (picture, number)}.get(
            self.kind, picture
        )


@pytest.mark.parametrize("kind", ["dictionary", "tuple", "picture"])
def test_observations_of_any_kind_pass_where_only_actions_are_disturbed(kind: str) -> None:
    env, twin = Disturb(OtherTape(kind), {"action_delay": 2, "action_noise": 0.0}), OtherTape(kind)
    assert env.observation_space == twin.observation_space
    assert_same(env.reset(seed=1)[0], twin.reset(seed=1)[0])
    for t, arriving in enumerate([0, 0, 1, 2], 1):
        observation, *_, info = env.step(np.full(1, t, np.float32))
        assert_same(observation, twin.step(np.zeros(1))[0])
        assert info["got"] == arriving
    assert "action_delay" in {param.name for param in possible_disturbances(env)}


@pytest.mark.parametrize("mode", [NEXT, SAME, OFF])
@pytest.mark.parametrize("kind", ["dictionary", "tuple", "picture"])
def test_vectors_of_observations_of_any_kind_pass_too(kind: str, mode: AutoresetMode) -> None:
    twin = SyncVectorEnv([partial(OtherTape, kind)] * 2, autoreset_mode=mode)
    envs = DisturbVector(SyncVectorEnv([partial(OtherTape, kind)] * 2, autoreset_mode=mode), {"action_delay": 2})
    assert envs.observation_space == twin.observation_space
    assert_same(envs.reset(seed=1)[0], twin.reset(seed=1)[0])
    for t, arriving in enumerate(ACTION_TABLES[mode][1], 1):
        result, expected = envs.step(np.full((2, 1), t, np.float32)), twin.step(np.zeros((2, 1), np.float32))
        assert_same(result[0], expected[0])
        assert_same(result[-1].get("final_obs"), expected[-1].get("final_obs"))
        assert got(result[-1], 0) == arriving
        if mode == OFF and ended(result).any():
            for each in (envs, twin):
                each.reset(options={"reset_mask": ended(result)})


@pytest.mark.parametrize("kind", ["dictionary", "tuple", "picture"])
def test_disturbances_of_observations_that_are_no_vectors_are_refused(kind: str) -> None:
    with pytest.raises(RandomizationError, match="obs_noise: expected observations in a Box of floating-point numbers"):
        Disturb(OtherTape(kind), {"action_delay": 2, "obs_noise": 0.1})
    with pytest.raises(RandomizationError, match="obs_noise: expected observations in a Box of floating-point numbers"):
        DisturbVector(SyncVectorEnv([partial(OtherTape, kind)]), {"obs_noise": 0.1})


def test_pushes_through_pipes_are_refused_with_the_way_out() -> None:
    envs = gym.make_vec(LANDER, 1, vectorization_mode="async")
    with pytest.raises(RandomizationError, match="wrap each sub-environment in Disturb"):
        DisturbVector(envs, {"push_speed": 0.1, "push_probability": Bernoulli(0.5)})
    envs.close()


class WideTape(Tape):
    """Two numbers instead of one."""

    observation_space = gym.spaces.Box(-1e6, 1e6, (2,))
    action_space = gym.spaces.Box(-2, 1e6, (2,))

    def observe(self) -> Any:
        return np.array([self.number, self.time], np.float32)


def random_calls(envs: Any, mode: AutoresetMode, steps: int) -> list[Any]:
    """Steps between which episodes end, some sub-environments are reset, seeded anew and given longer delays."""
    rng, found = np.random.default_rng(0), [envs.reset(seed=11)]
    for t in range(steps):
        result = envs.step(rng.normal(size=(4, 2)).astype(np.float32))
        found.append((*result[:4], [got(result[-1], i) for i in range(4)], result[-1].get("final_obs")))
        if mode == OFF and ended(result).any():
            found.append(envs.reset(options={"reset_mask": ended(result)})[0])
        elif t % 7 == 3:
            mask = rng.random(4) < 0.5
            mask[t % 4] = True
            exact = {"obs_delay": int(rng.integers(0, 12)), "action_delay": int(rng.integers(0, 12))}
            seed = t if t % 2 else None
            found.append(envs.reset(seed=seed, options={"reset_mask": mask, "params": exact})[0][mask])
    return found


@pytest.mark.parametrize("mode", [NEXT, SAME, OFF])
def test_many_sub_environments_equal_the_plain_formula_bit_for_bit(mode: AutoresetMode) -> None:
    rules = {name: rule for name, rule in ALL.items() if not name.startswith("push")}
    lengths = (3, 5, 20, 40)

    def plain(length: int) -> Any:
        return PlainDisturb(WideTape(length), rules, [0.5, 2.0])

    many = SyncVectorEnv([partial(WideTape, length) for length in lengths], autoreset_mode=mode)
    results = random_calls(DisturbVector(many, rules, [0.5, 2.0]), mode, 50)
    expected = random_calls(SyncVectorEnv([partial(plain, n) for n in lengths], autoreset_mode=mode), mode, 50)
    assert_same(results[0][0], expected[0][0])
    assert_same(results[1:], expected[1:])


def test_memory_does_not_grow_with_steps() -> None:
    class Large(Tape):
        observation_space = gym.spaces.Box(-1e6, 1e6, (10_000,))  # 40 kB

        def observe(self) -> Any:
            return np.full(10_000, self.time, np.float32)

    env = Disturb(Large(10_000), {"obs_delay": 3, "obs_noise": 0.1})
    env.reset(seed=0)
    sizes = []
    tracemalloc.start()
    for _ in range(3):
        for _ in range(50):
            env.step(np.zeros(1, np.float32))
        sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert sizes[2] - sizes[0] < 40_000


def test_a_finished_episode_must_be_reset_where_nobody_else_does() -> None:
    envs = DisturbVector(tapes(OFF, 1, 5), {"obs_delay": 1})
    envs.reset(seed=1)
    envs.step(np.zeros((2, 1), np.float32))
    with pytest.raises(EnvStateError, match="reset_mask"):
        envs.step(np.zeros((2, 1), np.float32))
