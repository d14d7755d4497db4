from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from gym_dr import Randomization
from gym_dr.evaluation.policies import FrozenPolicy, TrainedRun
from gym_dr.evaluation.report.assemble import assemble
from gym_dr.evaluation.report.comparison import Comparison, Group
from gym_dr.evaluation.report.tables import config_diff
from gym_dr.runs.config import RunConfig
from gym_dr.training.config import ReinforceConfig
from tests.evaluation.report.sample import tiny_policies


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> FrozenPolicy:
    return tiny_policies(tmp_path_factory.mktemp("differing"), "run")[0]


def run_of(policy: FrozenPolicy) -> TrainedRun:
    assert policy.run is not None
    return policy.run


def with_config(policy: FrozenPolicy, config: RunConfig) -> FrozenPolicy:
    return dataclasses.replace(policy, run=dataclasses.replace(run_of(policy), config=config))


def group(policy: FrozenPolicy, name: str, **changes: Any) -> Group:
    """A policy of the same run with other settings, options or randomization."""
    config = run_of(policy).config
    settings = {k: changes.pop(k) for k in list(changes) if hasattr(config.settings, k)}
    options = {k: changes.pop(k) for k in list(changes) if hasattr(config.options, k)}
    changed = dataclasses.replace(
        config,
        settings=dataclasses.replace(config.settings, **settings),
        options=dataclasses.replace(config.options, **options),
        **changes,
    )
    return Group(name=name, policies=(with_config(policy, changed),))


def rows(groups: list[Group]) -> dict[str, list[str]]:
    (table,) = config_diff(groups)
    assert table.columns == ["Setting", *(group.name for group in groups)]
    return {name: [cell.value for cell in cells] for name, cells in table.rows}


def test_settings_options_and_draws_that_differ_are_told_and_no_others(policy: FrozenPolicy) -> None:
    drawn, narrow = Randomization({"gravity": (-12, -8), "wind_power": 3.0}), Randomization({"gravity": (-11, -9)})
    groups = [
        group(policy, "a", randomization=drawn, num_envs=8, seed=1),
        group(policy, "b", randomization=narrow, num_envs=8, seed=2, critic_context=True),
        group(policy, "c", num_envs=16, seed=3, hidden_sizes=(32, 16)),
    ]
    sizes = ", ".join(map(str, run_of(policy).config.options.hidden_sizes))
    assert rows(groups) == {
        "num_envs": ["8", "8", "16"],
        "critic_context": ["no", "yes", "no"],
        "hidden_sizes": [sizes, sizes, "32, 16"],
        "draws of gravity": ["Uniform(-12.0, -8.0)", "Uniform(-11.0, -9.0)", "nominal"],
        "draws of wind_power": ["Constant(3.0)", "nominal", "nominal"],
    }


def test_other_algorithms_are_told_without_their_own_settings(policy: FrozenPolicy) -> None:
    other = RunConfig(
        algorithm="reinforce", settings=run_of(policy).config.settings, randomization=None, options=ReinforceConfig()
    )
    groups = [group(policy, "a"), Group(name="b", policies=(with_config(policy, other),))]
    assert rows(groups) == {"algorithm": ["a2c", "reinforce"]}
    assert "end of the page" in config_diff(groups)[0].notes[0]


def test_a_single_policy_differs_from_none(policy: FrozenPolicy) -> None:
    assert config_diff([group(policy, "a")]) == []


def test_it_is_the_first_table_of_the_page(
    comparison: Comparison, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("gym_dr.evaluation.report.assemble.film_strips", lambda *_: [])
    assert (
        assemble(comparison, "gymdr report", lambda text: None).tables[0].caption == "What differs between the policies"
    )
