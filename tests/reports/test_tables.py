from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gym_dr import Randomization
from gym_dr.policies.frozen import FrozenPolicy
from gym_dr.reports import tables
from gym_dr.reports.comparison import Comparison, Group


def with_seed(policy: FrozenPolicy, seed: int) -> FrozenPolicy:
    assert policy.run is not None
    config = policy.run.config
    seeded = dataclasses.replace(config, settings=dataclasses.replace(config.settings, seed=seed))
    return dataclasses.replace(policy, run=dataclasses.replace(policy.run, config=seeded))


class Seeds:
    """Groups of several runs, of which only the returns are known; the rest is another evaluation's."""

    differences = Comparison.differences

    def __init__(self, comparison: Comparison, returns: list[dict[int, Any]]) -> None:
        """Returns of each group by seed."""
        self._compared, self._returns = comparison, [np.array([*r.values()]) for r in returns]
        self.groups = [
            Group(name=group.name, policies=tuple(with_seed(group.policies[0], seed) for seed in by_seed))
            for group, by_seed in zip(comparison.groups, returns, strict=True)
        ]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._compared, name)

    def entries(self, group: int) -> list[dict[str, Any]]:
        return self._compared.entries(group) * len(self._returns[group])

    def returns(self, group: int, set_name: str) -> Any:
        return self._returns[group]


def test_every_set_has_a_table_with_a_row_for_each_run(comparison: Comparison) -> None:
    found = tables.summary_tables(comparison)
    for table in found:
        assert [row for row, *_ in table.rows] == [policy["name"] for policy in comparison.document["policies"]]
        assert all(len(row) == len(table.columns) for row in table.rows)
    mean = comparison.results(1, "nominal")[0]["statistics"]["mean"]["value"]
    assert float(found[0].rows[1][1].value) == pytest.approx(mean, abs=0.5)


def test_terms_of_rewards_are_pooled_over_the_runs_of_each_group(comparison: Comparison) -> None:
    assert tables.terms_of_rewards(comparison) == []  # a lander reports none

    def results(group: int, name: str) -> list[dict[str, Any]]:
        return [
            {"reward_terms": {"reward_far": {"value": value, "low": None, "high": None}}}
            for value in ([1.0, 3.0], [5.0])[group]
        ]

    seeds: Any = SimpleNamespace(
        sets=["nominal"],
        groups=[SimpleNamespace(name="a"), SimpleNamespace(name="b")],
        results=results,
        cells=comparison.cells,
        label=comparison.label,
        place=comparison.place,
    )
    found = [table.rows[0] for table in tables.terms_of_rewards(seeds)]
    assert [(name, float(cell.value)) for name, cell in found] == [("reward_far", 2.0), ("reward_far", 5.0)]


def test_the_first_answer_compares_the_policies_over_the_training_distribution(comparison: Comparison) -> None:
    difference = tables.difference(comparison, 1, 0, "sobol")["value"]
    returns = [comparison.returns(group, "sobol").mean() for group in (0, 1)]
    assert difference == pytest.approx(returns[1] - returns[0])
    answer = tables.findings(comparison)[0]
    second, first = (f"'{comparison.groups[group].name}'" for group in (1, 0))
    assert answer.startswith(f"Over the training distribution, {second} achieves {abs(difference):.1f} ")
    assert first in answer


def test_a_difference_turned_round_has_the_other_sign_and_its_interval_too(comparison: Comparison) -> None:
    there, back = tables.difference(comparison, 1, 0, "grid"), tables.difference(comparison, 0, 1, "grid")
    assert there["low"] <= there["value"] <= there["high"]
    assert back == {"value": -there["value"], "low": -there["high"], "high": -there["low"]}


def test_seeds_are_pooled_and_their_interval_is_over_seeds(comparison: Comparison) -> None:
    results = comparison.results(0, "sobol") + comparison.results(1, "sobol")  # as if of two seeds
    seeds: Any = SimpleNamespace(results=lambda group, name: results, limits=comparison.limits)
    means = [result["statistics"]["mean"]["value"] for result in results]
    found = tables.pooled(seeds, 0, "sobol", "mean")
    half = 12.706 * abs(means[0] - means[1]) / 2  # t with one degree of freedom times the standard error of two
    assert [found["value"], found["low"], found["high"]] == pytest.approx(
        [np.mean(means), np.mean(means) - half, np.mean(means) + half], rel=1e-3
    )
    assert tables.pooled(comparison, 1, "sobol", "mean") == results[1]["statistics"]["mean"]  # over episodes


def test_commands_have_six_digits_and_stay_within_bounds(comparison: Comparison) -> None:
    assert tables._short(comparison, "gravity", -7.123456789) == "-7.12346"
    assert tables._short(comparison, "gravity", -1e-9) == "-1e-09"
    bounds = {"low": 1 / 3, "high": 2 / 3}
    third: Any = SimpleNamespace(document={"parameters": {"x": bounds}})
    assert [float(tables._short(third, "x", value)) for value in bounds.values()] == [*bounds.values()]


def test_commands_trust_the_module_of_an_environment_of_your_own(
    comparison: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not any("--trust" in command for _, command in tables.watch_commands(comparison))
    monkeypatch.setitem(comparison.document, "env", f"mine:{comparison.document['env']}")
    commands = [command for _, command in tables.watch_commands(comparison)]
    assert commands
    assert all("--trust mine" in command for command in commands)


@pytest.mark.parametrize(
    "by_seed",
    [
        # differences 4, 5 and 6, of variance 1, whatever the order and the seeds that only one has
        [{1: [1.0], 2: [20.0], 3: [300.0]}, {3: [306.0], 2: [25.0], 1: [5.0], 4: [0.0]}],
        [{1: [1.0], 2: [20.0], 3: [300.0]}, {7: [5.0], 8: [25.0], 9: [306.0]}],  # no common seeds
    ],
    ids=["by seed", "in order"],
)
def test_runs_of_several_seeds_are_compared_as_pairs(comparison: Comparison, by_seed: Any) -> None:
    seeds: Any = Seeds(comparison, by_seed)
    found = tables.difference(seeds, 1, 0, "sobol")
    assert found["value"] == 5.0
    half = 4.3027 / 3**0.5  # t with two degrees of freedom
    assert [found["low"], found["high"]] == pytest.approx([5 - half, 5 + half], abs=1e-3)
    assert "over seeds 2.5 to 7.5" in tables._comparison(seeds, [1], "sobol")
    assert "over episodes" in tables.findings(comparison)[0]


def test_one_seed_against_several_has_no_interval(comparison: Comparison) -> None:
    seeds: Any = Seeds(comparison, [{1: [1.0]}, {1: [5.0], 2: [7.0]}])
    assert tables.difference(seeds, 1, 0, "sobol") == {"value": 5.0, "low": None, "high": None}
    assert "too few" in tables._comparison(seeds, [1], "sobol")


def test_runs_without_common_seeds_that_are_not_as_many_are_all_in_the_difference(comparison: Comparison) -> None:
    seeds: Any = Seeds(comparison, [{1: [1.0], 2: [2.0], 3: [6.0]}, {4: [5.0], 5: [7.0]}])
    assert tables.difference(seeds, 1, 0, "sobol") == {"value": 3.0, "low": None, "high": None}


@pytest.mark.parametrize(
    ("found", "words", "chance"),
    [
        ({"value": -5.0, "low": -9.0, "high": -1.0}, "achieves 5.0 less than", False),
        ({"value": 5.0, "low": -1.0, "high": 11.0}, "achieves 5.0 more than", True),
        ({"value": 5.0, "low": None, "high": None}, "too few episodes for an interval", False),
    ],
)
def test_an_answer_claims_no_more_than_the_interval(
    comparison: Comparison, found: dict[str, Any], words: str, chance: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "difference", lambda *_: found)
    answer = tables.findings(comparison)[0]
    assert words in answer
    assert ("may be chance" in answer) is chance


@pytest.mark.parametrize(
    ("gravity", "wind", "answer"),
    [
        ((0.2, 0.1), (0.6, 0.3), "its return depends most on wind"),
        ((0.1, -0.1), (0.4, -0.2), "no parameter has a significant effect"),
        ((None, None), (None, None), "no parameter has a significant effect"),  # all returns are the same
    ],
)
def test_a_parameter_matters_only_if_its_interval_excludes_0(gravity: Any, wind: Any, answer: str) -> None:
    shares = {name: {"value": value, "low": low} for name, (value, low) in (("gravity", gravity), ("wind", wind))}
    assert tables._most_important(shares) == answer


def test_indices_are_those_of_the_evaluation_and_over_seeds_of_several_runs(comparison: Comparison) -> None:
    own = comparison.results(1, "sobol")[0]["sensitivity"]
    found = tables.indices(comparison, 1, "sobol")
    assert [*found] == own["parameters"]
    assert [total for _, total in found.values()] == own["total"]
    assert tables.indices(comparison, 1, "nominal") == {}
    (table,) = tables.sensitivity_tables(comparison)
    assert [name for name, *_ in table.rows] == own["parameters"]
    assert all(len(row) == len(table.columns) == 5 for row in table.rows)
    runs = [{"value": value, "low": 0.0, "high": 1.0} for value in (0.9, 1.0, 0.8)]
    assert tables.over_runs(runs, (0.0, 1.0)) == {
        "value": pytest.approx(0.9),
        "low": pytest.approx(0.9 - 4.303 * 0.1 / 3**0.5, abs=1e-3),
        "high": 1.0,
    }


def test_the_worst_cell_has_the_mean_of_fresh_episodes_and_the_first_one_beside_it(comparison: Comparison) -> None:
    cell = tables.failure_tables(comparison)[0].rows[0][1]
    worst = comparison.results(0, "sobol")[0]["worst_cell"]
    assert float(cell.value) == pytest.approx(worst["mean"]["value"], abs=0.5)
    first = float(cell.detail.splitlines()[-1].removesuffix(" when it was chosen"))
    assert first == pytest.approx(worst["first_mean"], abs=0.5)


def test_without_references_there_is_no_regret(comparison: Comparison) -> None:
    assert tables.regret_table(comparison) == []


def test_regret_has_a_row_for_each_policy_and_sentences_for_each_set(judged: Comparison) -> None:
    (table,) = tables.regret_table(judged)
    assert [name for name, *_ in table.rows] == ["return of the best known", judged.groups[0].name]
    assert all(len(row) == len(table.columns) for row in table.rows)
    expected = judged.results(0, "sobol")[0]["statistics"]["regret"]["value"]
    shown = table.rows[1][table.columns.index("the training distribution")].value
    assert float(shown) == pytest.approx(expected, abs=0.5)
    assert any(note.startswith("Over the training distribution: The best known policy solves") for note in table.notes)


def test_settings_options_and_draws_that_differ_are_named_and_no_others(comparison: Comparison) -> None:
    (policy,) = comparison.groups[0].policies
    assert policy.run is not None
    config = policy.run.config
    many = dataclasses.replace(config.settings, num_envs=16, seed=3)
    informed = dataclasses.replace(config.options, critic_context=True)
    large = dataclasses.replace(config.options, hidden_sizes=(32, 16))
    drawn, narrow = Randomization({"gravity": (-12, -8), "wind_power": 3.0}), Randomization({"gravity": (-11, -9)})
    configs = {
        "a": dataclasses.replace(config, randomization=drawn),
        "b": dataclasses.replace(config, randomization=narrow, options=informed),
        "c": dataclasses.replace(config, settings=many, options=large),
    }
    runs = {name: dataclasses.replace(policy.run, config=each) for name, each in configs.items()}
    groups = [Group(name=name, policies=(dataclasses.replace(policy, run=run),)) for name, run in runs.items()]
    (table,) = tables.config_diff(groups)
    assert table.columns == ["Setting", "a", "b", "c"]
    assert {name: cells for name, *cells in table.rows} == {
        "num_envs": ["2", "2", "16"],
        "critic_context": ["False", "True", "False"],
        "hidden_sizes": ["(8,)", "(8,)", "(32, 16)"],
        "draws of gravity": ["Uniform(-12.0, -8.0)", "Uniform(-11.0, -9.0)", "none"],
        "draws of wind_power": ["Constant(3.0)", "none", "none"],
    }
