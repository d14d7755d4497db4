"""Factors become ordinary variants: one for each level, and one for each combination of crossed levels."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from gym_dr.errors import GymDrError
from gym_dr.studies.plan import read_study
from tests.toml_text import toml_text

FORM: dict[str, Any] = {
    "env": "gym_dr/LunarLanderDR-v3",
    "algorithm": "a2c",
    "seeds": [1, 2, 3],
    "settings": {"num_envs": 2},
    "a2c": {"updates": 3, "rollout_steps": 64, "hidden_sizes": [8]},
    "factors": {
        "draws": {"wide": {"randomization": "wide"}, "none": {"randomization": "none"}},
        "sampler": {"uniform": {}, "adr": {"sampler": "adr", "widen_at": 0.6}, "spdl": {"sampler": "spdl"}},
        "sees": {"nobody": {}, "critic": {"critic_context": True}, "policy": {"context": "observation"}},
        "width": {"small": {}, "large": {"hidden_sizes": [16], "seeds": 2}},
    },
    "design": {"cross": [["width", "draws"], ["sampler", "sees"]]},
    "evaluation": {"episodes": 2},
}


def changed(**changes: Any) -> dict[str, Any]:
    """The study with other tables; ``factors`` adds to those that there are."""
    form = copy.deepcopy(FORM)
    form["factors"] |= changes.pop("factors", {})
    return form | changes


def test_each_level_and_each_combination_of_crossed_levels_is_a_variant_named_after_what_differs() -> None:
    study = read_study(FORM)
    alone = ["baseline", "none", "adr", "spdl", "critic", "policy", "large"]
    together = ["none+large", "adr+critic", "adr+policy", "spdl+critic", "spdl+policy"]
    assert list(study.variants) == [*alone, *together]
    assert [contrast.variant for contrast in study.contrasts[-1:]] == ["sampler=spdl with sees=policy"]


def test_a_variant_has_the_settings_options_and_draws_of_all_its_levels_over_the_common_ones() -> None:
    variants = {name: variant.config for name, variant in read_study(FORM).variants.items()}
    both = variants["adr+critic"]
    assert (both.settings.sampler, both.sampler_options.widen_at, both.options.critic_context) == ("adr", 0.6, True)
    assert (both.settings.num_envs, both.options.hidden_sizes) == (2, (8,))
    assert both.randomization == variants["baseline"].randomization
    assert not variants["none+large"].randomization
    assert variants["none+large"].options.hidden_sizes == (16,)


def test_a_level_may_have_fewer_seeds_the_first_ones() -> None:
    study = read_study(FORM)
    assert study.variants["baseline"].seeds == study.variants["none"].seeds == (1, 2, 3)
    assert study.variants["large"].seeds == study.variants["none+large"].seeds == (1, 2)


def test_another_factor_leaves_the_names_and_contents_of_the_variants_as_they_are() -> None:
    more = read_study(changed(factors={"gamma": {"usual": {}, "short": {"gamma": 0.9}}}))
    before = {name: variant.content for name, variant in read_study(FORM).variants.items()}
    assert before.items() <= {name: variant.content for name, variant in more.variants.items()}.items()


def test_factors_may_stand_beside_variants_and_be_compared_too() -> None:
    own = {"variants": {"own": {"gamma": 0.9}}, "comparisons": {"pairs": [["own", "adr"]]}}
    study = read_study(changed(**own))
    assert (list(study.variants)[-1], study.variants["own"].seeds) == ("own", (1, 2, 3))
    assert study.contrasts[-1].weights == {"own": 1.0, "adr": -1.0}


def test_a_level_differs_on_average_over_what_is_crossed_and_two_together_by_more_than_both_alone() -> None:
    found = {contrast.variant: contrast.weights for contrast in read_study(FORM).contrasts}
    assert found["draws=none"] == {"none": 0.5, "none+large": 0.5, "baseline": -0.5, "large": -0.5}
    assert found["sees=critic"] == pytest.approx(
        {"critic": 1 / 3, "adr+critic": 1 / 3, "spdl+critic": 1 / 3, "baseline": -1 / 3, "adr": -1 / 3, "spdl": -1 / 3}
    )
    assert found["draws=none with width=large"] == {"none+large": 1.0, "none": -1.0, "large": -1.0, "baseline": 1.0}
    assert {abs(sum(weights.values())) < 1e-12 for weights in found.values()} == {True}


def test_without_a_design_each_factor_is_varied_alone(tmp_path: Path) -> None:
    form = changed()
    del form["design"]
    (tmp_path / "study.toml").write_text(toml_text(form))
    assert len(read_study(tmp_path / "study.toml").variants) == 1 + 1 + 2 + 2 + 1


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "an option of two factors": (
        {"factors": {"net": {"a": {}, "b": {"hidden_sizes": [4]}}}},
        r"\[factors\]: expected each option in the levels of one factor, got hidden_sizes in width and net",
    ),
    "a level of the baseline's name": (
        {"factors": {"net": {"a": {}, "baseline": {"gamma": 0.9}}}},
        r"\[factors\]: expected levels with distinct names other than baseline; got 'baseline'",
    ),
    "a level whose name is a combination": (
        {"factors": {"net": {"a": {}, "none+large": {"gamma": 0.9}}}},
        r"\[factors\]: expected levels with distinct names .* got 'none\+large'",
    ),
    "a single level": ({"factors": {"net": {"a": {}}}}, r"net: expected a table of at least two levels"),
    "an unknown option": ({"factors": {"net": {"a": {}, "b": {"gama": 3}}}}, r"\[factors\]: b: .*mean 'gamma'"),
    "more seeds than there are": (
        {"factors": {"net": {"a": {}, "b": {"gamma": 0.9, "seeds": 4}}}},
        r"\[factors\]: b: seeds: expected how many of the study's seeds to use, from 1 to 3",
    ),
    "an unknown factor": ({"design": {"cross": [["draw", "sees"]]}}, r"\[design\]: Unknown factor 'draw'.*'draws'"),
    "a factor with itself": ({"design": {"cross": [["draws", "draws"]]}}, r"cross: expected two factors in each"),
    "an unknown key": ({"design": {"crosses": []}}, r"\[design\]: .*Did you mean 'cross'"),
    "a combination that cannot be": ({"design": {"cross": [["draws", "sampler"]]}}, r"\[factors\]: none\+adr: "),
    "a variant of a combination's name": ({"variants": {"Adr": {"gamma": 0.9}}}, "got 'adr' and 'Adr'"),
    "a design without factors": ({"factors": None}, r"\[design\]: expected tables of factors"),
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_what_cannot_be_meant_is_refused_by_name(case: str) -> None:
    change, message = REFUSED[case]
    change = copy.deepcopy(change)
    if change.get("factors", 0) is None:
        form = {key: value for key, value in FORM.items() if key != "factors"} | {"variants": {"a": {}}}
    else:
        form = changed(**change)
    with pytest.raises(GymDrError, match=message):
        read_study(form)
