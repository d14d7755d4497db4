"""Whatever users give is accepted and works, or refused by an error of ours with nothing changed."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import gym_dr
from gym_dr.cli.options import read_randomize
from gym_dr.envs.box2d.lunar_lander.params import LUNAR_LANDER
from gym_dr.errors import GymDrError, InvalidActionError
from gym_dr.randomization.distributions import DISTRIBUTIONS
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.sampler import draw
from tests.cli.command import files, gymdr
from tests.toml_text import toml_text

NUM_ENVS = 3
LANDER, CONTINUOUS, HOPPER = "gym_dr/LunarLanderDR-v3", "gym_dr/LunarLanderContinuousDR-v3", "gym_dr/HopperDR-v5"
# each example makes a few steps: enough to see a change, few enough for the normal suite
steps = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
specs = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

# ---- what is written as a randomization ------------------------------------------------------------------------------

numbers = st.one_of(
    st.integers(-20, 20),
    st.floats(),
    st.sampled_from(
        [10**400, -(2**63), True, 1e308, 5e-324, -0.0, np.float32(3.5), np.int64(-9), np.nan, np.array(2.0)]
    ),
)
scalars = st.one_of(
    numbers, st.none(), st.text(max_size=6), st.binary(max_size=3), st.sampled_from([object(), {1}, 1j])
)
words = st.sampled_from(
    ["uniform", "normal", "choice", "add", "scale", "absolute", "unifrom", "low", "clip", "correlation"]
)
fields = {field.name for kind in DISTRIBUTIONS.values() for field in dataclasses.fields(kind)}
keys = st.sampled_from([*sorted(fields), "distribution", "operation", "names", "matrix"])
anything = st.recursive(
    scalars | words,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(keys | st.text(max_size=3) | st.integers(0, 3), inner, max_size=4)
    ),
    max_leaves=12,
)
tables = st.builds(
    lambda name, rest: {"distribution": name, **rest},
    st.sampled_from([*sorted(DISTRIBUTIONS), "unifrom"]),
    st.dictionaries(keys, numbers | words | st.lists(numbers, max_size=3), max_size=4),
)
names = st.sampled_from([*LUNAR_LANDER, "gravty", "correlation", ""])
near = st.dictionaries(names, st.one_of(tables, numbers, st.tuples(numbers, numbers), anything), max_size=4)


def assert_read_or_refused(value: Any) -> bool:
    """Resolves a randomization; what is accepted can be drawn from, inside of its support."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gym_dr.errors.RandomizationWarning)
        try:
            randomization = resolve(value, LUNAR_LANDER)
        except GymDrError:
            return False
        again = resolve(randomization.to_dict(), LUNAR_LANDER)
    for name, values in draw(randomization, LUNAR_LANDER, np.arange(5, dtype=np.uint64), np.arange(5)).items():
        param = LUNAR_LANDER[name]
        low, high = randomization[name].support(param.nominal)  # not the parameter's bounds, to which draws are clipped
        slack = 1e-12 * max(1.0, abs(param.low), abs(param.high))  # what rounding may add to a rule's support
        assert (np.isfinite(values) & (values >= low - slack) & (values <= high + slack)).all()
        assert param.kind == "float" or (values == np.floor(values)).all()
    assert again == randomization
    return True


@specs
@given(anything | near)
def test_any_randomization(value: Any) -> None:
    assert_read_or_refused(value)


plain_values = st.recursive(
    st.one_of(st.integers(-20, 20), st.floats(allow_nan=False), st.booleans(), st.text(max_size=5), words),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=8,
)
toml_tables = st.dictionaries(names, plain_values | st.tuples(numbers).map(lambda n: 3), max_size=4)


@specs
@given(toml_tables, st.integers(0, 400), st.text("[]{}=\"'#,.\n\\xéa1-", max_size=3))
def test_any_toml_file(tmp_path: Path, table: dict[str, Any], at: int, typo: str) -> None:
    # what a table gives, and the same with a typing error somewhere
    path = tmp_path / "spec.toml"
    text = toml_text(table)
    for content in (text, text[:at] + typo + text[at + 1 :]):
        path.write_text(content, encoding="utf-8")
        assert_read_or_refused(path)


rule_texts = st.lists(
    st.one_of(
        words, st.sampled_from(sorted(DISTRIBUTIONS)), st.floats().map(str), st.text("0123456789.,-einfat", max_size=6)
    ),
    max_size=6,
).map(":".join)


@specs
@given(st.lists(st.builds("{}{}{}".format, names, st.sampled_from(["=", "", "=="]), rule_texts), max_size=3))
def test_any_randomize_option(texts: list[str]) -> None:
    try:
        rules = read_randomize(tuple(texts))
    except GymDrError:
        return
    assert_read_or_refused(rules)


option_values = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6),
    st.integers().map(str),
    st.floats().map(str),
    st.sampled_from(["1,2", "1,1", ",", "true", "cuda", "cpu", "sync", "default", "nan", "inf", "1e400", "--seed"]),
)
options = st.sampled_from(
    [
        "--seed",
        "--num-envs",
        "--randomization",
        "--randomize",
        "--config",
        "--env",
        "--gamma",
        "--launcher",
    ]
)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(options, option_values), min_size=1, max_size=3))
def test_any_option_of_train_ends_with_a_message_and_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: list[tuple[str, str]]
) -> None:
    # the folder is taken, so what is accepted ends there instead of training
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "taken"
    folder.mkdir(exist_ok=True)
    for name in ("config.json", "seed-1"):
        (folder / name).write_text("{}")
    before = files(tmp_path)
    result = gymdr("train", "a2c", "--run-dir", folder, *(text for pair in chosen for text in pair))
    assert result.code == 2, result
    assert "Traceback" not in result.err
    assert "Error: " in result.err or "Usage: " in result.err
    assert files(tmp_path) == before


# ---- what environments are given -------------------------------------------------------------------------------------


def make(kind: str) -> Any:
    mode, env_id = kind.split(" ")
    if mode == "native":
        return gym.make_vec(env_id, NUM_ENVS)
    return gym_dr.VectorParams(gym.make_vec(env_id, NUM_ENVS, vectorization_mode=mode))


KINDS = [f"native {env_id}" for env_id in (LANDER, CONTINUOUS, HOPPER)]
KINDS += [f"{mode} {LANDER}" for mode in ("sync", "async")]


@pytest.fixture(scope="module", params=KINDS)
def twins(request: pytest.FixtureRequest) -> Iterator[tuple[Any, Any]]:
    """Two equal environments: one is given anything, the other shows what would have been."""
    envs = make(request.param), make(request.param)
    yield envs
    for env in envs:
        env.close()


def valid_actions(envs: Any) -> Any:
    return np.ones(envs.action_space.shape, envs.action_space.dtype)


def assert_same(twins: tuple[Any, Any]) -> None:
    """Both go on alike: results, draws, seeds and values."""
    left, right = (env.step(valid_actions(env)) for env in twins)
    for a, b in zip(left[:4], right[:4], strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_equal(left[4]["draw_index"], right[4]["draw_index"])
    np.testing.assert_equal(twins[0].params, twins[1].params)
    assert twins[0].unwrapped.np_random_seed == twins[1].unwrapped.np_random_seed


dtypes = st.one_of(
    hnp.integer_dtypes(), hnp.unsigned_integer_dtypes(), hnp.floating_dtypes(sizes=(32, 64)), hnp.boolean_dtypes()
)


def arrays_like(shape: tuple[int, ...]) -> st.SearchStrategy[Any]:
    """Arrays and lists of that shape or another, of any type and any values, many of them small."""
    shapes = st.sampled_from([shape, shape, shape, (*shape, 1), shape[:-1], (shape[0] + 1, *shape[1:]), ()])

    def array(dtype: np.dtype[Any], of_shape: tuple[int, ...]) -> st.SearchStrategy[Any]:
        small = (
            None if dtype.kind == "b" else st.sampled_from([0, 1, 2, 3, 0.5, -1.0] if dtype.kind == "f" else [0, 1, 3])
        )
        whole = hnp.arrays(dtype, of_shape)
        return whole if small is None else whole | hnp.arrays(dtype, of_shape, elements=small)

    made = st.builds(lambda *pair: pair, dtypes, shapes).flatmap(lambda pair: array(*pair))
    return made | made.map(lambda a: a.tolist()) | scalars


@steps
@given(data=st.data())
def test_any_actions(twins: tuple[Any, Any], data: st.DataObject) -> None:
    envs, other = twins
    for env in twins:
        env.reset(seed=5)
    actions = data.draw(arrays_like(envs.action_space.shape))
    try:
        result = envs.step(actions)
    except InvalidActionError:
        pass  # refused
    else:
        array = np.asarray(actions)
        assert array.shape == envs.action_space.shape
        assert np.isfinite(array.astype(np.float64)).all()
        if envs.action_space.dtype.kind == "i":  # no choice is made out of another one
            assert envs.action_space.contains(array.astype(np.int64))
        assert np.isfinite(result[0]).all()
        other.step(array.astype(envs.action_space.dtype) if envs.action_space.dtype.kind == "i" else array)
    assert_same(twins)


masks = st.one_of(
    hnp.arrays(np.bool_, NUM_ENVS),
    hnp.arrays(np.bool_, NUM_ENVS).map(lambda mask: mask.tolist()),
    hnp.arrays(dtypes, st.sampled_from([(NUM_ENVS,), (2,), (NUM_ENVS, 1), ()])),
    scalars,
)
seeds = st.one_of(
    st.integers(-3, 2**70),
    st.lists(st.integers(-1, 9) | st.none() | st.floats(), max_size=4),
    scalars,
    st.lists(st.integers(0, 2**40) | st.none(), min_size=NUM_ENVS, max_size=NUM_ENVS),
    st.integers(0, 9).map(np.uint8),
)
gravity = st.one_of(numbers, st.floats(-9.0, -1.0), st.lists(st.floats(-9.0, -1.0), min_size=2, max_size=4), scalars)


@steps
@given(seed=seeds, mask=st.none() | masks, value=gravity, name=st.sampled_from(["gravity", "gravity.z", "gravty"]))
def test_any_seed_mask_and_parameters_of_reset(
    twins: tuple[Any, Any], seed: Any, mask: Any, value: Any, name: str
) -> None:
    envs, other = twins
    for env in twins:
        env.reset(seed=5)
        env.step(valid_actions(env))
    options = {"params": {name: value}} if mask is None else {"params": {name: value}, "reset_mask": mask}
    try:
        _, info = envs.reset(seed=seed, options=dict(options))
    except GymDrError:
        pass  # refused
    else:
        chosen = np.ones(NUM_ENVS, np.bool_) if mask is None else np.asarray(mask)
        assert (info["params"][name][chosen] == np.broadcast_to(np.asarray(value, np.float64), NUM_ENVS)[chosen]).all()
        known = envs.unwrapped.np_random_seed
        if seed is None or (isinstance(seed, list) and None in seed):
            other.reset(seed=list(known), options={"reset_mask": chosen})  # nobody knows the seeds before
            envs.reset(seed=list(known), options={"reset_mask": chosen})
        else:
            other.reset(seed=seed, options={"params": {name: np.asarray(value)}, "reset_mask": chosen})
    assert_same(twins)


@steps
@given(mask=st.none() | masks, value=gravity, name=st.sampled_from(["gravity", "gravity.z", "gravty"]))
def test_any_mask_and_parameters_of_set_params(twins: tuple[Any, Any], mask: Any, value: Any, name: str) -> None:
    envs, other = twins
    for env in twins:
        env.set_params(None)
        env.reset(seed=5)
    try:
        envs.set_params({name: value}, mask)
    except GymDrError:
        pass  # refused
    else:
        chosen = np.ones(NUM_ENVS, np.bool_) if mask is None else np.asarray(mask)
        other.set_params({name: value}, chosen)
        envs.reset(seed=6)
        other.reset(seed=6)
        # MuJoCo's environments tell no values of what was never set
        assert (
            not chosen.any()
            or (envs.params[name][chosen] == np.broadcast_to(np.asarray(value, np.float64), NUM_ENVS)[chosen]).all()
        )
    assert_same(twins)
    for env in twins:
        env.set_params(None)


def test_the_strategies_reach_both_outcomes() -> None:
    accepted = [assert_read_or_refused(value) for value in ({"gravity": (-9, -1)}, {"gravity": -3}, {}, None)]
    refused = [assert_read_or_refused(value) for value in ({"gravity": math.nan}, {"gravity": (1, 2)}, 3, {3: 4}, b"x")]
    assert all(accepted)
    assert not any(refused)
