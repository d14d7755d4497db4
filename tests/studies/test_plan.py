"""A study is read as it was meant, or refused with what was expected and what was got."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gym_dr.errors import ConfigError, GymDrError
from gym_dr.studies.plan import read_study
from tests.policies.tiny_run import train_tiny_run
from tests.studies.study_sample import TINY, tiny
from tests.toml_text import toml_text


def test_settings_common_to_all_are_under_those_of_a_variant() -> None:
    study = read_study(tiny(variants={"big": {"num_envs": 4, "updates": 3, "rollout_steps": 32}}))
    configs = {name: variant.config for name, variant in study.variants.items()}
    envs = {"nominal": 2, "wide": 2, "asymmetric": 2, "big": 4}
    assert {name: config.settings.num_envs for name, config in configs.items()} == envs
    assert {config.options.hidden_sizes for config in configs.values()} == {(8,)}
    assert study.variants["wide"].with_seed(2).settings.seed == 2
    assert {config.settings.eval_episodes for config in configs.values()} == {0}  # the study plays them


def test_budgets_are_updates_times_rollout_times_environments() -> None:
    assert {variant.budget for variant in read_study(TINY).variants.values()} == {3 * 64 * 2}


def test_total_steps_are_the_same_budget_for_updates_of_all_sizes() -> None:
    options = {"rollout_steps": 64, "hidden_sizes": [8]}
    variants = {"wide": {}, "long": {"rollout_steps": 100}, "more": {"total_steps": 2000}}
    study = read_study(tiny(total_steps=1000, unequal_budgets=True, a2c=options, variants=variants))
    updates = {name: variant.config.options.updates for name, variant in study.variants.items()}
    assert updates == {"nominal": 8, "wide": 8, "asymmetric": 8, "long": 5, "more": 16}  # of 2 environments, rounded up
    to_wide = {contrast.variant: contrast.same_budget(study.variants) for contrast in study.contrasts}
    assert to_wide == {"wide": True, "asymmetric": True, "long": True, "more": False}
    with pytest.raises(ConfigError, match="equal budgets"):
        read_study(tiny(total_steps=1000, a2c=options, variants=variants))
    del variants["more"]
    assert read_study(tiny(total_steps=1000, a2c=options, variants=variants)).same_budget()


def test_sets_are_those_of_evaluate_and_draws_are_named_after_their_preset() -> None:
    evaluation = {"sobol": 4, "grid": {"gravity": [-11, -5, 2]}, "sets": {"random": "random", "extreme": "extreme"}}
    own = {"own": {"randomization": {"gravity": "uniform:-12:-2"}}, "default": {"randomization": "random"}}
    names = [cells.name for cells in read_study(tiny(evaluation=evaluation, variants=own)).sets]
    always = ["nominal", "training: wide", "training: own"]  # the draws of "random" are there once
    assert names == [*always, "grid", "sobol: wide", "sobol: own", "sobol: random", "random", "extreme"]


def test_sets_of_your_own_are_presets_files_or_tables(tmp_path: Path) -> None:
    calm = {"gravity": "uniform:-9:-8", "wind_power": 0}  # without the nominal gravity, which a test may leave out
    form = tiny(evaluation={"sets": {"hard": "extreme", "calm": calm, "own": "own.toml"}})
    (tmp_path / "study.json").write_text(json.dumps(form))
    (tmp_path / "own.toml").write_text('gravity = "uniform:-12:-2"')
    sets = {cells.name: cells.randomization for cells in read_study(tmp_path / "study.json").sets}
    assert list(sets) == ["nominal", "training: wide", "hard", "calm", "own"]
    assert {name: set(sets[name] or ()) for name in ("calm", "own")} == {
        "calm": {"enable_wind", "gravity", "wind_power"},
        "own": {"gravity"},
    }


def test_variants_have_samplers_with_options_of_their_own_or_of_the_samplers_table() -> None:
    variants = {
        "adr": {"sampler": "adr", "widen_at": 0.6, "success": 100.0},
        "doraemon": {"sampler": "doraemon"},
        "sure": {"sampler": "doraemon", "alpha": 0.8},
    }
    study = read_study(tiny(randomization="wide", doraemon={"alpha": 0.4, "start": "default"}, variants=variants))
    adr, doraemon, sure = (study.variants[name].config.sampler_options for name in variants)
    assert (adr.widen_at, adr.success, adr.start) == (0.6, 100.0, "nominal")
    assert (doraemon.alpha, sure.alpha, sure.start) == (0.4, 0.8, "default")
    assert study.variants["sure"].content["doraemon"]["alpha"] == 0.8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"variants": {"a": {"sampler": "doraemon", "alfa": 0.5}}}, "Did you mean 'alpha'"),
        ({"variants": {"a": {"sampler": "adr", "alpha": 0.5}}}, "alpha: expected with sampler doraemon, got adr"),
        ({"variants": {"a": {"sampler": "adr"}}, "doraemon": {"alpha": 0.5}}, r"\[doraemon\]: expected options of an"),
        (
            {"variants": {"a": {"sampler": "adr"}}, "adr": {"widen": 0.5}},
            r"Unknown setting 'widen'\. Did you mean 'widen_at'",
        ),
        ({"variants": {"a": {"sampler": "adr", "start": {"gravity": "uniform:-30:-1"}}}}, "expected"),
    ],
)
def test_impossible_options_of_samplers_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(GymDrError, match=message):
        read_study(tiny(randomization="wide", **change))


def pairs(form: dict[str, Any]) -> list[tuple[str, str]]:
    return [(contrast.variant, contrast.other) for contrast in read_study(form).contrasts]


def test_every_variant_is_compared_with_the_first_or_with_the_baseline_or_in_pairs() -> None:
    assert pairs(TINY) == [("wide", "nominal"), ("asymmetric", "nominal")]
    assert pairs(tiny(comparisons={"baseline": "wide"})) == [("nominal", "wide"), ("asymmetric", "wide")]
    assert pairs(tiny(comparisons={"pairs": [["asymmetric", "wide"]]})) == [("asymmetric", "wide")]


def test_a_variant_may_have_fewer_seeds() -> None:
    study = read_study(tiny(variants={"few": {"gamma": 0.9, "seeds": 1}}))
    assert (study.variants["few"].seeds, study.variants["wide"].seeds) == ((1,), (1, 2))


def test_a_file_gives_what_a_mapping_gives(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(toml_text(TINY))
    (tmp_path / "a.json").write_text(json.dumps(TINY))
    expected = read_study(TINY).to_dict()
    assert read_study(tmp_path / "a.toml").to_dict() == expected
    assert read_study(str(tmp_path / "a.json")).to_dict() == expected


def test_a_randomization_that_a_file_names_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "study.json").write_text(json.dumps(tiny(variants={"wide": {"randomization": "own.toml"}})))
    (tmp_path / "own.toml").write_text('gravity = "uniform:-12:-2"')
    assert set(read_study(tmp_path / "study.json").variants["wide"].config.randomization or ()) == {"gravity"}
    (tmp_path / "study.json").write_text(json.dumps(tiny(variants={"wide": {"randomization": "../own.toml"}})))
    with pytest.raises(ConfigError, match=r"study.json: \[variants.wide\]: .*beside or below"):
        read_study(tmp_path / "study.json")


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a key": ({"sedes": [3]}, "Unknown setting 'sedes'. Did you mean 'seeds'"),
    "an option at the top": ({"gamma": 0.9}, r"gamma: expected in the table \[a2c\]"),
    "a setting at the top": ({"num_envs": 4}, r"num_envs: expected in the table \[settings\]"),
    "an option of a sampler at the top": ({"widen_at": 0.5}, r"widen_at: expected in the table \[adr\]"),
    "a key of a table at the top": ({"pairs": []}, r"pairs: expected in the table \[comparisons\]"),
    "updates and steps": ({"total_steps": 100}, "Expected updates or total_steps, got both"),
    "a key of a variant": (
        {"variants": {"a": {"gama": 0.9}}},
        r"\[variants.a\]: Unknown setting 'gama'. Did you mean 'gamma'",
    ),
    "what belongs to no run": ({"variants": {"a": {"workers": 3}}}, r"\[variants.a\]: Unknown setting 'workers'"),
    "options that no variant has": ({"reinforce": {"lr": 0.1}}, r"\[reinforce\]: expected options of an algorithm"),
    "no algorithm": ({"algorithm": None}, "algorithm: expected a name"),
    "an environment of a variant": (
        {"variants": {"a": {"env": "CartPole-v1"}}},
        "env: expected at the top of the file",
    ),
    "a seed of a variant": ({"variants": {"a": {"seed": 3}}}, "seed: expected at the top of the file"),
    "an impossible range": ({"variants": {"a": {"randomize": {"gravity": "uniform:-2:-12"}}}}, r"\[variants.a\]: "),
    "two variants of one name": ({"variants": {"Wide": {}}}, "got 'wide' and 'Wide'"),
    "a name that is no folder's": ({"variants": {"../a": {}}}, "expected a name of letters"),
    "no seeds": ({"seeds": []}, "seeds: expected distinct whole numbers of at least 0"),
    "a seed twice": ({"seeds": [1, 1]}, "seeds: expected distinct whole numbers of at least 0"),
    "a reserved seed": ({"seeds": [1, 101]}, "seeds: expected seeds on which no options were tuned, got 101. Use"),
    "a set": ({"evaluation": {"gird": {}}}, "Did you mean 'grid'"),
    "a grid out of bounds": ({"evaluation": {"grid": {"gravity": [1, 2, 2]}}}, r"\[evaluation\]: "),
    "a reference": ({"evaluation": {"references": ["asymetric"]}}, "Did you mean 'asymmetric'"),
    "a set of your own with another's name": (
        {"evaluation": {"sets": {"nominal": "wide"}}},
        r"\[evaluation\]: 'nominal' is the name of a kind of set",
    ),
    "a baseline": ({"comparisons": {"baseline": "nominl"}}, "Unknown variant 'nominl'. Did you mean 'nominal'"),
    "a pair of one": ({"comparisons": {"pairs": [["wide", "wide"]]}}, "expected two variants in each"),
    "baseline and pairs": ({"comparisons": {"baseline": "wide", "pairs": [["asymmetric", "wide"]]}}, "got both"),
    "unequal budgets": (
        {"variants": {"a": {"updates": 6}}},
        "equal budgets .* got nominal 384, wide 384, asymmetric 384, a 768",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_with_what_was_expected(name: str) -> None:
    changes, message = REFUSED[name]
    with pytest.raises(GymDrError, match=message):
        read_study(tiny(**changes))


def test_sets_need_parameters() -> None:
    plain = {"env": "CartPole-v1", "variants": {"a": {}}, "algorithm": "a2c", "seeds": [1]}
    plain |= {"randomization": "none"}
    assert [cells.name for cells in read_study(plain).sets] == ["nominal"]
    with pytest.raises(ConfigError, match="CartPole-v1 has no parameters to vary"):
        read_study(plain | {"evaluation": {"sobol": 4}})


def test_unequal_budgets_are_allowed_where_the_study_says_so() -> None:
    study = read_study(tiny(unequal_budgets=True, variants={"long": {"updates": 6}}))
    assert not study.same_budget()
    assert [contrast.same_budget(study.variants) for contrast in study.contrasts] == [True, True, False]  # with nominal


def test_a_file_has_no_module_imported_and_no_key_twice(tmp_path: Path) -> None:
    (tmp_path / "study.json").write_text(json.dumps(tiny(env="antigravity:My-v0")))
    with pytest.raises(ConfigError, match=r"trust=\['antigravity'\]"):
        read_study(tmp_path / "study.json")
    (tmp_path / "study.json").write_text('{"variants": {"a": {}, "a": {"gamma": 0.5}}}')
    with pytest.raises(ConfigError, match=r"study.json: is not a valid JSON file: the key 'a' appears twice"):
        read_study(tmp_path / "study.json")


def test_a_variant_may_imitate_a_run(tmp_path: Path) -> None:
    train_tiny_run(tmp_path / "teacher", "--activation", "tanh")
    student = {"algorithm": "distill", "teacher": str(tmp_path / "teacher"), "randomization": "wide"}
    distill = {"updates": 3, "rollout_steps": 64, "hidden_sizes": [8]}
    study = read_study(tiny(variants={"student": student}, distill=distill))
    assert study.variants["student"].config.options.teacher == str((tmp_path / "teacher").resolve())
    with pytest.raises(ConfigError, match=r"\[variants.student\]: teacher: expected a run's folder, got none"):
        read_study(tiny(variants={"student": {**student, "teacher": ""}}, distill=distill))
