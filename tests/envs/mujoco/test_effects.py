"""What the parameters of a model need: found from its joints, contacts and nominal values."""

from __future__ import annotations

import mujoco
import pytest

from gym_dr.envs.mujoco.space import ModelSpace, model_space

CART = """<mujoco><worldbody>
  <geom name="floor" type="plane" size="9 9 1"/>
  <body name="post"><geom name="post" size="1" mass="1"/></body>
  <body name="cart" pos="0 0 3"><joint name="slide" type="slide" axis="1 0 0"/><geom name="cart" size="1" mass="1"/>
    <body name="pole"><joint name="hinge" axis="0 1 0"/>
      <geom name="pole" type="capsule" fromto="0 0 0 0 0 1" size=".1" mass="1" {pole}/></body></body>
</worldbody>{more}</mujoco>"""


def space_of(pole: str = "", more: str = "") -> ModelSpace:
    return model_space("Cart", mujoco.MjModel.from_xml_string(CART.format(pole=pole, more=more)))


def needs(space: ModelSpace, name: str) -> str:
    found = space[name].needs
    return "" if found is None else found.text


def test_gravity_and_wind_act_in_directions_in_which_something_can_move() -> None:
    space = space_of()
    direction = "a joint that moves something in this direction, which is not in this model"
    assert [needs(space, f"gravity.{axis}") for axis in "xyz"] == ["", direction, ""]
    medium = "density or viscosity other than 0"
    assert [needs(space, f"wind.{axis}") for axis in "xyz"] == [medium, direction, medium]


def test_a_mass_must_move_and_a_moment_of_inertia_turn() -> None:
    space = space_of()
    assert needs(space, "body_mass:post") == "a joint that moves this body's center of mass, which is not in this model"
    assert needs(space, "body_mass:cart") == needs(space, "body_mass:pole") == ""
    # the pole turns about y; moments about the other axes change only its drag
    moments = [needs(space, f"body_inertia:pole.{axis}") for axis in "xyz"]
    assert sorted(moments) == ["", "density or viscosity other than 0", "density or viscosity other than 0"]
    turns = "a joint that turns this body about another axis, which is not in this model"
    assert [needs(space, f"body_ipos:pole.{axis}") for axis in "xyz"] == ["", turns, ""]


def test_a_factor_needs_a_number_other_than_0() -> None:
    space = space_of()
    assert needs(space, "gravity") == ""
    assert needs(space, "wind") == "wind.x or wind.z other than 0"
    assert needs(space, "dof_damping") == "dof_damping:slide or dof_damping:hinge other than 0"
    assert needs(space, "body_ipos:pole") == ""


@pytest.mark.parametrize(
    ("pole", "more", "expected"),
    [
        ("", "", ["a value above geom_friction:floor.slide or geom_friction:post.slide", "torsion", "roll"]),
        ('condim="4"', "", ["a value above", "a value above", "roll"]),
        ('condim="1"', "", ["a value above", "torsion", "roll"]),  # the floor has 3 and the larger one counts
        ('priority="1"', "", ["", "torsion", "roll"]),  # the pole's friction counts alone
        ('priority="-1"', "", ["a contact with friction", "torsion", "roll"]),  # that of the others does
        ('contype="0" conaffinity="0"', "", ["another geom that this one can touch"] * 3),
        (
            "",
            '<contact><exclude body1="post" body2="pole"/><exclude body1="pole" body2="world"/></contact>',
            ["another geom that this one can touch"] * 3,  # the cart is its parent
        ),
    ],
)
def test_friction_needs_a_contact_in_which_it_counts(pole: str, more: str, expected: list[str]) -> None:
    space = space_of(pole, more)
    found = [needs(space, f"geom_friction:pole.{axis}") for axis in ("slide", "spin", "roll")]
    for text, part in zip(found, expected, strict=True):
        assert (part in text) if part else text == "", found
